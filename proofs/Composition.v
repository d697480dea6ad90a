(** Composition: basic, and adaptive by dominating pairs.

    docs/design/mathematics.md 2.17, T6 and the part of 2.32 that a plan needs.  Laws are finite.
    [hockey outs P Q t] is the privacy profile H(t) of a pair (Privacy.v).  A pair (P1, Q1)
    dominates (P, Q) if its profile is nowhere smaller on t >= 0; P1 and Q1 may be any masses that
    are not negative, so masses that were rounded up do no harm
    (release/exact/composition/distribution.py).  [session] is what is released over time: each step
    has its laws under the two tables, and what follows may depend on every output so far, also
    whether anything follows.  [plan] lists the pairs of the slots (release/budget/rules/planned.py).

    In words:
    - [basic_composition]: mechanisms with (e1, d1) and, given any output of the first, (e2, d2)
      satisfy (e1 + e2, d1 + d2) together (2.17);
    - [adaptive_composition]: if step 1 is dominated by (P1, Q1) and step 2, given any output of
      step 1, by (P2, Q2), then both are dominated by the pair of products (T6);
    - [session_dominated]: whatever a session releases, in whichever order it takes the slots of a
      plan, each at most once, and whenever it stops: it is dominated by the product of all slots.
*)

From Coq Require Import Reals Lra Lia List Permutation.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Definition dominated {A B : Type} (outs : list A) (P Q : A -> R)
  (outs' : list B) (P' Q' : B -> R) : Prop :=
  forall t, 0 <= t -> hockey outs P Q t <= hockey outs' P' Q' t.

(** A profile with the masses of both sides scaled: sum of max(0, a P - b Q). *)
Definition stick {A : Type} (outs : list A) (P Q : A -> R) (a b : R) : R :=
  sum (fun o => pos (a * P o - b * Q o)) outs.

Lemma stick_hockey {A : Type} (outs : list A) (P Q : A -> R) (a b : R) :
  0 < a -> stick outs P Q a b = a * hockey outs P Q (b / a).
Proof.
  intros Ha. unfold stick, hockey. rewrite <- sum_scale. apply sum_ext. intros o _.
  rewrite <- pos_scale by lra. f_equal. field. lra.
Qed.

Lemma stick_nothing {A : Type} (outs : list A) (P Q : A -> R) (b : R) :
  0 <= b -> (forall o, In o outs -> 0 <= Q o) -> stick outs P Q 0 b = 0.
Proof.
  intros Hb HQ. unfold stick. rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|].
  intros o Ho. apply pos_of_nonpos. generalize (Rmult_le_pos b (Q o) Hb (HQ o Ho)). lra.
Qed.

Lemma stick_nonneg {A : Type} (outs : list A) (P Q : A -> R) (a b : R) : 0 <= stick outs P Q a b.
Proof. apply sum_nonneg. intros. apply pos_nonneg. Qed.

