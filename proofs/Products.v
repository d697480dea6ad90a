(** Differences that move one coordinate at a time: the joint optimum is a product.

    docs/design/mathematics.md 2.1, corollary; release/exact/domain.py and
    release/noise/solvers/closed_form.py.  The group is the product of two groups, and every
    difference of M moves one of its parts by an element of that part's own set.

    In words:
    - [joint_steps]: the number of steps to a pair is the sum of the steps to its parts, and there
      are none to it if there are none to a part;
    - [joint_optimum]: so the pure optimum for the error rate is the product of the optima of the
      parts. *)

From Coq Require Import Reals Lra Lia List Arith Bool.
From DPRelease Require Import Sums Privacy Groups ErrorRate.
Import ListNotations.
Open Scope R_scope.

Section Product.
Variables G H : group.
Variable M : list (element G).
Variable L : list (element H).

Definition joint : list (element (product G H)) :=
  map (fun mu => (mu, zero) : element (product G H)) M ++
  map (fun nu => (zero, nu) : element (product G H)) L.

Notation everyG := (@every G).
Notation everyH := (@every H).
Notation everyP := (@every (product G H)).

Lemma reach_left (k : nat) x y (nu : element G) (j : nat) :
  reach joint everyP j (x, y) = true -> reach M everyG k nu = true ->
  reach joint everyP (k + j) (plus x nu, y) = true.
Proof.
  intros Hj. revert nu. induction k as [|k IH]; intros nu Hk.
  - simpl in Hk. destruct (same nu zero) as [->|]; [|discriminate]. now rewrite plus_zero.
  - destruct (reach_last M everyG k nu Hk) as [mu [Hmu [_ Hr]]]. specialize (IH _ Hr).
    cbn [Nat.add].
    replace (plus x nu, y) with (@plus (product G H) (plus x (minus nu mu), y) (mu, zero)).
    + apply reach_extended; [|reflexivity|assumption]. apply in_or_app. left.
      apply in_map_iff. now exists mu.
    + simpl. f_equal; [|apply plus_zero]. rewrite <- plus_assoc, minus_plus. reflexivity.
Qed.

Lemma reach_right (k : nat) (y : element H) :
  reach L everyH k y = true -> reach joint everyP k (zero, y) = true.
Proof.
  revert y. induction k as [|k IH]; intros y Hk.
  - simpl in Hk. destruct (same y zero) as [->|]; [|discriminate].
    exact (proj1 (least_zero joint everyP)).
  - destruct (reach_last L everyH k y Hk) as [nu [Hnu [_ Hr]]]. specialize (IH _ Hr).
    replace (zero, y) with (@plus (product G H) (zero, minus y nu) (zero, nu)).
    + apply reach_extended; [|reflexivity|assumption]. apply in_or_app. right.
      apply in_map_iff. now exists nu.
    + simpl. f_equal; [apply plus_zero|apply minus_plus].
Qed.

Lemma reach_both (i j : nat) (x : element G) (y : element H) :
  reach M everyG i x = true -> reach L everyH j y = true ->
  reach joint everyP (i + j) (x, y) = true.
Proof.
  intros Hi Hj. rewrite <- (zero_plus x). apply reach_left; [now apply reach_right|assumption].
Qed.

Lemma reach_parts (k : nat) (z : element (product G H)) :
  reach joint everyP k z = true ->
  exists i j, (k = i + j)%nat /\ reach M everyG i (fst z) = true /\ reach L everyH j (snd z) = true.
