(** Integers that pass the exact check satisfy the definition with the true e^eps.

    docs/design/mathematics.md 0.5, 1.1 and 1.2.  The definitions follow [deltas_at_ratio] and
    [largest_allowed] of release/exact/privacy.py line by line (and [deltas_of_pairs] of
    release/exact/channel.py, which does the same with two rows): integer weights a and b of two
    neighboring rows with the sum [total]; the ratio [num]/[den], a rational at most e^eps;
    [largest_allowed], the floor of ratio * weight, cut at the total; the outputs above it are
    violated; [heavy] and [light] add up their weights in both rows.  The program's delta is
    heavy/total (probabilistic) or (heavy - ratio * light)/total (approximate), and
    [_keeps] of dp_release_verify/checks.py, which has its own sums, compares it with the claimed
    delta [dn]/[dd].  [passes_probabilistic] and [passes_approximate] are these comparisons with
    the denominators cleared; a pure guarantee is the probabilistic one with delta 0, as in
    [Deltas.under].

    In words:
    - [probabilistic_figure], [approximate_figure]: the figure that the program computes is the
      delta of the definition at the ratio num/den, not only a bound of it;
    - [exact_check_pure], [exact_check_probabilistic], [exact_check_approximate]: two rows that
      pass satisfy the definition with the true e^eps; for the approximate one that is
      P[A] <= e^eps Q[A] + delta for every set A of outputs;
    - [modular_check_pure], [modular_check_probabilistic], [modular_check_approximate]: weights on
      a finite abelian group that pass for every difference of a list satisfy the definition for
      every two true answers whose difference is in the list.

    Noise on the integers with geometric tails (1.5) has other sums: Tails.v. *)

From Coq Require Import Reals Lra Lia List ZArith Bool.
From DPRelease Require Import Sums Privacy Groups.
Import ListNotations.
Open Scope R_scope.

Fixpoint total_of {O : Type} (f : O -> Z) (l : list O) : Z :=
  match l with [] => 0%Z | o :: rest => (f o + total_of f rest)%Z end.

Lemma total_of_real {O : Type} (f : O -> Z) (l : list O) :
  IZR (total_of f l) = sum (fun o => IZR (f o)) l.
Proof. induction l as [|o l IH]; simpl; [reflexivity|]. now rewrite plus_IZR, IH. Qed.

Lemma weight_below_total {O : Type} (f : O -> Z) (l : list O) (o : O) :
  (forall x, In x l -> (0 <= f x)%Z) -> In o l -> (f o <= total_of f l)%Z.
Proof.
  intros Hf Ho. apply le_IZR. rewrite total_of_real.
  apply (sum_one_term (fun x => IZR (f x))); [|assumption].
  intros x Hx. apply IZR_le. now apply Hf.
Qed.

Section Rows.
Context {O : Type}.
Variable outs : list O.
Variables a b : O -> Z.
Variables num den total : Z.

Definition largest_allowed (w : Z) : Z := Z.min (w * num / den) total.

Definition is_violated (o : O) : bool := (largest_allowed (b o) <? a o)%Z.

Definition heavy : Z := total_of (fun o => if is_violated o then a o else 0%Z) outs.
Definition light : Z := total_of (fun o => if is_violated o then b o else 0%Z) outs.

Definition passes_probabilistic (dn dd : Z) : bool := (heavy * dd <=? dn * total)%Z.
Definition passes_approximate (dn dd : Z) : bool :=
  ((heavy * den - num * light) * dd <=? dn * total * den)%Z.
Definition passes_pure : bool := passes_probabilistic 0 1.

Hypothesis den_positive : (0 < den)%Z.
Hypothesis total_positive : (0 < total)%Z.
Hypothesis a_nonneg : forall o, In o outs -> (0 <= a o)%Z.
Hypothesis b_nonneg : forall o, In o outs -> (0 <= b o)%Z.
Hypothesis a_total : total_of a outs = total.

(** The probability of an output: its weight over the total. *)
Definition mass (w : O -> Z) (o : O) : R := IZR (w o) / IZR total.

Let ratio : R := IZR num / IZR den.

Lemma den_real : 0 < IZR den. Proof. now apply IZR_lt. Qed.
Lemma total_real : 0 < IZR total. Proof. now apply IZR_lt. Qed.

Lemma violated_exactly (o : O) :
  In o outs -> is_violated o = true <-> ratio * mass b o < mass a o.