Lemma dominated_stick {A B : Type} (outs : list A) (P Q : A -> R)
  (outs' : list B) (P' Q' : B -> R) (a b : R) :
  dominated outs P Q outs' P' Q' -> (forall o, In o outs -> 0 <= Q o) ->
  0 <= a -> 0 <= b -> stick outs P Q a b <= stick outs' P' Q' a b.
Proof.
  intros H HQ Ha Hb. destruct (Rle_lt_or_eq_dec 0 a Ha) as [Hlt|<-].
  - rewrite !stick_hockey by assumption. apply Rmult_le_compat_l; [assumption|]. apply H.
    apply Rmult_le_pos; [assumption|]. left. now apply Rinv_0_lt_compat.
  - rewrite stick_nothing by assumption. apply stick_nonneg.
Qed.

Section TwoSteps.
Context {Y Z U V : Type}.
Variables (ys : list Y) (zs : list Z).
Variables p q : Y -> R.
Variables p2 q2 : Y -> Z -> R.
Hypothesis p_nonneg : forall y, In y ys -> 0 <= p y.
Hypothesis q_nonneg : forall y, In y ys -> 0 <= q y.
Hypothesis p2_nonneg : forall y z, In y ys -> In z zs -> 0 <= p2 y z.
Hypothesis q2_nonneg : forall y z, In y ys -> In z zs -> 0 <= q2 y z.

(** The outputs of both steps, and their laws under the two tables. *)
Definition outputs : list (Y * Z) := list_prod ys zs.
Definition joint (f : Y -> R) (f2 : Y -> Z -> R) (o : Y * Z) : R := f (fst o) * f2 (fst o) (snd o).

Lemma sum_pairs {A B : Type} (f : A -> B -> R) (l : list A) (m : list B) :
  sum (fun o => f (fst o) (snd o)) (list_prod l m) = sum (fun a => sum (f a) m) l.
Proof.
  induction l as [|a l IH]; simpl; [reflexivity|].
  rewrite sum_app, IH, sum_map. reflexivity.
Qed.

Section Dominating.
Variables (us : list U) (vs : list V).
Variables P1 Q1 : U -> R.
Variables P2 Q2 : V -> R.
Hypothesis P2_nonneg : forall v, In v vs -> 0 <= P2 v.
Hypothesis Q2_nonneg : forall v, In v vs -> 0 <= Q2 v.
Hypothesis first_dominated : dominated ys p q us P1 Q1.
Hypothesis second_dominated : forall y, In y ys -> dominated zs (p2 y) (q2 y) vs P2 Q2.

Theorem adaptive_composition :
  dominated outputs (joint p p2) (joint q q2)
    (list_prod us vs) (fun o => P1 (fst o) * P2 (snd o)) (fun o => Q1 (fst o) * Q2 (snd o)).
Proof.
  intros t Ht. unfold hockey, outputs, joint.
  rewrite (sum_pairs (fun y z => pos (p y * p2 y z - t * (q y * q2 y z)))).
  rewrite (sum_pairs (fun u v => pos (P1 u * P2 v - t * (Q1 u * Q2 v)))).
  apply Rle_trans with (sum (fun y => stick vs P2 Q2 (p y) (t * q y)) ys).
  - apply sum_le. intros y Hy.
    apply Rle_trans with (stick zs (p2 y) (q2 y) (p y) (t * q y)).
    + right. apply sum_ext. intros z _. f_equal. ring.
    + apply dominated_stick; auto. apply Rmult_le_pos; auto.
  - unfold stick. rewrite (sum_exchange _ ys vs), (sum_exchange _ us vs). apply sum_le. intros v Hv.
    apply Rle_trans with (stick ys p q (P2 v) (t * Q2 v)).
    + right. apply sum_ext. intros y _. f_equal. ring.
    + apply Rle_trans with (stick us P1 Q1 (P2 v) (t * Q2 v)).
      * apply dominated_stick; auto. apply Rmult_le_pos; auto.
      * right. apply sum_ext. intros u _. f_equal. ring.
Qed.

End Dominating.

Section Basic.
Variables e1 e2 d1 d2 : R.
Hypothesis p_sums : sum p ys = 1.
Hypothesis p2_sums : forall y, In y ys -> sum (p2 y) zs = 1.
Hypothesis first_private : approximate ys p q e1 d1.
Hypothesis second_private : forall y, In y ys -> approximate zs (p2 y) (q2 y) e2 d2.

Lemma excess_of_product (a b c d : R) :
  0 <= a -> 0 <= b -> 0 <= c -> 0 <= d ->
  pos (a * b - exp (e1 + e2) * (c * d)) <= pos (a - exp e1 * c) * b + a * pos (b - exp e2 * d).
Proof.
  intros Ha Hb Hc Hd. rewrite exp_plus.
  generalize (exp_pos e1) (exp_pos e2). intros H1 H2.
  generalize (pos_nonneg (a - exp e1 * c)) (pos_nonneg (b - exp e2 * d)). intros N1 N2.
  apply pos_least; [generalize (Rmult_le_pos _ _ N1 Hb) (Rmult_le_pos _ _ Ha N2); lra|].
  set (m := a - pos (a - exp e1 * c)).
  assert (0 <= m <= exp e1 * c) as Hm.
  { unfold m, pos. generalize (Rmult_le_pos (exp e1) c ltac:(lra) Hc). intros Hec.
    unfold Rmax. destruct (Rle_dec 0 (a - exp e1 * c)); lra. }
  assert (m * b <= exp e1 * exp e2 * (c * d) + a * pos (b - exp e2 * d)).
  { apply Rle_trans with (m * (exp e2 * d + pos (b - exp e2 * d))).
    - apply Rmult_le_compat_l; [lra|]. generalize (pos_above (b - exp e2 * d)). lra.
    - rewrite Rmult_plus_distr_l. apply Rplus_le_compat.
      + replace (exp e1 * exp e2 * (c * d)) with (exp e1 * c * (exp e2 * d)) by ring.
        apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|lra].
      + apply Rmult_le_compat_r; [assumption|unfold m; lra]. }
  replace (a * b) with (m * b + pos (a - exp e1 * c) * b) by (unfold m; ring). lra.
