(** Permute-and-flip: selection of one of K public candidates by integer scores.

    docs/design/mathematics.md T3 and 2.25; release/exact/statistics/permute_and_flip.py.
    Candidates are numbers of a list [ids] without repetition, [q] gives the scores, and candidate
    s is accepted with the chance [w (gap s)], independently of the others; the gap is how far a
    score is below the best.  As the code does ([selected]), one of the accepted is published, each
    as likely: [chance s] is the chance of s, w(gap s) times the mean of 1/(1 + A), A the number of
    others that are accepted.  [share k p others] is the mean of 1/(k + 1 + A), computed candidate by
    candidate from their coins.  In the program w g = rho^g with rho = ratio/2^64, so R = 1/rho.

    In words:
    - [chance_is_integral]: P(s) = p_s times the integral over 0..1 of the product of (1 - u p_t),
      the formula of [chances_of]; the integral is stated by an antiderivative, with v = 1 - u;
    - [chances_add_up]: the chances of all candidates add up to one;
    - [permute_and_flip_recursion]: they satisfy the recursion of the process in random order:
      take a uniform candidate; publish it with its chance, else go on without it;
    - [permute_and_flip_private]: if all score changes between neighbors lie in an interval of
      length n, output ratios are at most R^n, for every table w with w 0 = 1, w not increasing
      and w g <= R w (g + 1); [permute_and_flip_pure]: so it is pure for eps if R^n <= e^eps;
    - [geometric_table]: w g = rho^g is such a table with R = 1/rho. *)

From Coq Require Import Reals Lra Lia List ZArith.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Section Share.
Variable p : nat -> R.

(** The mean of 1/(k + 1 + A), A the number of accepted candidates of the list. *)
Fixpoint share (k : nat) (l : list nat) : R :=
  match l with
  | [] => / INR (S k)
  | t :: rest => p t * share (S k) rest + (1 - p t) * share k rest
  end.

(** An antiderivative of v^k times the product of (1 - p_t + p_t v) that is 0 at 0. *)
Fixpoint area (k : nat) (l : list nat) (v : R) : R :=
  match l with
  | [] => v ^ S k / INR (S k)
  | t :: rest => p t * area (S k) rest v + (1 - p t) * area k rest v
  end.

Fixpoint factors (l : list nat) (v : R) : R :=
  match l with
  | [] => 1
  | t :: rest => (1 - p t + p t * v) * factors rest v
  end.

Lemma area_at_one (k : nat) (l : list nat) : area k l 1 = share k l.
Proof.
  revert k. induction l as [|t l IH]; intros k; cbn [area share].
  - rewrite pow1. unfold Rdiv. lra.
  - now rewrite !IH.
Qed.

Lemma area_at_zero (k : nat) (l : list nat) : area k l 0 = 0.
Proof.
  revert k. induction l as [|t l IH]; intros k; cbn [area].
  - simpl pow. unfold Rdiv. lra.
  - rewrite !IH. lra.
Qed.

Lemma area_derivative (k : nat) (l : list nat) (v : R) :
  derivable_pt_lim (area k l) v (v ^ k * factors l v).
Proof.
  revert k. induction l as [|t l IH]; intros k; cbn [area factors].
  - replace (v ^ k * 1) with (/ INR (S k) * (INR (S k) * v ^ pred (S k))).
    + apply derivable_pt_lim_ext with (fun x => / INR (S k) * x ^ S k).
      * intros z. unfold Rdiv. lra.
      * apply (derivable_pt_lim_scal (fun x => x ^ S k)). apply derivable_pt_lim_pow.
    + simpl pred. field. apply not_0_INR. lia.
  - replace (v ^ k * ((1 - p t + p t * v) * factors l v))
      with (p t * (v ^ S k * factors l v) + (1 - p t) * (v ^ k * factors l v))
      by (simpl pow; ring).
    apply (derivable_pt_lim_plus (fun x => p t * area (S k) l x)
                                 (fun x => (1 - p t) * area k l x));
      apply (derivable_pt_lim_scal (area _ l)); apply IH.
Qed.

Hypothesis chances : forall t, 0 <= p t <= 1.

