(** The split program says exactly what the probabilistic guarantee says.

    docs/design/mathematics.md 2.8; release/noise/solvers/integer.py.  One difference mu of the
    sensitivity at a time, because the program has its own y and u for each.

    In words: [split_program]: noise f satisfies the probabilistic guarantee (E, delta) at mu
    exactly if there are y and binary u with f - y <= E f(+mu), 0 <= y <= f, y <= delta u,
    f - y <= 1 - u and the sum of y at most delta. *)

From Coq Require Import Reals Lra List.
From DPRelease Require Import Sums Privacy Groups ErrorRate.
Open Scope R_scope.

Section SplitProgram.
Context {G : group}.
Variables E delta : R.
Variable mu : element G.

Definition binary (b : bool) : R := if b then 1 else 0.

Definition solution (f y : element G -> R) (u : element G -> bool) : Prop :=
  (forall x, f x - y x <= E * f (plus x mu) /\ 0 <= y x <= f x /\
             y x <= delta * binary (u x) /\ f x - y x <= 1 - binary (u x)) /\
  sum y (elements G) <= delta.

Theorem split_program (f : element G -> R) :
  noise f -> 0 <= E -> violated E f mu <= delta <-> exists y u, solution f y u.
Proof.
  intros [Hf Hsum] HE.
  assert (forall x, 0 <= f x) as Hpos by (intros; apply Hf, elements_complete). split.
  - intros Hv.
    set (u := fun x => if Rlt_dec (E * f (plus x mu)) (f x) then true else false).
    set (y := fun x => if Rlt_dec (E * f (plus x mu)) (f x) then f x else 0).
    exists y, u. split; [|exact Hv]. intros x.
    assert (f x <= 1) by (rewrite <- Hsum; apply sum_one_term; [assumption|apply elements_complete]).
    assert (0 <= E * f (plus x mu)) by (apply Rmult_le_pos; auto).
    assert (y x <= delta) as Hy.
    { apply Rle_trans with (2 := Hv). apply (sum_one_term y); [|apply elements_complete].
      intros z _. unfold y. destruct (Rlt_dec (E * f (plus z mu)) (f z)); [auto|lra]. }
    generalize (Hpos x). unfold binary, u, y in *.
    destruct (Rlt_dec (E * f (plus x mu)) (f x)); intros; repeat split; lra.
  - intros [y [u [H Hy]]]. apply Rle_trans with (2 := Hy). apply sum_le. intros x _.
    destruct (H x) as [H1 [H2 [H3 H4]]]. destruct (Rlt_dec (E * f (plus x mu)) (f x)); [|lra].
    unfold binary in *. destruct (u x); lra.
Qed.

End SplitProgram.