Proof.
  intros Ho. unfold is_violated, largest_allowed. rewrite Z.ltb_lt.
  assert (a o <= total)%Z as Hcap by (rewrite <- a_total; now apply weight_below_total).
  assert ((Z.min (b o * num / den) total < a o <-> num * b o < a o * den)%Z) as ->.
  { split; intros H.
    - assert (b o * num / den < a o)%Z as Hq by lia.
      generalize (Z.mul_div_le (b o * num) den den_positive)
                 (Z.mod_pos_bound (b o * num) den den_positive)
                 (Z.div_mod (b o * num) den ltac:(lia)). nia.
    - assert (b o * num / den < a o)%Z; [|lia].
      apply Z.div_lt_upper_bound; lia. }
  generalize den_real total_real. intros Hd Ht.
  unfold mass, ratio. split; intros H.
  - apply IZR_lt in H. rewrite !mult_IZR in H.
    apply Rmult_lt_reg_r with (IZR den * IZR total); [now apply Rmult_lt_0_compat|].
    replace (IZR num / IZR den * (IZR (b o) / IZR total) * (IZR den * IZR total))
      with (IZR num * IZR (b o)) by (field; lra).
    replace (IZR (a o) / IZR total * (IZR den * IZR total))
      with (IZR (a o) * IZR den) by (field; lra). assumption.
  - apply lt_IZR. rewrite !mult_IZR.
    apply (Rmult_lt_compat_r (IZR den * IZR total)) in H; [|now apply Rmult_lt_0_compat].
    replace (IZR num / IZR den * (IZR (b o) / IZR total) * (IZR den * IZR total))
      with (IZR num * IZR (b o)) in H by (field; lra).
    replace (IZR (a o) / IZR total * (IZR den * IZR total))
      with (IZR (a o) * IZR den) in H by (field; lra). assumption.
Qed.

Theorem probabilistic_figure :
  IZR heavy / IZR total = violated_mass outs (mass a) (mass b) ratio.
Proof.
  unfold heavy, violated_mass. rewrite total_of_real. unfold Rdiv at 1.
  rewrite <- sum_scale_right. apply sum_ext. intros o Ho. generalize (violated_exactly o Ho).
  destruct (is_violated o), (Rlt_dec (ratio * mass b o) (mass a o)); intros [H1 H2].
  - reflexivity.
  - exfalso. auto.
  - discriminate (H2 r).
  - lra.
Qed.

Theorem approximate_figure :
  (IZR heavy - ratio * IZR light) / IZR total = hockey outs (mass a) (mass b) ratio.
Proof.
  unfold heavy, light, hockey. rewrite !total_of_real. unfold Rdiv at 1.
  rewrite <- sum_scale, <- sum_minus, <- sum_scale_right. apply sum_ext. intros o Ho.
  generalize (violated_exactly o Ho). unfold mass. destruct (is_violated o); intros [H1 H2].
  - rewrite pos_of_nonneg; [unfold Rdiv; ring|]. specialize (H1 eq_refl). lra.
  - rewrite pos_of_nonpos; [lra|].
    destruct (Rle_or_lt (IZR (a o) / IZR total - ratio * (IZR (b o) / IZR total)) 0); [assumption|].
    assert (false = true) by (apply H2; lra). discriminate.
Qed.

Section Claim.
Variables dn dd : Z.
Hypothesis dd_positive : (0 < dd)%Z.
Variable eps : R.
Hypothesis ratio_below : IZR num / IZR den <= exp eps.

Lemma mass_nonneg (w : O -> Z) :
  (forall o, In o outs -> (0 <= w o)%Z) -> forall o, In o outs -> 0 <= mass w o.
Proof.
  intros Hw o Ho. apply Rmult_le_pos; [apply IZR_le; auto|].
  left. apply Rinv_0_lt_compat, total_real.
Qed.

Theorem exact_check_probabilistic :
  passes_probabilistic dn dd = true ->
  probabilistic outs (mass a) (mass b) eps (IZR dn / IZR dd).
Proof.
  intros H. apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H.
  assert (0 < IZR dd) as Hd by now apply IZR_lt. generalize total_real. intros Ht.
  unfold probabilistic.
  apply Rle_trans with (violated_mass outs (mass a) (mass b) ratio).
  - apply violated_mass_falls; [now apply mass_nonneg|now apply mass_nonneg|exact ratio_below].
  - rewrite <- probabilistic_figure.
    apply Rmult_le_reg_r with (IZR total * IZR dd); [now apply Rmult_lt_0_compat|].
    replace (IZR heavy / IZR total * (IZR total * IZR dd)) with (IZR heavy * IZR dd)
      by (field; lra).
    replace (IZR dn / IZR dd * (IZR total * IZR dd)) with (IZR dn * IZR total)
      by (field; lra). assumption.
Qed.

Theorem exact_check_approximate :
  passes_approximate dn dd = true ->
  approximate outs (mass a) (mass b) eps (IZR dn / IZR dd).
