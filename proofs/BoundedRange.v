(** The exponential mechanism and profiles of mechanisms whose losses lie in a short interval.

    docs/design/mathematics.md T4, statement 2; release/exact/statistics/exponential.py.  Candidate
    s with integer score q(s) is published with a chance in proportion to r^q(s); [selected] is that
    chance, and shifting all scores changes nothing, so gaps below the best do as well.

    In words:
    - [exponential_range]: if score changes lie in an interval of length n, the ratios of chances
      lie between some l and l r^n;
    - [bounded_range_profile]: if the ratios P/Q lie between some l > 0 and l E, then
      H(t) <= (1 - sqrt(t/E))^2 / (1 - 1/E) for every t >= 0;
    - [exponential_profile]: so the exponential mechanism has at most this profile if r^n <= E. *)

From Coq Require Import Reals Lra Lia List ZArith.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Section Profile.
Context {O : Type}.
Variable outs : list O.
Variables P Q : O -> R.
Hypothesis P_law : distribution outs P.
Hypothesis Q_law : distribution outs Q.
Variables l E : R.
Hypothesis l_positive : 0 < l.
Hypothesis E_large : 1 < E.
Hypothesis range : forall o, In o outs -> l * Q o <= P o <= l * E * Q o.

Lemma mean_ratio : (l - 1) <= 0.
Proof.
  destruct P_law as [_ HP], Q_law as [_ HQ].
  assert (l * sum Q outs <= sum P outs) by (rewrite <- sum_scale; apply sum_le; intros; now apply range).
  rewrite HP, HQ in H. lra.
Qed.

Theorem bounded_range_profile (t : R) :
  0 <= t -> hockey outs P Q t <= (1 - sqrt (t / E)) ^ 2 / (1 - / E).
Proof.
  intros Ht. destruct P_law as [_ HP], Q_law as [HQ HQ1].
  set (x := sqrt (t / E)).
  assert (0 <= t / E) as Hd by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (x * x * E = t) as Hx.
  { unfold x. rewrite sqrt_sqrt by assumption. field. lra. }
  assert (0 <= x) as Hx0 by apply sqrt_pos.
  assert (0 < 1 - / E) as Hinv.
  { assert (/ E < 1); [|lra]. rewrite <- Rinv_1. apply Rinv_lt_contravar; lra. }
  assert ((1 - x) ^ 2 / (1 - / E) = E * (1 - x) ^ 2 / (E - 1)) as -> by (field; split; lra).
  apply Rmult_le_reg_r with (E - 1); [lra|].
  replace (E * (1 - x) ^ 2 / (E - 1) * (E - 1)) with (E * (1 - x) ^ 2) by (field; lra).
  destruct (Rle_or_lt t l) as [Hl|Hl].
  - (* All ratios are above t. *)
    assert (hockey outs P Q t = 1 - t) as ->.
    { rewrite <- HP at 1. replace t with (t * sum Q outs) at 2 by (rewrite HQ1; lra).
      rewrite <- sum_scale, <- sum_minus. apply sum_ext. intros o Ho. apply pos_of_nonneg.
      generalize (Rmult_le_compat_r _ _ _ (HQ o Ho) Hl). destruct (range o Ho). lra. }
    assert (0 <= (1 - E * x) * (1 - E * x)) as Hs by apply Rle_0_sqr. rewrite <- Hx. nra.
  - (* The chord of max(0, ratio - t) between l and l E. *)
    destruct (Rle_or_lt (l * E) t) as [Hbig|Hsmall].
    + assert (hockey outs P Q t = 0) as ->.
      { unfold hockey. rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|]. intros o Ho.
        apply pos_of_nonpos. generalize (Rmult_le_compat_r _ _ _ (HQ o Ho) Hbig).
        destruct (range o Ho). lra. }
      generalize (Rmult_le_pos E ((1 - x) ^ 2) ltac:(lra) (pow2_ge_0 (1 - x))). lra.
    + assert (hockey outs P Q t * (l * (E - 1)) <= (l * E - t) * (1 - l)) as H.
      { unfold hockey. rewrite <- sum_scale_right.
        apply Rle_trans with (sum (fun o => (l * E - t) * (P o - l * Q o)) outs).
        - apply sum_le. intros o Ho. destruct (range o Ho) as [H1 H2]. specialize (HQ o Ho).
          unfold pos, Rmax. destruct (Rle_dec 0 (P o - t * Q o)).
          + assert (0 <= (t - l) * (l * E * Q o - P o)) by (apply Rmult_le_pos; lra). lra.
          + generalize (Rmult_le_pos (l * E - t) (P o - l * Q o) ltac:(lra) ltac:(lra)). lra.
        - rewrite sum_scale, sum_minus, sum_scale, HP, HQ1. lra. }
      apply Rmult_le_reg_r with l; [assumption|].
      apply Rle_trans with ((l * E - t) * (1 - l)); [lra|].
      assert (0 <= E * ((l - x) * (l - x))) as Hs
        by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]).
      rewrite <- Hx. lra.
Qed.