Lemma area_nonneg (k : nat) (l : list nat) (v : R) : 0 <= v -> 0 <= area k l v.
Proof.
  intros Hv. revert k. induction l as [|t l IH]; intros k; cbn [area].
  - apply Rmult_le_pos; [now apply pow_le|].
    left. apply Rinv_0_lt_compat, lt_0_INR. lia.
  - generalize (chances t) (IH k) (IH (S k)). intros Ht H1 H2.
    generalize (Rmult_le_pos (p t) _ ltac:(lra) H2) (Rmult_le_pos (1 - p t) _ ltac:(lra) H1). lra.
Qed.

Lemma share_nonneg (k : nat) (l : list nat) : 0 <= share k l.
Proof. rewrite <- area_at_one. apply area_nonneg. lra. Qed.

(** Another accepted candidate leaves a smaller share. *)
Lemma share_falls (k : nat) (l : list nat) : share (S k) l <= share k l.
Proof.
  revert k. induction l as [|t l IH]; intros k; cbn [share].
  - apply Rinv_le_contravar; [apply lt_0_INR; lia|apply le_INR; lia].
  - generalize (chances t). intros Ht. apply Rplus_le_compat; apply Rmult_le_compat_l; auto; lra.
Qed.

(** The others leave k places: T k l is the mean of A/(k + A). *)
Fixpoint without (s : nat) (l : list nat) : list nat :=
  match l with
  | [] => []
  | t :: rest => if Nat.eq_dec t s then rest else t :: without s rest
  end.

Definition taken (k : nat) (l : list nat) : R := sum (fun s => p s * share k (without s l)) l.

Lemma taken_cons (k : nat) (t : nat) (l : list nat) :
  ~ In t l ->
  taken k (t :: l) = p t * share k l + p t * taken (S k) l + (1 - p t) * taken k l.
Proof.
  intros Ht. unfold taken. cbn [sum without].
  destruct (Nat.eq_dec t t) as [_|]; [|congruence].
  rewrite Rplus_assoc. f_equal. rewrite <- !sum_scale, <- sum_plus. apply sum_ext. intros s Hs.
  destruct (Nat.eq_dec t s) as [->|]; [contradiction|]. cbn [share]. ring.
Qed.

Lemma taken_and_left (k : nat) (l : list nat) :
  NoDup l -> taken (S k) l + INR (S k) * share k l = 1.
Proof.
  intros Hl. revert k. induction Hl as [|t l Ht Hl IH]; intros k.
  - unfold taken. cbn [sum share]. field. apply not_0_INR. lia.
  - rewrite taken_cons by assumption. cbn [share].
    generalize (IH k) (IH (S k)). rewrite !(S_INR (S k)). intros H1 H2.
    replace (taken (S k) l) with (1 - INR (S k) * share k l) by lra.
    replace (taken (S (S k)) l) with (1 - (INR (S k) + 1) * share (S k) l) by lra. ring.
Qed.

Fixpoint none (l : list nat) : R :=
  match l with [] => 1 | t :: rest => (1 - p t) * none rest end.

Lemma taken_in_all (l : list nat) : NoDup l -> taken 0 l = 1 - none l.
Proof.
  induction 1 as [|t l Ht Hl IH].
  - unfold taken. simpl. lra.
  - rewrite taken_cons by assumption. cbn [none]. rewrite IH.
    generalize (taken_and_left 0 l Hl). simpl INR. intros H.
    replace (taken 1 l) with (1 - share 0 l) by lra. ring.
Qed.

Lemma none_of_certain (l : list nat) (s : nat) : In s l -> p s = 1 -> none l = 0.
Proof.
  induction l as [|t l IH]; simpl; intros Hs H1; [contradiction|]. destruct Hs as [->|Hs].
  - rewrite H1. lra.
  - rewrite IH by assumption. lra.
Qed.

Lemma recursion_of_share (k : nat) (l : list nat) :
  NoDup l ->
  INR (length l + S k) * share k l = 1 + sum (fun t => (1 - p t) * share k (without t l)) l.
