(** Sums of integers over lists, and sets of distinct ticks. *)

From Coq Require Import List ZArith Lia Permutation.
Import ListNotations.
Open Scope Z_scope.

Section Sums.
  Context {A : Type}.

  Fixpoint sum (f : A -> Z) (l : list A) : Z :=
    match l with
    | [] => 0
    | x :: rest => f x + sum f rest
    end.

  Lemma sum_app f l k : sum f (l ++ k) = sum f l + sum f k.
  Proof. induction l as [|x l IH]; simpl; lia. Qed.

  Lemma sum_le f h l : (forall x, In x l -> f x <= h x) -> sum f l <= sum h l.
  Proof.
    induction l as [|x l IH]; simpl; intros H; [lia|].
    assert (f x <= h x) by (apply H; now left).
    assert (sum f l <= sum h l) by (apply IH; intros; apply H; now right). lia.
  Qed.

  Lemma sum_ext f h l : (forall x, In x l -> f x = h x) -> sum f l = sum h l.
  Proof.
    intros H. apply Z.le_antisymm; apply sum_le; intros x Hx; rewrite (H x Hx); lia.
  Qed.

  Lemma sum_nonneg f l : (forall x, In x l -> 0 <= f x) -> 0 <= sum f l.
  Proof.
    induction l as [|x l IH]; simpl; intros H; [lia|].
    assert (0 <= f x) by (apply H; now left).
    assert (0 <= sum f l) by (apply IH; intros; apply H; now right). lia.
  Qed.

  Lemma sum_add f h l : sum (fun x => f x + h x) l = sum f l + sum h l.
  Proof. induction l as [|x l IH]; simpl; lia. Qed.

  Lemma sum_scale c f l : sum (fun x => c * f x) l = c * sum f l.
  Proof. induction l as [|x l IH]; simpl; nia. Qed.

  Lemma sum_const c l : sum (fun _ => c) l = c * Z.of_nat (length l).
  Proof. induction l as [|x l IH]; simpl; lia. Qed.

  Lemma sum_perm f l k : Permutation l k -> sum f l = sum f k.
  Proof. induction 1; simpl; lia. Qed.

  (** What a test lets through, and what it does not. *)
  Lemma sum_split f (test : A -> bool) l :
    sum f l = sum f (filter test l) + sum f (filter (fun x => negb (test x)) l).
  Proof.
    induction l as [|x l IH]; simpl; [lia|]. destruct (test x); simpl; lia.
  Qed.

  Lemma sum_filter f (test : A -> bool) l :
    sum f (filter test l) = sum (fun x => if test x then f x else 0) l.
  Proof. induction l as [|x l IH]; simpl; [lia|]. destruct (test x); simpl; lia. Qed.
End Sums.

Lemma sum_map {A B} (f : B -> Z) (h : A -> B) l : sum f (map h l) = sum (fun x => f (h x)) l.
Proof. induction l as [|x l IH]; simpl; lia. Qed.

Lemma sum_flat_map {A B} (f : B -> Z) (h : A -> list B) l :
  sum f (flat_map h l) = sum (fun x => sum f (h x)) l.
Proof. induction l as [|x l IH]; simpl; [lia|]. rewrite sum_app. lia. Qed.

Lemma sum_swap {A B} (f : A -> B -> Z) la lb :
  sum (fun a => sum (f a) lb) la = sum (fun b => sum (fun a => f a b) la) lb.
Proof.
  induction la as [|a l IH]; simpl.
  - induction lb as [|b lb IHb]; simpl; lia.
  - rewrite IH, <- sum_add. reflexivity.
Qed.

Lemma length_flat_map {A B} (h : A -> list B) l :
  Z.of_nat (length (flat_map h l)) = sum (fun x => Z.of_nat (length (h x))) l.
Proof. induction l as [|x l IH]; simpl; [lia|]. rewrite app_length. lia. Qed.

(** Ticks from [a] on, before [b]. *)
Definition ticks (a b : Z) : list Z := map (fun k => a + Z.of_nat k) (seq 0 (Z.to_nat (b - a))).

Lemma in_ticks a b t : In t (ticks a b) <-> a <= t < b.
Proof.
  unfold ticks. rewrite in_map_iff. split.
  - intros [k [<- Hk]]. apply in_seq in Hk. lia.
  - intros H. exists (Z.to_nat (t - a)). split; [lia|]. apply in_seq. lia.
Qed.

Lemma length_ticks a b : Z.of_nat (length (ticks a b)) = Z.max 0 (b - a).
Proof. unfold ticks. rewrite map_length, seq_length. lia. Qed.

Lemma nodup_ticks a b : NoDup (ticks a b).
Proof.
  unfold ticks. apply FinFun.Injective_map_NoDup; [|apply seq_NoDup].
  intros x y H. lia.
Qed.

(** Distinct ticks are no more than there are. *)
Lemma distinct_in_range l a b :
  NoDup l -> (forall t, In t l -> a <= t < b) -> Z.of_nat (length l) <= Z.max 0 (b - a).
