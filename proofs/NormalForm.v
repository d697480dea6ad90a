(** Probabilistic guarantees and the error rate: the normal form, and where delta buys nothing.

    docs/design/mathematics.md 2.7 and 2.3; release/noise/solvers/levels.py and closed_form.py.
    The group is finite and abelian, M any list of differences, E a real of at least 1.
    [allowed x mu] says that the constraint of x at mu is kept; the others are given up.
    [weight M allowed E] is E^-d', d' the distance from 0 along the constraints that are kept, and
    [tau mu] is the weight of the elements whose constraint at mu is given up.

    In words:
    - [normal_form_bound]: noise with the probabilistic guarantee (E, delta) has f(0) S' <= 1 and
      f(0) tau(mu) <= delta for every mu, where the constraints that it violates are given up;
    - [normal_form_attained]: for every choice of constraints and every c with c S' <= 1 and
      c tau(mu) <= delta for every mu, some noise has the guarantee and f(0) >= c.  Both together
      are 2.7: the largest f(0) is the largest of min(1/S', delta/tau) over all choices;
    - [delta_buys_nothing]: if E^-(K-1)/S is above delta, no element being more than K steps away,
      then f(0) is at most 1/S, as without delta (2.3). *)

From Coq Require Import Reals Lra Lia List Arith Bool.
From DPRelease Require Import Sums Privacy Groups ErrorRate.
Import ListNotations.
Open Scope R_scope.

Lemma larger_formula (a t : R) : Rmax a t = (a + t + Rabs (t - a)) / 2.
Proof. unfold Rmax, Rabs. destruct (Rle_dec a t), (Rcase_abs (t - a)); lra. Qed.

(** Masses that add up to at most one are raised to a common floor until they add up to one. *)
Lemma common_floor {A : Type} (g : A -> R) (l : list A) :
  (forall a, In a l -> 0 <= g a) -> sum g l <= 1 -> l <> [] ->
  exists t, 0 <= t /\ sum (fun a => Rmax (g a) t) l = 1.
Proof.
  intros Hg Hsum Hl.
  set (h := fun t => sum (fun a => (g a + t + Rabs (t - g a)) / 2) l - 1).
  assert (forall t, h t = sum (fun a => Rmax (g a) t) l - 1) as Hh.
  { intros t. unfold h. f_equal. apply sum_ext. intros. now rewrite larger_formula. }
  assert (continuity h) as Hc.
  { assert (forall m, continuity (fun t => sum (fun a => (g a + t + Rabs (t - g a)) / 2) m)) as Hm.
    { induction m as [|a m IH]; simpl.
      - apply continuity_const. intros x y. reflexivity.
      - apply (continuity_plus (fun t => (g a + t + Rabs (t - g a)) / 2)
                 (fun t => sum (fun a => (g a + t + Rabs (t - g a)) / 2) m)); [|exact IH].
        reg. }
    apply (continuity_minus (fun t => sum (fun a => (g a + t + Rabs (t - g a)) / 2) l) (fun _ => 1));
      [apply Hm|]. apply continuity_const. intros x y. reflexivity. }
  destruct (IVT_cor h 0 1 Hc) as [t [Ht Hzero]]; [lra| |].
  - assert (h 0 <= 0).
    { rewrite Hh. rewrite (sum_ext _ g); [lra|]. intros a Ha. apply Rmax_left. auto. }
    assert (0 <= h 1); [|generalize (Rmult_le_compat_r (h 1) _ _ H0 H); lra].
    rewrite Hh. destruct l as [|a l]; [congruence|]. simpl.
    assert (0 <= sum (fun a => Rmax (g a) 1) l).
    { apply sum_nonneg. intros. apply Rle_trans with 1; [lra|apply Rmax_r]. }
    generalize (Rmax_r (g a) 1). lra.
  - exists t. split; [lra|]. rewrite Hh in Hzero. lra.
Qed.

Section NormalForm.
Context {G : group}.
Variable M : list (element G).
Variable E : R.
Hypothesis E_large : 1 <= E.
Variable delta : R.

Definition probabilistic_for (f : element G -> R) : Prop :=
  forall mu, In mu M -> violated E f mu <= delta.

(** The weight of what is given up at mu. *)
Definition tau (allowed : element G -> element G -> bool) (mu : element G) : R :=
  sum (fun x => if allowed x mu then 0 else weight M allowed E x) (elements G).

(** The constraints that f keeps. *)
Definition kept (f : element G -> R) (x mu : element G) : bool :=
  if Rlt_dec (E * f (plus x mu)) (f x) then false else true.

Theorem normal_form_bound (f : element G -> R) :
  noise f -> probabilistic_for f ->
  f zero * total_weight M (kept f) E <= 1 /\
  forall mu, In mu M -> f zero * tau (kept f) mu <= delta.
Proof.
  intros [Hf Hsum] Hp.
  assert (forall x, f zero * weight M (kept f) E x <= f x) as Hchain.
  { apply chain; [assumption|intros; apply Hf, elements_complete|].
    intros x mu _ Hk. unfold kept in Hk.
    destruct (Rlt_dec (E * f (plus x mu)) (f x)); [discriminate|lra]. }
  split.
  - rewrite <- Hsum. unfold total_weight. rewrite <- sum_scale. apply sum_le. auto.
  - intros mu Hmu. apply Rle_trans with (2 := Hp mu Hmu). unfold tau, violated.
    rewrite <- sum_scale. apply sum_le. intros x _. unfold kept at 1.
    destruct (Rlt_dec (E * f (plus x mu)) (f x)); [auto|lra].
Qed.

Theorem normal_form_attained (allowed : element G -> element G -> bool) (c : R) :
  0 <= c -> c * total_weight M allowed E <= 1 ->
  (forall mu, In mu M -> c * tau allowed mu <= delta) ->
  exists f, noise f /\ probabilistic_for f /\ c <= f zero.
Proof.
  intros Hc HS Htau. set (g := fun x => c * weight M allowed E x).
  assert (forall x, 0 <= g x) as Hg.
  { intros x. apply Rmult_le_pos; [assumption|]. now apply weight_nonneg. }
  destruct (common_floor g (elements G)) as [t [Ht Hsum]].
  - auto.
  - unfold g. rewrite sum_scale. exact HS.
  - intros Hnil. generalize (elements_complete G zero). rewrite Hnil. simpl. tauto.
  - set (f := fun x => Rmax (g x) t). exists f. split; [|split].
    + split; [|exact Hsum]. intros x _. apply Rle_trans with (1 := Hg x), Rmax_l.
    + intros mu Hmu. apply Rle_trans with (2 := Htau mu Hmu). unfold tau, violated.
      rewrite <- sum_scale. apply sum_le. intros x _.
      destruct (Rlt_dec (E * f (plus x mu)) (f x)) as [Hv|Hv].
      * assert (t <= f (plus x mu)) as Hfloor by apply Rmax_r.
        assert (g (plus x mu) <= f (plus x mu)) as Hpart by apply Rmax_l.
        assert (t <= E * f (plus x mu)) as Hfloor'.
        { generalize (Rmult_le_compat_r (f (plus x mu)) _ _ ltac:(lra) E_large). lra. }
        assert (t < g x) as Hlt.
        { assert (t < f x) as H by lra. unfold f, Rmax in H. destruct (Rle_dec (g x) t); lra. }
        assert (f x = g x) as Hfx by (unfold f; apply Rmax_left; lra).
        destruct (allowed x mu) eqn:Ha; [exfalso|rewrite Hfx; unfold g; lra].
        generalize (weight_step M allowed E E_large x mu Hmu Ha). intros Hstep.
        apply (Rmult_le_compat_l c) in Hstep; [|assumption].
        assert (g x <= E * g (plus x mu)) by (unfold g; lra).
        generalize (Rmult_le_compat_l E _ _ ltac:(lra) Hpart). lra.
      * destruct (allowed x mu); [lra|]. apply Hg.
    + apply Rle_trans with (g zero); [|apply Rmax_l]. unfold g. rewrite weight_zero by assumption.
      lra.
Qed.

Theorem delta_buys_nothing (f : element G -> R) (K : nat) :
  noise f -> probabilistic_for f ->
  (forall x k, steps M every x = Some k -> (k <= S K)%nat) ->
  delta < / E ^ K / total_weight M every E ->
  f zero <= 1 / total_weight M every E.
Proof.
  intros [Hf Hsum] Hp HK Hdelta.
  set (total := total_weight M every E) in *.
  assert (0 < total) as Htotal by (unfold total; now apply S_positive).
  destruct (Rle_or_lt (f zero) (1 / total)) as [|Hlarge]; [assumption|].
  assert (forall k x, (k <= S K)%nat -> least M every k x -> f zero * / E ^ k <= f x) as Hchain.
  { induction k as [|k IH]; intros x Hk Hx.
    - destruct Hx as [Hx _]. simpl in Hx. destruct (same x zero) as [->|]; [simpl; lra|discriminate].
    - destruct (least_last M every k x Hx) as [mu [Hmu [_ Hy]]].
      specialize (IH (minus x mu) ltac:(lia) Hy).
      assert (delta < f (minus x mu)) as Habove.
      { apply Rlt_le_trans with (2 := IH). apply Rlt_le_trans with (1 := Hdelta).
        assert (/ E ^ K <= / E ^ k) as Hpow.
        { apply Rinv_le_contravar; [apply pow_lt; lra|]. apply Rle_pow; [lra|lia]. }
        assert (0 < / E ^ K) by (apply Rinv_0_lt_compat, pow_lt; lra).
        apply Rle_trans with (1 / total * / E ^ K); [right; field; split; (lra || apply pow_nonzero; lra)|].
        apply Rmult_le_compat; try lra. left. apply Rdiv_lt_0_compat; lra. }
      assert (f (minus x mu) <= E * f x) as Hstep.
      { apply Rnot_lt_le. intros Hv.
        generalize (Hp mu Hmu). unfold violated.
        assert (forall y, In y (elements G) ->
                  0 <= (if Rlt_dec (E * f (plus y mu)) (f y) then f y else 0)) as Hterm.
        { intros y Hy'. destruct (Rlt_dec (E * f (plus y mu)) (f y)); [auto|lra]. }
        generalize (sum_one_term _ (elements G) (minus x mu) Hterm (elements_complete G _)).
        rewrite minus_plus. destruct (Rlt_dec (E * f x) (f (minus x mu))); [lra|contradiction]. }
      apply Rmult_le_reg_l with E; [lra|].
      replace (E * (f zero * / E ^ S k)) with (f zero * / E ^ k)
        by (simpl; field; split; (lra || apply pow_nonzero; lra)). lra. }
  apply Rmult_le_reg_r with total; [assumption|].
  replace (1 / total * total) with 1 by (field; lra).
  rewrite <- Hsum. unfold total, total_weight. rewrite <- sum_scale. apply sum_le. intros x Hx.
  unfold weight. destruct (steps M every x) as [k|] eqn:Hk.
  - apply Hchain; [now apply (HK x)|now apply steps_least].
  - rewrite Rmult_0_r. auto.
Qed.

End NormalForm.
