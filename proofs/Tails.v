(** Noise on the integers with geometric tails: its deltas are finite sums.

    docs/design/mathematics.md 1.5; [IntegerNoise] of release/exact/integers/noise.py.  [f] is noise
    on the integers.  Beyond some integer it repeats its last [period] masses times c, again and
    again.  [excess_at t s k] is the part of the approximate delta at k for the shift s, with t for
    the ratio, and [violated_at] that of the probabilistic one.

    In words:
    - [one_side]: terms that from some place on repeat each period times c < 1 add up to the terms
      before, and one period with the factor 1/(1 - c);
    - [excess_repeats], [violated_repeats]: where k and k + s both lie in a tail, a period later the
      parts of both deltas are c times what they were.  By [one_side], taken to the right and to the
      left, both deltas are the finite sums of 1.5;
    - [far_is_worst_excess], [far_is_worst_violated]: for noise that rises up to some integer and
      falls from there, both parts are largest, at each integer, at the largest shift. *)

From Coq Require Import Reals Lra Lia ZArith Wf_nat.
From DPRelease Require Import Sums Series.
Open Scope R_scope.

Section OneSide.
Variable a : nat -> R.
Variables (start period : nat) (c : R).
Hypothesis a_nonneg : forall n, 0 <= a n.
Hypothesis period_positive : (1 <= period)%nat.
Hypothesis c_range : 0 <= c < 1.
Hypothesis repeats : forall n, (start <= n)%nat -> a (n + period)%nat = c * a n.

(** The terms from the start on. *)
Definition later (n : nat) : R := a (start + n)%nat.

Lemma later_nonneg (n : nat) : 0 <= later n.
Proof. apply a_nonneg. Qed.

Lemma later_repeats (n : nat) : later (n + period) = c * later n.
Proof. unfold later. rewrite Nat.add_assoc. apply repeats. lia. Qed.

Lemma first_nonneg (b : nat -> R) (n : nat) : (forall k, 0 <= b k) -> 0 <= first b n.
Proof. intros H. induction n as [|n IH]; simpl; [lra|]. generalize (H n). lra. Qed.

Lemma first_monotone (n k : nat) : (n <= k)%nat -> first later n <= first later k.
Proof.
  induction 1 as [|k _ IH]; [lra|]. cbn [first]. generalize (later_nonneg k). lra.
Qed.

Lemma first_period (n : nat) : first later (n + period) = first later period + c * first later n.
Proof.
  induction n as [|n IH]; [simpl; lra|]. cbn [Nat.add first]. rewrite IH, later_repeats. ring.
Qed.

Lemma first_bounded (n : nat) : first later n <= first later period / (1 - c).
Proof.
  assert (0 <= first later period) as Hp by (apply first_nonneg, later_nonneg).
  assert (first later period <= first later period / (1 - c)) as Hq.
  { apply Rmult_le_reg_r with (1 - c); [lra|].
    replace (first later period / (1 - c) * (1 - c)) with (first later period) by (field; lra).
    generalize (Rmult_le_pos c _ ltac:(lra) Hp). lra. }
  induction n as [n IH] using lt_wf_ind. destruct (le_lt_dec n period) as [Hn|Hn].
  - apply Rle_trans with (2 := Hq). now apply first_monotone.
  - replace n with ((n - period) + period)%nat by lia. rewrite first_period.
    generalize (Rmult_le_compat_l c _ _ ltac:(lra) (IH (n - period)%nat ltac:(lia))). intros H.
    replace (first later period / (1 - c))
      with (first later period + c * (first later period / (1 - c))) by (field; lra). lra.
Qed.

Lemma later_sums : series later (first later period / (1 - c)).
Proof.
  destruct (growing_cv (sum_f_R0 later)) as [l Hl].
  - intros n. cbn [sum_f_R0]. generalize (later_nonneg (S n)). lra.
  - exists (first later period / (1 - c)). intros x [n ->]. rewrite first_is_sum.
    apply first_bounded.
  - assert (l = first later period / (1 - c)) as <-; [|exact Hl].
    assert (l - first later period = c * l) as H.
    { apply (series_unique (fun n => c * later n)); [|now apply series_scale].
      apply series_ext with (2 := series_beyond later l period Hl). intros n.
      rewrite Nat.add_comm. apply later_repeats. }
    apply Rmult_eq_reg_r with (1 - c); [|lra].
    replace (first later period / (1 - c) * (1 - c)) with (first later period) by (field; lra). lra.
Qed.

Lemma series_before (b : nat -> R) (l : R) (t : nat) :
  series (fun n => b (t + n)%nat) l -> series b (first b t + l).
Proof.
  intros H e He. destruct (H e He) as [N HN]. exists (N + t)%nat. intros n Hn.
  specialize (HN (n - t)%nat ltac:(lia)). unfold R_dist in *.
  assert (forall j, sum_f_R0 b (t + j) = first b t + sum_f_R0 (fun n => b (t + n)%nat) j) as Hs.
  { induction j as [|j IH].
    - rewrite Nat.add_0_r, first_is_sum. simpl. now rewrite Nat.add_0_r.
    - rewrite Nat.add_succ_r. simpl. rewrite IH, Nat.add_succ_r. lra. }
  replace n with (t + (n - t))%nat by lia. rewrite Hs.
  replace (first b t + sum_f_R0 (fun n => b (t + n)%nat) (n - t) - (first b t + l))
    with (sum_f_R0 (fun n => b (t + n)%nat) (n - t) - l) by ring. assumption.
