(** The least error rate of modular noise, pure and approximate: the optimum in closed form.

    docs/design/mathematics.md 2.1 and 2.2.  The group is any finite abelian group, M any list of
    differences, E any real of at least 1: e^eps, or the rational below it that the program takes.
    [pure_noise] is what release/noise/solvers/closed_form.py builds in [pure_pmf] before it rounds
    to integers, and [mixture] what it builds in [mixture_pmf].  The error rate is 1 - f(0).

    In words:
    - [pure_upper_bound]: no noise that is pure for E has f(0) above 1/S;
    - [pure_optimum]: E^-d/S is a distribution, it is pure, and its f(0) is 1/S;
    - [approximate_upper_bound]: no noise with the approximate guarantee (E, delta) has f(0) above
      delta + (1 - delta)/S;
    - [approximate_optimum]: delta times a point mass at 0 and (1 - delta) times the optimum above
      is a distribution, it satisfies the guarantee, and its f(0) is that bound.

    The proof of the upper bound differs from the one in 2.2.  It needs no tree and no order of
    words: for each element a last step of some shortest walk is enough, and every element is
    charged to the excess at the element it came from. *)

From Coq Require Import Reals Lra Lia List Permutation Arith Bool.
From DPRelease Require Import Sums Privacy Groups.
Import ListNotations.
Open Scope R_scope.

Section ErrorRate.
Context {G : group}.
Variable M : list (element G).
Variable E : R.
Hypothesis E_large : 1 <= E.

(** Every step may be taken. *)
Definition every (x mu : element G) : bool := true.

Notation d_weight := (weight M every E).
Notation S := (total_weight M every E).

Definition noise (f : element G -> R) : Prop := distribution (elements G) f.

Definition pure_for (f : element G -> R) : Prop :=
  forall x mu, In mu M -> f x <= E * f (plus x mu).

Definition approximate_for (delta : R) (f : element G -> R) : Prop :=
  forall mu, In mu M -> excess E f mu <= delta.

Lemma S_positive : 0 < S.
Proof. generalize (total_weight_large M every E E_large). lra. Qed.

Theorem pure_upper_bound (f : element G -> R) :
  noise f -> pure_for f -> f zero <= 1 / S.
Proof.
  intros [Hf Hsum] H. apply Rmult_le_reg_r with S; [apply S_positive|].
  replace (1 / S * S) with 1 by (field; generalize S_positive; lra).
  rewrite <- Hsum. unfold total_weight. rewrite <- sum_scale. apply sum_le. intros x _.
  apply chain; try assumption; auto. intros y. apply Hf, elements_complete.
Qed.

Definition pure_noise (x : element G) : R := d_weight x / S.

Lemma pure_noise_nonneg x : 0 <= pure_noise x.
Proof.
  apply Rmult_le_pos; [now apply weight_nonneg|].
  left. apply Rinv_0_lt_compat, S_positive.
Qed.

Lemma pure_noise_zero : pure_noise zero = 1 / S.
Proof. unfold pure_noise. now rewrite weight_zero. Qed.

Lemma pure_noise_step x mu : In mu M -> pure_noise x <= E * pure_noise (plus x mu).
Proof.
  intros Hmu. unfold pure_noise, Rdiv. rewrite <- Rmult_assoc.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, S_positive|].
  now apply weight_step.
Qed.

Lemma pure_noise_sums : sum pure_noise (elements G) = 1.
Proof.
  unfold pure_noise, Rdiv. rewrite sum_scale_right. fold S. field. generalize S_positive. lra.
Qed.

Theorem pure_optimum :
  noise pure_noise /\ pure_for pure_noise /\ pure_noise zero = 1 / S.
Proof.
  split; [split|split].
  - intros x _. apply pure_noise_nonneg.
  - apply pure_noise_sums.
  - intros x mu. apply pure_noise_step.
  - apply pure_noise_zero.
Qed.

Section Approximate.
Variable delta : R.
Hypothesis delta_range : 0 <= delta <= 1.

