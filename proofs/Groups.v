(** Finite abelian groups, modular noise, and distances in steps of a sensitivity set.

    docs/design/mathematics.md 0.1, 0.2.  [group] is a finite abelian group whose elements stand in
    a list, each once: the group of the answers (release/exact/domain.py, class Group).  [shifts] is
    the list M of the sensitivity (release/exact/sensitivity.py).  [steps] is the least number of
    elements of M that lead from 0 to an element, here by the same search in rounds that
    [Group.steps_from_zero] makes; [weight E] is E^-d, and 0 where no steps lead.  Some steps may be
    forbidden: [allowed x mu] says whether the step from x to x + mu may be taken (2.7).

    In words:
    - [modular_hockey], [modular_violated_mass], [modular_pure]: the deltas of the rows
      P(o|q) = f(o - q) and P(o|q - mu) are the sums over noise values that 0.2 writes and
      [deltas_at_ratio] of release/exact/privacy.py computes, whatever the true answer q is;
    - [steps_least], [steps_none]: [steps] is the least number, over walks of any length;
    - [cyclic], [product]: the integers modulo N and products are groups of this kind. *)

From Coq Require Import Reals Lra Lia List Permutation Arith Bool.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Record group := {
  element : Type;
  zero : element;
  plus : element -> element -> element;
  neg : element -> element;
  elements : list element;
  same : forall x y : element, {x = y} + {x <> y};
  plus_comm : forall x y, plus x y = plus y x;
  plus_assoc : forall x y z, plus x (plus y z) = plus (plus x y) z;
  plus_zero : forall x, plus x zero = x;
  plus_neg : forall x, plus x (neg x) = zero;
  elements_complete : forall x, In x elements;
  elements_once : NoDup elements
}.

Arguments zero {g}. Arguments plus {g}. Arguments neg {g}. Arguments same {g}.

Definition minus {G : group} (x y : element G) : element G := plus x (neg y).

Section Laws.
Context {G : group}.
Implicit Types x y z : element G.

Lemma zero_plus x : plus zero x = x.
Proof. rewrite plus_comm. apply plus_zero. Qed.

Lemma minus_plus x y : plus (minus x y) y = x.
Proof. unfold minus. now rewrite <- plus_assoc, (plus_comm _ (neg y)), plus_neg, plus_zero. Qed.

Lemma plus_minus x y : minus (plus x y) y = x.
Proof. unfold minus. now rewrite <- plus_assoc, plus_neg, plus_zero. Qed.

Lemma plus_cancel x y z : plus x z = plus y z -> x = y.
Proof. intros H. rewrite <- (plus_minus x z), H. apply plus_minus. Qed.

Lemma minus_zero x : minus x zero = x.
Proof. rewrite <- (plus_zero G (minus x zero)). apply minus_plus. Qed.

Lemma minus_self x : minus x x = zero.
Proof. apply plus_neg. Qed.

Lemma neg_neg x : neg (neg x) = x.
Proof. apply plus_cancel with (neg x). now rewrite plus_comm, !plus_neg. Qed.

Lemma neg_plus x y : neg (plus x y) = plus (neg x) (neg y).
Proof.
  apply plus_cancel with (plus x y). rewrite (plus_comm _ (neg (plus x y))), plus_neg.
  rewrite plus_assoc, (plus_comm _ (plus (neg x) (neg y))), plus_assoc, plus_neg, zero_plus.
  now rewrite plus_comm, plus_neg.
Qed.

(** Moving noise by a difference: o - (q - mu) = (o - q) + mu. *)
Lemma minus_minus x y z : minus x (minus y z) = plus (minus x y) z.
Proof. unfold minus. now rewrite neg_plus, neg_neg, plus_assoc. Qed.

Lemma translation (z : element G) :
  Permutation (map (fun x => plus x z) (elements G)) (elements G).
Proof.
  apply NoDup_Permutation_bis.
  - apply FinFun.Injective_map_NoDup; [|apply elements_once].
    intros x y H. exact (plus_cancel _ _ _ H).
  - rewrite map_length. lia.
  - intros x _. apply elements_complete.
Qed.

Lemma sum_translated (f : element G -> R) (z : element G) :
  sum (fun x => f (plus x z)) (elements G) = sum f (elements G).
Proof. rewrite <- (sum_map (fun x => plus x z) f). apply sum_permutation, translation. Qed.

