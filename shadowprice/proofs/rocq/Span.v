(** When the last job completes at the earliest: work over GPUs, gangs of more than half of the GPUs one
    after the other, and every job by itself. *)

From Coq Require Import List ZArith QArith Lia Permutation.
From Shadowprice Require Import Sums Schedule Duality.
Import ListNotations.
Open Scope Z_scope.

Definition numbered_job : Type := nat * job.

Definition area_of (kj : numbered_job) : Z := gang (snd kj) * shortest (snd kj).
Definition wide (I : instance) (kj : numbered_job) : bool := capacity I <? 2 * gang (snd kj).
Definition alone (I : instance) (kj : numbered_job) : Z :=
  if wide I kj then shortest (snd kj) else 0.

Lemma completion_last I s k j :
  nth_error (jobs I) k = Some j -> counts I j = true -> completion s k <= last_completion I s.
Proof.
  intros Hk Hcounts. assert (H := proj2 (in_counted I k j) (conj Hk Hcounts)). revert H.
  clear Hk. intros Hk. unfold last_completion.
  induction (counted I) as [|x l IH]; cbn; [destruct Hk|].
  destruct Hk as [->|Hk]; cbn; [lia|]. specialize (IH Hk). lia.
Qed.

Lemma nodup_filter_fst {A B} (test : A * B -> bool) l : NoDup (map fst l) -> NoDup (map fst (filter test l)).
Proof.
  induction l as [|x l IH]; cbn; intros H; [constructor|]. inversion H as [|? ? Hx Hl]; subst.
  destruct (test x); [|now apply IH]. cbn. constructor; [|now apply IH].
  intros Hin. apply Hx. apply in_map_iff in Hin. destruct Hin as (y & <- & Hy). apply filter_In in Hy.
  now apply in_map.
Qed.