Section UpperBound.
Variable f : element G -> R.
Hypothesis f_noise : noise f.
Hypothesis f_approximate : approximate_for delta f.

(** Whether mu is the last step of a shortest walk of k steps to z. *)
Definition ends_walk (k : nat) (z mu : element G) : bool :=
  match steps M every (minus z mu) with Some j => (Datatypes.S j =? k)%nat | None => false end.

(** One last step of a shortest walk to z; 0 where there is none. *)
Definition last_step (z : element G) : element G :=
  match steps M every z with
  | Some k => match find (ends_walk k z) M with Some mu => mu | None => zero end
  | None => zero
  end.

Lemma last_step_spec (k : nat) (z : element G) :
  least M every (Datatypes.S k) z ->
  In (last_step z) M /\ least M every k (minus z (last_step z)).
Proof.
  intros H. unfold last_step. rewrite (steps_of_least M every (Datatypes.S k)) by assumption.
  destruct (find (ends_walk (Datatypes.S k) z) M) as [mu|] eqn:Ef.
  - apply find_some in Ef as [Hmu Hw]. split; [assumption|]. unfold ends_walk in Hw.
    destruct (steps M every (minus z mu)) as [j|] eqn:Ej; [|discriminate].
    apply Nat.eqb_eq in Hw. injection Hw as ->. now apply steps_least.
  - destruct (least_last M every k z H) as [mu [Hmu [_ Hk]]].
    assert (ends_walk (Datatypes.S k) z mu = false) as Hf by now apply (find_none _ _ Ef).
    unfold ends_walk in Hf. rewrite (steps_of_least M every k) in Hf by assumption.
    rewrite Nat.eqb_refl in Hf. discriminate.
Qed.

(** What the step at p into the walk that ends with z may lose. *)
Definition lost (mu p : element G) : R := pos (f p - E * f (plus p mu)).

(** The charge for z on the way to x, for elements at most k steps away. *)
Definition charge (k : nat) (x z : element G) : R :=
  match steps M every z with
  | Some j => if (1 <=? j)%nat && (j <=? k)%nat
              then d_weight z * lost (last_step z) (minus x z) else 0
  | None => 0
  end.

Definition charges (x z : element G) : R :=
  match steps M every z with
  | Some (Datatypes.S _) => d_weight z * lost (last_step z) (minus x z)
  | _ => 0
  end.

Lemma term_nonneg x z : 0 <= d_weight z * lost (last_step z) (minus x z).
Proof. apply Rmult_le_pos; [now apply weight_nonneg|apply pos_nonneg]. Qed.

Lemma charge_nonneg k x z : 0 <= charge k x z.
Proof.
  unfold charge. destruct (steps M every z) as [j|]; [|lra].
  destruct ((1 <=? j)%nat && (j <=? k)%nat); [apply term_nonneg|lra].
Qed.

Lemma charge_below_charges k x z : charge k x z <= charges x z.
Proof.
  unfold charge, charges. destruct (steps M every z) as [[|j]|]; [simpl; lra| |lra].
  destruct (Datatypes.S j <=? k)%nat; cbn [Nat.leb andb]; [lra|]. apply term_nonneg.
Qed.

Lemma walk_charged (k : nat) (x z : element G) :
  least M every k z -> d_weight z * f (minus x z) <= f x + sum (charge k x) (elements G).