Lemma sum_shifted (f : element G -> R) (z : element G) :
  sum (fun x => f (minus x z)) (elements G) = sum f (elements G).
Proof. apply sum_translated. Qed.

(** Modular noise: the row of the true answer q. *)
Definition row (f : element G -> R) (q o : element G) : R := f (minus o q).

(** The approximate and the probabilistic delta of noise f at the difference mu, with t for e^eps. *)
Definition excess (t : R) (f : element G -> R) (mu : element G) : R :=
  sum (fun x => pos (f x - t * f (plus x mu))) (elements G).

Definition violated (t : R) (f : element G -> R) (mu : element G) : R :=
  sum (fun x => if Rlt_dec (t * f (plus x mu)) (f x) then f x else 0) (elements G).

Theorem modular_hockey (f : element G -> R) (q mu : element G) (t : R) :
  hockey (elements G) (row f q) (row f (minus q mu)) t = excess t f mu.
Proof.
  unfold hockey, excess, row.
  rewrite <- (sum_shifted (fun x => pos (f x - t * f (plus x mu))) q).
  apply sum_ext. intros o _. now rewrite minus_minus.
Qed.

Theorem modular_violated_mass (f : element G -> R) (q mu : element G) (t : R) :
  violated_mass (elements G) (row f q) (row f (minus q mu)) t = violated t f mu.
Proof.
  unfold violated_mass, violated, row.
  rewrite <- (sum_shifted (fun x => if Rlt_dec (t * f (plus x mu)) (f x) then f x else 0) q).
  apply sum_ext. intros o _. now rewrite minus_minus.
Qed.

Theorem modular_pure (f : element G -> R) (q mu : element G) (eps : R) :
  pure (elements G) (row f q) (row f (minus q mu)) eps <->
  forall x, f x <= exp eps * f (plus x mu).
Proof.
  unfold pure, row. split.
  - intros H x. specialize (H (plus x q) (elements_complete G _)).
    now rewrite minus_minus, plus_minus in H.
  - intros H o _. rewrite minus_minus. apply H.
Qed.

End Laws.

Section Steps.
Context {G : group}.
Variable shifts : list (element G).
Variable allowed : element G -> element G -> bool.

(** Whether a walk of exactly k allowed steps leads from 0 to x. *)
Fixpoint reach (k : nat) (x : element G) : bool :=
  match k with
  | O => if same x zero then true else false
  | S k' => existsb (fun mu => allowed (minus x mu) mu && reach k' (minus x mu)) shifts
  end.

Definition steps (x : element G) : option nat :=
  find (fun k => reach k x) (seq 0 (length (elements G))).

Definition least (k : nat) (x : element G) : Prop :=
  reach k x = true /\ forall j, (j < k)%nat -> reach j x = false.

Lemma find_first (f : nat -> bool) (n a k : nat) :
  find f (seq a n) = Some k -> f k = true /\ forall j, (a <= j < k)%nat -> f j = false.
Proof.
  revert a. induction n as [|n IH]; simpl; intros a H; [discriminate|].
  destruct (f a) eqn:Ha.
  - injection H as <-. split; [assumption|]. intros j Hj. lia.
  - destruct (IH (S a) H) as [Hk Hj]. split; [assumption|]. intros j [H1 H2].
    destruct (Nat.eq_dec j a) as [->|]; [assumption|]. apply Hj. lia.
Qed.

Theorem steps_least (x : element G) (k : nat) : steps x = Some k -> least k x.
Proof.
  intros H. apply find_first in H as [H1 H2]. split; [assumption|]. intros j Hj. apply H2. lia.
Qed.

Lemma reach_extended (k : nat) (x mu : element G) :
  In mu shifts -> allowed x mu = true -> reach k x = true -> reach (S k) (plus x mu) = true.
Proof.
  intros Hmu Ha Hk. simpl. apply existsb_exists. exists mu. split; [assumption|].
  now rewrite plus_minus, Ha, Hk.
Qed.

Lemma reach_last (k : nat) (x : element G) :
  reach (S k) x = true ->
  exists mu, In mu shifts /\ allowed (minus x mu) mu = true /\ reach k (minus x mu) = true.
Proof.
  simpl. intros H. apply existsb_exists in H as [mu [Hmu H]]. apply andb_true_iff in H.
  exists mu. tauto.
Qed.

