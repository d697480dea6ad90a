(** Noise on the integers for neighbors one apart: the least tails are geometric.

    docs/design/mathematics.md T1.  [f] is noise on all integers.  A sum over all of them is the
    limit of sums over |k| <= N; the terms are not negative, so the order does not matter.
    [at_distance f n] is Pr[|noise| = n] and [tail f t p] says that Pr[|noise| >= t] is p.
    [geometric] is the noise of release/exact/integers/noise.py for one step, where
    release/exact/integers/staircase.py and release/exact/bounds.py take m = 1.

    In words:
    - [tail_bound]: noise that is pure for E between neighbors one apart has
      Pr[|noise| >= t] >= 2 alpha^t / (1 + alpha), alpha = 1/E, for every t >= 1;
    - [geometric_optimum]: two-sided geometric noise is a distribution, is pure for E, and attains
      equality for all t at once;
    - [geometric_least_cost]: so it has the least expected cost, for every cost that is not
      negative and does not fall with |noise|.

    Not covered: channels whose rows differ by more than a shift (2.13 and the end of T2). *)

From Coq Require Import Reals Lra Lia ZArith.
From DPRelease Require Import Series.
Open Scope R_scope.

Section Noise.
Variable E : R.
Hypothesis E_large : 1 < E.
Let alpha : R := / E.

Lemma alpha_range : 0 < alpha < 1.
Proof.
  unfold alpha. split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1. apply Rinv_lt_contravar; lra.
Qed.

Definition at_distance (f : Z -> R) (n : nat) : R :=
  match n with O => f 0%Z | S _ => f (Z.of_nat n) + f (- Z.of_nat n)%Z end.

Definition integer_noise (f : Z -> R) : Prop :=
  (forall k, 0 <= f k) /\ series (at_distance f) 1.

(** Pure for E between neighbors one apart. *)
Definition step_private (f : Z -> R) : Prop :=
  forall k, f k <= E * f (k + 1)%Z /\ f k <= E * f (k - 1)%Z.

Definition tail (f : Z -> R) (t : nat) (p : R) : Prop :=
  series (fun n => at_distance f (t + n)) p.

(** Pr[|noise| >= t], from the masses nearer to 0. *)
Definition beyond (f : Z -> R) (t : nat) : R := 1 - first (at_distance f) t.

Lemma tail_is_beyond (f : Z -> R) (t : nat) (p : R) : integer_noise f -> tail f t p -> p = beyond f t.
Proof.
  intros [_ Hf] Hp. apply (series_unique _ _ _ Hp). now apply series_beyond.
Qed.

Lemma tail_exists (f : Z -> R) (t : nat) : integer_noise f -> tail f t (beyond f t).
Proof. intros [_ Hf]. now apply series_beyond. Qed.

Section Bound.
Variable f : Z -> R.
Hypothesis f_noise : integer_noise f.
Hypothesis f_private : step_private f.

(** Both sides of a distance, 0 counted twice. *)
Definition both (n : nat) : R := f (Z.of_nat n) + f (- Z.of_nat n)%Z.

Lemma both_falls (n : nat) : alpha * both n <= both (S n).
Proof.
  unfold both. destruct (f_private (Z.of_nat n)) as [H1 _], (f_private (- Z.of_nat n)%Z) as [_ H2].
  replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) in H1 by lia.
  replace (- Z.of_nat n - 1)%Z with (- Z.of_nat (S n))%Z in H2 by lia.
  apply Rmult_le_reg_l with E; [lra|]. unfold alpha. rewrite <- Rmult_assoc, Rinv_r by lra. lra.
Qed.

Lemma both_series : series both (1 + f 0%Z).
Proof.
  destruct f_noise as [_ Hf]. intros e He. destruct (Hf e He) as [N HN]. exists N. intros n Hn.
  specialize (HN n Hn). unfold R_dist in *.
  replace (sum_f_R0 both n) with (f 0%Z + sum_f_R0 (at_distance f) n).
  - replace (f 0%Z + sum_f_R0 (at_distance f) n - (1 + f 0%Z))
      with (sum_f_R0 (at_distance f) n - 1) by ring. assumption.
  - clear. induction n as [|n IH]; [unfold both; simpl; lra|].
    cbn [sum_f_R0]. rewrite <- IH. unfold both, at_distance at 2. lra.
Qed.

Lemma first_step : 2 * alpha / (1 + alpha) <= beyond f 1.
Proof.
  generalize alpha_range. intros Ha.
  assert (series (fun n => both (S n)) (beyond f 1)) as H1.
  { unfold beyond. cbn [first at_distance].
    replace (1 - (0 + f 0%Z)) with (1 + f 0%Z - both 0)
      by (unfold both; simpl Z.of_nat; simpl Z.opp; lra).
    apply series_rest, both_series. }
  generalize (series_le _ _ _ _ both_falls (series_scale _ _ alpha both_series) H1).
  unfold beyond. cbn [first at_distance]. intros H.
  apply Rmult_le_reg_r with (1 + alpha); [lra|].
  replace (2 * alpha / (1 + alpha) * (1 + alpha)) with (2 * alpha) by (field; lra). lra.
