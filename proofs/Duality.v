(** Lower bounds that prices prove, and no channel beats modular noise on a group.

    docs/design/mathematics.md 2.10 and 2.6; release/noise/solvers/linear.py, refine.py and
    release/noise/solve.py use the first for modular noise.  The group is finite and abelian.

    In words:
    - [weak_duality]: for any prices a_mu(x) >= 0 and any Ebar >= E, noise with the approximate
      guarantee (E, delta) has an expected cost of at least the least of
      rho(x) + sum a_mu(x) - Ebar sum a_mu(x - mu), less delta times the sum of the largest prices;
    - [even_noise]: where M and the costs are symmetric, the mean of noise and its mirror image has
      the guarantee and the same cost, pure or approximate;
    - [modular_noise_is_best]: for every channel with the approximate guarantee between answers that
      differ by M there is modular noise with the guarantee whose cost is the mean of the channel's
      over the true answers; pure is the case delta = 0.

    Not proved: the bound of 2.10 for noise on the integers.  Channels.v has that for channels. *)

From Coq Require Import Reals Lra Lia List Permutation.
From DPRelease Require Import Sums Privacy Groups ErrorRate.
Import ListNotations.
Open Scope R_scope.

Section Duality.
Context {G : group}.
Variable M : list (element G).
Variables E delta : R.

(** Costs of noise values. *)
Variable rho : element G -> R.

Definition expected_cost (f : element G -> R) : R := sum (fun x => rho x * f x) (elements G).

Section Prices.
Variable f : element G -> R.
Hypothesis f_noise : noise f.
Hypothesis f_approximate : approximate_for M E delta f.

Variable price : element G -> element G -> R.
Variable largest : element G -> R.
Variables Ebar least : R.
Hypothesis price_nonneg : forall mu x, 0 <= price mu x.
Hypothesis price_largest : forall mu x, price mu x <= largest mu.
Hypothesis Ebar_above : E <= Ebar.
Hypothesis least_factor : forall x,
  least <= rho x + sum (fun mu => price mu x) M - Ebar * sum (fun mu => price mu (minus x mu)) M.

Lemma paid (mu : element G) :
  In mu M ->
  sum (fun x => price mu x * f x) (elements G) -
  E * sum (fun x => price mu (minus x mu) * f x) (elements G) <= delta * largest mu.
Proof.
  intros Hmu.
  replace (sum (fun x => price mu (minus x mu) * f x) (elements G))
    with (sum (fun x => price mu x * f (plus x mu)) (elements G)).
  - rewrite <- sum_scale, <- sum_minus.
    apply Rle_trans with (sum (fun x => largest mu * pos (f x - E * f (plus x mu))) (elements G)).
    + apply sum_le. intros x _.
      apply Rle_trans with (price mu x * pos (f x - E * f (plus x mu))).
      * generalize (Rmult_le_compat_l _ _ _ (price_nonneg mu x)
                      (pos_above (f x - E * f (plus x mu)))). lra.
      * apply Rmult_le_compat_r; [apply pos_nonneg|apply price_largest].
    + rewrite sum_scale, Rmult_comm. apply Rmult_le_compat_r.
      * apply Rle_trans with (1 := price_nonneg mu zero), price_largest.
      * now apply f_approximate.
  - rewrite <- (sum_translated (fun x => price mu (minus x mu) * f x) mu).
    apply sum_ext. intros x _. now rewrite plus_minus.
Qed.

