(** An exact Renyi filter: releases go on only while the product of moments is within a bound.

    docs/design/mathematics.md T7, for finite laws; release/exact/composition/renyi.py and
    release/budget/rules/filtered.py, which also allow a mass at an infinite loss (2.32; not here).  The
    order is alpha = n + 1, n >= 1.  [moment] is the sum of p^alpha q^(1-alpha).  [within s m] says
    that on every path of the session the product of the moments is at most m; a release may depend
    on all earlier outputs, as may whether it takes place.

    In words:
    - [loss_bound]: max(0, a - b) <= c a^alpha / b^(alpha-1), c = (alpha-1)^(alpha-1)/alpha^alpha;
    - [renyi_filter]: then everything that is released has, at the ratio t, a hockey stick of at most
      c m / t^(alpha-1); so it is (ln t, delta)-private if m c / t^(alpha-1) <= delta, for laws that
      are chosen freely from past outputs. *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums Privacy Composition.
Import ListNotations.
Open Scope R_scope.

Section Filter.
Variable n : nat.
Hypothesis n_positive : (1 <= n)%nat.

Definition constant : R := INR n ^ n / INR (S n) ^ S n.

Lemma n_real : 1 <= INR n.
Proof. change 1 with (INR 1). now apply le_INR. Qed.

Lemma bernoulli (k : nat) (y : R) : 0 <= y -> 1 + INR k * (y - 1) <= y ^ k.
Proof.
  intros Hy. induction k as [|k IH]; [simpl; lra|].
  rewrite S_INR. simpl pow. generalize (pos_INR k). intros Hk.
  apply Rle_trans with (y * (1 + INR k * (y - 1))); [|now apply Rmult_le_compat_l].
  assert (0 <= INR k * ((y - 1) * (y - 1))) by (apply Rmult_le_pos; [assumption|apply Rle_0_sqr]).
  lra.
Qed.

Lemma constant_positive : 0 < constant.
Proof.
  unfold constant. generalize n_real. intros Hn.
  apply Rdiv_lt_0_compat; apply pow_lt; [lra|]. rewrite S_INR. lra.
Qed.

Theorem loss_bound (a b : R) : 0 <= a -> 0 < b -> pos (a - b) <= constant * (a ^ S n / b ^ n).
Proof.
  intros Ha Hb. generalize n_real. intros Hn.
  assert (0 < INR (S n)) as Hs by (rewrite S_INR; lra).
  assert (0 < b ^ n) as Hbn by now apply pow_lt.
  apply pos_least.
  - apply Rmult_le_pos; [left; apply constant_positive|].
    apply Rmult_le_pos; [now apply pow_le|]. left. now apply Rinv_0_lt_compat.
  - set (y := a / b * (INR n / INR (S n))).
    assert (0 <= y) as Hy.
    { unfold y. repeat apply Rmult_le_pos; try lra; left; now apply Rinv_0_lt_compat. }
    assert (constant * (a ^ S n / b ^ n) = b / INR n * y ^ S n) as ->.
    { unfold constant, y, Rdiv. rewrite !Rpow_mult_distr, !pow_inv.
      rewrite <- !tech_pow_Rmult. set (k := INR (S n)) in *.
      field. repeat split; ((apply pow_nonzero; lra) || lra). }
    apply Rmult_le_reg_l with (INR n / b); [apply Rdiv_lt_0_compat; lra|].
    replace (INR n / b * (b / INR n * y ^ S n)) with (y ^ S n) by (field; lra).
    apply Rle_trans with (2 := bernoulli (S n) y Hy). right. unfold y. rewrite S_INR. field. lra.
Qed.

Definition moment (outs : list nat) (p q : nat -> R) : R :=
  sum (fun y => p y ^ S n / q y ^ n) outs.

Inductive within : session -> R -> Prop :=
  | within_stop m : 1 <= m -> within Stop m
  | within_release outs p q next m rest :
      (forall y, In y outs -> 0 <= p y /\ 0 < q y) ->
      0 <= rest -> moment outs p q * rest <= m ->
      (forall y, In y outs -> within (next y) rest) ->
      within (Release outs p q next) m.

Lemma released_bound (s : session) (m : R) :
  within s m -> forall a b, 0 <= a -> 0 < b -> released s a b <= constant * m * (a ^ S n / b ^ n).
Proof.
  induction 1 as [m Hm|outs p q next m rest Hlaw Hrest Hm Hnext IH]; intros a b Ha Hb;
    cbn [released].
  - apply Rle_trans with (1 := loss_bound a b Ha Hb).
    assert (0 <= constant * (a ^ S n / b ^ n)) as Hc
      by (apply Rle_trans with (1 := pos_nonneg (a - b)); now apply loss_bound).
    generalize (Rmult_le_compat_r _ _ _ Hc Hm). lra.
  - assert (0 <= constant * (a ^ S n / b ^ n)) as Hc
      by (apply Rle_trans with (1 := pos_nonneg (a - b)); now apply loss_bound).
    apply Rle_trans with
      (sum (fun y => constant * (a ^ S n / b ^ n) * rest * (p y ^ S n / q y ^ n)) outs).
    + apply sum_le. intros y Hy. destruct (Hlaw y Hy) as [H1 H2].
      apply Rle_trans with (constant * rest * ((a * p y) ^ S n / (b * q y) ^ n)).
      * apply IH; [assumption|now apply Rmult_le_pos|now apply Rmult_lt_0_compat].
      * right. rewrite !Rpow_mult_distr. field. split; apply pow_nonzero; lra.
    + rewrite sum_scale. fold (moment outs p q).
      generalize (Rmult_le_compat_l _ _ _ Hc Hm). lra.
Qed.

Theorem renyi_filter (s : session) (m t : R) :
  within s m -> 0 < t -> released s 1 t <= constant * m / t ^ n.
Proof.
  intros H Ht. generalize (released_bound s m H 1 t ltac:(lra) Ht). rewrite pow1.
  unfold Rdiv. lra.
Qed.

End Filter.