Qed.

Lemma later_step (t : nat) : alpha * beyond f (S t) <= beyond f (S (S t)).
Proof.
  apply series_le with (fun n => alpha * at_distance f (S t + n)) (fun n => at_distance f (S (S t) + n)).
  - intros n. exact (both_falls (S t + n)).
  - apply series_scale. now apply tail_exists.
  - now apply tail_exists.
Qed.

Lemma beyond_bound (t : nat) : 2 * alpha ^ S t / (1 + alpha) <= beyond f (S t).
Proof.
  generalize alpha_range. intros Ha. induction t as [|t IH].
  - simpl pow. rewrite Rmult_1_r. apply first_step.
  - apply Rle_trans with (2 := later_step t).
    replace (2 * alpha ^ S (S t) / (1 + alpha)) with (alpha * (2 * alpha ^ S t / (1 + alpha)))
      by (simpl pow; field; lra).
    apply Rmult_le_compat_l; lra.
Qed.

Theorem tail_bound (t : nat) (p : R) :
  (1 <= t)%nat -> tail f t p -> 2 * alpha ^ t / (1 + alpha) <= p.
Proof.
  intros Ht Hp. rewrite (tail_is_beyond f t p) by assumption.
  destruct t as [|t]; [lia|]. apply beyond_bound.
Qed.

End Bound.

Definition geometric (k : Z) : R := (1 - alpha) / (1 + alpha) * alpha ^ Z.abs_nat k.

Lemma geometric_at (n : nat) :
  at_distance geometric (S n) = 2 * ((1 - alpha) / (1 + alpha)) * alpha ^ S n.
Proof.
  unfold at_distance, geometric.
  replace (Z.abs_nat (- Z.of_nat (S n))) with (S n) by lia.
  replace (Z.abs_nat (Z.of_nat (S n))) with (S n) by lia. lra.
Qed.

Lemma geometric_first (t : nat) :
  first (at_distance geometric) (S t) = 1 - 2 * alpha ^ S t / (1 + alpha).
Proof.
  generalize alpha_range. intros Ha. induction t as [|t IH].
  - simpl. unfold geometric. simpl. field. lra.
  - cbn [first] in *. rewrite IH, geometric_at. simpl pow. field. lra.
Qed.

Lemma geometric_sums : series (at_distance geometric) 1.
Proof.
  generalize alpha_range. intros Ha e He.
  destruct (pow_lt_1_zero alpha ltac:(rewrite Rabs_right; lra) (e / 2) ltac:(lra)) as [N HN].
  exists N. intros n Hn. rewrite first_is_sum, geometric_first. unfold R_dist.
  specialize (HN (S n) ltac:(lia)).
  replace (1 - 2 * alpha ^ S n / (1 + alpha) - 1) with (- (2 * alpha ^ S n / (1 + alpha))) by ring.
  assert (0 < alpha ^ S n) as Hp by (apply pow_lt; lra).
  rewrite Rabs_Ropp, Rabs_right.
  - rewrite Rabs_right in HN by lra.
    apply Rle_lt_trans with (2 * alpha ^ S n); [|lra].
    apply Rmult_le_reg_r with (1 + alpha); [lra|].
    replace (2 * alpha ^ S n / (1 + alpha) * (1 + alpha)) with (2 * alpha ^ S n) by (field; lra).
    generalize (Rmult_le_pos alpha (2 * alpha ^ S n) ltac:(lra) ltac:(lra)). lra.
  - apply Rle_ge. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
Qed.

Lemma power_at_most_one (n : nat) : alpha ^ n <= 1.
Proof.
  generalize alpha_range. intros Ha. induction n as [|n IH]; simpl; [lra|].
  generalize (Rmult_le_compat_l alpha _ _ ltac:(lra) IH). lra.
Qed.

Lemma geometric_step (k j : Z) :
  (Z.abs j <= Z.abs k + 1)%Z -> geometric k <= E * geometric j.
