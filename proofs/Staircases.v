(** Staircases are private, and rounding level by level keeps that.

    docs/design/mathematics.md 2.5 and 1.4.1; [closed_form.py] of release/noise/solvers.  [dist] is
    any distance to 0 that a step of M raises by at most m: the circular distance for M = {+-1..+-m},
    or the residue itself for M = {1..m}.  [level] is the staircase with r - 1 flat steps.

    In words:
    - [staircase_private]: the staircase E^-level over its sum is a distribution and is pure for E;
    - [levels_private]: integer weights a_0 = A, a_(k+1) = the least integer of at least a_k/E,
      E = num/den, satisfy the guarantee exactly, on any levels that a step raises by at most one.

    Not proved: that the best staircase has the least cost of all pure noise for m >= 2 (2.5, and T2
    on the integers).  The arguments there need vertices of a linear program, or a flow.  Rings.v has
    m = 1. *)

From Coq Require Import Reals Lra Lia List ZArith.
From DPRelease Require Import Sums Privacy Groups ErrorRate.
Import ListNotations.
Open Scope R_scope.

Section Staircase.
Context {G : group}.
Variable M : list (element G).
Variable dist : element G -> nat.
Variables m r : nat.
Hypothesis m_positive : (0 < m)%nat.
Hypothesis dist_step : forall x mu, In mu M -> (dist (plus x mu) <= dist x + m)%nat.

(** max(0, the least integer of at least (dist - r + 1)/m). *)
Definition level (x : element G) : nat := (dist x + 1 - r + (m - 1)) / m.

Lemma level_step x mu : In mu M -> (level (plus x mu) <= level x + 1)%nat.
Proof.
  intros Hmu. unfold level. specialize (dist_step x mu Hmu).
  rewrite <- (Nat.div_add _ 1 m) by lia. apply Nat.div_le_mono; lia.
Qed.

Variable E : R.
Hypothesis E_large : 1 <= E.

Definition steps_down (x : element G) : R := / E ^ level x.

Definition staircase (x : element G) : R := steps_down x / sum steps_down (elements G).

Lemma steps_down_positive x : 0 < steps_down x.
Proof. apply Rinv_0_lt_compat, pow_lt. lra. Qed.

Lemma staircase_sum_positive : 0 < sum steps_down (elements G).
Proof.
  apply Rlt_le_trans with (1 := steps_down_positive zero).
  apply sum_one_term; [|apply elements_complete]. intros; left; apply steps_down_positive.
Qed.

Theorem staircase_private : noise staircase /\ pure_for M E staircase.
Proof.
  generalize staircase_sum_positive. intros Hs.
  assert (0 <= / sum steps_down (elements G)) as Hi by (left; now apply Rinv_0_lt_compat).
  split; [split|].
  - intros x _. apply Rmult_le_pos; [left; apply steps_down_positive|assumption].
  - unfold staircase, Rdiv. rewrite sum_scale_right. field. lra.
  - intros x mu Hmu. unfold staircase, Rdiv. rewrite <- Rmult_assoc.
    apply Rmult_le_compat_r; [assumption|]. unfold steps_down.
    apply Rmult_le_reg_l with (E ^ level x); [apply pow_lt; lra|].
    rewrite Rinv_r by (apply pow_nonzero; lra).
    apply Rmult_le_reg_r with (E ^ level (plus x mu)); [apply pow_lt; lra|].
    replace (E ^ level x * (E * / E ^ level (plus x mu)) * E ^ level (plus x mu))
      with (E ^ (level x + 1)) by (rewrite pow_add; field; apply pow_nonzero; lra).
    rewrite Rmult_1_l. apply Rle_pow; [assumption|now apply level_step].
Qed.

End Staircase.

Section Levels.
Variables num den top : Z.
Hypothesis den_positive : (0 < den)%Z.
Hypothesis ratio_large : (den <= num)%Z.
Hypothesis top_nonneg : (0 <= top)%Z.

(** The least integer of at least a * den / num. *)
Definition fallen (a : Z) : Z := (- ((- (a * den)) / num))%Z.

Fixpoint weight_at (k : nat) : Z :=
  match k with O => top | S j => fallen (weight_at j) end.

Lemma fallen_enough (a : Z) : (a * den <= num * fallen a)%Z.
Proof.
  unfold fallen. generalize (Z.mul_div_le (- (a * den)) num ltac:(lia)). lia.
Qed.

Lemma weight_at_falls (k : nat) : (0 <= weight_at (S k) <= weight_at k)%Z.
Proof.
  assert (forall a, (0 <= a)%Z -> (0 <= fallen a <= a)%Z) as H.
  { intros a Ha. unfold fallen.
    generalize (Z.mul_div_le (- (a * den)) num ltac:(lia)). intros H1.
    assert (- a <= - (a * den) / num)%Z as H2 by (apply Z.div_le_lower_bound; nia).
    assert (- (a * den) / num <= 0)%Z as H3 by (apply Z.div_le_upper_bound; nia). lia. }
  induction k as [|k IH]; [now apply H|]. apply (H (weight_at (S k))). lia.
Qed.

Lemma weight_at_nonneg (k : nat) : (0 <= weight_at k)%Z.
Proof. destruct k as [|k]; [assumption|apply weight_at_falls]. Qed.

Lemma weight_at_monotone (j k : nat) : (j <= k)%nat -> (weight_at k <= weight_at j)%Z.
Proof.
  induction 1 as [|k _ IH]; [lia|]. generalize (weight_at_falls k). lia.
Qed.

Theorem levels_private (j k : nat) :
  (k <= j + 1)%nat -> (weight_at j * den <= num * weight_at k)%Z.
Proof.
  intros H. apply Z.le_trans with (num * weight_at (S j))%Z.
  - exact (fallen_enough (weight_at j)).
  - generalize (weight_at_monotone k (S j) ltac:(lia)). nia.
Qed.

End Levels.