Proof.
  revert z. induction k as [|k IH]; intros z Hz.
  - destruct Hz as [Hz _]. simpl in Hz. destruct (same z zero) as [->|]; [|discriminate].
    rewrite weight_zero, minus_zero by assumption.
    assert (0 <= sum (charge 0 x) (elements G)) by (apply sum_nonneg; intros; apply charge_nonneg).
    lra.
  - destruct (last_step_spec k z Hz) as [Hmu Hk].
    set (mu := last_step z) in *.
    assert (Hweight : d_weight z * E = d_weight (minus z mu)).
    { unfold weight. rewrite (steps_of_least M every (Datatypes.S k)) by assumption.
      rewrite (steps_of_least M every k) by assumption. simpl.
      generalize (power_positive E E_large k). intros. field. lra. }
    assert (Hloss : f (minus x z) <= E * f (minus x (minus z mu)) + lost mu (minus x z)).
    { unfold lost. rewrite minus_minus.
      generalize (pos_above (f (minus x z) - E * f (plus (minus x z) mu))). lra. }
    apply Rle_trans with
      (f x + (sum (charge k x) (elements G) + d_weight z * lost mu (minus x z))).
    + specialize (IH _ Hk). rewrite <- Hweight in IH.
      generalize (Rmult_le_compat_l _ _ _ (weight_nonneg M every E E_large z) Hloss). lra.
    + apply Rplus_le_compat_l.
      rewrite <- (sum_single (@same G) (elements G) z (d_weight z * lost mu (minus x z)))
        by (apply elements_once || apply elements_complete).
      rewrite <- sum_plus. apply sum_le. intros y _. unfold charge.
      destruct (same y z) as [->|Hne].
      * rewrite (steps_of_least M every (Datatypes.S k)) by assumption.
        rewrite Nat.leb_refl. replace (Datatypes.S k <=? k)%nat with false
          by (symmetry; apply Nat.leb_gt; lia). simpl. fold mu. lra.
      * rewrite Rplus_0_r. destruct (steps M every y) as [j|]; [|lra].
        destruct (1 <=? j)%nat; simpl; [|lra].
        destruct (Nat.leb_spec j k), (Nat.leb_spec j (Datatypes.S k)); try lra; try lia.
        apply term_nonneg.
Qed.

Lemma element_charged (x : element G) :
  f zero * d_weight x <= f x + sum (charges x) (elements G).
Proof.
  destruct f_noise as [Hf _].
  assert (0 <= sum (charges x) (elements G)).
  { apply sum_nonneg. intros z _.
    apply Rle_trans with (1 := charge_nonneg 0 x z), charge_below_charges. }
  destruct (steps M every x) as [k|] eqn:Hx.
  - apply steps_least in Hx. generalize (walk_charged k x x Hx). rewrite minus_self. intros Hw.
    assert (sum (charge k x) (elements G) <= sum (charges x) (elements G))
      by (apply sum_le; intros; apply charge_below_charges). lra.
  - unfold weight. rewrite Hx. generalize (Hf x (elements_complete G x)). lra.
Qed.

(** Over all x, the element z is charged at most its weight times delta, and 0 nothing. *)
Lemma charged_in_all (z : element G) :
  sum (fun x => charges x z) (elements G) <=
  delta * (d_weight z - if same z zero then 1 else 0).
Proof.
  unfold charges. destruct (steps M every z) as [[|k]|] eqn:Hz.
  - rewrite sum_zero. apply steps_least in Hz as [Hz _]. simpl in Hz.
    destruct (same z zero) as [->|]; [|discriminate]. rewrite weight_zero by assumption. lra.
  - apply steps_least in Hz. destruct (last_step_spec k z Hz) as [Hmu _].
    rewrite sum_scale, (sum_shifted (lost (last_step z)) z).
    destruct (same z zero) as [->|].
    + exfalso. generalize (least_unique M every _ _ _ Hz (least_zero M every)). discriminate.
    + rewrite Rmult_comm, Rminus_0_r.
      apply Rmult_le_compat_r; [now apply weight_nonneg|]. now apply f_approximate.
  - rewrite sum_zero. unfold weight. rewrite Hz. destruct (same z zero) as [->|]; [|lra].
    rewrite (steps_of_least M every 0) in Hz by apply least_zero. discriminate.
Qed.