Qed.

Theorem basic_composition :
  approximate outputs (joint p p2) (joint q q2) (e1 + e2) (d1 + d2).
Proof.
  apply approximate_is_hockey. unfold hockey, outputs, joint.
  rewrite (sum_pairs (fun y z => pos (p y * p2 y z - exp (e1 + e2) * (q y * q2 y z)))).
  apply Rle_trans with (sum (fun y => pos (p y - exp e1 * q y) + p y * d2) ys).
  - apply sum_le. intros y Hy.
    apply Rle_trans with (sum (fun z => pos (p y - exp e1 * q y) * p2 y z +
                                        p y * pos (p2 y z - exp e2 * q2 y z)) zs).
    + apply sum_le. intros z Hz. apply excess_of_product; auto.
    + rewrite sum_plus, !sum_scale, p2_sums by assumption. rewrite Rmult_1_r.
      apply Rplus_le_compat_l. apply Rmult_le_compat_l; [auto|].
      apply approximate_is_hockey. auto.
  - rewrite sum_plus, sum_scale_right, p_sums. apply approximate_is_hockey in first_private.
    unfold hockey in first_private. lra.
Qed.

End Basic.
End TwoSteps.

(** A pair of laws as a list of its masses under P and Q. *)
Definition pair : Type := list (R * R).

Definition profile (d : pair) (a b : R) : R := sum (fun m => pos (a * fst m - b * snd m)) d.

(** The profile of the product of all pairs of a plan. *)
Fixpoint planned (plan : list pair) (a b : R) : R :=
  match plan with
  | [] => pos (a - b)
  | d :: rest => sum (fun m => planned rest (a * fst m) (b * snd m)) d
  end.

Inductive session : Type :=
  | Stop
  | Release (outs : list nat) (p q : nat -> R) (next : nat -> session).

(** The sum over all transcripts of max(0, a P - b Q). *)
Fixpoint released (s : session) (a b : R) : R :=
  match s with
  | Stop => pos (a - b)
  | Release outs p q next => sum (fun y => released (next y) (a * p y) (b * q y)) outs
  end.

(** What a slot has to be: masses that are not negative, and at least the profile of silence. *)
Definition slot (d : pair) : Prop :=
  (forall m, In m d -> 0 <= fst m /\ 0 <= snd m) /\
  (forall a b, 0 <= a -> 0 <= b -> pos (a - b) <= profile d a b).