Theorem weak_duality : least - delta * sum largest M <= expected_cost f.
Proof.
  destruct f_noise as [Hf Hsum].
  assert (sum (fun mu => sum (fun x => price mu x * f x) (elements G) -
                         E * sum (fun x => price mu (minus x mu) * f x) (elements G)) M
          <= delta * sum largest M) as Hpaid.
  { rewrite <- sum_scale. apply sum_le. apply paid. }
  rewrite sum_minus, sum_scale in Hpaid. rewrite !(sum_exchange _ M (elements G)) in Hpaid.
  assert (least * 1 <=
          expected_cost f +
          sum (fun x => sum (fun mu => price mu x * f x) M) (elements G) -
          E * sum (fun x => sum (fun mu => price mu (minus x mu) * f x) M) (elements G)) as Hall.
  { rewrite <- Hsum at 1. unfold expected_cost.
    rewrite <- !sum_scale, <- sum_plus, <- sum_minus. apply sum_le. intros x Hx.
    rewrite !sum_scale_right.
    apply Rle_trans with
      ((rho x + sum (fun mu => price mu x) M - Ebar * sum (fun mu => price mu (minus x mu)) M) * f x).
    - apply Rmult_le_compat_r; [auto|apply least_factor].
    - assert (0 <= sum (fun mu => price mu (minus x mu)) M) as Hp
        by (apply sum_nonneg; intros; apply price_nonneg).
      generalize (Rmult_le_compat_r _ _ _ (Rmult_le_pos _ _ Hp (Hf x Hx)) Ebar_above). lra. }
  lra.
Qed.

End Prices.

Section Even.
Variable f : element G -> R.
Hypothesis f_noise : noise f.
Hypothesis M_symmetric : forall mu, In mu M -> In (neg mu) M.
Hypothesis rho_symmetric : forall x, rho (neg x) = rho x.

Definition mirrored (x : element G) : R := (f x + f (neg x)) / 2.

Lemma sum_mirrored (g : element G -> R) : sum (fun x => g (neg x)) (elements G) = sum g (elements G).
Proof.
  rewrite <- (sum_map neg g). apply sum_permutation. apply NoDup_Permutation_bis.
  - apply FinFun.Injective_map_NoDup; [|apply elements_once].
    intros x y H. rewrite <- (neg_neg x), H. apply neg_neg.
  - rewrite map_length. lia.
  - intros x _. apply elements_complete.
Qed.

Theorem even_noise :
  noise mirrored /\ (forall x, mirrored (neg x) = mirrored x) /\
  expected_cost mirrored = expected_cost f /\
  (approximate_for M E delta f -> approximate_for M E delta mirrored) /\
  (pure_for M E f -> pure_for M E mirrored).
Proof.
  destruct f_noise as [Hf Hsum]. split; [split|repeat split].
  - intros x Hx. unfold mirrored.
    generalize (Hf x Hx) (Hf (neg x) (elements_complete G _)). lra.
  - unfold mirrored, Rdiv. rewrite sum_scale_right, sum_plus, (sum_mirrored f), Hsum. lra.
  - intros x. unfold mirrored. rewrite neg_neg. lra.
  - unfold expected_cost, mirrored.
    rewrite (sum_ext _ (fun x => (rho x * f x + rho (neg x) * f (neg x)) * / 2))
      by (intros x _; rewrite rho_symmetric; lra).
    rewrite sum_scale_right, sum_plus, (sum_mirrored (fun x => rho x * f x)). lra.
  - intros H mu Hmu.
    assert (excess E f (neg mu) =
            sum (fun x => pos (f (neg x) - E * f (neg (plus x mu)))) (elements G)) as Hneg.
    { unfold excess. rewrite <- (sum_mirrored (fun x => pos (f x - E * f (plus x (neg mu))))).
      apply sum_ext. intros x _. now rewrite neg_plus. }
    apply Rle_trans with ((excess E f mu + excess E f (neg mu)) * / 2).
    + rewrite Hneg. unfold excess. rewrite <- sum_plus, <- sum_scale_right. apply sum_le.
      intros x _. unfold mirrored.
      replace ((f x + f (neg x)) / 2 - E * ((f (plus x mu) + f (neg (plus x mu))) / 2))
        with (/ 2 * ((f x - E * f (plus x mu)) + (f (neg x) - E * f (neg (plus x mu))))) by field.
      rewrite pos_scale by lra.
      generalize (pos_plus (f x - E * f (plus x mu)) (f (neg x) - E * f (neg (plus x mu)))). lra.
    + generalize (H mu Hmu) (H (neg mu) (M_symmetric mu Hmu)). lra.
  - intros H x mu Hmu. unfold mirrored.
    generalize (H x mu Hmu) (H (neg x) (neg mu) (M_symmetric mu Hmu)). rewrite neg_plus. lra.