Theorem approximate_upper_bound : f zero <= delta + (1 - delta) / S.
Proof.
  assert (f zero * S <= 1 + delta * (S - 1)) as H.
  { unfold total_weight at 1. rewrite <- sum_scale.
    apply Rle_trans with (sum (fun x => f x + sum (charges x) (elements G)) (elements G)).
    - apply sum_le. intros; apply element_charged.
    - rewrite sum_plus. destruct f_noise as [_ Hsum]. rewrite Hsum. apply Rplus_le_compat_l.
      rewrite sum_exchange.
      apply Rle_trans with
        (sum (fun z => delta * (d_weight z - if same z zero then 1 else 0)) (elements G)).
      + apply sum_le. intros z _. apply charged_in_all.
      + rewrite sum_scale, sum_minus, sum_single
          by (apply elements_once || apply elements_complete). unfold total_weight. lra. }
  apply Rmult_le_reg_r with S; [apply S_positive|].
  replace ((delta + (1 - delta) / S) * S) with (1 + delta * (S - 1))
    by (field; generalize S_positive; lra). assumption.
Qed.

End UpperBound.

Definition mixture (x : element G) : R :=
  (if same x zero then delta else 0) + (1 - delta) * pure_noise x.

Lemma mixture_nonneg x : 0 <= mixture x.
Proof.
  unfold mixture. generalize (Rmult_le_pos (1 - delta) _ ltac:(lra) (pure_noise_nonneg x)).
  destruct (same x zero); lra.
Qed.

Lemma mixture_excess mu : In mu M -> excess E mixture mu <= delta.
Proof.
  intros Hmu. unfold excess.
  apply Rle_trans with (sum (fun x => if same x zero then delta else 0) (elements G)).
  - apply sum_le. intros x _. apply pos_least; [destruct (same x zero); lra|].
    unfold mixture.
    generalize (Rmult_le_compat_l (1 - delta) _ _ ltac:(lra) (pure_noise_step x mu Hmu)).
    assert (0 <= if same (plus x mu) zero then delta else 0)
      by (destruct (same (plus x mu) zero); lra).
    generalize (Rmult_le_pos E _ ltac:(lra) H). lra.
  - rewrite sum_single by (apply elements_once || apply elements_complete). lra.
Qed.

Theorem approximate_optimum :
  noise mixture /\ approximate_for delta mixture /\ mixture zero = delta + (1 - delta) / S.
Proof.
  split; [split|split].
  - intros x _. apply mixture_nonneg.
  - unfold mixture. rewrite sum_plus, sum_scale, pure_noise_sums, sum_single
      by (apply elements_once || apply elements_complete). lra.
  - intros mu. apply mixture_excess.
  - unfold mixture. rewrite pure_noise_zero. destruct (@same G zero zero); [|congruence].
    unfold Rdiv. lra.
Qed.

(** The excess of the mixture is delta itself: nothing of the guarantee is left unused. *)
Hypothesis M_nonzero : ~ In zero M.

Lemma first_step mu : In mu M -> d_weight mu = / E.
Proof.
  intros Hmu. unfold weight. rewrite (steps_of_least M every 1); [simpl; now rewrite Rmult_1_r|].
  split.
  - rewrite <- (zero_plus mu). apply reach_extended; [assumption|reflexivity|].
    simpl. destruct (@same G zero zero); congruence.
  - intros j Hj. replace j with 0%nat by lia. simpl.
    destruct (same mu zero) as [->|]; [contradiction|reflexivity].
Qed.

Theorem approximate_optimum_is_tight mu : In mu M -> excess E mixture mu = delta.
Proof.
  intros Hmu. apply Rle_antisym; [now apply mixture_excess|].
  unfold excess.
  apply Rle_trans with (pos (mixture zero - E * mixture (plus zero mu))).
  - apply Rle_trans with (2 := pos_above _). rewrite zero_plus. unfold mixture.
    destruct (@same G zero zero); [|congruence].
    destruct (same mu zero) as [->|]; [contradiction|].
    unfold pure_noise. rewrite weight_zero, first_step by assumption.
    right. field. split; generalize S_positive; lra.
  - apply (sum_one_term (fun x => pos (mixture x - E * mixture (plus x mu))));
      [intros; apply pos_nonneg|apply elements_complete].
Qed.

End Approximate.
End ErrorRate.