Proof.
  intros Hl. revert k. induction Hl as [|t l Ht Hl IH]; intros k.
  - cbn [length share sum Nat.add]. field. apply not_0_INR. lia.
  - cbn [sum without share length]. destruct (Nat.eq_dec t t) as [_|]; [|congruence].
    rewrite (sum_ext _ (fun s => p t * ((1 - p s) * share (S k) (without s l)) +
                                 (1 - p t) * ((1 - p s) * share k (without s l)))).
    + rewrite sum_plus, !sum_scale. generalize (IH k) (IH (S k)).
      replace (S (length l) + S k)%nat with (length l + S (S k))%nat by lia.
      replace (length l + S (S k))%nat with (S (length l + S k))%nat by lia. rewrite S_INR.
      intros H1 H2.
      replace (sum (fun a => (1 - p a) * share (S k) (without a l)) l)
        with ((INR (length l + S k) + 1) * share (S k) l - 1) by lra.
      replace (sum (fun a => (1 - p a) * share k (without a l)) l)
        with (INR (length l + S k) * share k l - 1) by lra. ring.
    + intros s Hs. destruct (Nat.eq_dec t s) as [->|]; [contradiction|]. cbn [share]. ring.
Qed.

End Share.

(** More likely rivals leave a smaller share. *)
Lemma share_antitone (p p' : nat -> R) (k : nat) (l : list nat) :
  (forall t, 0 <= p t <= 1) -> (forall t, 0 <= p' t <= 1) ->
  (forall t, In t l -> p' t <= p t) -> share p k l <= share p' k l.
Proof.
  intros Hp Hp'. revert k. induction l as [|t l IH]; intros k H; cbn [share]; [lra|].
  assert (Hl : forall t, In t l -> p' t <= p t) by (intros; apply H; now right).
  specialize (H t (or_introl eq_refl)).
  generalize (IH k Hl) (IH (S k) Hl) (share_falls p Hp k l) (Hp t) (Hp' t).
  intros H1 H2 H3 H4 H5.
  apply Rle_trans with (p' t * share p (S k) l + (1 - p' t) * share p k l).
  - generalize (Rmult_le_compat_r (share p k l - share p (S k) l) _ _ ltac:(lra) H). lra.
  - apply Rplus_le_compat; apply Rmult_le_compat_l; auto; lra.
Qed.

(** Rivals that are R times less likely leave at most R times the share. *)
Lemma share_scaled (p : nat -> R) (r : R) (l : list nat) :
  (forall t, 0 <= p t <= 1) -> 1 <= r ->
  share (fun t => p t / r) 0 l <= r * share p 0 l.
Proof.
  intros Hp Hr.
  set (inner := fun v => 1 - / r + / r * v).
  set (gap := fun v => r * area p 0 l (inner v) - area (fun t => p t / r) 0 l v).
  assert (forall v, factors p l (inner v) = factors (fun t => p t / r) l v) as Hfac.
  { intros v. clear -Hr. induction l as [|t l IH]; cbn [factors]; [reflexivity|].
    rewrite IH. f_equal. unfold inner. field. lra. }
  assert (forall v, derivable_pt_lim gap v 0) as Hgap.
  { intros v. unfold gap.
    replace 0 with (r * (factors p l (inner v) * / r) - factors (fun t => p t / r) l v)
      by (rewrite Hfac; field; lra).
    apply (derivable_pt_lim_minus (fun x => r * area p 0 l (inner x))).
    - apply (derivable_pt_lim_scal (fun x => area p 0 l (inner x))).
      apply (derivable_pt_lim_comp inner (area p 0 l)).
      + assert (derivable_pt_lim inner v (0 + / r * 1)) as Hi.
        { apply (derivable_pt_lim_plus (fun _ => 1 - / r) (fun x => / r * x)).
          - apply derivable_pt_lim_const.
          - apply (derivable_pt_lim_scal id). apply derivable_pt_lim_id. }
        now rewrite Rplus_0_l, Rmult_1_r in Hi.
      + generalize (area_derivative p 0 l (inner v)). simpl pow. now rewrite Rmult_1_l.
    - generalize (area_derivative (fun t => p t / r) 0 l v). simpl pow. now rewrite Rmult_1_l. }
  set (d := fun v => exist _ 0 (Hgap v) : derivable_pt gap v).
  assert (gap 0 = gap 1) as Hc by (apply (null_derivative_1 gap d); reflexivity).
  unfold gap, inner in Hc. rewrite area_at_zero, !Rmult_0_r, Rmult_1_r in Hc.
  replace (1 - / r + / r) with 1 in Hc by lra. rewrite !area_at_one in Hc.
  assert (0 <= area p 0 l (1 - / r + 0)) as Hn.
  { apply area_nonneg; [assumption|].
    assert (/ r <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra. }
  generalize (Rmult_le_pos r _ ltac:(lra) Hn). lra.
Qed.

Section Selection.
Variable w : nat -> R.
Variable r : R.
Hypothesis w_zero : w 0%nat = 1.
Hypothesis w_nonneg : forall g, 0 <= w g.
Hypothesis w_falls : forall g, w (S g) <= w g.
Hypothesis w_slowly : forall g, w g <= r * w (S g).
Hypothesis r_large : 1 <= r.

Variable ids : list nat.
Hypothesis ids_once : NoDup ids.

Definition best (q : nat -> Z) : Z :=
  match ids with [] => 0%Z | s :: rest => fold_right Z.max (q s) (map q rest) end.

Definition gap (q : nat -> Z) (s : nat) : nat := Z.to_nat (best q - q s).

(** The chance that s is accepted, and that it is published. *)
Definition accepted (q : nat -> Z) (s : nat) : R := w (gap q s).
Definition selected (q : nat -> Z) (s : nat) : R :=
  accepted q s * share (accepted q) 0 (without s ids).

Lemma w_at_most_one (g : nat) : w g <= 1.
Proof. induction g as [|g IH]; [lra|]. generalize (w_falls g). lra. Qed.

Lemma accepted_chance (q : nat -> Z) (t : nat) : 0 <= accepted q t <= 1.
Proof. split; [apply w_nonneg|apply w_at_most_one]. Qed.

Lemma selected_nonneg (q : nat -> Z) (s : nat) : 0 <= selected q s.
Proof. apply Rmult_le_pos; [apply w_nonneg|apply share_nonneg, accepted_chance]. Qed.

Lemma best_bounds (q : nat -> Z) :
  (forall s, In s ids -> (q s <= best q)%Z) /\
  (ids <> [] -> exists s, In s ids /\ q s = best q).
Proof.
  unfold best. destruct ids as [|s0 l]; [split; [intros s []|congruence]|]. clear.
  split; [|intros _]; induction l as [|t l IH]; simpl in *.
  - intros s [->|[]]. lia.
  - intros s [->|[->|H]].
    + specialize (IH s (or_introl eq_refl)). lia.
    + lia.
    + specialize (IH s (or_intror H)). lia.
  - exists s0. auto.
  - destruct IH as [s [Hs Hq]].
    destruct (Z.max_spec (q t) (fold_right Z.max (q s0) (map q l))) as [[_ ->]|[_ ->]].
    + exists s. tauto.
    + exists t. tauto.
Qed.

Theorem chance_is_integral (q : nat -> Z) (s : nat) :
  let F := area (accepted q) 0 (without s ids) in
  selected q s = accepted q s * (F 1 - F 0) /\
  (forall u, derivable_pt_lim F u (factors (accepted q) (without s ids) u)) /\
  (forall u, factors (accepted q) (without s ids) (1 - u) =
             fold_right (fun t x => (1 - u * accepted q t) * x) 1 (without s ids)).
Proof.
  cbn zeta. split; [|split].
  - rewrite area_at_one, area_at_zero. unfold selected. now rewrite Rminus_0_r.
  - intros u. generalize (area_derivative (accepted q) 0 (without s ids) u).
    simpl pow. now rewrite Rmult_1_l.
  - intros u. induction (without s ids) as [|t l IH]; simpl; [reflexivity|].
    rewrite IH. f_equal. ring.
Qed.

Theorem chances_add_up (q : nat -> Z) : ids <> [] -> sum (selected q) ids = 1.
Proof.
  intros Hids. change (taken (accepted q) 0 ids = 1). rewrite taken_in_all by assumption.
  destruct (proj2 (best_bounds q) Hids) as [s [Hs Hq]].
  rewrite (none_of_certain _ _ s); [lra|assumption|].
  unfold accepted, gap. now rewrite Hq, Z.sub_diag.
Qed.

(** Candidates that come into play when s is still among the list l. *)
Definition published (q : nat -> Z) (l : list nat) (s : nat) : R :=
  accepted q s * share (accepted q) 0 (without s l).

Lemma without_other (l : list nat) (s t : nat) :
  s <> t -> without s (without t l) = without t (without s l).
Proof.
  intros Hst. induction l as [|a l IH]; simpl; [reflexivity|].
  destruct (Nat.eq_dec a t) as [Ht|Ht], (Nat.eq_dec a s) as [Hs|Hs]; simpl;
    destruct (Nat.eq_dec a t), (Nat.eq_dec a s); congruence.
Qed.

Lemma without_in (l : list nat) (s : nat) (f : nat -> R) :
  In s l -> sum f l = f s + sum f (without s l) /\ length l = S (length (without s l)).
Proof.
  induction l as [|a l IH]; simpl; intros Hs; [contradiction|].
  destruct (Nat.eq_dec a s) as [->|Ha]; [split; reflexivity|].
  destruct Hs as [->|Hs]; [congruence|]. destruct (IH Hs) as [H1 H2]. simpl.
  split; [lra|lia].
Qed.

Lemma without_subset (l : list nat) (s t : nat) : In t (without s l) -> In t l.
Proof.
  induction l as [|a l IH]; simpl; [tauto|].
  destruct (Nat.eq_dec a s); simpl; tauto.
Qed.

Lemma without_once (l : list nat) (s : nat) : NoDup l -> NoDup (without s l).
Proof.
  induction 1 as [|a l Ha Hl IH]; simpl; [constructor|].
  destruct (Nat.eq_dec a s); [assumption|]. constructor; [|assumption].
  intros H. apply Ha. eapply without_subset; eassumption.
Qed.

Lemma without_gone (l : list nat) (s : nat) : NoDup l -> ~ In s (without s l).
Proof.
  induction 1 as [|a l Ha Hl IH]; simpl; [tauto|].
  destruct (Nat.eq_dec a s) as [->|]; [assumption|]. simpl. tauto.
Qed.

Theorem permute_and_flip_recursion (q : nat -> Z) (l : list nat) (s : nat) :
  NoDup l -> In s l ->
  published q l s =
  (accepted q s +
   sum (fun t => (1 - accepted q t) * published q (without t l) s) (without s l)) / INR (length l).
Proof.
  intros Hl Hs. destruct (without_in l s (fun _ => 0) Hs) as [_ Hlen].
  generalize (recursion_of_share (accepted q) 0 (without s l) (without_once l s Hl)).
  replace (length (without s l) + 1)%nat with (length l) by lia. intros H.
  assert (0 < INR (length l)) as Hpos by (apply lt_0_INR; lia).
  apply Rmult_eq_reg_l with (INR (length l)); [|lra]. unfold published at 1.
  replace (INR (length l) *
    ((accepted q s + sum (fun t => (1 - accepted q t) * published q (without t l) s) (without s l))
     / INR (length l)))
    with (accepted q s + sum (fun t => (1 - accepted q t) * published q (without t l) s)
                             (without s l)) by (field; lra).
  rewrite (sum_ext (fun t => (1 - accepted q t) * published q (without t l) s)
             (fun t => accepted q s *
                ((1 - accepted q t) * share (accepted q) 0 (without t (without s l))))).
  - rewrite sum_scale. rewrite <- Rmult_assoc, (Rmult_comm (INR (length l))), Rmult_assoc, H. ring.
  - intros t Ht. unfold published. rewrite (without_other l s t); [ring|].
    intros ->. now apply (without_gone l t Hl).
Qed.

(** One unit step: acceptance chances that all fall, by at most the factor r. *)
Lemma all_fall (q q' : nat -> Z) (s : nat) :
  In s ids ->
  (forall t, In t ids -> accepted q' t <= accepted q t <= r * accepted q' t) ->
  selected q s <= r * selected q' s /\ selected q' s <= r * selected q s.
Proof.
  intros Hs H. unfold selected.
  assert (Hother : forall t, In t (without s ids) -> In t ids)
    by (intros t; apply without_subset).
  set (others := without s ids) in *.
  generalize (share_nonneg (accepted q) (accepted_chance q) 0 others)
             (share_nonneg (accepted q') (accepted_chance q') 0 others). intros N1 N2.
  split.
  - rewrite <- Rmult_assoc. apply Rmult_le_compat; [apply w_nonneg|assumption|apply H; auto|].
    apply share_antitone; try apply accepted_chance. intros t Ht. apply H; auto.
  - apply Rle_trans with (accepted q s * (r * share (accepted q) 0 others)); [|lra].
    apply Rmult_le_compat; [apply w_nonneg|assumption|apply H; auto|].
    apply Rle_trans with (share (fun t => accepted q t / r) 0 others).
    + apply share_antitone; [apply accepted_chance| |].
      * intros t. generalize (accepted_chance q t). intros Hc.
        assert (0 < / r <= 1).
        { split; [apply Rinv_0_lt_compat; lra|].
          rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
        unfold Rdiv. split; [apply Rmult_le_pos; lra|].
        apply Rle_trans with (1 * 1); [|lra]. apply Rmult_le_compat; lra.
      * intros t Ht. apply Rmult_le_reg_l with r; [lra|].
        replace (r * (accepted q t / r)) with (accepted q t) by (field; lra). apply H; auto.
    + apply share_scaled; [apply accepted_chance|assumption].
Qed.

Lemma unit_step (q q' : nat -> Z) (s : nat) :
  In s ids -> (forall t, In t ids -> (q t <= q' t <= q t + 1)%Z) ->
  selected q s <= r * selected q' s /\ selected q' s <= r * selected q s.
Proof.
  intros Hs H. assert (Hids : ids <> []) by (intros ->; contradiction).
  destruct (best_bounds q) as [Hup Hat], (best_bounds q') as [Hup' Hat'].
  destruct (Hat Hids) as [m [Hm Hqm]], (Hat' Hids) as [m' [Hm' Hqm']].
  assert (best q <= best q' <= best q + 1)%Z as Hbest.
  { generalize (H m Hm) (Hup' m Hm) (H m' Hm') (Hup m' Hm'). lia. }
  destruct (Z.eq_dec (best q') (best q)) as [He|Hne].
  - destruct (all_fall q' q s Hs) as [H1 H2]; [|split; assumption].
    intros t Ht. unfold accepted, gap. rewrite He.
    generalize (H t Ht) (Hup t Ht) (Hup' t Ht). intros H3 H4 H5.
    assert (q' t = q t \/ q' t = q t + 1)%Z as [Hq|Hq] by lia; rewrite Hq in *.
    + split; [lra|]. generalize (Rmult_le_compat_r _ _ _ (w_nonneg (Z.to_nat (best q - q t))) r_large).
      lra.
    + replace (Z.to_nat (best q - q t)) with (S (Z.to_nat (best q - (q t + 1)))) by lia.
      split; [apply w_falls|apply w_slowly].
  - apply all_fall; [assumption|]. intros t Ht. unfold accepted, gap.
    assert (best q' = best q + 1)%Z as -> by lia.
    generalize (H t Ht) (Hup t Ht) (Hup' t Ht). intros H3 H4 H5.
    assert (q' t = q t \/ q' t = q t + 1)%Z as [Hq|Hq] by lia; rewrite Hq in *.
    + replace (Z.to_nat (best q + 1 - q t)) with (S (Z.to_nat (best q - q t))) by lia.
      split; [apply w_falls|apply w_slowly].
    + replace (best q + 1 - (q t + 1))%Z with (best q - q t)%Z by lia.
      split; [lra|]. generalize (Rmult_le_compat_r _ _ _ (w_nonneg (Z.to_nat (best q - q t))) r_large).
      lra.
Qed.

Lemma common_shift (q q' : nat -> Z) (c : Z) (s : nat) :
  In s ids -> (forall t, In t ids -> q' t = (q t + c)%Z) -> selected q' s = selected q s.
Proof.
  intros Hs H. assert (Hids : ids <> []) by (intros ->; contradiction).
  destruct (best_bounds q) as [Hup Hat], (best_bounds q') as [Hup' Hat'].
  destruct (Hat Hids) as [m [Hm Hqm]], (Hat' Hids) as [m' [Hm' Hqm']].
  assert (best q' = best q + c)%Z as Hb.
  { generalize (H m Hm) (Hup' m Hm) (H m' Hm') (Hup m' Hm'). lia. }
  assert (forall t, In t ids -> accepted q' t = accepted q t) as Ha.
  { intros t Ht. unfold accepted, gap. f_equal. rewrite Hb, (H t Ht). f_equal. lia. }
  unfold selected. rewrite Ha by assumption. f_equal.
  assert (forall k l, (forall t, In t l -> In t ids) ->
            share (accepted q') k l = share (accepted q) k l) as Hshare.
  { intros k l. revert k. induction l as [|t l IH]; intros k Hl; cbn [share]; [reflexivity|].
    rewrite !IH by (intros; apply Hl; now right). now rewrite Ha by (apply Hl; now left). }
  apply Hshare. intros t. apply without_subset.
Qed.

(** Changes of scores in an interval of length n, made in n unit steps. *)
Lemma many_steps (n : nat) (q q' : nat -> Z) (c : Z) (s : nat) :
  In s ids -> (forall t, In t ids -> (q t + c <= q' t <= q t + c + Z.of_nat n)%Z) ->
  selected q s <= r ^ n * selected q' s /\ selected q' s <= r ^ n * selected q s.
Proof.
  revert q'. induction n as [|n IH]; intros q' Hs H.
  - rewrite (common_shift q q' c s Hs); [simpl; lra|]. intros t Ht. generalize (H t Ht). lia.
  - set (mid := fun t => Z.min (q' t) (q t + c + Z.of_nat n)).
    destruct (IH mid Hs) as [H1 H2].
    { intros t Ht. unfold mid. generalize (H t Ht). lia. }
    destruct (unit_step mid q' s Hs) as [H3 H4].
    { intros t Ht. unfold mid. generalize (H t Ht). lia. }
    assert (0 <= r ^ n) by (apply pow_le; lra). simpl. split.
    + apply Rle_trans with (1 := H1). rewrite (Rmult_comm r), Rmult_assoc.
      now apply Rmult_le_compat_l.
    + apply Rle_trans with (1 := H4). rewrite Rmult_assoc.
      apply Rmult_le_compat_l; [lra|assumption].
Qed.

Theorem permute_and_flip_private (n : nat) (q q' : nat -> Z) (c : Z) (s : nat) :
  In s ids -> (forall t, In t ids -> (c <= q' t - q t <= c + Z.of_nat n)%Z) ->
  selected q s <= r ^ n * selected q' s /\ selected q' s <= r ^ n * selected q s.
Proof.
  intros Hs H. apply (many_steps n q q' c s Hs). intros t Ht. generalize (H t Ht). lia.
Qed.

Theorem permute_and_flip_pure (n : nat) (q q' : nat -> Z) (c : Z) (eps : R) :
  (forall t, In t ids -> (c <= q' t - q t <= c + Z.of_nat n)%Z) -> r ^ n <= exp eps ->
  pure ids (selected q) (selected q') eps /\ pure ids (selected q') (selected q) eps.
Proof.
  intros H Heps. split; intros s Hs; destruct (permute_and_flip_private n q q' c s Hs H) as [H1 H2].
  - apply Rle_trans with (1 := H1). apply Rmult_le_compat_r; [apply selected_nonneg|assumption].
  - apply Rle_trans with (1 := H2). apply Rmult_le_compat_r; [apply selected_nonneg|assumption].
Qed.

End Selection.

Theorem geometric_table (rho : R) :
  0 < rho <= 1 ->
  rho ^ 0 = 1 /\ (forall g, 0 <= rho ^ g) /\ (forall g, rho ^ S g <= rho ^ g) /\
  (forall g, rho ^ g <= / rho * rho ^ S g) /\ 1 <= / rho.
Proof.
  intros H. split; [reflexivity|]. split; [intros; apply pow_le; lra|]. split; [|split].
  - intros g. simpl. rewrite <- (Rmult_1_l (rho ^ g)) at 2.
    apply Rmult_le_compat_r; [apply pow_le|]; lra.
  - intros g. simpl. rewrite <- Rmult_assoc, Rinv_l by lra. lra.
  - rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.
