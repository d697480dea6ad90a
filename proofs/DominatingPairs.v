(** Privacy profiles and the pairs that have them.

    docs/design/mathematics.md T5 and the parts of 2.29 that the program's lists of masses rest on;
    release/exact/composition/distribution.py, grid.py, charges.py and dominance.py.  A [curve] is
    m + the sum of p_j max(0, 1 - t y_j): the P-masses p_j at the ratios 1/y_j = P/Q = e^loss, and m at
    an infinite loss.

    In words:
    - [profile_at_zero], [profile_falls], [profile_convex], [profile_above_silence]: the profile of
      two distributions is 1 at t = 0, does not increase, is convex, and is at least max(0, 1 - t);
    - [exchanged_profile]: the profile of the exchanged pair is 1 - t + t H(1/t);
    - [pair_of_curve]: a curve with masses that add up to 1 and y-weighted masses that add up to at
      most 1 is the profile of a pair of distributions; so is, with p_j = t_j s_j, every convex
      piecewise linear function with jumps of slope s_j at t_j (T5);
    - [masses_up], [losses_up], [to_infinity]: raising a mass, raising a loss and moving mass to an
      infinite loss raise the curve;
    - [connect_the_dots]: an atom between two losses of the grid, split so that the mean of y stays,
      raises the curve and keeps the sum of Q (2.29);
    - [worst_case_of_charge]: a pair with (eps, delta) in both directions has at most the profile of
      the four masses of 2.29.

    The existence of a tight pair for profiles that are not piecewise linear (Zhu, Dong and Wang
    2022, Proposition 8) is not proved here; no code uses it. *)

From Coq Require Import Reals Lra Lia List.
From DPRelease Require Import Sums Privacy.
Import ListNotations.
Open Scope R_scope.

Section Profile.
Context {O : Type}.
Variable outs : list O.
Variables P Q : O -> R.
Hypothesis P_law : distribution outs P.
Hypothesis Q_law : distribution outs Q.

Notation H := (hockey outs P Q).

Theorem profile_at_zero : H 0 = 1.
Proof.
  destruct P_law as [HP HS]. unfold hockey. rewrite <- HS. apply sum_ext. intros o Ho.
  rewrite Rmult_0_l, Rminus_0_r. apply pos_of_nonneg. auto.
Qed.

Theorem profile_falls (s t : R) : s <= t -> H t <= H s.
Proof. destruct Q_law as [HQ _]. now apply hockey_falls. Qed.

Theorem profile_convex (s t c : R) :
  0 <= c <= 1 -> H (c * s + (1 - c) * t) <= c * H s + (1 - c) * H t.
Proof.
  intros Hc. unfold hockey. rewrite <- !sum_scale, <- sum_plus. apply sum_le. intros o _.
  rewrite <- !pos_scale by lra.
  apply Rle_trans with (2 := pos_plus _ _). right. f_equal. ring.
Qed.

Theorem profile_above_silence (t : R) : pos (1 - t) <= H t.
Proof.
  destruct P_law as [_ HP], Q_law as [_ HQ].
  replace (1 - t) with (sum P outs - t * sum Q outs) by (rewrite HP, HQ; ring).
  rewrite <- sum_scale, <- sum_minus. apply pos_of_sum.
Qed.

Theorem exchanged_profile (t : R) : 0 < t -> hockey outs Q P t = 1 - t + t * H (/ t).
Proof.
  intros Ht. destruct P_law as [_ HP], Q_law as [_ HQ]. unfold hockey.
  replace (1 - t) with (sum Q outs - t * sum P outs) by (rewrite HP, HQ; ring).
  rewrite <- !sum_scale, <- sum_minus, <- sum_plus. apply sum_ext. intros o _.
  rewrite <- pos_scale by lra.
  replace (t * (P o - / t * Q o)) with (t * P o - Q o) by (field; lra).
  unfold pos, Rmax. destruct (Rle_dec 0 (Q o - t * P o)), (Rle_dec 0 (t * P o - Q o)); lra.
