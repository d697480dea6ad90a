(** A mean from two noisy sums of clamped values.

    docs/design/mathematics.md T10 and 2.28; release/exact/statistics/sums.py.  Rows are clamped to
    [low, high], W = high - low.  A is the sum of x - low and B the sum of high - x; each gets
    independent noise f that is pure for r between neighbors one apart (two-sided geometric noise,
    [geometric_optimum] in Geometric.v).  [own] lists the rows of one unit, at most k of them, and
    [others] all other rows.

    In words:
    - [shifted]: noise that is pure for r between neighbors one apart loses at most r^n at n steps;
    - [unit_moves]: replacing the rows of a unit moves A and B together by at most 2 k W, and
      leaving out or adding them by at most k W;
    - [mean_private], [mean_private_add_remove]: so the pair of noisy sums is pure for
      r^(2 k W), and for r^(k W) where a unit only comes or goes. *)

From Coq Require Import Reals Lra Lia ZArith List.
From DPRelease Require Import Series Geometric.
Import ListNotations.
Open Scope R_scope.

Section Mean.
Variables low high : Z.
Hypothesis clamp_range : (low <= high)%Z.

Definition width : Z := (high - low)%Z.

Fixpoint above (rows : list Z) : Z :=
  match rows with [] => 0%Z | x :: rest => (x - low + above rest)%Z end.
Fixpoint below (rows : list Z) : Z :=
  match rows with [] => 0%Z | x :: rest => (high - x + below rest)%Z end.

Definition clamped (rows : list Z) : Prop := forall x, In x rows -> (low <= x <= high)%Z.

Lemma above_app (l m : list Z) : above (l ++ m) = (above l + above m)%Z.
Proof. induction l as [|x l IH]; simpl; lia. Qed.

Lemma below_app (l m : list Z) : below (l ++ m) = (below l + below m)%Z.
Proof. induction l as [|x l IH]; simpl; lia. Qed.

Lemma contribution (rows : list Z) :
  clamped rows ->
  (0 <= above rows /\ 0 <= below rows /\ above rows + below rows = Z.of_nat (length rows) * width)%Z.
Proof.
  induction rows as [|x rows IH]; intros H; [simpl; lia|].
  destruct IH as [H1 [H2 H3]]; [intros y Hy; apply H; now right|].
  specialize (H x (or_introl eq_refl)). unfold width in *. cbn [above below length].
  rewrite Nat2Z.inj_succ, Z.mul_succ_l. lia.
Qed.

Variable k : nat.

Lemma contribution_bound (rows : list Z) :
  clamped rows -> (length rows <= k)%nat -> (above rows + below rows <= Z.of_nat k * width)%Z.
Proof.
  intros H Hk. destruct (contribution rows H) as [_ [_ ->]].
  apply Z.mul_le_mono_nonneg_r; [unfold width; lia|lia].
Qed.

Theorem unit_moves (others own own' : list Z) :
  clamped own -> clamped own' -> (length own <= k)%nat -> (length own' <= k)%nat ->
  (Z.abs (above (own ++ others) - above (own' ++ others)) +
   Z.abs (below (own ++ others) - below (own' ++ others)) <= 2 * (Z.of_nat k * width))%Z /\
  (Z.abs (above (own ++ others) - above others) +
   Z.abs (below (own ++ others) - below others) <= Z.of_nat k * width)%Z.
Proof.
  intros H H' Hk Hk'. rewrite !above_app, !below_app.
  destruct (contribution own H) as [A1 [B1 _]], (contribution own' H') as [A2 [B2 _]].
  generalize (contribution_bound own H Hk) (contribution_bound own' H' Hk'). lia.
Qed.

Variable r : R.
Hypothesis r_large : 1 < r.
Variable f : Z -> R.
Hypothesis f_nonneg : forall z, 0 <= f z.
Hypothesis f_private : step_private r f.

Theorem shifted (n : nat) (z s : Z) : (Z.abs s <= Z.of_nat n)%Z -> f z <= r ^ n * f (z + s)%Z.
Proof.
  revert s. induction n as [|n IH]; intros s Hs.
  - replace s with 0%Z by lia. rewrite Z.add_0_r. simpl. lra.
  - assert (exists s', (Z.abs s' <= Z.of_nat n)%Z /\
              (s = s' \/ s = s' + 1 \/ s = s' - 1)%Z) as [s' [Hs' Hcase]].
    { exists (Z.sgn s * Z.min (Z.abs s) (Z.of_nat n))%Z. lia. }
    apply Rle_trans with (1 := IH s' Hs'). simpl pow.
    rewrite (Rmult_comm r), Rmult_assoc. apply Rmult_le_compat_l; [apply pow_le; lra|].
    destruct Hcase as [->|[->| ->]].
    + generalize (Rmult_le_compat_r _ _ _ (f_nonneg (z + s')%Z) (Rlt_le _ _ r_large)). lra.
    + rewrite Z.add_assoc. apply f_private.
    + replace (z + (s' - 1))%Z with (z + s' - 1)%Z by lia. apply f_private.
Qed.

(** The mass of the noisy sums (a, b), for the given rows. *)
Definition sums_mass (rows : list Z) (a b : Z) : R :=
  f (a - above rows)%Z * f (b - below rows)%Z.

Lemma sums_shifted (rows rows' : list Z) (n : nat) (a b : Z) :
  (Z.abs (above rows - above rows') + Z.abs (below rows - below rows') <= Z.of_nat n)%Z ->
  sums_mass rows a b <= r ^ n * sums_mass rows' a b.
Proof.
  intros H. unfold sums_mass.
  set (s := (above rows - above rows')%Z) in *. set (t := (below rows - below rows')%Z) in *.
  replace (a - above rows')%Z with (a - above rows + s)%Z by lia.
  replace (b - below rows')%Z with (b - below rows + t)%Z by lia.
  apply Rle_trans with
    (r ^ Z.abs_nat s * f (a - above rows + s)%Z * (r ^ Z.abs_nat t * f (b - below rows + t)%Z)).
  - apply Rmult_le_compat; auto; apply shifted; lia.
  - replace (r ^ Z.abs_nat s * f (a - above rows + s)%Z *
             (r ^ Z.abs_nat t * f (b - below rows + t)%Z))
      with (r ^ (Z.abs_nat s + Z.abs_nat t) *
            (f (a - above rows + s)%Z * f (b - below rows + t)%Z)) by (rewrite pow_add; ring).
    apply Rmult_le_compat_r; [now apply Rmult_le_pos|]. apply Rle_pow; [lra|lia].
Qed.

Theorem mean_private (others own own' : list Z) (a b : Z) :
  clamped own -> clamped own' -> (length own <= k)%nat -> (length own' <= k)%nat ->
  sums_mass (own ++ others) a b <=
  r ^ Z.to_nat (2 * (Z.of_nat k * width)) * sums_mass (own' ++ others) a b.
Proof.
  intros H H' Hk Hk'. apply sums_shifted.
  destruct (unit_moves others own own' H H' Hk Hk') as [Hm _]. lia.
Qed.

Theorem mean_private_add_remove (others own : list Z) (a b : Z) :
  clamped own -> (length own <= k)%nat ->
  sums_mass (own ++ others) a b <= r ^ Z.to_nat (Z.of_nat k * width) * sums_mass others a b /\
  sums_mass others a b <= r ^ Z.to_nat (Z.of_nat k * width) * sums_mass (own ++ others) a b.
Proof.
  intros H Hk. destruct (unit_moves others own own H H Hk Hk) as [_ Hm].
  split; apply sums_shifted; lia.
Qed.

End Mean.
