(** Mean busy times (BusyTime.v) and work over GPUs (Span.v) of schedules that are, on average over some scenarios,
    schedules of an instance. *)

From Coq Require Import List ZArith QArith Lia Lqa Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Span Fluid BusyTime Checker Claim Graphs Scenarios.
Import ListNotations.
Open Scope Z_scope.

Section Average.
  Variables (I : instance) (n : nat) (held : nat -> nat -> list Z) (complete : nat -> Z) (done : nat -> bool).
  Hypothesis Hsound : sound I.
  Hypothesis Hn : (1 <= n)%nat.
  Hypothesis Hdistinct : forall k w, NoDup (held k w).
  Hypothesis Hbounds : forall k j w t, nth_error (jobs I) k = Some j -> In t (held k w) -> arrival j <= t < complete k.
  Hypothesis Henough : forall k j w, nth_error (jobs I) k = Some j -> (w < n)%nat -> done k = true ->
    shortest j <= Z.of_nat (length (held k w)).
  Hypothesis Hroom : forall (f : Z -> Z) all, NoDup all -> (forall t, 0 <= f t) -> (forall t, f t <> 0 -> In t all) ->
    sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) (numbered I)
    <= Z.of_nat n * capacity I * sum f all.
  Hypothesis Hall : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> until I = None -> done k = true.
  Hypothesis Hunstopped : until I = None.
  Hypothesis Hm : 1 <= capacity I.

  Let m := capacity I.
  Let N := Z.of_nat n.

  Lemma Npos : 0 < N.
  Proof. unfold N. lia. Qed.

  Lemma of_counted kj : In kj (counted I) ->
    nth_error (jobs I) (fst kj) = Some (snd kj) /\ done (fst kj) = true /\ sound_job (snd kj) /\ 1 <= shortest (snd kj).
  Proof.
    destruct kj as [k j]. intros H. apply in_counted in H. destruct H as [H1 H2]. cbn [fst snd].
    pose proof (sound_in _ _ _ Hsound H1) as Hj. split; [exact H1|]. split; [now apply (Hall k j)|]. split; [exact Hj|].
    now apply shortest_positive.
  Qed.

  Definition first_in (w : nat) (kj : nat * job) : list Z := firstn (Z.to_nat (shortest (snd kj))) (held (fst kj) w).
  Definition area (kj : nat * job) : Z := gang (snd kj) * shortest (snd kj).
  Definition busy_all (kj : nat * job) : Z := gang (snd kj) * sum (fun w => sum twice (first_in w kj)) (seq 0 n).

  Lemma first_in_length w kj : In kj (counted I) -> (w < n)%nat -> Z.of_nat (length (first_in w kj)) = shortest (snd kj).
  Proof.
    intros Hin Hw. destruct (of_counted kj Hin) as (Hk & Hdone & _ & Hp).
    pose proof (Henough _ _ w Hk Hw Hdone). unfold first_in. rewrite firstn_length_le; lia.
  Qed.

  Lemma first_in_some w kj (f : Z -> Z) : (forall t, 0 <= f t) -> sum f (first_in w kj) <= sum f (held (fst kj) w).
  Proof.
    intros Hf. unfold first_in. set (b := Z.to_nat _).
    rewrite <- (firstn_skipn b (held (fst kj) w)) at 2. rewrite sum_app.
    assert (0 <= sum f (skipn b (held (fst kj) w))) by (apply sum_nonneg; auto). lia.
  Qed.

  Lemma first_in_within w kj t : In kj (counted I) -> In t (first_in w kj) -> arrival (snd kj) <= t < complete (fst kj).
  Proof.
    intros Hin Ht. destruct (of_counted kj Hin) as (Hk & _). apply (Hbounds _ _ w t Hk).
    unfold first_in in Ht. rewrite <- (firstn_skipn (Z.to_nat (shortest (snd kj)))). apply in_app_iff. now left.
  Qed.

  Lemma busy_before kj : In kj (counted I) ->
    busy_all kj + N * (area kj * shortest (snd kj)) <= N * (2 * area kj * complete (fst kj)).
  Proof.
    intros Hin. destruct (of_counted kj Hin) as (Hk & Hdone & (_ & Hg & _) & Hp).
    assert (Hone : forall w, In w (seq 0 n) ->
      sum twice (first_in w kj) <= 2 * shortest (snd kj) * complete (fst kj) - shortest (snd kj) * shortest (snd kj)).
    { intros w Hw. apply in_seq in Hw. pose proof (first_in_length w kj Hin ltac:(lia)) as Hlength.
      assert (Hnd : NoDup (first_in w kj)).
      { pose proof (Hdistinct (fst kj) w) as H. unfold first_in.
        rewrite <- (firstn_skipn (Z.to_nat (shortest (snd kj)))) in H. now apply nodup_app_left in H. }
      pose proof (distinct_sum_before (complete (fst kj)) (first_in w kj) Hnd
                    (fun t Ht => proj2 (first_in_within w kj t Hin Ht))) as H.
      rewrite Hlength in H.
      assert (Htwice : sum twice (first_in w kj) = 2 * sum same (first_in w kj) + shortest (snd kj)).
      { rewrite <- Hlength. clear. unfold twice, same. induction (first_in w kj) as [|t l IH]; cbn [sum length]; [lia|].
        rewrite IH. lia. }
      rewrite Htwice. lia. }
    pose proof (sum_le _ _ _ Hone) as H. rewrite sum_const, seq_length in H. fold N in H.
    unfold busy_all, area. set (b := sum _ (seq 0 n)) in *. set (p := shortest (snd kj)) in *. set (g := gang (snd kj)) in *.
    set (c := complete (fst kj)) in *. assert (g * b <= g * ((2 * p * c - p * p) * N)) by (apply Z.mul_le_mono_nonneg_l; lia). lia.
  Qed.

  Lemma sum_of_some_jobs (f : nat * job -> Z) some : NoDup some -> incl some (counted I) -> (forall kj, In kj (numbered I) -> 0 <= f kj) ->
    sum f some <= sum f (numbered I).
  Proof.
    intros Hnd Hincl Hf. assert (Hin : incl some (numbered I)).
    { intros x Hx. apply Hincl in Hx. unfold counted in Hx. now apply filter_In in Hx. }
    clear Hincl. revert Hnd Hin. generalize (numbered I) Hf. clear. intros all. revert all.
    induction some as [|x some IH]; intros all Hf Hnd Hincl; cbn [sum]; [now apply sum_nonneg|].
    inversion Hnd as [|? ? Hx Hrest]; subst. destruct (in_split _ _ (Hincl x (or_introl eq_refl))) as (a & b & ->).
    rewrite sum_app. cbn [sum]. assert (H : sum f some <= sum f (a ++ b)).
    { apply IH; [|exact Hrest|].
      - intros y Hy. apply Hf. apply in_app_iff in Hy. apply in_app_iff. destruct Hy; [now left|right; now right].
      - intros y Hy. specialize (Hincl y (or_intror Hy)). apply in_app_iff in Hincl. apply in_app_iff.
        destruct Hincl as [H|[->|H]]; [now left|contradiction|now right]. }
    rewrite sum_app in H. lia.
  Qed.

  (** What some jobs hold, for a function of time. *)
  Lemma some_room (f : Z -> Z) some all : NoDup some -> incl some (counted I) -> NoDup all -> (forall t, 0 <= f t) ->
    (forall t, f t <> 0 -> In t all) ->
    sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) some <= N * m * sum f all.
  Proof.
    intros Hnd Hincl Hnd' Hf Hin. eapply Z.le_trans; [|exact (Hroom f all Hnd' Hf Hin)].
    apply sum_of_some_jobs; try assumption. intros [k j] Hk. cbn [fst snd]. apply in_numbered in Hk.
    destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _). apply Z.mul_nonneg_nonneg; [lia|].
    apply sum_nonneg. intros w _. apply sum_nonneg. auto.
  Qed.

  (** Work that is released from a moment on. *)
  Lemma block_on_average some b y :
    NoDup some -> incl some (counted I) -> (forall kj, In kj some -> b <= arrival (snd kj)) -> 0 <= b ->
    y = sum area some ->
    N * ((b * m + y) * (b * m + y) - b * m * (b * m)) <= m * sum busy_all some.
  Proof.
    intros Hnd Hincl Harrive Hb Hy. pose proof Npos as HN. fold m in Hm.
    assert (Hpos : 0 <= y).
    { rewrite Hy. apply sum_nonneg. intros kj Hin. destruct (of_counted kj (Hincl kj Hin)) as (_ & _ & (_ & Hg & _) & Hp).
      unfold area. nia. }
    set (u := y / m). assert (Hdiv : y = m * u + y mod m) by (apply Z.div_mod; lia).
    assert (Hmod : 0 <= y mod m < m) by (apply Z.mod_pos_bound; lia).
    assert (Hu : 0 <= u) by (apply Z.div_pos; lia).
    set (theta := 2 * (b + u) + 1).
    set (f := fun t => if (b <=? t) && (t <? b + u) then theta - twice t else 0).
    assert (Hf : forall t, 0 <= f t).
    { intros t. unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + u)); cbn [andb]; lia. }
    assert (Hsum : sum f (ticks b (b + u)) = u * (u + 1)).
    { replace u with (Z.of_nat (Z.to_nat u)) by lia. rewrite <- (descending_sum (Z.to_nat u) b).
      replace (Z.of_nat (Z.to_nat u)) with u by lia. apply sum_ext. intros t Ht. apply in_ticks in Ht.
      unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + u)); cbn [andb]; lia. }
    pose proof (some_room f some (ticks b (b + u)) Hnd Hincl (nodup_ticks _ _) Hf) as Hpaid. rewrite Hsum in Hpaid.
    assert (Hin : forall t, f t <> 0 -> In t (ticks b (b + u))).
    { intros t Ht. apply in_ticks. unfold f in Ht. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + u)); cbn [andb] in Ht; lia. }
    specialize (Hpaid Hin).
    assert (Hbusy : N * (theta * y) <= sum busy_all some
              + sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) some).
    { rewrite Hy, <- sum_scale, <- (sum_scale N), <- sum_add. apply sum_le. intros kj Hkj.
      destruct (of_counted kj (Hincl kj Hkj)) as (_ & _ & (_ & Hg & _) & _).
      assert (Hone : forall w, In w (seq 0 n) ->
        theta * shortest (snd kj) <= sum twice (first_in w kj) + sum f (held (fst kj) w)).
      { intros w Hw. apply in_seq in Hw. pose proof (first_in_length w kj (Hincl kj Hkj) ltac:(lia)) as Hlength.
        pose proof (first_in_some w kj f Hf) as Hless.
        assert (Hticks : theta * Z.of_nat (length (first_in w kj)) <= sum twice (first_in w kj) + sum f (first_in w kj)).
        { rewrite <- sum_const, <- sum_add. apply sum_le. intros t Ht.
          destruct (first_in_within w kj t (Hincl kj Hkj) Ht) as [Hat _]. specialize (Harrive kj Hkj).
          unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + u)); cbn [andb]; lia. }
        rewrite Hlength in Hticks. lia. }
      pose proof (sum_le _ _ _ Hone) as H. rewrite sum_const, seq_length, sum_add in H. fold N in H. unfold area, busy_all.
      rewrite <- Z.mul_add_distr_l.
      replace (N * (theta * (gang (snd kj) * shortest (snd kj)))) with (gang (snd kj) * (theta * shortest (snd kj) * N)) by ring.
      apply Z.mul_le_mono_nonneg_l; [lia|exact H]. }
    assert (Hleast : N * (theta * y - m * (u * (u + 1))) <= sum busy_all some) by lia.
    assert (H : m * (N * (theta * y - m * (u * (u + 1)))) <= m * sum busy_all some) by (apply Z.mul_le_mono_nonneg_l; lia).
    eapply Z.le_trans; [|exact H]. replace (m * (N * (theta * y - m * (u * (u + 1))))) with (N * (m * (theta * y - m * (u * (u + 1))))) by ring.
    apply Z.mul_le_mono_nonneg_l; [lia|]. unfold theta. set (r := y mod m) in *. rewrite Hdiv. nia.
  Qed.

  Lemma blocks_on_average l : forall some b y,
    NoDup (some ++ l) -> incl (some ++ l) (counted I) -> (forall kj, In kj some -> b <= arrival (snd kj)) -> 0 <= b ->
    y = sum area some ->
    N * blocks m (b * m) y (map (fun kj => (arrival (snd kj), work_in gang kj)) l) <= m * sum busy_all (some ++ l).
  Proof.
    pose proof Npos as HN. fold m in Hm.
    induction l as [|kj l IH]; intros some b y Hnd Hincl Harrive Hb Hy; cbn [map blocks].
    - rewrite app_nil_r in *. now apply block_on_average.
    - assert (Hperm : Permutation (some ++ kj :: l) ((kj :: some) ++ l)) by (cbn; symmetry; apply Permutation_middle).
      assert (Hnd' : NoDup ((kj :: some) ++ l)) by (eapply Permutation_NoDup; eassumption).
      destruct ((b * m <=? arrival (snd kj) * m) && (arrival (snd kj) * m <? b * m + y)) eqn:E.
      + apply andb_prop in E. destruct E as [E _]. apply Z.leb_le in E.
        rewrite (sum_perm _ _ _ Hperm). apply IH; try assumption.
        * intros x Hx. apply Hincl. eapply Permutation_in; [symmetry; exact Hperm|exact Hx].
        * intros x [<-|Hx]; [nia|now apply Harrive].
        * cbn [sum]. unfold work_in. unfold area at 1. lia.
      + rewrite sum_app, (Z.mul_add_distr_l m), Z.mul_add_distr_l. apply Z.add_le_mono.
        * apply block_on_average; try assumption.
          -- now apply nodup_app_left in Hnd.
          -- intros x Hx. apply Hincl. apply in_app_iff. now left.
        * assert (Hin : In kj (counted I)) by (apply Hincl, in_app_iff; right; now left).
          change (kj :: l) with ([kj] ++ l). apply IH.
          -- cbn. clear - Hnd. induction some as [|x some IH]; cbn in Hnd; [exact Hnd|]. inversion Hnd. now apply IH.
          -- intros x Hx. apply Hincl. apply in_app_iff. right. exact Hx.
          -- intros x [<-|[]]. lia.
          -- destruct (of_counted kj Hin) as (_ & _ & (Ha & _) & _). exact Ha.
          -- cbn [sum]. unfold area, work_in. lia.
  Qed.

  (** On average over the scenarios. *)
  Definition busy_one (kj : nat * job) : Q := (inject_Z (busy_all kj) * / inject_Z N)%Q.

  Lemma all_blocks_on_average some : NoDup some -> incl some (counted I) ->
    (inject_Z (all_blocks gang m some) <= inject_Z m * sumQ busy_one some)%Q.
  Proof.
    intros Hnd Hincl. pose proof Npos as HN.
    assert (H : N * all_blocks gang m some <= m * sum busy_all some).
    { destruct some as [|kj rest]; cbn [all_blocks]; [cbn; lia|].
      change (sum busy_all (kj :: rest)) with (sum busy_all ([kj] ++ rest)). apply blocks_on_average; try assumption.
      - intros x [<-|[]]. lia.
      - destruct (of_counted kj (Hincl kj (or_introl eq_refl))) as (_ & _ & (Ha & _) & _). exact Ha.
      - cbn [sum]. unfold area, work_in. lia. }
    assert (HNq : (0 < inject_Z N)%Q) by (change 0%Q with (inject_Z 0); now rewrite <- Zlt_Qlt).
    assert (E : (sumQ busy_one some * inject_Z N == inject_Z (sum busy_all some))%Q).
    { clear - HNq. induction some as [|kj l IH]; cbn [sumQ sum]; [ring|]. rewrite inject_Z_plus, <- IH. unfold busy_one. field. lra. }
    apply (proj1 (Qmult_le_r _ _ _ HNq)). rewrite <- Qmult_assoc, E, <- !inject_Z_mult, <- Zle_Qle. lia.
  Qed.

  Lemma levels_on_average l : forall before,
    NoDup (before ++ l) -> incl (before ++ l) (counted I) -> falling gang l = true ->
    (sumQ (fun x => x) (levels gang m before l)
     <= sumQ (fun kj => density gang kj * (inject_Z m * busy_one kj)) l + next_density gang l * (inject_Z m * sumQ busy_one before))%Q.
  Proof.
    induction l as [|kj l IH]; intros before Hnd Hincl Hfall; cbn [levels sumQ next_density].
    - rewrite Qmult_0_l. apply Qle_refl.
    - cbn [falling] in Hfall. apply andb_prop in Hfall. destruct Hfall as [Hmore Hfall]. apply Qle_bool_iff in Hmore.
      set (some := place_by_arrival kj before).
      assert (Hperm : Permutation some (kj :: before)) by apply place_permutes.
      assert (Hperm' : Permutation (before ++ kj :: l) (some ++ l)).
      { rewrite Hperm. cbn. symmetry. apply Permutation_middle. }
      assert (Hnd' : NoDup (some ++ l)) by (eapply Permutation_NoDup; eassumption).
      assert (Hincl' : incl (some ++ l) (counted I)).
      { intros x Hx. apply Hincl. eapply Permutation_in; [symmetry; exact Hperm'|exact Hx]. }
      specialize (IH some Hnd' Hincl' Hfall).
      assert (Hblocks : (inject_Z (all_blocks gang m some) <= inject_Z m * sumQ busy_one some)%Q).
      { apply all_blocks_on_average; [now apply nodup_app_left in Hnd'|].
        intros x Hx. apply Hincl', in_app_iff. now left. }
      assert (Hsum : (sumQ busy_one some == busy_one kj + sumQ busy_one before)%Q) by (rewrite (sumQ_perm _ _ _ Hperm); reflexivity).
      set (gap := (density gang kj - next_density gang l)%Q).
      assert (Hpos : (0 <= gap)%Q) by (unfold gap; lra).
      assert (Hfirst : ((if Qeq_bool gap 0 then 0 else gap * inject_Z (all_blocks gang m some))
                        <= gap * (inject_Z m * sumQ busy_one some))%Q).
      { destruct (Qeq_bool gap 0) eqn:E.
        - apply Qeq_bool_iff in E. rewrite E, Qmult_0_l. apply Qle_refl.
        - rewrite !(Qmult_comm gap). now apply Qmult_le_compat_r. }
      eapply Qle_trans; [apply Qplus_le_compat; [exact Hfirst|exact IH]|].
      rewrite Hsum. unfold gap. apply Qle_lteq. right. ring.
  Qed.

  Lemma busy_on_average l : NoDup l -> incl l (counted I) -> falling gang l = true ->
    (sumQ (fun kj => weight (snd kj) * (shortest (snd kj) # 2)) l
     + sumQ (fun x => x) (levels gang m [] l) * (1 # (2 * Z.to_pos m))
     <= sumQ (fun kj => weight (snd kj) * inject_Z (complete (fst kj))) l)%Q.
  Proof.
    intros Hnd Hincl Hfall. pose proof (levels_on_average l [] Hnd Hincl Hfall) as H. fold m in Hm.
    cbn [sumQ] in H. rewrite !Qmult_0_r, Qplus_0_r in H.
    assert (Hhalf : (0 <= 1 # (2 * Z.to_pos m))%Q) by (unfold Qle; cbn [Qnum Qden]; lia).
    eapply Qle_trans.
    { apply Qplus_le_compat; [apply Qle_refl|]. apply Qmult_le_compat_r; [exact H|exact Hhalf]. }
    clear H Hnd Hfall. induction l as [|kj l IH]; cbn [sumQ].
    - rewrite Qmult_0_l. apply Qle_refl.
    - specialize (IH (fun x Hx => Hincl x (or_intror Hx))).
      assert (Hin : In kj (counted I)) by (apply Hincl; now left).
      assert (Hone : (weight (snd kj) * (shortest (snd kj) # 2)
                      + density gang kj * (inject_Z m * busy_one kj) * (1 # (2 * Z.to_pos m))
                      <= weight (snd kj) * inject_Z (complete (fst kj)))%Q).
      { pose proof (busy_before kj Hin) as Hc. destruct (of_counted kj Hin) as (_ & _ & (_ & Hg & Hw & _) & Hp). pose proof Npos as HN.
        assert (HNq : (0 < inject_Z N)%Q) by (change 0%Q with (inject_Z 0); now rewrite <- Zlt_Qlt).
        assert (Harea : 1 <= area kj) by (unfold area; nia).
        assert (Haq : (0 < inject_Z (area kj))%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zlt_Qlt; lia).
        assert (Hmq : (0 < inject_Z m)%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zlt_Qlt; lia).
        assert (Hb : (busy_one kj + inject_Z (area kj) * inject_Z (shortest (snd kj)) <= 2 * inject_Z (area kj) * inject_Z (complete (fst kj)))%Q).
        { apply (proj1 (Qmult_le_r _ _ _ HNq)). unfold busy_one.
          setoid_replace ((inject_Z (busy_all kj) * / inject_Z N + inject_Z (area kj) * inject_Z (shortest (snd kj))) * inject_Z N)%Q
            with (inject_Z (busy_all kj + N * (area kj * shortest (snd kj))))%Q
            by (rewrite inject_Z_plus, !inject_Z_mult; field; lra).
          setoid_replace (2 * inject_Z (area kj) * inject_Z (complete (fst kj)) * inject_Z N)%Q
            with (inject_Z (N * (2 * area kj * complete (fst kj))))%Q
            by (rewrite !inject_Z_mult; change (inject_Z 2) with 2%Q; ring).
          now rewrite <- Zle_Qle. }
        assert (Hd : (density gang kj == weight (snd kj) * / inject_Z (area kj))%Q).
        { unfold density, work_in. fold (area kj). destruct (weight (snd kj)) as [wn wd]. cbn [Qnum Qden].
          unfold Qeq, Qmult, Qinv, inject_Z. destruct (area kj) as [|a|a]; try lia. cbn. ring. }
        assert (Hm2 : ((1 # (2 * Z.to_pos m)) == / (2 * inject_Z m))%Q).
        { destruct m as [|p|p]; try lia. unfold Qeq, Qmult, Qinv, inject_Z. cbn. lia. }
        assert (Hp2 : ((shortest (snd kj) # 2) == inject_Z (shortest (snd kj)) * / 2)%Q).
        { unfold Qeq, Qmult, Qinv, inject_Z. cbn. lia. }
        rewrite Hd, Hm2, Hp2.
        setoid_replace (weight (snd kj) * (inject_Z (shortest (snd kj)) * / 2)
                        + weight (snd kj) * / inject_Z (area kj) * (inject_Z m * busy_one kj) * / (2 * inject_Z m))%Q
          with ((busy_one kj + inject_Z (area kj) * inject_Z (shortest (snd kj))) * (weight (snd kj) * / (2 * inject_Z (area kj))))%Q
          by (field; split; lra).
        setoid_replace (weight (snd kj) * inject_Z (complete (fst kj)))%Q
          with (2 * inject_Z (area kj) * inject_Z (complete (fst kj)) * (weight (snd kj) * / (2 * inject_Z (area kj))))%Q
          by (field; lra).
        apply Qmult_le_compat_r; [exact Hb|]. apply Qmult_le_0_compat; [unfold Qle; cbn [Qnum Qden]; lia|].
        apply Qinv_le_0_compat. lra. }
      eapply Qle_trans; [|apply Qplus_le_compat; [exact Hone|exact IH]].
      apply Qle_lteq. right. ring.
  Qed.

  Lemma busy_value_on_average value : busy_value I = Some value -> (value <= sumQ (cost_now I complete done) (counted I))%Q.
  Proof.
    unfold busy_value, busy_of. set (l := map snd (SortHeaviest.sort (map (fun kj => (density gang kj, kj)) (counted I)))).
    destruct (_ && _ && _) eqn:Hcheck; [|discriminate]. intros H.
    rewrite !andb_true_iff in Hcheck. destruct Hcheck as ((Hfall & _) & _).
    assert (E : (sum_fractions (fun kj => (weight (snd kj) * (shortest (snd kj) # 2))%Q) l
             + sum_fractions (fun x => x) (levels gang (capacity I) [] l) * (1 # (2 * Z.to_pos (capacity I))))%Q = value) by congruence.
    rewrite <- E. rewrite !sum_fractions_is.
    assert (Hperm : Permutation l (counted I)).
    { unfold l. rewrite <- (SortHeaviest.Permuted_sort (map (fun kj => (density gang kj, kj)) (counted I))).
      rewrite map_map. cbn [snd]. rewrite map_id. reflexivity. }
    assert (Hnd : NoDup l).
    { eapply Permutation_NoDup; [symmetry; exact Hperm|]. apply nodup_of_fst, counted_distinct. }
    eapply Qle_trans; [apply (busy_on_average l Hnd); [|exact Hfall]|].
    - intros x Hx. eapply Permutation_in; [exact Hperm|exact Hx].
    - rewrite (sumQ_perm _ _ _ Hperm). apply Qle_lteq. right. apply sumQ_ext.
      intros kj _. unfold cost_now, ends_at. rewrite Hunstopped. reflexivity.
  Qed.

  (** *** When the last job completes *)

  Definition last_of_all : Z := fold_right (fun kj last => Z.max (complete (fst kj)) last) 0 (counted I).

  Lemma complete_last kj : In kj (counted I) -> complete (fst kj) <= last_of_all.
  Proof.
    unfold last_of_all. induction (counted I) as [|x l IH]; cbn; [intros []|]. intros [->|H]; [lia|]. specialize (IH H). lia.
  Qed.

  Lemma alone_last kj : In kj (counted I) -> arrival (snd kj) + shortest (snd kj) <= last_of_all.
  Proof.
    intros Hin. destruct (of_counted kj Hin) as (Hk & Hdone & _).
    pose proof (alone_first I n held complete done Hsound Hn Hdistinct Hbounds Henough _ _ Hk Hdone).
    pose proof (complete_last kj Hin). lia.
  Qed.

  (** Work of some jobs that arrive from [r] on is done by the last of all. *)
  Lemma area_on_average some r : NoDup some -> incl some (counted I) -> (forall kj, In kj some -> r <= arrival (snd kj)) ->
    sum area_of some <= m * Z.max 0 (last_of_all - r).
  Proof.
    intros Hnd Hincl Harrive. pose proof Npos as HN.
    set (f := fun t => if (r <=? t) && (t <? last_of_all) then 1 else 0).
    assert (Hf : forall t, 0 <= f t) by (intros t; unfold f; destruct (_ && _); lia).
    assert (Hsum : sum f (ticks r last_of_all) = Z.max 0 (last_of_all - r)).
    { rewrite <- length_ticks, <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros t Ht. apply in_ticks in Ht.
      unfold f. assert (r <=? t = true) as -> by (apply Z.leb_le; lia).
      assert (t <? last_of_all = true) as -> by (apply Z.ltb_lt; lia). reflexivity. }
    assert (Hroom' := some_room f some (ticks r last_of_all) Hnd Hincl (nodup_ticks _ _) Hf
      ltac:(intros t Ht; apply in_ticks; unfold f in Ht; destruct (Z.leb_spec r t), (Z.ltb_spec t last_of_all); cbn in Ht; lia)).
    rewrite Hsum in Hroom'.
    assert (Hwork : N * sum area_of some <= sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) some).
    { rewrite <- sum_scale. apply sum_le. intros kj Hkj. specialize (Hincl kj Hkj).
      destruct (of_counted kj Hincl) as (Hk & Hdone & (_ & Hg & _) & _).
      assert (Hone : forall w, In w (seq 0 n) -> shortest (snd kj) <= sum f (held (fst kj) w)).
      { intros w Hw. apply in_seq in Hw. pose proof (Henough _ _ w Hk ltac:(lia) Hdone) as Hlong.
        assert (E : sum f (held (fst kj) w) = Z.of_nat (length (held (fst kj) w))).
        { rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros t Ht.
          pose proof (Hbounds _ _ w t Hk Ht). pose proof (complete_last kj Hincl). specialize (Harrive kj Hkj).
          unfold f. assert (r <=? t = true) as -> by (apply Z.leb_le; lia).
          assert (t <? last_of_all = true) as -> by (apply Z.ltb_lt; lia). reflexivity. }
        lia. }
      pose proof (sum_le _ _ _ Hone) as H. rewrite sum_const, seq_length in H. fold N in H. unfold area_of.
      replace (N * (gang (snd kj) * shortest (snd kj))) with (gang (snd kj) * (shortest (snd kj) * N)) by ring.
      apply Z.mul_le_mono_nonneg_l; [lia|exact H]. }
    apply (Z.mul_le_mono_pos_l _ _ N HN). lia.
  Qed.

  Lemma span_on_average : forall rest some r a lone best,
    Permutation (some ++ rest) (counted I) -> (forall kj, In kj some -> r <= arrival (snd kj)) ->
    a = sum area_of some -> lone <= 0 -> best <= last_of_all ->
    area_value I false rest r a lone best <= last_of_all.
  Proof.
    fold m in Hm. induction rest as [|kj rest IH]; intros some r a lone best Hperm Hr Ha Hlone Hbest; cbn [area_value]; [assumption|].
    set (r' := Z.min r (arrival (snd kj))).
    assert (Hperm' : Permutation ((kj :: some) ++ rest) (counted I)).
    { etransitivity; [|exact Hperm]. cbn. apply Permutation_middle. }
    assert (Hr' : forall x, In x (kj :: some) -> r' <= arrival (snd x)).
    { intros x [<-|Hx]; [unfold r'; lia|]. specialize (Hr x Hx). unfold r'. lia. }
    assert (Hincl : incl (kj :: some) (counted I)).
    { intros x Hx. eapply Permutation_in; [exact Hperm'|]. apply in_app_iff. now left. }
    assert (Hnd : NoDup (kj :: some)).
    { assert (H : NoDup ((kj :: some) ++ rest)).
      { eapply Permutation_NoDup; [symmetry; exact Hperm'|]. apply nodup_of_fst, counted_distinct. }
      now apply nodup_app_left in H. }
    pose proof (area_on_average (kj :: some) r' Hnd Hincl Hr') as H1.
    pose proof (alone_last kj (Hincl kj (or_introl eq_refl))) as H2.
    destruct (of_counted kj (Hincl kj (or_introl eq_refl))) as (_ & _ & _ & Hp).
    assert (Hlast : r' <= last_of_all) by (unfold r'; lia).
    cbn [sum] in H1. apply (IH (kj :: some)); try assumption; [cbn [sum]; lia|lia|].
    assert (- (- (a + area_of kj) / capacity I) <= last_of_all - r').
    { apply Z.opp_le_mono. rewrite Z.opp_involutive. fold m. apply Z.div_le_lower_bound; nia. }
    lia.
  Qed.
End Average.
