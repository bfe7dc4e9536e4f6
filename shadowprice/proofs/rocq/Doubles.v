(** Numbers of 53 bits: the nearest of a fraction, the even one of two. Those that are written as doubles are such. *)

From Coq Require Import ZArith QArith Qround Qpower Lia Lqa Bool.
Open Scope Z_scope.

(** The nearest whole number, the even one of two. *)
Definition nearest (x : Q) : Z :=
  let q := Qfloor x in
  match Qcompare (x - inject_Z q) (1 # 2) with
  | Lt => q
  | Gt => q + 1
  | Eq => if Z.even q then q else q + 1
  end.

(** [x] times a power of two, and by which power it is from 2^52 to 2^53. *)
Definition scaled (x : Q) (k : Z) : Q :=
  if 0 <=? k then (Qnum x * 2 ^ k) # Qden x else Qnum x # (Qden x * Z.to_pos (2 ^ (- k))).

Definition shift (x : Q) : Z :=
  let k := 52 - Z.log2 (Qnum x) + Z.log2 (Zpos (Qden x)) in
  if Qle_bool (inject_Z (2 ^ 52)) (scaled x k) then k else k + 1.

Definition to_double (x : Q) : Q :=
  if 0 <? Qnum x then scaled (inject_Z (nearest (scaled x (shift x)))) (- shift x) else 0%Q.

Lemma nearest_bounds x : Qfloor x <= nearest x <= Qfloor x + 1.
Proof. unfold nearest. destruct (Qcompare _ _); [destruct (Z.even _)| |]; lia. Qed.

Lemma nearest_monotone x y : (x <= y)%Q -> nearest x <= nearest y.
Proof.
  intros H. pose proof (Qfloor_resp_le _ _ H) as Hfloor.
  pose proof (nearest_bounds x). pose proof (nearest_bounds y).
  destruct (Z_lt_ge_dec (Qfloor x) (Qfloor y)); [lia|].
  assert (E : Qfloor x = Qfloor y) by lia. unfold nearest. rewrite E. set (q := Qfloor y) in *.
  assert (Hrest : (x - inject_Z q <= y - inject_Z q)%Q) by (apply Qplus_le_compat; [exact H|apply Qle_refl]).
  destruct (Qcompare_spec (x - inject_Z q) (1 # 2)) as [Hx|Hx|Hx], (Qcompare_spec (y - inject_Z q) (1 # 2)) as [Hy|Hy|Hy];
    try (destruct (Z.even q)); solve [lia|exfalso; lra].
Qed.

Lemma two_power_positive k : 0 < 2 ^ k \/ k < 0.
Proof. destruct (Z_lt_ge_dec k 0); [now right|left]. apply Z.pow_pos_nonneg; lia. Qed.

(** Powers of two, of any sign, as fractions. *)
Definition power (k : Z) : Q := Qpower 2 k.

Lemma power_positive k : (0 < power k)%Q.
Proof. apply Qpower_0_lt. reflexivity. Qed.

Lemma power_of k : 0 <= k -> (power k == inject_Z (2 ^ k))%Q.
Proof. intros H. unfold power. rewrite <- (Qpower.Zpower_Qpower 2 k H). reflexivity. Qed.

Lemma power_add a b : (power (a + b) == power a * power b)%Q.
Proof. apply Qpower_plus. discriminate. Qed.

Lemma power_inverse k : (power k * power (- k) == 1)%Q.
Proof. rewrite <- power_add, Z.add_opp_diag_r. reflexivity. Qed.

Lemma scaled_is x k : (scaled x k == x * power k)%Q.
Proof.
  unfold scaled. destruct (Z.leb_spec 0 k) as [H|H].
  - rewrite (power_of k H). unfold Qeq, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos.mul_1_r. reflexivity.
  - assert (Hp : 0 < 2 ^ (- k)) by (apply Z.pow_pos_nonneg; lia).
    assert (E : (x == (Qnum x # (Qden x * Z.to_pos (2 ^ (- k)))) * inject_Z (2 ^ (- k)))%Q).
    { unfold Qeq, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos.mul_1_r, Pos2Z.inj_mul, Z2Pos.id by exact Hp. ring. }
    rewrite <- (power_of (- k)) in E by lia.
    set (y := (Qnum x # (Qden x * Z.to_pos (2 ^ (- k))))%Q) in *. clearbody y. rewrite E.
    rewrite <- Qmult_assoc, (Qmult_comm (power (- k))), power_inverse. ring.
Qed.

Lemma power_le a b : a <= b -> (power a <= power b)%Q.
Proof.
  intros H. replace b with (a + (b - a)) by lia. rewrite power_add, <- (Qmult_1_r (power a)) at 1.
  rewrite !(Qmult_comm (power a)). apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive].
  rewrite power_of by lia. rewrite <- (Qmult_1_r 1). change (1 * 1)%Q with (inject_Z 1). rewrite <- Zle_Qle.
  pose proof (Z.pow_pos_nonneg 2 (b - a)). lia.
Qed.

(** Between powers of two. *)
Lemma within x : 0 < Qnum x ->
  (power (Z.log2 (Qnum x) - Z.log2 (Zpos (Qden x)) - 1) <= x)%Q /\
  (x < power (Z.log2 (Qnum x) - Z.log2 (Zpos (Qden x)) + 1))%Q.
Proof.
  intros Hx. set (a := Z.log2 (Qnum x)). set (b := Z.log2 (Zpos (Qden x))).
  pose proof (Z.log2_spec (Qnum x) Hx) as Ha. fold a in Ha.
  pose proof (Z.log2_spec (Zpos (Qden x)) ltac:(lia)) as Hb. fold b in Hb.
  assert (H0 : 0 <= a) by apply Z.log2_nonneg. assert (H1 : 0 <= b) by apply Z.log2_nonneg.
  assert (Hd : (x * inject_Z (Zpos (Qden x)) == inject_Z (Qnum x))%Q).
  { unfold Qeq, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos2Z.inj_mul. ring. }
  assert (Hpos : (0 < inject_Z (Zpos (Qden x)))%Q) by reflexivity.
  split.
  - apply (Qmult_le_r _ _ _ Hpos). rewrite Hd.
    eapply Qle_trans with (power (a - b - 1) * power (b + 1))%Q.
    + rewrite !(Qmult_comm (power (a - b - 1))). apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive].
      rewrite power_of by lia. rewrite <- Zle_Qle. rewrite <- Z.add_1_r in Hb. lia.
    + rewrite <- power_add. replace (a - b - 1 + (b + 1)) with a by lia. rewrite power_of by lia.
      rewrite <- Zle_Qle. lia.
  - apply (Qmult_lt_r _ _ _ Hpos). rewrite Hd.
    eapply Qlt_le_trans with (power (a + 1))%Q.
    + rewrite power_of by lia. rewrite <- Zlt_Qlt. rewrite <- Z.add_1_r in Ha. lia.
    + replace (a + 1) with ((a - b + 1) + b) by lia. rewrite power_add.
      rewrite !(Qmult_comm (power (a - b + 1))). apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive].
      rewrite power_of by lia. rewrite <- Zle_Qle. lia.
Qed.

Lemma shifted x : 0 < Qnum x ->
  (power 52 <= x * power (shift x))%Q /\ (x * power (shift x) < power 53)%Q.
Proof.
  intros Hx. destruct (within x Hx) as [Hlow Hhigh]. unfold shift.
  set (l := Z.log2 (Qnum x)) in *. set (d := Z.log2 (Zpos (Qden x))) in *. set (k := 52 - l + d).
  assert (H51 : (power 51 <= x * power k)%Q).
  { replace 51 with ((l - d - 1) + k) by (unfold k; lia). rewrite power_add.
    apply Qmult_le_compat_r; [exact Hlow|apply Qlt_le_weak, power_positive]. }
  assert (H53 : (x * power k < power 53)%Q).
  { replace 53 with ((l - d + 1) + k) by (unfold k; lia). rewrite power_add.
    apply Qmult_lt_compat_r; [apply power_positive|exact Hhigh]. }
  destruct (Qle_bool _ _) eqn:E.
  - apply Qle_bool_iff in E. rewrite scaled_is in E. split; [|exact H53]. rewrite power_of by lia. exact E.
  - assert (H52 : (x * power k < power 52)%Q).
    { apply Qnot_le_lt. intros H. rewrite power_of, <- scaled_is in H by lia. apply Qle_bool_iff in H. congruence. }
    rewrite (power_add k 1), Qmult_assoc. split.
    + change 52 with (51 + 1). rewrite power_add. apply Qmult_le_compat_r; [exact H51|apply Qlt_le_weak, power_positive].
    + change 53 with (52 + 1). rewrite power_add. apply Qmult_lt_compat_r; [apply power_positive|exact H52].
Qed.

Lemma to_double_is x : 0 < Qnum x ->
  (to_double x == inject_Z (nearest (scaled x (shift x))) * power (- shift x))%Q.
Proof.
  intros H. unfold to_double. apply Z.ltb_lt in H. rewrite H. apply scaled_is.
Qed.

Lemma nearest_shifted x : 0 < Qnum x -> 2 ^ 52 <= nearest (scaled x (shift x)) <= 2 ^ 53.
Proof.
  intros H. destruct (shifted x H) as [Hlow Hhigh].
  assert (H1 : (inject_Z (2 ^ 52) <= scaled x (shift x))%Q) by (rewrite scaled_is, <- (power_of 52) by lia; exact Hlow).
  assert (H2 : (scaled x (shift x) < inject_Z (2 ^ 53))%Q) by (rewrite scaled_is, <- (power_of 53) by lia; exact Hhigh).
  pose proof (nearest_bounds (scaled x (shift x))). apply Qfloor_resp_le in H1. rewrite Qfloor_Z in H1.
  assert (H3 : (inject_Z (Qfloor (scaled x (shift x))) < inject_Z (2 ^ 53))%Q).
  { eapply Qle_lt_trans; [apply Qfloor_le|exact H2]. }
  rewrite <- Zlt_Qlt in H3. lia.
Qed.

Lemma to_double_positive x : (0 <= to_double x)%Q.
Proof.
  unfold to_double. destruct (Z.ltb_spec 0 (Qnum x)) as [H|H]; [|apply Qle_refl].
  rewrite scaled_is. apply Qmult_le_0_compat; [|apply Qlt_le_weak, power_positive].
  change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. pose proof (nearest_shifted x H).
  assert (0 < 2 ^ 52) by reflexivity. lia.
Qed.

Theorem to_double_monotone x y : (x <= y)%Q -> (to_double x <= to_double y)%Q.
Proof.
  intros H. destruct (Z.ltb_spec 0 (Qnum x)) as [Hx|Hx].
  2: { unfold to_double at 1. apply Z.ltb_ge in Hx. rewrite Hx. apply to_double_positive. }
  assert (Hy : 0 < Qnum y).
  { assert (Hz : (0 < y)%Q) by (eapply Qlt_le_trans; [|exact H]; unfold Qlt; cbn; lia). unfold Qlt in Hz. cbn in Hz. lia. }
  rewrite (to_double_is x Hx), (to_double_is y Hy).
  destruct (shifted x Hx) as [Lx Ux]. destruct (shifted y Hy) as [Ly Uy].
  set (kx := shift x) in *. set (ky := shift y) in *.
  destruct (Z.lt_trichotomy kx ky) as [Hk|[Hk|Hk]].
  - exfalso. apply (Qlt_not_le _ _ Uy).
    eapply Qle_trans with (x * power ky)%Q.
    2: { apply Qmult_le_compat_r; [exact H|apply Qlt_le_weak, power_positive]. }
    replace ky with (kx + (ky - kx)) by lia. rewrite power_add, Qmult_assoc.
    change 53 with (52 + 1). rewrite power_add.
    eapply Qle_trans with (power 52 * power (ky - kx))%Q.
    + rewrite !(Qmult_comm (power 52)). apply Qmult_le_compat_r; [apply power_le; lia|apply Qlt_le_weak, power_positive].
    + apply Qmult_le_compat_r; [exact Lx|apply Qlt_le_weak, power_positive].
  - rewrite <- Hk. apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive]. rewrite <- Zle_Qle.
    apply nearest_monotone. rewrite !scaled_is. apply Qmult_le_compat_r; [exact H|apply Qlt_le_weak, power_positive].
  - pose proof (nearest_shifted x Hx) as [_ Nx]. pose proof (nearest_shifted y Hy) as [Ny _].
    fold kx in Nx. fold ky in Ny.
    eapply Qle_trans with (power 53 * power (- kx))%Q.
    + apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive]. rewrite power_of by lia. now rewrite <- Zle_Qle.
    + eapply Qle_trans with (power 52 * power (- ky))%Q.
      * rewrite <- !power_add. apply power_le. lia.
      * apply Qmult_le_compat_r; [|apply Qlt_le_weak, power_positive]. rewrite power_of by lia. now rewrite <- Zle_Qle.
Qed.

(** Whole numbers from a fraction on. *)
Definition ticks_up (x : Q) : Z := Z.max (Qceiling x) 1.

Lemma ticks_up_monotone x y : (x <= y)%Q -> ticks_up x <= ticks_up y.
Proof. intros H. pose proof (Qceiling_resp_le _ _ H). unfold ticks_up. lia. Qed.
