(** Rings with neighbors one apart: geometric noise has the least cost of all pure noise.

    docs/design/mathematics.md 2.5 with m = 1; [closed_form.py] of release/noise/solvers.  The group
    is the integers modulo N = n + 1 ([cyclic n] of Groups.v), M is {1, -1} with costs that do not
    fall with the circular distance, or {1} with costs that do not fall on 0..n (directed, as in the
    figures of the papers).  The noise is [staircase] of Staircases.v with m = r = 1.

    In words:
    - [ordered_least_cost]: if masses fall by no more than E for each step of an order t, then
      E^-t has the least mean of every cost that does not fall with t;
    - [ring_optimum]: on a ring with M = {1, -1}, E^-(circular distance) is pure, and no pure noise
      has a smaller expected cost;
    - [directed_optimum]: the same for M = {1} and E^-(residue).

    Not proved: m >= 2, where the best r has to be found. *)

From Coq Require Import Reals Lra Lia List Arith.
From DPRelease Require Import Sums Privacy Groups ErrorRate Duality Staircases.
Import ListNotations.
Open Scope R_scope.

(** Two laws, one of which leans farther out at every pair of elements. *)
Lemma leaning {A : Type} (l : list A) (f g cost : A -> R) :
  sum f l = 1 -> sum g l = 1 ->
  (forall x y, In x l -> In y l -> 0 <= (cost x - cost y) * (f x * g y - f y * g x)) ->
  sum (fun x => cost x * g x) l <= sum (fun x => cost x * f x) l.