Qed.

Section WorstCase.
Variable E delta : R.
Hypothesis E_large : 1 <= E.
Hypothesis one_way : H E <= delta.
Hypothesis other_way : hockey outs Q P E <= delta.

(** P- and Q-masses at the losses infinity, eps, -eps, -infinity. *)
Definition charge : list (R * R) :=
  [ (delta, 0);
    ((1 - delta) * E / (E + 1), (1 - delta) / (E + 1));
    ((1 - delta) / (E + 1), (1 - delta) * E / (E + 1));
    (0, delta) ].

Definition charge_profile (t : R) : R := hockey charge fst snd t.

Lemma delta_nonneg : 0 <= delta.
Proof.
  apply Rle_trans with (2 := one_way). apply sum_nonneg. intros. apply pos_nonneg.
Qed.

Theorem worst_case_of_charge (t : R) : 0 <= t -> delta <= 1 -> H t <= charge_profile t.
Proof.
  intros Ht Hd. generalize delta_nonneg. intros Hd0.
  assert (0 < / E <= 1) as Hinv.
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  set (k := (1 - delta) / (E + 1)).
  assert (0 <= k) as Hk.
  { apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
  assert (k * (E + 1) = 1 - delta) as Hke by (unfold k; field; lra).
  assert (charge_profile t = delta + pos (k * (E - t)) + pos (k * (1 - t * E))) as ->.
  { unfold charge_profile, hockey, charge. cbn [sum fst snd].
    rewrite (pos_of_nonneg (delta - t * 0)) by lra.
    rewrite (pos_of_nonpos (0 - t * delta)) by (generalize (Rmult_le_pos t delta Ht Hd0); lra).
    replace ((1 - delta) * E / (E + 1) - t * ((1 - delta) / (E + 1))) with (k * (E - t))
      by (unfold k; field; lra).
    replace ((1 - delta) / (E + 1) - t * ((1 - delta) * E / (E + 1))) with (k * (1 - t * E))
      by (unfold k; field; lra). lra. }
  rewrite !pos_scale by assumption.
  assert (H (/ E) <= 1 - (1 - delta) * / E) as Hlow.
  { rewrite exchanged_profile in other_way by lra.
    apply Rmult_le_reg_l with E; [lra|].
    replace (E * (1 - (1 - delta) * / E)) with (E - 1 + delta) by (field; lra). lra. }
  destruct (Rle_or_lt t (/ E)) as [Hsmall|Hlarge].
  - (* Left of 1/E: the chord from (0, 1). *)
    assert (t * E <= 1) as HtE.
    { apply Rmult_le_reg_r with (/ E); [lra|]. rewrite Rmult_assoc, Rinv_r by lra. lra. }
    assert (0 <= E - t) by lra. rewrite !pos_of_nonneg by lra.
    generalize (profile_convex (/ E) 0 (t * E)). rewrite profile_at_zero.
    replace (t * E * / E + (1 - t * E) * 0) with t by (field; lra).
    generalize (Rmult_le_pos t E Ht ltac:(lra)). intros HtE0 Hc. specialize (Hc ltac:(lra)).
    generalize (Rmult_le_compat_l (t * E) _ _ HtE0 Hlow).
    replace (t * E * (1 - (1 - delta) * / E)) with (t * E - (1 - delta) * t) by (field; lra).
    intros Hm.
    replace (delta + k * (E - t) + k * (1 - t * E)) with (delta + k * (E + 1) * (1 - t)) by ring.
    rewrite Hke. lra.
  - destruct (Rle_or_lt E t) as [Hbig|Hmiddle].
    + apply Rle_trans with delta; [apply Rle_trans with (2 := one_way); now apply profile_falls|].
      generalize (pos_nonneg (E - t)) (pos_nonneg (1 - t * E)). intros N1 N2.
      generalize (Rmult_le_pos _ _ Hk N1) (Rmult_le_pos _ _ Hk N2). lra.
    + (* Between 1/E and E: the chord. *)
      assert (1 < t * E) as HtE.
      { apply Rmult_lt_reg_r with (/ E); [lra|]. rewrite Rmult_assoc, Rinv_r by lra. lra. }
      rewrite (pos_of_nonneg (E - t)), (pos_of_nonpos (1 - t * E)) by lra.
      set (c := (E - t) / (E - / E)).
      assert (c * (E - / E) = E - t) as Hce
        by (unfold c, Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
      assert (0 <= c <= 1) as Hc.
      { split; apply Rmult_le_reg_r with (E - / E); lra. }
      generalize (profile_convex (/ E) E c Hc).
      replace (c * / E + (1 - c) * E) with t by lra. intros Hconv.
      generalize (Rmult_le_compat_l c _ _ ltac:(lra) Hlow)
                 (Rmult_le_compat_l (1 - c) _ _ ltac:(lra) one_way). intros H1 H2.
      assert (c * (1 - delta) * (1 - / E) = k * (E - t)) as He.
      { rewrite <- Hce, <- Hke. field. lra. }
      lra.
Qed.

End WorstCase.
End Profile.

(** A curve: masses at values of y, y = e^-loss, and the mass at an infinite loss. *)
Definition curve (m : R) (atoms : list (R * R)) (t : R) : R :=
  m + sum (fun a => fst a * pos (1 - t * snd a)) atoms.

(** Its pair: masses p and p y; mass of P alone; mass of Q alone. *)
Definition pair_of (m : R) (atoms : list (R * R)) : list (R * R) :=
  (m, 0) :: (0, 1 - sum (fun a => fst a * snd a) atoms) ::
  map (fun a => (fst a, fst a * snd a)) atoms.

Theorem pair_of_curve (m : R) (atoms : list (R * R)) :
  0 <= m -> (forall a, In a atoms -> 0 <= fst a /\ 0 <= snd a) ->
  m + sum fst atoms = 1 -> sum (fun a => fst a * snd a) atoms <= 1 ->
  distribution (pair_of m atoms) fst /\ distribution (pair_of m atoms) snd /\
  forall t, 0 <= t -> hockey (pair_of m atoms) fst snd t = curve m atoms t.
Proof.
  intros Hm Ha Hp Hq. split; [split|split; [split|]].
  - intros o [<-|[<-|Ho]]; cbn [fst]; try lra. apply in_map_iff in Ho as [a [<- Hin]].
    cbn [fst]. destruct (Ha a Hin). assumption.
  - unfold pair_of. cbn [sum fst]. rewrite sum_map. cbn [fst].
    change (m + (0 + sum fst atoms) = 1). lra.
  - intros o [<-|[<-|Ho]]; cbn [snd]; try lra. apply in_map_iff in Ho as [a [<- Hin]].
    cbn [snd]. destruct (Ha a Hin). now apply Rmult_le_pos.
  - unfold pair_of. cbn [sum snd]. rewrite sum_map. cbn [snd]. lra.
  - intros t Ht. unfold hockey, pair_of, curve. cbn [sum fst snd]. rewrite sum_map. cbn [fst snd].
    rewrite (pos_of_nonneg (m - t * 0)) by lra.
    rewrite (pos_of_nonpos (0 - _)).
    + rewrite Rmult_0_r, Rminus_0_r, Rplus_0_l. f_equal. apply sum_ext. intros a Hin.
      destruct (Ha a Hin) as [H1 H2]. rewrite <- pos_scale by assumption. f_equal. ring.
    + generalize (Rmult_le_pos t (1 - sum (fun a => fst a * snd a) atoms) Ht ltac:(lra)). lra.
Qed.

(** A convex piecewise linear function, written with its kinks t_j > 0 and jumps of slope s_j. *)
Definition piecewise (m : R) (kinks : list (R * R)) (t : R) : R :=
  m + sum (fun k => snd k * pos (fst k - t)) kinks.

Theorem curve_of_kinks (m : R) (kinks : list (R * R)) (t : R) :
  (forall k, In k kinks -> 0 < fst k) ->
  piecewise m kinks t = curve m (map (fun k => (fst k * snd k, / fst k)) kinks) t.
Proof.
  intros Hk. unfold piecewise, curve. f_equal. rewrite sum_map. apply sum_ext. intros k Hin.
  specialize (Hk k Hin). cbn [fst snd].
  replace (fst k - t) with (fst k * (1 - t * / fst k)) by (field; lra).
  rewrite pos_scale by lra. ring.
Qed.

Lemma curve_cons (m p y : R) (atoms : list (R * R)) (t : R) :
  curve m ((p, y) :: atoms) t = curve m atoms t + p * pos (1 - t * y).
Proof. unfold curve. cbn [sum fst snd]. ring. Qed.

Theorem masses_up (m m' p p' y : R) (atoms : list (R * R)) (t : R) :
  m <= m' -> p <= p' -> curve m ((p, y) :: atoms) t <= curve m' ((p', y) :: atoms) t.