Section Span.
  Variables (I : instance) (s : schedule) (some rest : list numbered_job) (r : Z).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hlimit : until I = None.
  Hypothesis Hsome : Permutation (some ++ rest) (counted I).
  Hypothesis Harrive : forall kj, In kj some -> r <= arrival (snd kj).

  Let until := last_completion I s.
  Let inside (t : Z) : Z := if (r <=? t) && (t <? until) then 1 else 0.

  Lemma in_some_counts kj : In kj some ->
    nth_error (jobs I) (fst kj) = Some (snd kj) /\ counts I (snd kj) = true.
  Proof.
    intros H. apply in_counted. destruct kj as [k j]. cbn.
    eapply Permutation_in; [exact Hsome|]. apply in_app_iff. now left.
  Qed.

  Lemma in_some kj : In kj some -> nth_error (jobs I) (fst kj) = Some (snd kj).
  Proof. intros H. now apply in_some_counts. Qed.

  Lemma some_finished kj : In kj some -> finished I (snd kj) (runs_of (fst kj) s) = true.
  Proof.
    intros H. destruct (in_some_counts kj H) as [Hk Hcounts].
    destruct Hs as (_ & _ & _ & Hdone). now apply Hdone.
  Qed.

  Lemma held_inside kj t : In kj some -> In t (held_ticks s (fst kj)) -> r <= t < until.
  Proof.
    intros Hin Ht. pose proof (in_some kj Hin) as Hk.
    pose proof (held_ticks_bounds I s _ _ Hs Hk t Ht).
    pose proof (completion_last I s _ _ Hk (proj2 (in_some_counts kj Hin))). specialize (Harrive kj Hin).
    unfold until. lia.
  Qed.

  Lemma sum_inside : sum inside (ticks r until) = Z.max 0 (until - r).
  Proof.
    rewrite <- length_ticks, <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext.
    intros t Ht. apply in_ticks in Ht. unfold inside.
    assert (r <=? t = true) as -> by (apply Z.leb_le; lia).
    assert (t <? until = true) as -> by (apply Z.ltb_lt; lia). reflexivity.
  Qed.

  Lemma area_bound : sum area_of some <= capacity I * Z.max 0 (until - r).
  Proof.
    rewrite <- sum_inside.
    assert (Hpos : forall t, 0 <= inside t)
      by (intros t; unfold inside; destruct ((r <=? t) && (t <? until)); lia).
    etransitivity; [|apply (rent_at_most I s inside (ticks r until) Hs (nodup_ticks _ _) Hpos)].
    - transitivity (sum (fun kj => gang (snd kj) * sum inside (held_ticks s (fst kj))) (counted I)).
      2: { unfold counted. rewrite sum_filter. apply sum_le. intros [k j] Hin. cbn [fst snd].
           apply in_numbered in Hin. destruct (sound_in _ _ _ Hsound Hin) as (_ & Hg & _).
           assert (0 <= sum inside (held_ticks s k)) by (apply sum_nonneg; auto).
           destruct (counts I j); [lia|]. apply Z.mul_nonneg_nonneg; lia. }
      rewrite <- (sum_perm _ _ _ Hsome), sum_app.
      assert (H0 : 0 <= sum (fun kj => gang (snd kj) * sum inside (held_ticks s (fst kj))) rest).
      { apply sum_nonneg. intros [k j] Hin.
        assert (Hk : nth_error (jobs I) k = Some j).
        { apply (in_counted I k j). eapply Permutation_in; [exact Hsome|]. apply in_app_iff. now right. }
        destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _). cbn.
        assert (0 <= sum inside (held_ticks s k)) by (apply sum_nonneg; auto). nia. }
      assert (H1 : sum area_of some
                   <= sum (fun kj => gang (snd kj) * sum inside (held_ticks s (fst kj))) some).
      { apply sum_le. intros kj Hin. pose proof (in_some kj Hin) as Hk.
        destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _).
        pose proof (held_ticks_enough I s _ _ Hsound Hs Hk (some_finished kj Hin)) as Henough.
        assert (Hall : sum inside (held_ticks s (fst kj))
                       = Z.of_nat (length (held_ticks s (fst kj)))).
        { rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros t Ht.
          pose proof (held_inside kj t Hin Ht). unfold inside.
          assert (r <=? t = true) as -> by (apply Z.leb_le; lia).
          assert (t <? until = true) as -> by (apply Z.ltb_lt; lia). reflexivity. }
        unfold area_of. rewrite Hall. apply Z.mul_le_mono_nonneg_l; lia. }
      rewrite <- (Z.add_0_r (sum area_of some)). apply Z.add_le_mono; assumption.
    - intros t Ht _. unfold inside in Ht. apply in_ticks.
      destruct (Z.leb_spec r t), (Z.ltb_spec t until); cbn in Ht; lia.
  Qed.

  (** Two runs at the same tick hold no more than there is. *)
  Lemma two_at_once r1 r2 t :
    In r1 s -> In r2 s -> r1 <> r2 -> active t r1 = true -> active t r2 = true ->
    gang_of I r1 + gang_of I r2 <= capacity I.
  Proof.
    intros H1 H2 Hne Ha1 Ha2. destruct Hs as (Hfits & _ & Hheld & _).
    pose proof (all_held I s t Hfits (fun k n Hk => Hheld k n Hk t)) as Hall.
    assert (Hpos : forall x, In x s -> 0 <= (if active t x then gang_of I x else 0)).
    { intros x Hx. destruct (active t x); [|lia]. unfold gang_of. apply sum_nonneg.
      intros piece Hp. rewrite Forall_forall in Hfits.
      destruct (Hfits x Hx) as (j & _ & _ & _ & _ & _ & Hpieces).
      destruct (Hpieces piece Hp). lia. }
    destruct (in_split _ _ H1) as (s1 & s2 & Heq).
    assert (Hin2 : In r2 (s1 ++ s2)).
    { rewrite Heq in H2. apply in_app_iff in H2. apply in_app_iff.
      destruct H2 as [H2|[H2|H2]]; [now left|congruence|now right]. }
    destruct (in_split _ _ Hin2) as (s3 & s4 & Heq2).
    assert (Hperm : Permutation s (r1 :: r2 :: s3 ++ s4)).
    { rewrite Heq. rewrite <- Permutation_middle. constructor. rewrite Heq2.
      symmetry. apply Permutation_middle. }
    rewrite (sum_perm _ _ _ Hperm) in Hall. cbn [sum] in Hall. rewrite Ha1, Ha2 in Hall.
    assert (0 <= sum (fun x => if active t x then gang_of I x else 0) (s3 ++ s4)).
    { apply sum_nonneg. intros x Hx. apply Hpos.
      eapply Permutation_in; [symmetry; exact Hperm|]. now do 2 right. }
    lia.
  Qed.

  Lemma held_by_run (kj : numbered_job) t : In t (held_ticks s (fst kj)) ->
    exists x, In x s /\ of_job x = fst kj /\ active t x = true.
  Proof.
    intros Ht. apply in_flat_map in Ht. destruct Ht as (x & Hx & Ht). apply in_runs_of in Hx.
    exists x. repeat split; try tauto. apply in_ticks in Ht. unfold active.
    apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia.
  Qed.

  Lemma gang_of_run x (kj : numbered_job) : In x s -> of_job x = fst kj -> In kj some ->
    gang (snd kj) <= gang_of I x.
  Proof.
    intros Hx Hof Hin. destruct Hs as (Hfits & _). rewrite Forall_forall in Hfits.
    destruct (Hfits x Hx) as (j & Hj & _ & _ & Hg & _). rewrite Hof, (in_some kj Hin) in Hj.
    injection Hj as ->. apply Hg.
  Qed.

  Lemma alone_bound : sum (alone I) some <= Z.max 0 (until - r).
  Proof.
    set (wides := filter (wide I) some).
    assert (Hw : forall kj, In kj wides -> In kj some /\ capacity I < 2 * gang (snd kj)).
    { intros kj H. apply filter_In in H. destruct H as [H1 H2]. apply Z.ltb_lt in H2. tauto. }
    assert (Hdistinct : NoDup (map fst wides)).
    { assert (Hall : NoDup (map fst (some ++ rest))).
      { rewrite (Permutation_map fst Hsome). unfold counted. apply nodup_filter_fst. unfold numbered.
        assert (H : forall (l : list job) b, map fst (combine (seq b (length l)) l) = seq b (length l)).
        { induction l as [|x l IH]; intros b; cbn; [reflexivity|]. now rewrite IH. }
        rewrite H. apply seq_NoDup. }
      rewrite map_app in Hall. apply nodup_app_left in Hall. unfold wides.
      clear - Hall. induction some as [|x l IH]; cbn; [constructor|].
      inversion Hall as [|? ? Hx Hl]; subst. destruct (wide I x); [|now apply IH].
      cbn. constructor; [|now apply IH]. intros H. apply Hx. apply in_map_iff in H.
      destruct H as (y & <- & Hy). apply filter_In in Hy. now apply in_map. }
    transitivity (Z.of_nat (length (flat_map (fun kj => held_ticks s (fst kj)) wides))).
    - rewrite length_flat_map. unfold alone.
      rewrite <- sum_filter. fold wides. apply sum_le. intros kj Hin.
      destruct (Hw kj Hin) as [Hin' _].
      apply (held_ticks_enough I s _ _ Hsound Hs (in_some kj Hin') (some_finished kj Hin')).
    - apply distinct_in_range.
      + clearbody wides. induction wides as [|x l IH]; cbn; [constructor|].
        inversion Hdistinct as [|? ? Hx Hl]; subst. apply nodup_app.
        * apply nodup_held_ticks. apply Hs.
        * apply IH; [|assumption]. intros kj H. apply Hw. now right.
        * intros t Ht Hin. apply in_flat_map in Hin. destruct Hin as (y & Hy & Ht').
          destruct (Hw x (or_introl eq_refl)) as [Hxs Hxg].
          destruct (Hw y (or_intror Hy)) as [Hys Hyg].
          destruct (held_by_run x t Ht) as (r1 & Hr1 & Hof1 & Ha1).
          destruct (held_by_run y t Ht') as (r2 & Hr2 & Hof2 & Ha2).
          assert (Hne : r1 <> r2).
          { intros ->. apply Hx. rewrite <- Hof1, Hof2. now apply in_map. }
          pose proof (two_at_once r1 r2 t Hr1 Hr2 Hne Ha1 Ha2) as Htwo.
          pose proof (gang_of_run r1 x Hr1 Hof1 Hxs). pose proof (gang_of_run r2 y Hr2 Hof2 Hys). lia.
      + intros t Ht. apply in_flat_map in Ht. destruct Ht as (kj & Hin & Ht).
        destruct (Hw kj Hin) as [Hin' _]. exact (held_inside kj t Hin' Ht).
  Qed.

  Lemma single_bound kj : In kj some -> arrival (snd kj) + shortest (snd kj) <= until.
  Proof.
    intros Hin. pose proof (in_some kj Hin) as Hk.
    pose proof (completion_alone I s _ _ Hsound Hs Hk (some_finished kj Hin)).
    pose proof (completion_last I s _ _ Hk (proj2 (in_some_counts kj Hin))). unfold until. lia.
  Qed.
End Span.