Proof.
  revert z. induction k as [|k IH]; intros [x y] Hk.
  - exists 0%nat, 0%nat. cbn [reach] in Hk.
    destruct (@same (product G H) (x, y) zero) as [He|]; [|discriminate].
    change (@zero (product G H)) with (@zero G, @zero H) in He. injection He as -> ->.
    split; [reflexivity|]. split; [exact (proj1 (least_zero M everyG))|].
    exact (proj1 (least_zero L everyH)).
  - destruct (reach_last joint everyP k (x, y) Hk) as [mu [Hmu [_ Hr]]].
    destruct (IH _ Hr) as [i [j [-> [Hi Hj]]]]. cbn [fst snd] in *.
    apply in_app_or in Hmu as [Hmu|Hmu]; apply in_map_iff in Hmu as [d [<- Hd]];
      cbn [fst snd minus plus neg product] in Hi, Hj.
    + exists (S i), j. split; [reflexivity|]. split.
      * rewrite <- (minus_plus x d). now apply reach_extended.
      * fold (@minus H y zero) in Hj. now rewrite minus_zero in Hj.
    + exists i, (S j). split; [lia|]. split.
      * fold (@minus G x zero) in Hi. now rewrite minus_zero in Hi.
      * rewrite <- (minus_plus y d). now apply reach_extended.
Qed.

Theorem joint_steps (x : element G) (y : element H) :
  steps joint everyP (x, y) =
  match steps M everyG x, steps L everyH y with
  | Some i, Some j => Some (i + j)%nat
  | _, _ => None
  end.
Proof.
  destruct (steps joint everyP (x, y)) as [k|] eqn:Ek.
  - apply steps_least in Ek as [Hk Hleast].
    destruct (reach_parts k _ Hk) as [i [j [-> [Hi Hj]]]]. cbn [fst snd] in *.
    destruct (reach_has_least M everyG i x Hi) as [i' [Hi' Li]].
    destruct (reach_has_least L everyH j y Hj) as [j' [Hj' Lj]].
    rewrite (steps_of_least M everyG i' x Li), (steps_of_least L everyH j' y Lj). f_equal.
    destruct (le_lt_dec (i + j) (i' + j')) as [|Hlt]; [lia|].
    destruct Li as [Ri _], Lj as [Rj _].
    generalize (Hleast _ Hlt). rewrite (reach_both i' j' x y Ri Rj). discriminate.
  - destruct (steps M everyG x) as [i|] eqn:Ei; [|reflexivity].
    destruct (steps L everyH y) as [j|] eqn:Ej; [|reflexivity].
    apply steps_least in Ei as [Ri _]. apply steps_least in Ej as [Rj _].
    generalize (steps_none joint everyP (x, y) Ek (i + j)).
    rewrite (reach_both i j x y Ri Rj). discriminate.
Qed.

Variable E : R.
Hypothesis E_large : 1 <= E.

Lemma joint_weight (x : element G) (y : element H) :
  weight joint everyP E (x, y) = weight M everyG E x * weight L everyH E y.
Proof.
  unfold weight. rewrite joint_steps.
  destruct (steps M everyG x) as [i|]; [|lra]. destruct (steps L everyH y) as [j|]; [|lra].
  rewrite pow_add. field. split; apply pow_nonzero; lra.
Qed.

Theorem joint_optimum (x : element G) (y : element H) :
  pure_noise joint E (x, y) = pure_noise M E x * pure_noise L E y.
Proof.
  unfold pure_noise. rewrite joint_weight.
  assert (total_weight joint everyP E = total_weight M everyG E * total_weight L everyH E) as ->.
  { unfold total_weight. cbn [elements product].
    assert (forall l, sum (weight joint everyP E) (list_prod l (elements H)) =
                      sum (weight M everyG E) l * sum (weight L everyH E) (elements H)) as Hl.
    { induction l as [|a l IH]; cbn [list_prod sum]; [lra|].
      rewrite sum_app, sum_map, IH.
      rewrite (sum_ext _ (fun b => weight M everyG E a * weight L everyH E b))
        by (intros; apply joint_weight).
      rewrite sum_scale. ring. }
    apply Hl. }
  generalize (S_positive M E E_large) (S_positive L E E_large). intros. field. lra.
Qed.

End Product.
