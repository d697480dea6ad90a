(** The three definitions of privacy, how they are related, and post-processing.

    docs/design/mathematics.md 0.2, 0.3, 0.5 and 2.16 (T8).  [P] and [Q] are the distributions of
    the published output under two neighboring tables, and [outs] lists every output once.  In the
    program, a pair (P, Q) is a pair of rows that [Mechanism.compared] yields, or f and f moved by
    a shift (release/exact/privacy.py, release/exact/channel.py); [hockey (exp epsilon)] is the
    approximate delta of such a pair and [violated_mass (exp epsilon)] the probabilistic one.

    In words:
    - [approximate_is_hockey]: the hockey stick is at most delta exactly if every set of outputs
      has P[A] <= e^eps Q[A] + delta;
    - [pure_is_probabilistic_zero], [probabilistic_implies_approximate]: the relations of 0.3;
    - [hockey_falls], [violated_mass_falls]: a ratio below e^eps can only raise both deltas (0.5);
    - [post_processing], [post_processing_approximate], [post_processing_pure]: a rule that sees
      the output alone, random or not, keeps every hockey stick, the approximate and the pure
      guarantee (2.16);
    - [post_processing_breaks_probabilistic]: it need not keep the probabilistic one; the table of
      2.16 in exact rationals. *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section Definitions.
Context {O : Type}.
Variable outs : list O.
Variables P Q : O -> R.

(** H(t), the sum of max(0, P - t Q). *)
Definition hockey (t : R) : R := sum (fun o => pos (P o - t * Q o)) outs.

(** The chance of a set of outputs. *)
Definition chance (f : O -> R) (event : O -> bool) : R :=
  sum (fun o => if event o then f o else 0) outs.

(** The P-mass of the outputs with P > t Q. *)
Definition violated_mass (t : R) : R :=
  sum (fun o => if Rlt_dec (t * Q o) (P o) then P o else 0) outs.

Definition pure (eps : R) : Prop := forall o, In o outs -> P o <= exp eps * Q o.

Definition probabilistic (eps delta : R) : Prop := violated_mass (exp eps) <= delta.

(** The usual definition: for every set of outputs. *)
Definition approximate (eps delta : R) : Prop :=
  forall event, chance P event <= exp eps * chance Q event + delta.

(** A distribution: no mass is negative, and all add up to one. *)
Definition distribution (f : O -> R) : Prop :=
  (forall o, In o outs -> 0 <= f o) /\ sum f outs = 1.

Lemma chance_excess (t : R) (event : O -> bool) :
  chance P event - t * chance Q event <= hockey t.
Proof.
  unfold chance, hockey. rewrite <- sum_scale, <- sum_minus. apply sum_le. intros o _.
  destruct (event o).
  - apply pos_above.
  - generalize (pos_nonneg (P o - t * Q o)). lra.
Qed.

(** The event that collects the outputs with a positive difference attains the hockey stick. *)
Definition worst_event (t : R) (o : O) : bool := if Rlt_dec (t * Q o) (P o) then true else false.

Lemma worst_event_attains (t : R) :
  chance P (worst_event t) - t * chance Q (worst_event t) = hockey t.
Proof.
  unfold chance, hockey. rewrite <- sum_scale, <- sum_minus. apply sum_ext. intros o _.
  unfold worst_event. destruct (Rlt_dec (t * Q o) (P o)).
  - rewrite pos_of_nonneg; lra.
  - rewrite pos_of_nonpos; lra.
Qed.

Theorem approximate_is_hockey (eps delta : R) :
  approximate eps delta <-> hockey (exp eps) <= delta.
Proof.
  split.
  - intros H. rewrite <- worst_event_attains. specialize (H (worst_event (exp eps))). lra.
  - intros H event. generalize (chance_excess (exp eps) event). lra.
Qed.

Lemma hockey_below_violated (t : R) :
  0 <= t -> (forall o, In o outs -> 0 <= Q o) -> hockey t <= violated_mass t.
Proof.
  intros Ht HQ. apply sum_le. intros o Ho. destruct (Rlt_dec (t * Q o) (P o)).
  - rewrite pos_of_nonneg by lra. generalize (Rmult_le_pos t (Q o) Ht (HQ o Ho)). lra.
  - rewrite pos_of_nonpos; lra.
Qed.

Theorem probabilistic_implies_approximate (eps delta : R) :
  (forall o, In o outs -> 0 <= Q o) -> probabilistic eps delta -> approximate eps delta.
Proof.
  intros HQ H. apply approximate_is_hockey. apply Rle_trans with (2 := H).
  apply hockey_below_violated; [left; apply exp_pos|assumption].
Qed.

Lemma pure_violates_nothing (t : R) :
  (forall o, In o outs -> P o <= t * Q o) -> violated_mass t = 0.
Proof.
  intros H. unfold violated_mass. rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|].
  intros o Ho. destruct (Rlt_dec (t * Q o) (P o)) as [Hv|]; [|reflexivity].
  specialize (H o Ho). lra.
Qed.

Theorem pure_is_probabilistic_zero (eps : R) :
  (forall o, In o outs -> 0 <= Q o) -> pure eps <-> probabilistic eps 0.