End Profile.

Section Exponential.
Variable ids : list nat.
Hypothesis ids_some : ids <> [].
Variable r : R.
Hypothesis r_large : 1 <= r.

Definition weight_of (q : nat -> Z) (s : nat) : R := powerRZ r (q s).
Definition all_weights (q : nat -> Z) : R := sum (weight_of q) ids.
Definition selected (q : nat -> Z) (s : nat) : R := weight_of q s / all_weights q.

Lemma weight_positive q s : 0 < weight_of q s.
Proof. apply powerRZ_lt. lra. Qed.

Lemma all_positive q : 0 < all_weights q.
Proof.
  unfold all_weights. destruct ids as [|s rest]; [congruence|]. simpl.
  generalize (weight_positive q s).
  assert (0 <= sum (weight_of q) rest) by (apply sum_nonneg; intros; left; apply weight_positive).
  lra.
Qed.

Lemma selected_law q : distribution ids (selected q).
Proof.
  generalize (all_positive q). intros Hs. split.
  - intros s _. apply Rmult_le_pos; left; [apply weight_positive|now apply Rinv_0_lt_compat].
  - unfold selected, Rdiv. rewrite sum_scale_right. fold (all_weights q). field. lra.
Qed.

Lemma power_between (d c : Z) (n : nat) :
  (c <= d <= c + Z.of_nat n)%Z -> powerRZ r c <= powerRZ r d <= powerRZ r c * r ^ n.
Proof.
  intros H. assert (0 < powerRZ r c) as Hc by (apply powerRZ_lt; lra).
  replace d with (c + Z.of_nat (Z.to_nat (d - c)))%Z by lia.
  rewrite powerRZ_add by lra. rewrite <- pow_powerRZ. split.
  - rewrite <- (Rmult_1_r (powerRZ r c)) at 1. apply Rmult_le_compat_l; [lra|].
    apply pow_R1_Rle. assumption.
  - apply Rmult_le_compat_l; [lra|]. apply Rle_pow; [assumption|lia].
Qed.

Theorem exponential_range (q q' : nat -> Z) (c : Z) (n : nat) :
  (forall s, In s ids -> (c <= q s - q' s <= c + Z.of_nat n)%Z) ->
  exists l, 0 < l /\
    forall s, In s ids -> l * selected q' s <= selected q s <= l * r ^ n * selected q' s.
Proof.
  intros H. generalize (all_positive q) (all_positive q'). intros A A'.
  assert (0 < powerRZ r c) as Hc by (apply powerRZ_lt; lra).
  exists (powerRZ r c * (all_weights q' / all_weights q)). split.
  - apply Rmult_lt_0_compat; [assumption|]. now apply Rdiv_lt_0_compat.
  - intros s Hs. destruct (power_between _ _ _ (H s Hs)) as [H1 H2].
    assert (weight_of q s = powerRZ r (q s - q' s) * weight_of q' s) as Hw.
    { unfold weight_of. rewrite <- powerRZ_add by lra. f_equal. lia. }
    assert (0 <= weight_of q' s / all_weights q) as Hp.
    { apply Rmult_le_pos; left; [apply weight_positive|now apply Rinv_0_lt_compat]. }
    unfold selected. split.
    + replace (powerRZ r c * (all_weights q' / all_weights q) * (weight_of q' s / all_weights q'))
        with (powerRZ r c * (weight_of q' s / all_weights q)) by (field; lra).
      replace (weight_of q s / all_weights q)
        with (powerRZ r (q s - q' s) * (weight_of q' s / all_weights q)) by (rewrite Hw; field; lra).
      now apply Rmult_le_compat_r.
    + replace (powerRZ r c * (all_weights q' / all_weights q) * r ^ n *
               (weight_of q' s / all_weights q'))
        with (powerRZ r c * r ^ n * (weight_of q' s / all_weights q)) by (field; lra).
      replace (weight_of q s / all_weights q)
        with (powerRZ r (q s - q' s) * (weight_of q' s / all_weights q)) by (rewrite Hw; field; lra).
      now apply Rmult_le_compat_r.
Qed.

Theorem exponential_profile (q q' : nat -> Z) (c : Z) (n : nat) (E t : R) :
  (forall s, In s ids -> (c <= q s - q' s <= c + Z.of_nat n)%Z) ->
  1 < E -> r ^ n <= E -> 0 <= t ->
  hockey ids (selected q) (selected q') t <= (1 - sqrt (t / E)) ^ 2 / (1 - / E).
Proof.
  intros H HE Hr Ht. destruct (exponential_range q q' c n H) as [l [Hl Hrange]].
  apply (bounded_range_profile ids (selected q) (selected q') (selected_law q) (selected_law q') l E);
    try assumption.
  intros s Hs. destruct (Hrange s Hs) as [H1 H2]. split; [assumption|].
  apply Rle_trans with (1 := H2). destruct (selected_law q') as [Hpos _].
  apply Rmult_le_compat_r; [now apply Hpos|]. apply Rmult_le_compat_l; lra.
Qed.

End Exponential.