(** Each release takes one slot that is left, chosen from all earlier outputs. *)
Inductive fits : session -> list pair -> Prop :=
  | fits_stop plan : fits Stop plan
  | fits_release outs p q next plan d rest :
      Permutation plan (d :: rest) ->
      (forall y, In y outs -> 0 <= p y /\ 0 <= q y) ->
      (forall a b, 0 <= a -> 0 <= b -> stick outs p q a b <= profile d a b) ->
      (forall y, In y outs -> fits (next y) rest) ->
      fits (Release outs p q next) plan.

Lemma planned_permutation (plan plan' : list pair) :
  Permutation plan plan' -> forall a b, planned plan a b = planned plan' a b.
Proof.
  induction 1 as [|d l l' _ IH|d d' l|l l' l'' _ IH1 _ IH2]; intros a b; cbn [planned].
  - reflexivity.
  - apply sum_ext. intros m _. apply IH.
  - rewrite sum_exchange. apply sum_ext. intros m _. apply sum_ext. intros m' _.
    f_equal; ring.
  - now rewrite IH1.
Qed.

Lemma planned_stops (plan : list pair) :
  (forall d, In d plan -> slot d) ->
  forall a b, 0 <= a -> 0 <= b -> pos (a - b) <= planned plan a b.
Proof.
  induction plan as [|d rest IH]; intros H a b Ha Hb; cbn [planned]; [lra|].
  destruct (H d (or_introl eq_refl)) as [Hd Hs]. apply Rle_trans with (1 := Hs a b Ha Hb).
  apply sum_le. intros m Hm. destruct (Hd m Hm) as [H1 H2].
  apply IH; [intros; apply H; now right| |]; now apply Rmult_le_pos.
Qed.

(** A law below a pair stays below it in front of any further slots. *)
Lemma planned_dominates (plan : list pair) (outs : list nat) (p q : nat -> R) (d : pair) :
  (forall d, In d plan -> slot d) ->
  (forall a b, 0 <= a -> 0 <= b -> stick outs p q a b <= profile d a b) ->
  forall a b, 0 <= a -> 0 <= b ->
    sum (fun y => planned plan (a * p y) (b * q y)) outs <= planned (d :: plan) a b.
Proof.
  intros Hplan H. induction plan as [|d' rest IH]; intros a b Ha Hb; cbn [planned].
  - exact (H a b Ha Hb).
  - rewrite sum_exchange, (sum_exchange _ d d'). apply sum_le. intros m Hm.
    destruct (Hplan d' (or_introl eq_refl)) as [Hd _]. destruct (Hd m Hm) as [H1 H2].
    apply Rle_trans with
      (sum (fun y => planned rest (a * fst m * p y) (b * snd m * q y)) outs).
    + right. apply sum_ext. intros y _. f_equal; ring.
    + apply Rle_trans with (planned (d :: rest) (a * fst m) (b * snd m)).
      * apply IH; [intros; apply Hplan; now right| |]; now apply Rmult_le_pos.
      * right. cbn [planned]. apply sum_ext. intros m' _. f_equal; ring.
Qed.

Theorem session_dominated (s : session) (plan : list pair) :
  fits s plan -> (forall d, In d plan -> slot d) ->
  forall a b, 0 <= a -> 0 <= b -> released s a b <= planned plan a b.
Proof.
  induction 1 as [plan|outs p q next plan d rest Hperm Hlaw Hdom Hnext IH];
    intros Hslots a b Ha Hb; cbn [released].
  - now apply planned_stops.
  - rewrite (planned_permutation _ _ Hperm).
    assert (forall e, In e rest -> slot e) as Hrest.
    { intros e He. apply Hslots. apply Permutation_in with (1 := Permutation_sym Hperm). now right. }
    apply Rle_trans with (sum (fun y => planned rest (a * p y) (b * q y)) outs).
    + apply sum_le. intros y Hy. destruct (Hlaw y Hy) as [H1 H2].
      apply IH; try assumption; now apply Rmult_le_pos.
    + now apply planned_dominates.
Qed.