(** The last step of a shortest walk leads from an element that is one step nearer. *)
Lemma least_last (k : nat) (x : element G) :
  least (S k) x ->
  exists mu, In mu shifts /\ allowed (minus x mu) mu = true /\ least k (minus x mu).
Proof.
  intros [Hr Hl]. destruct (reach_last k x Hr) as [mu [Hmu [Ha Hk]]].
  exists mu. repeat split; try assumption. intros j Hj.
  destruct (reach j (minus x mu)) eqn:E; [|reflexivity].
  assert (reach (S j) (plus (minus x mu) mu) = true) as H by now apply reach_extended.
  rewrite minus_plus in H. rewrite (Hl (S j)) in H by lia. discriminate.
Qed.

Lemma least_unique (j k : nat) (x : element G) : least j x -> least k x -> j = k.
Proof.
  intros [Hj Lj] [Hk Lk]. destruct (lt_eq_lt_dec j k) as [[H|H]|H]; [|assumption|].
  - rewrite Lk in Hj by assumption. discriminate.
  - rewrite Lj in Hk by assumption. discriminate.
Qed.

(** A shortest walk visits no element twice, so it has fewer steps than there are elements. *)
Lemma walk_elements (k : nat) (x : element G) :
  least k x ->
  exists l, length l = S k /\ NoDup l /\ forall y, In y l -> exists j, (j <= k)%nat /\ least j y.
Proof.
  revert x. induction k as [|k IH]; intros x Hx.
  - exists [x]. split; [reflexivity|]. split; [repeat constructor; simpl; tauto|].
    simpl. intros y [<-|[]]. now exists 0%nat.
  - destruct (least_last k x Hx) as [mu [_ [_ Hk]]].
    destruct (IH _ Hk) as [l [Hlen [Hl Hin]]]. exists (x :: l). split; [simpl; lia|]. split.
    + constructor; [|assumption]. intros H. destruct (Hin x H) as [j [Hj Hlj]].
      assert (j = S k) by (eapply least_unique; eassumption). lia.
    + simpl. intros y [<-|H]; [now exists (S k)|]. destruct (Hin y H) as [j [Hj Hlj]].
      exists j. split; [lia|assumption].
Qed.

Lemma least_below_size (k : nat) (x : element G) : least k x -> (k < length (elements G))%nat.
Proof.
  intros H. destruct (walk_elements k x H) as [l [Hlen [Hl _]]].
  enough (length l <= length (elements G))%nat by lia.
  apply NoDup_incl_length; [assumption|]. intros y _. apply elements_complete.
Qed.

Lemma reach_has_least (k : nat) (x : element G) : reach k x = true -> exists j, (j <= k)%nat /\ least j x.
Proof.
  induction k as [k IH] using lt_wf_ind. intros Hk.
  destruct (find (fun j => reach j x) (seq 0 k)) as [j|] eqn:E.
  - destruct (find_some _ _ E) as [Hin Hj]. apply in_seq in Hin.
    destruct (IH j) as [i [Hi Hl]]; [lia|assumption|]. exists i. split; [lia|assumption].
  - exists k. split; [lia|]. split; [assumption|]. intros j Hj.
    apply (find_none _ _ E). apply in_seq. lia.
Qed.

Theorem steps_none (x : element G) : steps x = None -> forall k, reach k x = false.
Proof.
  intros H k. destruct (reach k x) eqn:E; [|reflexivity].
  destruct (reach_has_least k x E) as [j [_ Hj]].
  assert (reach j x = false); [|destruct Hj; congruence].
  apply (find_none _ _ H). apply in_seq. generalize (least_below_size j x Hj). lia.
Qed.

Lemma steps_of_least (k : nat) (x : element G) : least k x -> steps x = Some k.
Proof.
  intros H. destruct (steps x) as [j|] eqn:E.
  - f_equal. apply least_unique with x; [now apply steps_least|assumption].
  - destruct H as [H _]. rewrite steps_none in H by assumption. discriminate.
Qed.

Lemma least_zero : least 0 zero.
Proof. split; [|intros; lia]. simpl. destruct (@same G zero zero); congruence. Qed.

(** E^-d, and 0 where no walk leads. *)
Definition weight (E : R) (x : element G) : R :=
  match steps x with Some k => / E ^ k | None => 0 end.

Definition total_weight (E : R) : R := sum (weight E) (elements G).

Section Ratio.
Variable E : R.
Hypothesis E_large : 1 <= E.

