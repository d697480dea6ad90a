(** Channels: lower bounds that prices prove, and the most that a code alone can say.

    docs/design/mathematics.md 2.10 (channels) and 2.24; release/noise/solvers/answers/laws.py and
    release/exact/channel.py.  A channel has a row of chances [rows q] for each true answer q.

    In words:
    - [channel_duality]: for prices y_ab(o) >= 0 of neighboring pairs and any Ebar >= E, a channel
      whose pairs have an approximate delta has an expected cost of at least
      the sum over q of the least of prior(q) cost(q, o) + c(q, o), less delta times the sum of the
      largest prices, with c as in 2.10;
    - [code_alone]: if each of K answers can turn into any other, a pure channel publishes the truth
      with a mean chance of at most E/(E + K - 1). *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Section Channels.
Context {A O : Type}.
Variable same_answer : forall a b : A, {a = b} + {a <> b}.
Variables (answers : list A) (outs : list O).
Hypothesis answers_once : NoDup answers.
Variable rows : A -> O -> R.
Hypothesis rows_are : forall q, In q answers -> distribution outs (rows q).

Definition at_answer (a q : A) : R := if same_answer q a then 1 else 0.

Lemma sum_at (f : A -> R) (a : A) :
  In a answers -> sum (fun q => at_answer a q * f q) answers = f a.
Proof.
  intros Ha. rewrite <- (sum_single same_answer answers a (f a)) by assumption.
  apply sum_ext. intros q _. unfold at_answer. destruct (same_answer q a) as [->|]; lra.
Qed.

Section Duality.
Variables E Ebar delta : R.
Hypothesis Ebar_above : E <= Ebar.
Variable pairs : list (A * A).
Hypothesis pairs_answers : forall p, In p pairs -> In (fst p) answers /\ In (snd p) answers.
Hypothesis guarantee : forall p, In p pairs -> hockey outs (rows (fst p)) (rows (snd p)) E <= delta.

Variable price : A * A -> O -> R.
Variable largest : A * A -> R.
Hypothesis price_nonneg : forall p o, In p pairs -> In o outs -> 0 <= price p o.
Hypothesis price_largest : forall p o, In p pairs -> In o outs -> price p o <= largest p.
Hypothesis largest_nonneg : forall p, In p pairs -> 0 <= largest p.

Variable prior : A -> R.
Variable cost : A -> O -> R.
Variable least : A -> R.

(** What the prices charge for output o at the true answer q. *)
Definition charged (q : A) (o : O) : R :=
  sum (fun p => price p o * (at_answer (fst p) q - Ebar * at_answer (snd p) q)) pairs.

Hypothesis least_factor : forall q o, In q answers -> In o outs ->
  least q <= prior q * cost q o + charged q o.

Definition channel_cost : R :=
  sum (fun q => prior q * sum (fun o => cost q o * rows q o) outs) answers.

Lemma pair_paid (p : A * A) :
  In p pairs ->
  sum (fun o => price p o * (rows (fst p) o - Ebar * rows (snd p) o)) outs <= delta * largest p.
Proof.
  intros Hp. destruct (pairs_answers p Hp) as [_ Hb].
  apply Rle_trans with (sum (fun o => largest p * pos (rows (fst p) o - E * rows (snd p) o)) outs).
  - apply sum_le. intros o Ho.
    apply Rle_trans with (price p o * pos (rows (fst p) o - E * rows (snd p) o)).
    + apply Rmult_le_compat_l; [auto|]. apply Rle_trans with (2 := pos_above _).
      destruct (rows_are (snd p) Hb) as [Hrow _].
      generalize (Rmult_le_compat_r _ _ _ (Hrow o Ho) Ebar_above). lra.
    + apply Rmult_le_compat_r; [apply pos_nonneg|auto].
  - rewrite sum_scale, Rmult_comm. apply Rmult_le_compat_r; [auto|]. now apply guarantee.
Qed.

Lemma charged_in_all :
  sum (fun q => sum (fun o => charged q o * rows q o) outs) answers =
  sum (fun p => sum (fun o => price p o * (rows (fst p) o - Ebar * rows (snd p) o)) outs) pairs.
Proof.
  rewrite sum_exchange, (sum_exchange _ pairs outs). apply sum_ext. intros o _.
  rewrite (sum_ext (fun q => charged q o * rows q o)
             (fun q => sum (fun p => price p o * (at_answer (fst p) q - Ebar * at_answer (snd p) q) *
                                     rows q o) pairs))
    by (intros q _; unfold charged; now rewrite sum_scale_right).
  rewrite sum_exchange. apply sum_ext. intros p Hp. destruct (pairs_answers p Hp) as [Ha Hb].
  rewrite (sum_ext _ (fun q => price p o * (at_answer (fst p) q * rows q o) -
                               price p o * Ebar * (at_answer (snd p) q * rows q o)))
    by (intros q _; ring).
  rewrite sum_minus, !sum_scale, !(sum_at (fun q => rows q o)) by assumption. ring.
Qed.

Theorem channel_duality : sum least answers - delta * sum largest pairs <= channel_cost.
Proof.
  assert (sum least answers <=
          channel_cost + sum (fun q => sum (fun o => charged q o * rows q o) outs) answers) as H.
  { unfold channel_cost. rewrite <- sum_plus. apply sum_le. intros q Hq.
    destruct (rows_are q Hq) as [Hrow Hsum].
    rewrite <- sum_scale, <- sum_plus. rewrite <- (Rmult_1_r (least q)), <- Hsum, <- sum_scale.
    apply sum_le. intros o Ho.
    generalize (Rmult_le_compat_r _ _ _ (Hrow o Ho) (least_factor q o Hq Ho)). lra. }
  rewrite charged_in_all in H.
  assert (sum (fun p => sum (fun o => price p o * (rows (fst p) o - Ebar * rows (snd p) o)) outs)
              pairs <= delta * sum largest pairs)
    by (rewrite <- sum_scale; apply sum_le; apply pair_paid).
  lra.
Qed.

End Duality.
End Channels.

Section CodeAlone.
Context {A : Type}.
Variable same_answer : forall a b : A, {a = b} + {a <> b}.
Variable answers : list A.
Hypothesis answers_once : NoDup answers.
Hypothesis answers_some : answers <> [].

(** [rows b a] is the chance that a is published when b is true. *)
Variable rows : A -> A -> R.
Hypothesis rows_are : forall b, In b answers -> distribution answers (rows b).
Variable E : R.
Hypothesis E_large : 1 <= E.
Hypothesis pure_everywhere : forall a b o, rows a o <= E * rows b o.

Theorem code_alone :
  sum (fun a => rows a a) answers / INR (length answers) <=
  E / (E + INR (length answers) - 1).
Proof.
  assert (1 <= INR (length answers)) as HK.
  { change 1 with (INR 1). apply le_INR. destruct answers; [congruence|simpl; lia]. }
  set (K := INR (length answers)) in *. set (c := sum (fun a => rows a a) answers).
  assert (forall (x : R) (l : list A), sum (fun _ => x) l = INR (length l) * x) as Hconst.
  { intros x l. induction l as [|a l IH]; [simpl; lra|]. cbn [sum length]. rewrite IH, S_INR. ring. }
  assert ((E + K - 1) * c <= E * K) as H.
  { apply Rle_trans with
      (sum (fun a => sum (fun b => rows a a + (if same_answer b a then (E - 1) * rows a a else 0))
                         answers) answers).
    - right. unfold c. rewrite <- sum_scale. apply sum_ext. intros a Ha.
      rewrite sum_plus, Hconst, (sum_single same_answer) by assumption. fold K. ring.
    - apply Rle_trans with (sum (fun a => sum (fun b => E * rows b a) answers) answers).
      + apply sum_le. intros a Ha. apply sum_le. intros b Hb.
        destruct (same_answer b a) as [->|]; [lra|]. generalize (pure_everywhere a b a). lra.
      + rewrite sum_exchange. rewrite (sum_ext _ (fun _ => E)).
        * rewrite Hconst. fold K. lra.
        * intros b Hb. rewrite sum_scale. destruct (rows_are b Hb) as [_ ->]. lra. }
  apply Rmult_le_reg_r with (K * (E + K - 1)); [apply Rmult_lt_0_compat; lra|].
  replace (c / K * (K * (E + K - 1))) with ((E + K - 1) * c) by (field; lra).
  replace (E / (E + K - 1) * (K * (E + K - 1))) with (E * K) by (field; lra). assumption.
Qed.

End CodeAlone.