Proof.
  intros Hm Hp. rewrite !curve_cons. unfold curve.
  generalize (Rmult_le_compat_r _ _ _ (pos_nonneg (1 - t * y)) Hp). lra.
Qed.

(** A larger loss is a smaller y. *)
Theorem losses_up (m p y y' : R) (atoms : list (R * R)) (t : R) :
  0 <= t -> 0 <= p -> y' <= y -> curve m ((p, y) :: atoms) t <= curve m ((p, y') :: atoms) t.
Proof.
  intros Ht Hp Hy. rewrite !curve_cons. apply Rplus_le_compat_l, Rmult_le_compat_l; [assumption|].
  apply pos_monotone. generalize (Rmult_le_compat_l t _ _ Ht Hy). lra.
Qed.

Theorem to_infinity (m p y : R) (atoms : list (R * R)) (t : R) :
  0 <= t -> 0 <= p -> 0 <= y -> curve m ((p, y) :: atoms) t <= curve (m + p) atoms t.
Proof.
  intros Ht Hp Hy. rewrite curve_cons. unfold curve.
  assert (pos (1 - t * y) <= 1) as H.
  { apply pos_least; [lra|]. generalize (Rmult_le_pos t y Ht Hy). lra. }
  generalize (Rmult_le_compat_l p _ _ Hp H). lra.