Lemma power_positive (k : nat) : 0 < E ^ k.
Proof. apply pow_lt. lra. Qed.

Lemma weight_nonneg x : 0 <= weight E x.
Proof.
  unfold weight. destruct (steps x) as [k|]; [|lra].
  left. apply Rinv_0_lt_compat, power_positive.
Qed.

Lemma weight_zero : weight E zero = 1.
Proof. unfold weight. rewrite (steps_of_least 0) by apply least_zero. simpl. lra. Qed.

Lemma total_weight_large : 1 <= total_weight E.
Proof.
  rewrite <- weight_zero. apply sum_one_term; [|apply elements_complete].
  intros; apply weight_nonneg.
Qed.

(** A step costs at most the factor E: d(x + mu) <= d(x) + 1. *)
Lemma weight_step x mu :
  In mu shifts -> allowed x mu = true -> weight E x <= E * weight E (plus x mu).
Proof.
  intros Hmu Ha. unfold weight. destruct (steps x) as [k|] eqn:Hx.
  - apply steps_least in Hx as [Hx _].
    destruct (reach_has_least (S k) (plus x mu)) as [j [Hj Hl]]; [now apply reach_extended|].
    rewrite (steps_of_least j) by assumption.
    apply Rmult_le_reg_l with (E ^ k * E ^ j).
    + apply Rmult_lt_0_compat; apply power_positive.
    + generalize (power_positive k) (power_positive j). intros Pk Pj.
      replace (E ^ k * E ^ j * / E ^ k) with (E ^ j) by (field; lra).
      replace (E ^ k * E ^ j * (E * / E ^ j)) with (E ^ S k) by (simpl; field; lra).
      apply Rle_pow; assumption.
  - fold (weight E (plus x mu)). rewrite <- (Rmult_0_r E).
    apply Rmult_le_compat_l; [lra|apply weight_nonneg].
Qed.

(** Chaining the constraints along a walk. *)
Lemma chain (f : element G -> R) :
  (forall x, 0 <= f x) ->
  (forall x mu, In mu shifts -> allowed x mu = true -> f x <= E * f (plus x mu)) ->
  forall x, f zero * weight E x <= f x.
Proof.
  intros Hf H.
  assert (forall k x, reach k x = true -> f zero <= E ^ k * f x) as Hreach.
  { induction k as [|k IH]; intros x Hx.
    - simpl in Hx. destruct (same x zero) as [->|]; [simpl; lra|discriminate].
    - destruct (reach_last k x Hx) as [mu [Hmu [Ha Hk]]].
      apply Rle_trans with (1 := IH _ Hk). simpl. rewrite (Rmult_comm E), Rmult_assoc.
      apply Rmult_le_compat_l; [left; apply power_positive|].
      specialize (H (minus x mu) mu Hmu Ha). now rewrite minus_plus in H. }
  intros x. unfold weight. destruct (steps x) as [k|] eqn:Hx.
  - apply steps_least in Hx as [Hx _]. specialize (Hreach k x Hx).
    apply Rmult_le_reg_l with (E ^ k); [apply power_positive|].
    generalize (power_positive k). intros Pk.
    replace (E ^ k * (f zero * / E ^ k)) with (f zero) by (field; lra). assumption.
  - rewrite Rmult_0_r. apply Hf.
Qed.

End Ratio.
End Steps.

(** The integers modulo N = n + 1, the group of N answers in a ring. *)
Section Cyclic.
Variable n : nat.

Definition residue : Type := {k : nat | (k <? S n)%nat = true}.

Lemma residue_below (k : nat) : (k mod S n <? S n)%nat = true.
Proof. apply Nat.ltb_lt, Nat.mod_upper_bound. discriminate. Qed.

Definition residue_of (k : nat) : residue := exist _ (k mod S n)%nat (residue_below k).

Lemma residue_equal (x y : residue) : proj1_sig x = proj1_sig y -> x = y.
Proof.
  destruct x as [x Hx], y as [y Hy]; simpl. intros ->. f_equal.
  apply Eqdep_dec.UIP_dec, bool_dec.
Qed.

Lemma residue_small (x : residue) : (proj1_sig x < S n)%nat.
Proof. destruct x as [x Hx]; simpl. now apply Nat.ltb_lt. Qed.

Lemma residue_of_itself (x : residue) : residue_of (proj1_sig x) = x.
Proof. apply residue_equal. cbn [proj1_sig residue_of]. apply Nat.mod_small, residue_small. Qed.