Proof.
  generalize alpha_range. intros Ha Hjk. unfold geometric.
  assert (0 <= (1 - alpha) / (1 + alpha)) as Hc.
  { apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
  replace (E * ((1 - alpha) / (1 + alpha) * alpha ^ Z.abs_nat j))
    with ((1 - alpha) / (1 + alpha) * (E * alpha ^ Z.abs_nat j)) by ring.
  apply Rmult_le_compat_l; [assumption|].
  apply Rmult_le_reg_l with alpha; [lra|].
  replace (alpha * (E * alpha ^ Z.abs_nat j)) with (alpha ^ Z.abs_nat j)
    by (unfold alpha; field; lra).
  change (alpha ^ S (Z.abs_nat k) <= alpha ^ Z.abs_nat j).
  replace (S (Z.abs_nat k)) with (Z.abs_nat j + (S (Z.abs_nat k) - Z.abs_nat j))%nat by lia.
  rewrite pow_add. rewrite <- (Rmult_1_r (alpha ^ Z.abs_nat j)) at 2.
  apply Rmult_le_compat_l; [apply pow_le; lra|apply power_at_most_one].
Qed.

Theorem geometric_optimum :
  integer_noise geometric /\ step_private geometric /\
  forall t, (1 <= t)%nat -> tail geometric t (2 * alpha ^ t / (1 + alpha)).
Proof.
  assert (integer_noise geometric) as Hn.
  { split; [|exact geometric_sums]. intros k. unfold geometric. generalize alpha_range. intros Ha.
    apply Rmult_le_pos; [|apply pow_le; lra].
    apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
  split; [exact Hn|]. split.
  - intros k. split; apply geometric_step; lia.
  - intros t Ht. replace (2 * alpha ^ t / (1 + alpha)) with (beyond geometric t).
    + now apply tail_exists.
    + destruct t as [|t]; [lia|]. unfold beyond. rewrite geometric_first. ring.
Qed.

Section Cost.
Variable cost : nat -> R.
Hypothesis cost_nonneg : 0 <= cost 0%nat.
Hypothesis cost_grows : forall n, cost n <= cost (S n).

Lemma cost_monotone (n k : nat) : cost n <= cost (n + k)%nat.
Proof.
  induction k as [|k IH]; [rewrite Nat.add_0_r; lra|].
  rewrite Nat.add_succ_r. generalize (cost_grows (n + k)). lra.
Qed.

Lemma cost_all_nonneg (n : nat) : 0 <= cost n.
Proof. apply Rle_trans with (1 := cost_nonneg). exact (cost_monotone 0 n). Qed.

(** Summation by parts: each growth of the cost is paid by the tail beyond it. *)
Definition by_tails (f : Z -> R) (n : nat) : R :=
  cost 0%nat + first (fun i => (cost (S i) - cost i) * beyond f (S i)) n.

Lemma by_parts (f : Z -> R) (n : nat) :
  first (fun i => cost i * at_distance f i) (S n) = by_tails f n - cost n * beyond f (S n).
Proof.
  unfold by_tails. induction n as [|n IH].
  - unfold beyond. cbn [first]. ring.
  - cbn [first] in *. rewrite IH. unfold beyond. cbn [first]. ring.
Qed.

Theorem geometric_least_cost (f : Z -> R) (c : R) :
  integer_noise f -> step_private f -> series (fun n => cost n * at_distance f n) c ->
  exists c', series (fun n => cost n * at_distance geometric n) c' /\ c' <= c.
Proof.
  intros Hf Hp Hc. destruct geometric_optimum as [Hg _].
  assert (forall n, 0 <= at_distance geometric n) as Hpos.
  { intros n. destruct Hg as [Hg _]. destruct n; simpl; [apply Hg|].
    apply Rplus_le_le_0_compat; apply Hg. }
  assert (forall n, by_tails f n <= c) as Hupper.
  { intros n. generalize (by_parts f n). intros Hparts.
    assert (cost n * beyond f (S n) <= c - first (fun i => cost i * at_distance f i) (S n));
      [|lra].
    apply series_le with (fun k => cost n * at_distance f (S n + k))
                         (fun k => cost (S n + k)%nat * at_distance f (S n + k)).
    - intros k. apply Rmult_le_compat_r.
      + destruct Hf as [Hf _]. simpl. apply Rplus_le_le_0_compat; apply Hf.
      + generalize (cost_monotone n (S k)). replace (S n + k)%nat with (n + S k)%nat by lia. lra.
    - apply series_scale. now apply tail_exists.
    - exact (series_beyond (fun i => cost i * at_distance f i) c (S n) Hc). }
  assert (forall n, sum_f_R0 (fun n => cost n * at_distance geometric n) n <= c) as Hbound.
  { intros n. rewrite first_is_sum, by_parts.
    apply Rle_trans with (2 := Hupper n). apply Rle_trans with (by_tails geometric n).
    - assert (0 <= beyond geometric (S n)).
      { unfold beyond. rewrite geometric_first. generalize alpha_range. intros Ha.
        assert (0 <= 2 * alpha ^ S n / (1 + alpha)); [|lra].
        apply Rmult_le_pos; [generalize (pow_le alpha (S n)); lra|].
        left. apply Rinv_0_lt_compat. lra. }
      generalize (Rmult_le_pos _ _ (cost_all_nonneg n) H). lra.
    - unfold by_tails. apply Rplus_le_compat_l. induction n as [|n IH]; [simpl; lra|].
      cbn [first]. apply Rplus_le_compat; [exact IH|].
      apply Rmult_le_compat_l; [generalize (cost_grows n); lra|].
      unfold beyond at 1. rewrite geometric_first.
      generalize (beyond_bound f Hf Hp n). lra. }
  destruct (growing_cv (fun n => sum_f_R0 (fun n => cost n * at_distance geometric n) n))
    as [c' Hc'].
  - intros n. cbn [sum_f_R0]. assert (0 <= cost (S n) * at_distance geometric (S n)); [|lra].
    apply Rmult_le_pos; [apply cost_all_nonneg|apply Hpos].
  - exists c. intros x [n ->]. apply Hbound.
  - exists c'. split; [exact Hc'|].
    exact (limit_below _ _ _ Hbound Hc').
Qed.

End Cost.
End Noise.