Qed.

(** [low] and [high] are the y of the two losses of the grid around y. *)
Theorem connect_the_dots (m p y low high : R) (atoms : list (R * R)) (t : R) :
  0 <= p -> low <= y <= high -> low < high ->
  let lambda := (y - low) / (high - low) in
  curve m ((p, y) :: atoms) t <=
    curve m ((p * (1 - lambda), low) :: (p * lambda, high) :: atoms) t /\
  p * y = p * (1 - lambda) * low + p * lambda * high.
Proof.
  intros Hp Hy Hlt lambda.
  assert (lambda * (high - low) = y - low) as Hl by (unfold lambda; field; lra).
  assert (0 <= lambda <= 1) as Hrange.
  { split; apply Rmult_le_reg_r with (high - low); lra. }
  assert (y = (1 - lambda) * low + lambda * high) as Hmean by lra.
  split.
  - rewrite !curve_cons, Rplus_assoc. apply Rplus_le_compat_l.
    assert (pos (1 - t * y) <=
            lambda * pos (1 - t * high) + (1 - lambda) * pos (1 - t * low)) as H.
    { rewrite <- !pos_scale by lra. apply Rle_trans with (2 := pos_plus _ _).
      right. f_equal. rewrite Hmean at 1. ring. }
    generalize (Rmult_le_compat_l p _ _ Hp H). lra.
  - rewrite Hmean at 1. ring.
Qed.