Definition residue_plus (x y : residue) : residue := residue_of (proj1_sig x + proj1_sig y).
Definition residue_neg (x : residue) : residue := residue_of (S n - proj1_sig x).

Definition residue_same (x y : residue) : {x = y} + {x <> y}.
Proof.
  destruct (Nat.eq_dec (proj1_sig x) (proj1_sig y)) as [H|H].
  - left. now apply residue_equal.
  - right. intros ->. now apply H.
Defined.

Definition cyclic : group.
Proof.
  refine {| element := residue; zero := residue_of 0; plus := residue_plus; neg := residue_neg;
            elements := map residue_of (seq 0 (S n)); same := residue_same |}.
  - intros x y. unfold residue_plus. f_equal. apply Nat.add_comm.
  - intros x y z. apply residue_equal. cbn [proj1_sig residue_plus residue_of].
    rewrite Nat.add_mod_idemp_r, Nat.add_mod_idemp_l by discriminate. f_equal. lia.
  - intros x. rewrite <- (residue_of_itself x) at 2. unfold residue_plus. f_equal.
    cbn [proj1_sig residue_of]. rewrite Nat.mod_small by lia. lia.
  - intros x. apply residue_equal. cbn [proj1_sig residue_plus residue_neg residue_of].
    rewrite Nat.add_mod_idemp_r by discriminate. generalize (residue_small x). intros Hx.
    replace (proj1_sig x + (S n - proj1_sig x))%nat with (1 * S n)%nat by lia.
    rewrite Nat.mod_mul by discriminate. now rewrite Nat.mod_small by lia.
  - intros x. apply in_map_iff. exists (proj1_sig x). split; [apply residue_of_itself|].
    apply in_seq. generalize (residue_small x). lia.
  - assert (forall l, (forall k, In k l -> (k < S n)%nat) -> NoDup l -> NoDup (map residue_of l)).
    { induction l as [|k l IH]; simpl; intros Hl Hd; [constructor|].
      inversion Hd as [|? ? Hk Hd']; subst. constructor; [|auto].
      intros Hin. apply in_map_iff in Hin as [j [Hj Hjl]]. apply Hk.
      apply (f_equal (@proj1_sig _ _)) in Hj. cbn [proj1_sig residue_of] in Hj.
      rewrite !Nat.mod_small in Hj by auto. now subst. }
    apply H; [|apply seq_NoDup]. intros k Hk. apply in_seq in Hk. lia.
Defined.

End Cyclic.

(** Joint answers: pairs, part by part. *)
Section Product.
Variables G H : group.

Lemma pairs_once {A B : Type} (l : list A) (m : list B) :
  NoDup l -> NoDup m -> NoDup (list_prod l m).
Proof.
  induction l as [|a l IH]; simpl; intros Hl Hm; [constructor|].
  inversion Hl as [|? ? Ha Hl']; subst. specialize (IH Hl' Hm).
  assert (forall m', NoDup m' -> NoDup (map (fun b : B => (a, b)) m' ++ list_prod l m)) as Happ.
  { induction m' as [|b m' IHm]; simpl; intros Hm'; [assumption|].
    inversion Hm' as [|? ? Hb Hm'']; subst. constructor; [|auto].
    intros Hin. apply in_app_or in Hin as [Hin|Hin].
    - apply in_map_iff in Hin as [c [Hc Hcm]]. injection Hc as ->. contradiction.
    - apply in_prod_iff in Hin. tauto. }
  now apply Happ.
Qed.

Definition product : group.
Proof.
  refine {| element := element G * element H;
            zero := (zero, zero);
            plus := fun x y => (plus (fst x) (fst y), plus (snd x) (snd y));
            neg := fun x => (neg (fst x), neg (snd x));
            elements := list_prod (elements G) (elements H) |}.
  - intros [a b] [c d]. destruct (same a c) as [->|]; [|right; congruence].
    destruct (same b d) as [->|]; [now left|right; congruence].
  - intros [a b] [c d]; simpl. f_equal; apply plus_comm.
  - intros [a b] [c d] [e f]; simpl. f_equal; apply plus_assoc.
  - intros [a b]; simpl. f_equal; apply plus_zero.
  - intros [a b]; simpl. f_equal; apply plus_neg.
  - intros [a b]. apply in_prod; apply elements_complete.
  - apply pairs_once; apply elements_once.
Defined.

End Product.
