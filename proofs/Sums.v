(** Finite sums of real numbers over lists.

    Every distribution of these proofs is a function to the reals on a type whose elements are
    listed once.  A list [l] takes the place of the finite set, and [sum f l] is the sum of [f]
    over it.  The program keeps the same sums as integers (release/exact/pmf.py); nothing here
    depends on the program. *)

From Coq Require Import Reals Lra Lia List Permutation.
Import ListNotations.
Open Scope R_scope.

Section Sums.
Context {A : Type}.

Fixpoint sum (f : A -> R) (l : list A) : R :=
  match l with
  | [] => 0
  | a :: rest => f a + sum f rest
  end.

Lemma sum_ext (f g : A -> R) (l : list A) :
  (forall a, In a l -> f a = g a) -> sum f l = sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [reflexivity|].
  rewrite (H a) by auto. rewrite IH; auto.
Qed.

Lemma sum_le (f g : A -> R) (l : list A) :
  (forall a, In a l -> f a <= g a) -> sum f l <= sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lra|].
  apply Rplus_le_compat; auto.
Qed.

Lemma sum_zero (l : list A) : sum (fun _ => 0) l = 0.
Proof. induction l as [|a l IH]; simpl; lra. Qed.

Lemma sum_nonneg (f : A -> R) (l : list A) :
  (forall a, In a l -> 0 <= f a) -> 0 <= sum f l.
Proof. intros H. rewrite <- (sum_zero l). now apply sum_le. Qed.

Lemma sum_plus (f g : A -> R) (l : list A) :
  sum (fun a => f a + g a) l = sum f l + sum g l.
Proof. induction l as [|a l IH]; simpl; lra. Qed.

Lemma sum_minus (f g : A -> R) (l : list A) :
  sum (fun a => f a - g a) l = sum f l - sum g l.
Proof. induction l as [|a l IH]; simpl; lra. Qed.

Lemma sum_scale (c : R) (f : A -> R) (l : list A) :
  sum (fun a => c * f a) l = c * sum f l.
Proof. induction l as [|a l IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_scale_right (c : R) (f : A -> R) (l : list A) :
  sum (fun a => f a * c) l = sum f l * c.
Proof. induction l as [|a l IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_app (f : A -> R) (l m : list A) : sum f (l ++ m) = sum f l + sum f m.
Proof. induction l as [|a l IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_permutation (f : A -> R) (l m : list A) :
  Permutation l m -> sum f l = sum f m.
Proof. induction 1; simpl; lra. Qed.

(** One term of a sum of terms that are not negative. *)
Lemma sum_one_term (f : A -> R) (l : list A) (a : A) :
  (forall b, In b l -> 0 <= f b) -> In a l -> f a <= sum f l.
Proof.
  induction l as [|b l IH]; simpl; intros H Ha; [contradiction|].
  destruct Ha as [->|Ha].
  - assert (0 <= sum f l) by (apply sum_nonneg; auto). lra.
  - assert (0 <= f b) by auto. assert (f a <= sum f l) by auto. lra.
Qed.

(** A sum with a single term that is not zero. *)
Lemma sum_single (eqb : forall a b : A, {a = b} + {a <> b}) (l : list A) (a : A) (x : R) :
  NoDup l -> In a l -> sum (fun b => if eqb b a then x else 0) l = x.
Proof.
  induction l as [|b l IH]; simpl; intros Hl Ha; [contradiction|].
  inversion Hl as [|? ? Hb Hl']; subst.
  destruct (eqb b a) as [->|Hne].
  - rewrite (sum_ext _ (fun _ => 0)); [rewrite sum_zero; lra|].
    intros c Hc. destruct (eqb c a) as [->|]; [contradiction|reflexivity].
  - destruct Ha as [->|Ha]; [congruence|]. rewrite IH by assumption. lra.
Qed.

End Sums.

Lemma sum_map {A B : Type} (h : A -> B) (f : B -> R) (l : list A) :
  sum f (map h l) = sum (fun a => f (h a)) l.
Proof. induction l as [|a l IH]; simpl; [|rewrite IH]; reflexivity. Qed.

Lemma sum_exchange {A B : Type} (f : A -> B -> R) (l : list A) (m : list B) :
  sum (fun a => sum (f a) m) l = sum (fun b => sum (fun a => f a b) l) m.
Proof.
  induction l as [|a l IH]; simpl.
  - rewrite sum_zero; reflexivity.
  - rewrite IH, <- sum_plus. reflexivity.
Qed.

(** The larger of [x] and zero. *)
Definition pos (x : R) : R := Rmax 0 x.

Lemma pos_nonneg (x : R) : 0 <= pos x.
Proof. apply Rmax_l. Qed.

Lemma pos_above (x : R) : x <= pos x.
Proof. apply Rmax_r. Qed.

Lemma pos_least (x y : R) : 0 <= y -> x <= y -> pos x <= y.
Proof. intros; now apply Rmax_lub. Qed.

Lemma pos_monotone (x y : R) : x <= y -> pos x <= pos y.
Proof.
  intros H. apply pos_least; [apply pos_nonneg|].
  apply Rle_trans with y; [assumption|apply pos_above].
Qed.

Lemma pos_of_nonneg (x : R) : 0 <= x -> pos x = x.
Proof. intros; now apply Rmax_right. Qed.

Lemma pos_of_nonpos (x : R) : x <= 0 -> pos x = 0.
Proof. intros; now apply Rmax_left. Qed.

Lemma pos_scale (c x : R) : 0 <= c -> pos (c * x) = c * pos x.
Proof.
  intros H. unfold pos. rewrite <- RmaxRmult by assumption. now rewrite Rmult_0_r.
Qed.

Lemma pos_plus (x y : R) : pos (x + y) <= pos x + pos y.
Proof.
  apply pos_least.
  - generalize (pos_nonneg x) (pos_nonneg y); lra.
  - generalize (pos_above x) (pos_above y); lra.
Qed.

Lemma pos_of_sum {A : Type} (f : A -> R) (l : list A) :
  pos (sum f l) <= sum (fun a => pos (f a)) l.
Proof.
  induction l as [|a l IH]; simpl.
  - rewrite pos_of_nonpos; lra.
  - apply Rle_trans with (pos (f a) + pos (sum f l)); [apply pos_plus|lra].
Qed.
