(** A rational at most e^eps.

    docs/design/mathematics.md 0.5 and 1.3; release/exact/numbers.py.  [exp_bounds] takes the
    exponential of Python's decimal numbers at an argument that was rounded down, subtracts a unit
    of 10^-40 and rounds down.  What the library promises, a result that is right to within a unit,
    is a hypothesis here: no proof about its code is given.  [taylor] is a second way to the same
    fact that needs no promise: a partial sum of the series.

    In words:
    - [program_bound]: if the library's result is at most 10^-40 above the exponential of an
      argument that is at most eps, then the program's lower bound is at most e^eps;
    - [taylor_below_exp]: for x >= 0 every partial sum of the series is at most e^x;
    - [certificate]: a rational that is at most such a partial sum, a comparison of rationals
      that a machine decides, is at most e^eps;
    - [bound_of_one], [bound_of_half]: the values that [exp_bounds] returns for eps = 1 and
      eps = 1/2, decided in this way;
    - [any_verifier]: a ratio of at least 1 that is 2 * 10^-30 below the lower bound is at most
      every ratio that a verifier may take (1.3). *)

From Coq Require Import Reals Lra Lia QArith Qreals.
Open Scope R_scope.

Definition unit_40 : R := / 10 ^ 40.
Definition unit_30 : R := / 10 ^ 30.

Lemma exp_at_least_one (eps : R) : 0 <= eps -> 1 <= exp eps.
Proof.
  intros H. destruct (Rle_lt_or_eq_dec 0 eps H) as [Hlt|<-].
  - left. rewrite <- exp_0. now apply exp_increasing.
  - rewrite exp_0. lra.
Qed.

Lemma exp_monotone (x y : R) : x <= y -> exp x <= exp y.
Proof.
  intros H. destruct (Rle_lt_or_eq_dec x y H) as [Hlt| ->]; [|lra].
  left. now apply exp_increasing.
Qed.

(** [argument] is eps rounded down, [y] what the library returns, [low] what the program keeps. *)
Theorem program_bound (eps argument y low : R) :
  0 <= eps -> argument <= eps -> y <= exp argument + unit_40 -> low <= y - unit_40 ->
  Rmax 1 low <= exp eps.
Proof.
  intros H0 Ha Hy Hl. apply Rmax_lub; [now apply exp_at_least_one|].
  generalize (exp_monotone _ _ Ha). lra.
Qed.

Theorem any_verifier (eps low r : R) :
  low <= exp eps -> 1 <= low - 2 * unit_30 -> exp eps - unit_30 <= r ->
  Rmax 1 (low - 2 * unit_30) <= r.
Proof.
  intros Hl H1 Hr.
  assert (0 < unit_30) by (unfold unit_30; apply Rinv_0_lt_compat, pow_lt; lra).
  apply Rmax_lub; lra.
Qed.

Fixpoint taylor (n : nat) (x : R) : R :=
  match n with
  | O => 0
  | S m => taylor m x + x ^ m / INR (fact m)
  end.

Theorem taylor_below_exp (n : nat) (x : R) : 0 <= x -> taylor n x <= exp x.
Proof.
  intros Hx. destruct n as [|n]; [left; simpl; apply exp_pos|].
  assert (taylor (S n) x = sum_f_R0 (fun i => / INR (fact i) * x ^ i) n) as ->.
  { induction n as [|n IH]; simpl taylor; [simpl; lra|].
    simpl taylor in IH. rewrite IH. simpl sum_f_R0. unfold Rdiv. simpl pow. lra. }
  apply sum_incr.
  - unfold exp. destruct (exist_exp x) as [l Hl]. exact Hl.
  - intros i. apply Rmult_le_pos; [|now apply pow_le].
    left. apply Rinv_0_lt_compat, INR_fact_lt_0.
Qed.

(** The same partial sum in rational numbers, innermost term first:
    1 + x/k (1 + x/(k+1) (1 + ...)) with [n] further terms. *)
Fixpoint nested (n k : nat) (x : Q) : Q :=
  match n with
  | O => 1
  | S m => Qred (1 + x * (1 # Pos.of_nat k) * nested m (S k) x)
  end.

Definition certified (low eps : Q) (n : nat) : bool :=
  Qle_bool 0 eps && Qle_bool low (nested n 1 eps).

(** The terms x^i (k-1)!/(k-1+i)! for i <= n. *)
Fixpoint series (n k : nat) (x : R) : R :=
  match n with
  | O => 1
  | S m => 1 + x / INR k * series m (S k) x
  end.

Lemma nested_is_series (n k : nat) (x : Q) :
  (0 < k)%nat -> Q2R (nested n k x) = series n k (Q2R x).
Proof.
  revert k. induction n as [|n IH]; intros k Hk; cbn [nested series].
  - unfold Q2R; simpl. field.
  - rewrite (Qeq_eqR _ _ (Qred_correct _)), Q2R_plus, !Q2R_mult, IH by lia.
    assert (Q2R (1 # Pos.of_nat k) = / INR k) as ->.
    { unfold Q2R; simpl. rewrite Rmult_1_l. f_equal. rewrite INR_IZR_INZ. f_equal.
      rewrite <- (Nat2Pos.id k) at 2 by lia. now rewrite positive_nat_Z. }
    unfold Q2R at 1; simpl. unfold Rdiv. lra.
Qed.

Lemma series_is_taylor (n m : nat) (x : R) :
  taylor m x + x ^ m / INR (fact m) * series n (S m) x = taylor (S n + m) x.
Proof.
  revert m. induction n as [|n IH]; intros m.
  - cbn [series taylor Nat.add]. lra.
  - cbn [series]. replace (S (S n) + m)%nat with (S n + S m)%nat by lia. rewrite <- IH.
    cbn [taylor]. replace (fact (S m)) with (S m * fact m)%nat by reflexivity.
    rewrite mult_INR. simpl pow. field. split; [apply INR_fact_neq_0|].
    apply not_0_INR. lia.
Qed.

Theorem certificate (low eps : Q) (n : nat) :
  certified low eps n = true -> Q2R low <= exp (Q2R eps).
Proof.
  intros H. apply Bool.andb_true_iff in H as [H0 H1].
  apply Qle_bool_iff, Qle_Rle in H0. apply Qle_bool_iff, Qle_Rle in H1.
  assert (0 <= Q2R eps) as Hx by (unfold Q2R in H0 at 1; simpl in H0; lra).
  apply Rle_trans with (1 := H1). rewrite nested_is_series by lia.
  generalize (series_is_taylor n 0 (Q2R eps)). simpl taylor at 1. simpl pow. simpl INR.
  intros Hs. apply Rle_trans with (taylor (S n + 0) (Q2R eps)); [lra|].
  now apply taylor_below_exp.
Qed.

Definition low_of_one : Q := 27182818284590452353602874713526624977571 # (10 ^ 40).
Definition low_of_half : Q := 16487212707001281468486507878141635716536 # (10 ^ 40).

Theorem bound_of_one : Q2R low_of_one <= exp 1.
Proof.
  replace 1 with (Q2R 1) by (unfold Q2R; simpl; field).
  apply (certificate low_of_one 1 40). vm_compute. reflexivity.
Qed.

Theorem bound_of_half : Q2R low_of_half <= exp (Q2R (1 # 2)).
Proof. apply (certificate low_of_half (1 # 2) 40). vm_compute. reflexivity. Qed.