Proof.
  intros H. apply Z.leb_le, IZR_le in H. rewrite !mult_IZR, minus_IZR, !mult_IZR in H.
  assert (0 < IZR dd) as Hd by now apply IZR_lt. generalize total_real den_real. intros Ht Hq.
  apply approximate_is_hockey.
  apply Rle_trans with (hockey outs (mass a) (mass b) ratio).
  - apply hockey_falls; [now apply mass_nonneg|exact ratio_below].
  - rewrite <- approximate_figure. unfold ratio.
    apply Rmult_le_reg_r with (IZR total * IZR dd * IZR den);
      [now repeat apply Rmult_lt_0_compat|].
    replace ((IZR heavy - IZR num / IZR den * IZR light) / IZR total *
             (IZR total * IZR dd * IZR den))
      with ((IZR heavy * IZR den - IZR num * IZR light) * IZR dd) by (field; lra).
    replace (IZR dn / IZR dd * (IZR total * IZR dd * IZR den))
      with (IZR dn * IZR total * IZR den) by (field; lra). assumption.
Qed.

End Claim.

Theorem exact_check_pure (eps : R) :
  IZR num / IZR den <= exp eps -> passes_pure = true -> pure outs (mass a) (mass b) eps.
Proof.
  intros Hr H. apply pure_is_probabilistic_zero; [now apply mass_nonneg|].
  replace 0 with (0 / 1) by lra. now apply exact_check_probabilistic.
Qed.

End Rows.

Section Modular.
Context {G : group}.
Variable shifts : list (element G).
Variable w : element G -> Z.
Variables num den total : Z.
Hypothesis den_positive : (0 < den)%Z.
Hypothesis total_positive : (0 < total)%Z.
Hypothesis w_nonneg : forall x, (0 <= w x)%Z.
Hypothesis w_total : total_of w (elements G) = total.
Variables dn dd : Z.
Hypothesis dd_positive : (0 < dd)%Z.
Variable eps : R.
Hypothesis ratio_below : IZR num / IZR den <= exp eps.

(** The loop over the shifts: the largest delta is at most the claimed one. *)
Definition every_shift (check : (element G -> Z) -> (element G -> Z) -> bool) : bool :=
  forallb (fun mu => check w (fun x => w (plus x mu))) shifts.

Lemma one_shift check (mu : element G) :
  every_shift check = true -> In mu shifts -> check w (fun x => w (plus x mu)) = true.
Proof. intros H. exact (proj1 (forallb_forall _ _) H mu). Qed.

(** The chances of the outputs when the true answer is q. *)
Definition published (q : element G) : element G -> R := row (mass total w) q.

Lemma neighbor (q q' : element G) : q' = minus q (minus q q').
Proof. now rewrite minus_minus, minus_self, zero_plus. Qed.

Theorem modular_check_probabilistic :
  every_shift (fun a b => passes_probabilistic (elements G) a b num den total dn dd) = true ->
  forall q q', In (minus q q') shifts ->
    probabilistic (elements G) (published q) (published q') eps (IZR dn / IZR dd).
Proof.
  intros H q q' Hq. rewrite (neighbor q q'). unfold probabilistic, published.
  rewrite modular_violated_mass.
  apply (exact_check_probabilistic (elements G) w (fun x => w (plus x (minus q q'))) num den total);
    auto. now apply (one_shift (fun a b => passes_probabilistic (elements G) a b num den total dn dd)).
Qed.

Theorem modular_check_approximate :
  every_shift (fun a b => passes_approximate (elements G) a b num den total dn dd) = true ->
  forall q q', In (minus q q') shifts ->
    approximate (elements G) (published q) (published q') eps (IZR dn / IZR dd).
Proof.
  intros H q q' Hq. rewrite (neighbor q q'). apply approximate_is_hockey. unfold published.
  rewrite modular_hockey.
  apply (approximate_is_hockey (elements G) (mass total w)
           (mass total (fun x => w (plus x (minus q q')))) eps (IZR dn / IZR dd)).
  apply (exact_check_approximate (elements G) w (fun x => w (plus x (minus q q'))) num den total);
    auto. now apply (one_shift (fun a b => passes_approximate (elements G) a b num den total dn dd)).
Qed.

Theorem modular_check_pure :
  every_shift (fun a b => passes_pure (elements G) a b num den total) = true ->
  forall q q', In (minus q q') shifts ->
    pure (elements G) (published q) (published q') eps.
Proof.
  intros H q q' Hq. rewrite (neighbor q q'). apply modular_pure. intros x.
  apply (exact_check_pure (elements G) w (fun x => w (plus x (minus q q'))) num den total); auto.
  - now apply (one_shift (fun a b => passes_pure (elements G) a b num den total)).
  - apply elements_complete.
Qed.

End Modular.