Proof.
  intros Hf Hg H.
  assert (0 <= sum (fun x => sum (fun y => (cost x - cost y) * (f x * g y - f y * g x)) l) l) as Hsum
    by (apply sum_nonneg; intros; apply sum_nonneg; intros; now apply H).
  assert (sum (fun x => sum (fun y => (cost x - cost y) * (f x * g y - f y * g x)) l) l =
          2 * (sum (fun x => cost x * f x) l - sum (fun x => cost x * g x) l)) as Heq; [|lra].
  set (F := sum (fun x => cost x * f x) l). set (H' := sum (fun x => cost x * g x) l).
  rewrite (sum_ext _ (fun x => cost x * f x * 1 - cost x * g x * 1 + (g x * F - f x * H'))).
  - rewrite sum_plus, !sum_minus, !sum_scale_right, Hf, Hg. unfold F, H'. lra.
  - intros x _. rewrite <- Hg at 1. rewrite <- Hf at 1. unfold F, H'.
    rewrite <- !sum_scale, <- !sum_minus, <- sum_plus. apply sum_ext. intros y _. ring.
Qed.

Section Ordered.
Context {A : Type}.
Variable l : list A.
Variable t : A -> nat.
Variable E : R.
Hypothesis E_large : 1 <= E.
Variables f cost : A -> R.
Hypothesis f_law : distribution l f.
Hypothesis f_slowly : forall x y,
  In x l -> In y l -> (t x <= t y)%nat -> f x <= E ^ (t y - t x) * f y.
Hypothesis cost_grows : forall x y, In x l -> In y l -> (t x <= t y)%nat -> cost x <= cost y.

Definition falling (x : A) : R := / E ^ t x / sum (fun y => / E ^ t y) l.

Theorem ordered_least_cost :
  sum (fun x => cost x * falling x) l <= sum (fun x => cost x * f x) l.
Proof.
  destruct f_law as [Hf Hsum].
  assert (forall k, 0 < E ^ k) as Hpow by (intros; apply pow_lt; lra).
  assert (0 < sum (fun y => / E ^ t y) l) as Hs.
  { destruct l as [|a rest]; [simpl in Hsum; lra|]. simpl.
    assert (0 <= sum (fun y => / E ^ t y) rest)
      by (apply sum_nonneg; intros; left; apply Rinv_0_lt_compat, Hpow).
    generalize (Rinv_0_lt_compat _ (Hpow (t a))). lra. }
  set (S := sum (fun y => / E ^ t y) l) in *.
  assert (forall x y, In x l -> In y l -> (t x <= t y)%nat ->
            f x * falling y <= f y * falling x) as Hratio.
  { intros x y Hx Hy Hxy. unfold falling. fold S.
    apply Rmult_le_reg_r with (E ^ t y * S); [apply Rmult_lt_0_compat; auto|].
    replace (f x * (/ E ^ t y / S) * (E ^ t y * S)) with (f x)
      by (field; split; (lra || apply Rgt_not_eq, Hpow)).
    replace (f y * (/ E ^ t x / S) * (E ^ t y * S)) with (E ^ (t y - t x) * f y); [now apply f_slowly|].
    replace (t y) with (t x + (t y - t x))%nat at 2 by lia. rewrite pow_add.
    field. repeat split; (lra || apply Rgt_not_eq, Hpow). }
  apply leaning; [assumption| |].
  - unfold falling, Rdiv. rewrite sum_scale_right. fold S. field. lra.
  - intros x y Hx Hy. destruct (le_lt_dec (t x) (t y)) as [Hle|Hlt].
    + generalize (Hratio x y Hx Hy Hle) (cost_grows x y Hx Hy Hle). intros H1 H2.
      generalize (Rmult_le_pos (cost y - cost x) (f y * falling x - f x * falling y)
                    ltac:(lra) ltac:(lra)). lra.
    + apply Rmult_le_pos.
      * generalize (cost_grows y x Hy Hx ltac:(lia)). lra.
      * generalize (Hratio y x Hy Hx ltac:(lia)). lra.
Qed.

End Ordered.

Section Ring.
Variable n : nat.
Notation ring := (cyclic n).
Variable E : R.
Hypothesis E_large : 1 <= E.

Definition value (x : element ring) : nat := proj1_sig x.
Definition one : element ring := residue_of n 1.
Definition circular (x : element ring) : nat := Nat.min (value x) (S n - value x).

Lemma value_below (x : element ring) : (value x < S n)%nat.
Proof. exact (residue_small n x). Qed.

Lemma value_equal (x y : element ring) : value x = value y -> x = y.
Proof. apply residue_equal. Qed.

Lemma value_of (k : nat) : (k < S n)%nat -> value (residue_of n k) = k.
Proof. intros H. unfold value, residue_of. cbn [proj1_sig]. now apply Nat.mod_small. Qed.

Lemma wrapped (k : nat) :
  (k < S n -> k mod S n = k)%nat /\ (S n <= k < 2 * S n -> k mod S n = k - S n)%nat.
Proof.
  split; intros H; [now apply Nat.mod_small|].
  symmetry. apply (Nat.mod_unique k (S n) 1); lia.
Qed.

Lemma value_plus (x y : element ring) : value (plus x y) = ((value x + value y) mod S n)%nat.
Proof. reflexivity. Qed.

Lemma value_neg (x : element ring) : value (neg x) = ((S n - value x) mod S n)%nat.
Proof. reflexivity. Qed.

(** A walk upwards that does not pass 0. *)
Lemma upwards (f : element ring -> R) :
  (forall x, f x <= E * f (plus x one)) ->
  forall k x y, (value y = value x + k)%nat -> f x <= E ^ k * f y.
Proof.
  intros H. induction k as [|k IH]; intros x y Hxy.
  - rewrite (value_equal x y) by lia. simpl. lra.
  - generalize (value_below y). intros Hy.
    set (z := residue_of n (value y - 1) : element ring).
    assert (value z = value y - 1)%nat as Hz by (apply value_of; lia).
    assert (plus z one = y) as Hstep.
    { apply value_equal. rewrite value_plus, Hz. unfold one. rewrite value_of by lia.
      replace (value y - 1 + 1)%nat with (value y) by lia. now apply wrapped. }
    apply Rle_trans with (1 := IH x z ltac:(lia)). simpl pow. rewrite (Rmult_comm E), Rmult_assoc.
    apply Rmult_le_compat_l; [apply pow_le; lra|]. rewrite <- Hstep. apply H.
Qed.

(** An element or its negative, whichever has the circular distance as its value. *)
Lemma nearer (x : element ring) : exists x', (x' = x \/ x' = neg x) /\ value x' = circular x.
Proof.
  unfold circular. generalize (value_below x). intros Hx.
  destruct (le_lt_dec (value x) (S n - value x)) as [H|H].
  - exists x. split; [now left|]. lia.
  - exists (neg x). split; [now right|]. rewrite value_neg.
    rewrite (proj1 (wrapped _)) by lia. lia.
Qed.

Lemma circular_neg (x : element ring) : circular (neg x) = circular x.
Proof.
  unfold circular. rewrite value_neg. generalize (value_below x). intros Hx.
  destruct (Nat.eq_dec (value x) 0) as [->|].
  - rewrite (proj2 (wrapped _)) by lia. lia.
  - rewrite (proj1 (wrapped _)) by lia. lia.
Qed.

Lemma step_values (k m : nat) :
  (k = 1 mod S m \/ k = (S m - 1 mod S m) mod S m -> k = 0 \/ k = 1 \/ k = m)%nat.
Proof.
  destruct m as [|m]; intros H; [destruct H as [->| ->]; simpl; lia|].
  assert (1 mod S (S m) = 1)%nat as He by (apply Nat.mod_small; lia). rewrite He in H.
  rewrite (Nat.mod_small (S (S m) - 1)) in H by lia. lia.
Qed.

Lemma circular_step (x mu : element ring) :
  In mu [one; neg one] -> (circular (plus x mu) <= circular x + 1)%nat.
Proof.
  generalize (value_below x). intros Hx.
  assert (forall mu, value mu = 1 mod S n \/ value mu = (S n - 1 mod S n) mod S n ->
            (circular (plus x mu) <= circular x + 1)%nat)%nat as H.
  { intros nu Hnu. unfold circular. rewrite value_plus.
    assert (value nu = 0 \/ value nu = 1 \/ value nu = n)%nat as Hcase.
    { apply step_values. exact Hnu. }
    generalize (value_below nu). intros Hb.
    destruct (le_lt_dec (S n) (value x + value nu)) as [Hl|Hl].
    - rewrite (proj2 (wrapped _)) by lia. lia.
    - rewrite (proj1 (wrapped _)) by lia. lia. }
  intros [<-|[<-|[]]]; apply H; [left|right]; reflexivity.
Qed.

Lemma staircase_is_falling (dist : element ring -> nat) (x : element ring) :
  staircase dist 1 1 E x = falling (elements ring) dist E x.
Proof.
  assert (forall y, level dist 1 1 y = dist y) as H.
  { intros y. unfold level. rewrite Nat.div_1_r. lia. }
  unfold staircase, falling, steps_down. rewrite H. f_equal. apply sum_ext. intros y _.
  now rewrite H.
Qed.

Theorem ring_optimum (f cost : element ring -> R) :
  (forall x y, (circular x <= circular y)%nat -> cost x <= cost y) ->
  noise f -> pure_for [one; neg one] E f ->
  pure_for [one; neg one] E (staircase circular 1 1 E) /\
  expected_cost cost (staircase circular 1 1 E) <= expected_cost cost f.
Proof.
  intros Hcost Hf Hpure. split.
  - apply staircase_private; [lia|apply circular_step|assumption].
  - assert (forall x, cost (neg x) = cost x) as Hsym.
    { intros x. apply Rle_antisym; apply Hcost; rewrite circular_neg; lia. }
    assert (forall mu, In mu [one; neg one] -> In (neg mu) [one; neg one]) as HM.
    { intros mu [<-|[<-|[]]]; [right; now left|left; symmetry; apply neg_neg]. }
    destruct (even_noise [one; neg one] E 0 cost f Hf HM Hsym) as [Hlaw [Heven [Hc [_ Hp]]]].
    rewrite <- Hc. unfold expected_cost.
    rewrite (sum_ext _ (fun x => cost x * falling (elements ring) circular E x))
      by (intros; now rewrite staircase_is_falling).
    apply ordered_least_cost; [assumption|assumption| |intros; now apply Hcost].
    intros x y _ _ Hxy.
    destruct (nearer x) as [x' [Hx' Vx]], (nearer y) as [y' [Hy' Vy]].
    assert (mirrored f x' = mirrored f x) as <- by (destruct Hx' as [->| ->]; auto).
    assert (mirrored f y' = mirrored f y) as <- by (destruct Hy' as [->| ->]; auto).
    apply upwards; [|lia]. intros z. apply (Hp Hpure). now left.
Qed.

Theorem directed_optimum (f cost : element ring -> R) :
  (forall x y, (value x <= value y)%nat -> cost x <= cost y) ->
  noise f -> pure_for [one] E f ->
  pure_for [one] E (staircase value 1 1 E) /\
  expected_cost cost (staircase value 1 1 E) <= expected_cost cost f.
Proof.
  intros Hcost Hf Hpure. split.
  - apply staircase_private; [lia| |assumption]. intros x mu [<-|[]].
    rewrite value_plus. unfold one.
    apply Nat.le_trans with (value x + value (residue_of n 1))%nat; [apply Nat.mod_le; lia|].
    apply Nat.add_le_mono_l. unfold value, residue_of. cbn [proj1_sig]. apply Nat.mod_le. lia.
  - unfold expected_cost.
    rewrite (sum_ext _ (fun x => cost x * falling (elements ring) value E x))
      by (intros; now rewrite staircase_is_falling).
    apply ordered_least_cost; [assumption|assumption| |intros; now apply Hcost].
    intros x y _ _ Hxy. apply upwards; [|lia]. intros z. apply Hpure. now left.
Qed.

End Ring.