Qed.

End Even.

Section Channels.
(** The chance of o when the true answer is q. *)
Variable channel : element G -> element G -> R.
Hypothesis rows : forall q, noise (channel q).
Hypothesis guarantee : forall q mu, In mu M ->
  hockey (elements G) (channel q) (channel (minus q mu)) E <= delta.

Notation answers := (INR (length (elements G))).

Definition averaged (x : element G) : R :=
  sum (fun q => channel q (plus q x)) (elements G) / answers.

(** The cost at the true answer q: the cost of an error depends on o - q alone. *)
Definition cost_at (q : element G) : R := sum (fun o => rho (minus o q) * channel q o) (elements G).

Lemma answers_positive : 0 < answers.
Proof.
  apply lt_0_INR. generalize (elements_complete G zero). destruct (elements G); simpl; [tauto|lia].
Qed.

Lemma sum_constant {A : Type} (c : R) (l : list A) : sum (fun _ => c) l = INR (length l) * c.
Proof.
  induction l as [|a l IH]; [simpl; lra|].
  cbn [sum length]. rewrite IH, S_INR. ring.
Qed.

Lemma row_moved (g : element G -> R) (q : element G) :
  sum (fun x => g (plus q x)) (elements G) = sum g (elements G).
Proof. rewrite <- (sum_translated g q). apply sum_ext. intros x _. now rewrite plus_comm. Qed.

Theorem modular_noise_is_best :
  noise averaged /\ approximate_for M E delta averaged /\
  expected_cost averaged = sum cost_at (elements G) / answers.
Proof.
  generalize answers_positive. intros Hn.
  assert (0 <= / answers) as Hinv by (left; now apply Rinv_0_lt_compat).
  split; [split|split].
  - intros x _. apply Rmult_le_pos; [|assumption]. apply sum_nonneg. intros q _.
    apply rows, elements_complete.
  - unfold averaged, Rdiv. rewrite sum_scale_right, sum_exchange.
    rewrite (sum_ext _ (fun _ => 1)).
    + rewrite sum_constant. field. lra.
    + intros q _. rewrite row_moved. apply rows.
  - intros mu Hmu. unfold excess.
    apply Rle_trans with
      (sum (fun x => sum (fun q => pos (channel q (plus q x) - E * channel (minus q mu) (plus q x)))
                         (elements G) * / answers) (elements G)).
    + apply sum_le. intros x _. unfold averaged, Rdiv.
      replace (sum (fun q => channel q (plus q (plus x mu))) (elements G))
        with (sum (fun q => channel (minus q mu) (plus q x)) (elements G)).
      * rewrite <- Rmult_assoc, <- Rmult_minus_distr_r, <- sum_scale, <- sum_minus.
        rewrite Rmult_comm, pos_scale, Rmult_comm by assumption.
        apply Rmult_le_compat_r; [assumption|apply pos_of_sum].
      * rewrite <- (sum_translated (fun q => channel (minus q mu) (plus q x)) mu).
        apply sum_ext. intros q _. rewrite plus_minus. f_equal.
        rewrite <- plus_assoc. f_equal. apply plus_comm.
    + rewrite sum_scale_right, sum_exchange.
      apply Rle_trans with (sum (fun _ => delta) (elements G) * / answers).
      * apply Rmult_le_compat_r; [assumption|]. apply sum_le. intros q _.
        rewrite (row_moved (fun o => pos (channel q o - E * channel (minus q mu) o)) q).
        now apply guarantee.
      * rewrite sum_constant. right. field. lra.
  - unfold expected_cost, averaged, cost_at, Rdiv.
    rewrite (sum_ext _ (fun x => sum (fun q => rho x * channel q (plus q x)) (elements G) * / answers))
      by (intros x _; rewrite sum_scale; ring).
    rewrite sum_scale_right, sum_exchange. f_equal. apply sum_ext. intros q _.
    rewrite <- (row_moved (fun o => rho (minus o q) * channel q o) q). apply sum_ext. intros x _.
    do 2 f_equal. now rewrite plus_comm, plus_minus.
Qed.

End Channels.
End Duality.
