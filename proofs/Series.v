(** Sums of infinitely many terms.

    [series a l] says that the terms a(0), a(1), ... add up to l: Coq's limit of partial sums.
    Noise on all integers (release/exact/integers/noise.py) has such sums. *)

From Coq Require Import Reals Lra Lia.
Open Scope R_scope.

(** [series a l]: the terms of a add up to l. *)
Definition series (a : nat -> R) (l : R) : Prop := Un_cv (fun n => sum_f_R0 a n) l.

Lemma series_ext (a b : nat -> R) (l : R) : (forall n, a n = b n) -> series a l -> series b l.
Proof.
  intros H Ha e He. destruct (Ha e He) as [N HN]. exists N. intros n Hn.
  rewrite (sum_eq b a n) by auto. auto.
Qed.

Lemma series_unique (a : nat -> R) (l m : R) : series a l -> series a m -> l = m.
Proof. intros Hl Hm. exact (UL_sequence _ _ _ Hl Hm). Qed.

Lemma series_le (a b : nat -> R) (l m : R) :
  (forall n, a n <= b n) -> series a l -> series b m -> l <= m.
Proof.
  intros H Hl Hm. apply Rle_cv_lim with (Un := sum_f_R0 a) (Vn := sum_f_R0 b); [|exact Hl|exact Hm].
  intros n. apply sum_Rle. auto.
Qed.

Lemma series_scale (a : nat -> R) (l c : R) : series a l -> series (fun n => c * a n) (c * l).
Proof.
  intros Ha. assert (Un_cv (fun n => c * sum_f_R0 a n) (c * l)) as H.
  { apply (CV_mult (fun _ => c) (fun n => sum_f_R0 a n)); [|exact Ha].
    intros e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq by reflexivity.
    now rewrite Rabs_R0. }
  intros e He. destruct (H e He) as [N HN]. exists N. intros n Hn.
  rewrite (sum_eq (fun n => c * a n) (fun n => a n * c) n) by (intros; ring).
  rewrite <- scal_sum. auto.
Qed.

Lemma series_rest (a : nat -> R) (l : R) : series a l -> series (fun n => a (S n)) (l - a 0%nat).
Proof.
  intros Ha e He. destruct (Ha e He) as [N HN]. exists N. intros n Hn.
  specialize (HN (S n) ltac:(lia)). rewrite decomp_sum in HN by lia. simpl pred in HN.
  unfold R_dist in *.
  replace (sum_f_R0 (fun i => a (S i)) n - (l - a 0%nat))
    with (a 0%nat + sum_f_R0 (fun i => a (S i)) n - l) by ring. assumption.
Qed.

(** The sum of the first n terms. *)
Fixpoint first (a : nat -> R) (n : nat) : R :=
  match n with O => 0 | S m => first a m + a m end.

Lemma first_is_sum (a : nat -> R) (n : nat) : sum_f_R0 a n = first a (S n).
Proof. induction n as [|n IH]; simpl in *; lra. Qed.

Lemma series_beyond (a : nat -> R) (l : R) (t : nat) :
  series a l -> series (fun n => a (t + n)%nat) (l - first a t).
Proof.
  intros Ha. induction t as [|t IH]; simpl.
  - rewrite Rminus_0_r. exact Ha.
  - apply series_rest in IH. replace (l - (first a t + a t)) with (l - first a t - a (t + 0)%nat)
      by (rewrite Nat.add_0_r; ring).
    apply series_ext with (2 := IH). intros n. f_equal. lia.
Qed.

(** Partial sums of terms that are not negative do not exceed the limit. *)
Lemma series_partial (a : nat -> R) (l : R) (n : nat) :
  (forall k, 0 <= a k) -> series a l -> sum_f_R0 a n <= l.
Proof. intros Ha Hl. now apply sum_incr. Qed.

(** What holds of every partial result holds of the limit. *)
Lemma limit_below (u : nat -> R) (l c : R) : (forall n, u n <= c) -> Un_cv u l -> l <= c.
Proof.
  intros H Hl. apply Rle_cv_lim with (2 := Hl) (Vn := fun _ => c); [exact H|].
  intros e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq by reflexivity.
  now rewrite Rabs_R0.
Qed.