Qed.

Theorem one_side :
  series a (first a start + first (fun n => a (start + n)%nat) period / (1 - c)).
Proof. apply series_before, later_sums. Qed.

End OneSide.

Section Deltas.
Variable f : Z -> R.
Hypothesis f_nonneg : forall k, 0 <= f k.

Definition excess_at (t : R) (s k : Z) : R := pos (f k - t * f (k + s)%Z).

Definition violated_at (t : R) (s k : Z) : R :=
  if Rlt_dec (t * f (k + s)%Z) (f k) then f k else 0.

Section Tail.
Variables (high period : Z) (c : R).
Hypothesis c_positive : 0 < c.
Hypothesis tail : forall k, (high <= k)%Z -> f (k + period)%Z = c * f k.

Theorem excess_repeats (t : R) (s k : Z) :
  (high <= k)%Z -> (high <= k + s)%Z -> excess_at t s (k + period) = c * excess_at t s k.
Proof.
  intros Hk Hs. unfold excess_at. rewrite <- pos_scale by lra. rewrite tail by assumption.
  replace (k + period + s)%Z with (k + s + period)%Z by lia. rewrite tail by assumption.
  f_equal. ring.
Qed.

Theorem violated_repeats (t : R) (s k : Z) :
  (high <= k)%Z -> (high <= k + s)%Z -> violated_at t s (k + period) = c * violated_at t s k.
Proof.
  intros Hk Hs. unfold violated_at. rewrite tail by assumption.
  replace (k + period + s)%Z with (k + s + period)%Z by lia. rewrite tail by assumption.
  replace (t * (c * f (k + s)%Z)) with (c * (t * f (k + s)%Z)) by ring.
  destruct (Rlt_dec (c * (t * f (k + s)%Z)) (c * f k)) as [H|H],
           (Rlt_dec (t * f (k + s)%Z) (f k)) as [H'|H']; try lra; exfalso.
  - apply H'. now apply Rmult_lt_reg_l with c.
  - apply H. now apply Rmult_lt_compat_l.
Qed.

End Tail.

Section Unimodal.
Variable peak : Z.
Hypothesis rises : forall k, (k < peak)%Z -> f k <= f (k + 1)%Z.
Hypothesis falls : forall k, (peak <= k)%Z -> f (k + 1)%Z <= f k.

Lemma rises_far (k : Z) (n : nat) : (k + Z.of_nat n <= peak)%Z -> f k <= f (k + Z.of_nat n)%Z.
Proof.
  induction n as [|n IH]; intros H; [rewrite Z.add_0_r; lra|].
  apply Rle_trans with (f (k + Z.of_nat n)%Z); [apply IH; lia|].
  replace (k + Z.of_nat (S n))%Z with (k + Z.of_nat n + 1)%Z by lia. apply rises. lia.
Qed.

Lemma falls_far (k : Z) (n : nat) : (peak <= k)%Z -> f (k + Z.of_nat n)%Z <= f k.
Proof.
  intros H. induction n as [|n IH]; [rewrite Z.add_0_r; lra|].
  apply Rle_trans with (2 := IH).
  replace (k + Z.of_nat (S n))%Z with (k + Z.of_nat n + 1)%Z by lia. apply falls. lia.
Qed.

Variable t : R.
Hypothesis t_large : 1 <= t.
Variables s s' : Z.
Hypothesis farther : (1 <= s <= s')%Z.

Lemma beyond_falls (k : Z) : t * f (k + s)%Z < f k -> f (k + s')%Z <= f (k + s)%Z.
Proof.
  intros H. destruct (Z_lt_le_dec (k + s) peak) as [Hlow|Hhigh].
  - generalize (rises_far k (Z.to_nat s)). rewrite Z2Nat.id by lia. intros Hr.
    specialize (Hr ltac:(lia)).
    generalize (Rmult_le_compat_r _ _ _ (f_nonneg (k + s)%Z) t_large). lra.
  - generalize (falls_far (k + s) (Z.to_nat (s' - s)) Hhigh). rewrite Z2Nat.id by lia.
    replace (k + s + (s' - s))%Z with (k + s')%Z by lia. trivial.
Qed.

Theorem far_is_worst_excess (k : Z) : excess_at t s k <= excess_at t s' k.
Proof.
  unfold excess_at. destruct (Rlt_dec (t * f (k + s)%Z) (f k)) as [H|H].
  - apply pos_monotone. generalize (Rmult_le_compat_l t _ _ ltac:(lra) (beyond_falls k H)). lra.
  - rewrite (pos_of_nonpos (f k - t * f (k + s)%Z)) by lra. apply pos_nonneg.
Qed.

Theorem far_is_worst_violated (k : Z) : violated_at t s k <= violated_at t s' k.
Proof.
  unfold violated_at. destruct (Rlt_dec (t * f (k + s)%Z) (f k)) as [H|H].
  - generalize (Rmult_le_compat_l t _ _ ltac:(lra) (beyond_falls k H)). intros Hb.
    destruct (Rlt_dec (t * f (k + s')%Z) (f k)); lra.
  - destruct (Rlt_dec (t * f (k + s')%Z) (f k)); [apply f_nonneg|lra].
Qed.

End Unimodal.
End Deltas.
