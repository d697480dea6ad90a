(** How often permute-and-flip publishes a leader, and how rarely what is far behind.

    docs/design/mathematics.md 2.25 (leads); [chance_of_leader] of
    release/exact/statistics/permute_and_flip.py.  As in PermuteAndFlip.v, [p t] is the chance that
    candidate t is accepted; the best has 1.  x stands for rho^g.

    In words:
    - [leader_chance]: where all others are accepted with a chance of at most x, the leader is
      published with a chance of at least (1 - (1 - x)^K)/(K x);
    - [far_chance]: candidates that are accepted with a chance of at most x are together published
      with a chance of at most one minus that, whoever else is near the best. *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums Privacy PermuteAndFlip.
Import ListNotations.
Open Scope R_scope.

Section Leads.
Variable ids : list nat.
Hypothesis ids_once : NoDup ids.
Variable leader : nat.
Hypothesis leader_in : In leader ids.
Variable x : R.
Hypothesis x_range : 0 < x <= 1.

Notation K := (length ids).

(** The share of one candidate among K that are all accepted with the chance x. *)
Definition formula : R := (1 - (1 - x) ^ K) / (INR K * x).

Lemma share_constant (k : nat) (l m : list nat) :
  length l = length m -> share (fun _ => x) k l = share (fun _ => x) k m.
Proof.
  revert k m. induction l as [|a l IH]; intros k [|b m] H; try discriminate; [reflexivity|].
  cbn [share]. injection H as H. now rewrite (IH (S k) m), (IH k m).
Qed.

Lemma none_constant (l : list nat) : none (fun _ => x) l = (1 - x) ^ length l.
Proof. induction l as [|a l IH]; cbn [none length]; [reflexivity|]. rewrite IH. reflexivity. Qed.

Lemma formula_is_share : share (fun _ => x) 0 (without leader ids) = formula.
Proof.
  generalize (taken_in_all (fun _ => x) ids ids_once). rewrite none_constant. unfold taken.
  rewrite (sum_ext _ (fun _ => x * share (fun _ => x) 0 (without leader ids))).
  - assert (forall (c : R) (l : list nat), sum (fun _ => c) l = INR (length l) * c) as Hconst.
    { intros c l. induction l as [|a l IH]; [simpl; lra|].
      cbn [sum length]. rewrite IH, S_INR. ring. }
    rewrite Hconst. intros H. unfold formula. rewrite <- H. field. split; [lra|].
    apply not_0_INR. destruct ids; [contradiction|discriminate].
  - intros s Hs. f_equal. apply share_constant.
    destruct (without_in ids s (fun _ => 0) Hs) as [_ H1].
    destruct (without_in ids leader (fun _ => 0) leader_in) as [_ H2]. lia.
Qed.

Theorem leader_chance (p : nat -> R) :
  (forall t, 0 <= p t <= 1) -> p leader = 1 ->
  (forall t, In t ids -> t <> leader -> p t <= x) ->
  formula <= p leader * share p 0 (without leader ids).
Proof.
  intros Hp H1 Hx. rewrite H1, Rmult_1_l, <- formula_is_share.
  apply share_antitone; [intros; lra|assumption|]. intros t Ht.
  apply Hx; [now apply (without_subset ids leader)|].
  intros ->. now apply (without_gone ids leader ids_once).
Qed.

Theorem far_chance (p : nat -> R) :
  (forall t, 0 <= p t <= 1) -> p leader = 1 -> x < 1 ->
  sum (fun s => if Rle_dec (p s) x then p s * share p 0 (without s ids) else 0) ids <= 1 - formula.
Proof.
  intros Hp H1 Hx1.
  (* Nobody but the leader is near: the others near the best are never accepted. *)
  set (p' := fun t => if Nat.eq_dec t leader then 1 else if Rle_dec (p t) x then p t else 0).
  assert (forall t, 0 <= p' t <= 1) as Hp'.
  { intros t. unfold p'. destruct (Nat.eq_dec t leader); [lra|].
    destruct (Rle_dec (p t) x); [apply Hp|lra]. }
  assert (forall t, p' t <= p t) as Hless.
  { intros t. unfold p'. destruct (Nat.eq_dec t leader) as [->|]; [lra|].
    destruct (Rle_dec (p t) x); [lra|apply Hp]. }
  assert (p' leader = 1) as H1' by (unfold p'; destruct (Nat.eq_dec leader leader); congruence).
  assert (formula <= p' leader * share p' 0 (without leader ids)) as Hleader.
  { apply leader_chance; try assumption. intros t _ Hne. unfold p'.
    destruct (Nat.eq_dec t leader); [congruence|]. destruct (Rle_dec (p t) x); lra. }
  generalize (taken_in_all p' ids ids_once). rewrite (none_of_certain p' ids leader) by assumption.
  unfold taken.
  destruct (without_in ids leader (fun s => p' s * share p' 0 (without s ids)) leader_in) as [-> _].
  destruct (without_in ids leader
    (fun s => if Rle_dec (p s) x then p s * share p 0 (without s ids) else 0) leader_in) as [-> _].
  intros Hall. destruct (Rle_dec (p leader) x); [lra|].
  assert (sum (fun s => if Rle_dec (p s) x then p s * share p 0 (without s ids) else 0)
              (without leader ids) <=
          sum (fun s => p' s * share p' 0 (without s ids)) (without leader ids)); [|lra].
  apply sum_le. intros s Hs.
  assert (s <> leader) as Hne by (intros ->; now apply (without_gone ids leader ids_once)).
  unfold p' at 1. destruct (Nat.eq_dec s leader); [congruence|].
  destruct (Rle_dec (p s) x); [|lra].
  apply Rmult_le_compat_l; [apply Hp|]. apply share_antitone; auto.
Qed.

End Leads.