Proof.
  intros Hl Hin. rewrite <- length_ticks.
  apply Nat2Z.inj_le. apply NoDup_incl_length; [assumption|].
  intros t Ht. apply in_ticks. now apply Hin.
Qed.

Lemma largest l : l <> [] -> exists m, In m l /\ forall t : Z, In t l -> t <= m.
Proof.
  induction l as [|x l IH]; [congruence|]. intros _. destruct l as [|y l].
  - exists x. split; [now left|]. intros t [->|[]]. lia.
  - destruct IH as [m [Hm Hall]]; [congruence|].
    destruct (Z_le_gt_dec x m).
    + exists m. split; [now right|]. intros t [->|Ht]; [lia|]. now apply Hall.
    + exists x. split; [now left|]. intros t [->|Ht]; [lia|]. specialize (Hall t Ht). lia.
Qed.

Definition same (t : Z) : Z := t.

(** n distinct ticks from [a] on: at least a + (a + 1) + ... + (a + n - 1). *)
Lemma distinct_sum_from a : forall n l,
  length l = n -> NoDup l -> (forall t, In t l -> a <= t) ->
  2 * a * Z.of_nat n + Z.of_nat n * (Z.of_nat n - 1) <= 2 * sum same l.
Proof.
  induction n as [|n IH]; intros l Hlen Hnd Hge.
  - destruct l; [simpl; lia|discriminate].
  - destruct (largest l) as [m [Hm Hmax]]; [destruct l; [discriminate|congruence]|].
    destruct (in_split _ _ Hm) as [l1 [l2 ->]].
    assert (Hperm : Permutation (l1 ++ m :: l2) (m :: l1 ++ l2))
      by (symmetry; apply Permutation_middle).
    rewrite (sum_perm _ _ _ Hperm). cbn [sum]. unfold same at 1.
    assert (Hnd' : NoDup (m :: l1 ++ l2)) by (eapply Permutation_NoDup; eauto).
    inversion Hnd' as [|? ? Hnotin Hrest]; subst.
    assert (Hlen' : length (l1 ++ l2) = n).
    { rewrite app_length in *. simpl in Hlen. lia. }
    assert (Hsub : forall t, In t (l1 ++ l2) -> a <= t < m).
    { intros t Ht.
      assert (In t (l1 ++ m :: l2)).
      { apply in_app_iff in Ht. apply in_app_iff. simpl. tauto. }
      split; [now apply Hge|].
      assert (t <= m) by now apply Hmax.
      assert (t <> m) by (intros ->; contradiction). lia. }
    pose proof (distinct_in_range _ _ _ Hrest Hsub) as Hcount. rewrite Hlen' in Hcount.
    assert (a <= m) by now apply Hge.
    specialize (IH (l1 ++ l2) Hlen' Hrest (fun t Ht => proj1 (Hsub t Ht))).
    assert (Z.of_nat n <= m - a) by lia.
    rewrite Nat2Z.inj_succ. unfold Z.succ. ring_simplify. ring_simplify in IH. lia.
Qed.

(** n distinct ticks before [c]: at most (c - 1) + ... + (c - n). *)
Lemma distinct_sum_before c l :
  NoDup l -> (forall t, In t l -> t < c) ->
  2 * sum same l <=
  2 * c * Z.of_nat (length l) - Z.of_nat (length l) * (Z.of_nat (length l) + 1).
Proof.
  intros Hnd Hlt.
  pose proof (distinct_sum_from (1 - c) (length l) (map Z.opp l)) as H.
  rewrite map_length in H.
  assert (Hs : sum same (map Z.opp l) = - sum same l).
  { rewrite sum_map. unfold same. clear. induction l; simpl; lia. }
  rewrite Hs in H. assert (H' := H eq_refl). clear H.
  assert (Hnd' : NoDup (map Z.opp l)) by (apply FinFun.Injective_map_NoDup; [intros x y; lia|assumption]).
  specialize (H' Hnd').
  assert (Hge : forall t, In t (map Z.opp l) -> 1 - c <= t).
  { intros t Ht. apply in_map_iff in Ht. destruct Ht as [u [<- Hu]]. specialize (Hlt u Hu). lia. }
  specialize (H' Hge). nia.
Qed.

Lemma nodup_app {A} (l k : list A) :
  NoDup l -> NoDup k -> (forall x, In x l -> ~ In x k) -> NoDup (l ++ k).
Proof.
  induction 1 as [|x l Hx Hl IH]; cbn; intros Hk H; [assumption|].
  constructor.
  - rewrite in_app_iff. intros [Hin|Hin]; [contradiction|]. apply (H x); [now left|assumption].
  - apply IH; [assumption|]. intros y Hy. apply H. now right.
Qed.

Lemma nodup_app_left {A} (l k : list A) : NoDup (l ++ k) -> NoDup l.
Proof.
  induction l as [|x l IH]; cbn; intros H; [constructor|].
  inversion H as [|? ? Hx Hl]; subst. constructor; [|now apply IH].
  intros Hin. apply Hx. apply in_app_iff. now left.
Qed.