Proof.
  intros HQ. split.
  - intros H. unfold probabilistic. rewrite pure_violates_nothing by assumption. lra.
  - intros H o Ho. apply Rnot_lt_le. intros Hv.
    assert (Hterm : forall b, In b outs ->
              0 <= (if Rlt_dec (exp eps * Q b) (P b) then P b else 0)).
    { intros b Hb. destruct (Rlt_dec (exp eps * Q b) (P b)); [|lra].
      generalize (Rmult_le_pos _ _ (Rlt_le _ _ (exp_pos eps)) (HQ b Hb)). lra. }
    generalize (sum_one_term _ outs o Hterm Ho). fold (violated_mass (exp eps)).
    unfold probabilistic in H. destruct (Rlt_dec (exp eps * Q o) (P o)); [|contradiction].
    generalize (Rmult_le_pos _ _ (Rlt_le _ _ (exp_pos eps)) (HQ o Ho)). lra.
Qed.

Theorem pure_implies_approximate (eps : R) :
  (forall o, In o outs -> 0 <= Q o) -> pure eps -> approximate eps 0.
Proof.
  intros HQ H. apply probabilistic_implies_approximate; [assumption|].
  now apply pure_is_probabilistic_zero.
Qed.

Theorem hockey_falls (s t : R) :
  (forall o, In o outs -> 0 <= Q o) -> s <= t -> hockey t <= hockey s.
Proof.
  intros HQ Hst. apply sum_le. intros o Ho. apply pos_monotone.
  generalize (Rmult_le_compat_r _ _ _ (HQ o Ho) Hst). lra.
Qed.

Theorem violated_mass_falls (s t : R) :
  (forall o, In o outs -> 0 <= P o) -> (forall o, In o outs -> 0 <= Q o) ->
  s <= t -> violated_mass t <= violated_mass s.
Proof.
  intros HP HQ Hst. apply sum_le. intros o Ho.
  generalize (Rmult_le_compat_r _ _ _ (HQ o Ho) Hst) (HP o Ho). intros H1 H2.
  destruct (Rlt_dec (t * Q o) (P o)), (Rlt_dec (s * Q o) (P o)); lra.
Qed.

End Definitions.

Section PostProcessing.
Context {O Z : Type}.
Variables (outs : list O) (ends : list Z).
Variables P Q : O -> R.

(** [rule o z] is the chance that output [o] is replaced by [z]; it does not look at the table. *)
Variable rule : O -> Z -> R.
Hypothesis rule_nonneg : forall o z, In o outs -> In z ends -> 0 <= rule o z.
Hypothesis rule_sums : forall o, In o outs -> sum (rule o) ends = 1.

Definition processed (f : O -> R) (z : Z) : R := sum (fun o => f o * rule o z) outs.

Lemma processed_distribution (f : O -> R) :
  distribution outs f -> distribution ends (processed f).
Proof.
  intros [Hf Hsum]. split.
  - intros z Hz. apply sum_nonneg. intros o Ho. apply Rmult_le_pos; auto.
  - unfold processed. rewrite sum_exchange.
    rewrite (sum_ext _ f); [assumption|].
    intros o Ho. rewrite sum_scale, rule_sums by assumption. lra.
Qed.

Theorem post_processing (t : R) :
  hockey ends (processed P) (processed Q) t <= hockey outs P Q t.
Proof.
  unfold hockey, processed.
  apply Rle_trans with
    (sum (fun z => sum (fun o => pos (P o - t * Q o) * rule o z) outs) ends).
  - apply sum_le. intros z Hz. rewrite <- sum_scale, <- sum_minus.
    apply Rle_trans with (sum (fun o => pos ((P o - t * Q o) * rule o z)) outs).
    + apply Rle_trans with (2 := pos_of_sum _ _). right. f_equal. apply sum_ext. intros; lra.
    + apply sum_le. intros o Ho. rewrite Rmult_comm, pos_scale by auto. lra.
  - rewrite sum_exchange. right. apply sum_ext. intros o Ho.
    rewrite sum_scale, rule_sums by assumption. lra.
Qed.

Theorem post_processing_approximate (eps delta : R) :
  approximate outs P Q eps delta -> approximate ends (processed P) (processed Q) eps delta.
Proof.
  intros H. apply approximate_is_hockey. apply approximate_is_hockey in H.
  apply Rle_trans with (2 := H). apply post_processing.
Qed.

Theorem post_processing_pure (eps : R) :
  pure outs P Q eps -> pure ends (processed P) (processed Q) eps.
Proof.
  intros H z Hz. unfold processed. rewrite <- sum_scale. apply sum_le. intros o Ho.
  generalize (Rmult_le_compat_r _ _ _ (rule_nonneg o z Ho Hz) (H o Ho)). lra.
Qed.

End PostProcessing.

(** The table of 2.16: three answers, ratio E = 2, the first two merged. *)
Definition three_P (o : nat) : R := nth o [1/100; 50/100; 49/100] 0.
Definition three_Q (o : nat) : R := nth o [0; 25/100; 75/100] 0.
Definition merge (o z : nat) : R :=
  match o, z with 0%nat, 0%nat | 1%nat, 0%nat | 2%nat, 1%nat => 1 | _, _ => 0 end.

Theorem post_processing_breaks_probabilistic :
  let three := [0; 1; 2]%nat in
  let two := [0; 1]%nat in
  let P' := processed three merge three_P in
  let Q' := processed three merge three_Q in
  violated_mass three three_P three_Q 2 = 1/100 /\
  violated_mass two P' Q' 2 = 51/100 /\
  hockey two P' Q' 2 = 1/100.
Proof.
  unfold violated_mass, hockey, processed, three_P, three_Q, merge, pos, Rmax; simpl.
  repeat split;
    repeat match goal with
    | |- context [Rlt_dec ?a ?b] => destruct (Rlt_dec a b); try (exfalso; lra)
    | |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b); try (exfalso; lra)
    end; lra.
Qed.
