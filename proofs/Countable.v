(** Post-processing of countably many outputs: clamping and remapping noise on the integers.

    docs/design/mathematics.md 2.16 and 2.13; release/exact/integers/mechanism.py.  The outputs are numbered,
    as the integers can be.  [P] and [Q] are the masses of the noisy answer under two neighboring
    tables; [rule o z] is the chance that noisy answer o is published as z, one of finitely many
    answers [ends].  Clamping to 0..n and then looking up a public table is such a rule, with
    chances 0 and 1.  [P'] and [Q'] are the chances of what is published.

    In words:
    - [clamping_profile]: the profile of what is published is at most that of the noisy answers;
    - [clamping_approximate]: so the approximate guarantee, for every set of published answers,
      follows from the sum of max(0, P - e^eps Q) over all noisy answers;
    - [clamping_pure]: and the pure one from P <= e^eps Q. *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums Privacy Series.
Import ListNotations.
Open Scope R_scope.

Lemma limit_sum {Z : Type} (u : Z -> nat -> R) (l : Z -> R) (ends : list Z) :
  (forall z, In z ends -> Un_cv (u z) (l z)) ->
  Un_cv (fun n => sum (fun z => u z n) ends) (sum l ends).
Proof.
  induction ends as [|z ends IH]; intros H; cbn [sum].
  - intros e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq by reflexivity.
    now rewrite Rabs_R0.
  - apply (CV_plus (u z) (fun n => sum (fun z => u z n) ends)).
    + apply H. now left.
    + apply IH. intros. apply H. now right.
Qed.

(** max(0, x) moves by no more than x. *)
Lemma limit_pos (u : nat -> R) (l : R) : Un_cv u l -> Un_cv (fun n => pos (u n)) (pos l).
Proof.
  intros H e He. destruct (H e He) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
  apply Rle_lt_trans with (2 := HN). unfold R_dist, pos, Rmax.
  destruct (Rle_dec 0 (u n)), (Rle_dec 0 l); unfold Rabs; repeat destruct (Rcase_abs _); lra.
Qed.

Section Clamping.
Context {Z : Type}.
Variable ends : list Z.
Variables P Q : nat -> R.
Variable rule : nat -> Z -> R.
Hypothesis rule_nonneg : forall o z, In z ends -> 0 <= rule o z.
Hypothesis rule_sums : forall o, sum (rule o) ends = 1.

Variables P' Q' : Z -> R.
Hypothesis P'_is : forall z, In z ends -> series (fun o => P o * rule o z) (P' z).
Hypothesis Q'_is : forall z, In z ends -> series (fun o => Q o * rule o z) (Q' z).

Lemma partial_profile (t : R) (n : nat) :
  sum (fun z => pos (sum_f_R0 (fun o => P o * rule o z) n -
                     t * sum_f_R0 (fun o => Q o * rule o z) n)) ends <=
  sum_f_R0 (fun o => pos (P o - t * Q o)) n.
Proof.
  induction n as [|n IH].
  - cbn [sum_f_R0]. apply Rle_trans with (sum (fun z => pos (P 0%nat - t * Q 0%nat) * rule 0%nat z) ends).
    + apply sum_le. intros z Hz.
      rewrite (Rmult_comm (pos _)), <- pos_scale by auto. right. f_equal. ring.
    + rewrite sum_scale, rule_sums. lra.
  - cbn [sum_f_R0].
    apply Rle_trans with
      (sum (fun z => pos (sum_f_R0 (fun o => P o * rule o z) n -
                          t * sum_f_R0 (fun o => Q o * rule o z) n) +
                     pos (P (S n) - t * Q (S n)) * rule (S n) z) ends).
    + apply sum_le. intros z Hz.
      rewrite (Rmult_comm (pos (P (S n) - _))), <- pos_scale by auto.
      apply Rle_trans with (2 := pos_plus _ _). right. f_equal. ring.
    + rewrite sum_plus, sum_scale, rule_sums. lra.
Qed.

Theorem clamping_profile (t h : R) :
  series (fun o => pos (P o - t * Q o)) h -> hockey ends P' Q' t <= h.
Proof.
  intros Hh.
  apply limit_below with
    (fun n => sum (fun z => pos (sum_f_R0 (fun o => P o * rule o z) n -
                                 t * sum_f_R0 (fun o => Q o * rule o z) n)) ends).
  - intros n. apply Rle_trans with (1 := partial_profile t n).
    apply series_partial with (2 := Hh). intros. apply pos_nonneg.
  - unfold hockey. apply (limit_sum
      (fun z n => pos (sum_f_R0 (fun o => P o * rule o z) n -
                       t * sum_f_R0 (fun o => Q o * rule o z) n))).
    intros z Hz. apply limit_pos.
    apply (CV_minus (sum_f_R0 (fun o => P o * rule o z))
                    (fun n => t * sum_f_R0 (fun o => Q o * rule o z) n)).
    + exact (P'_is z Hz).
    + intros e He. destruct (series_scale _ _ t (Q'_is z Hz) e He) as [N HN].
      exists N. intros n Hn. rewrite scal_sum.
      rewrite (sum_eq _ (fun o => t * (Q o * rule o z)) n) by (intros; ring). now apply HN.
Qed.

Theorem clamping_approximate (eps delta h : R) :
  series (fun o => pos (P o - exp eps * Q o)) h -> h <= delta -> approximate ends P' Q' eps delta.
Proof.
  intros Hh Hd. apply approximate_is_hockey. apply Rle_trans with (2 := Hd).
  now apply clamping_profile.
Qed.

Theorem clamping_pure (eps : R) :
  (forall o, P o <= exp eps * Q o) -> pure ends P' Q' eps.
Proof.
  intros H z Hz. apply series_le with (2 := P'_is z Hz) (3 := series_scale _ _ (exp eps) (Q'_is z Hz)).
  intros o. generalize (Rmult_le_compat_r _ _ _ (rule_nonneg o z Hz) (H o)). lra.
Qed.

End Clamping.
