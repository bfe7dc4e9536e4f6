(** Mean busy times on one machine that does what all GPUs do (LB-mbt; Goemans, Queyranne, Schulz, Skutella, Wang 2002).

    A job that completes at C was busy at C - p / 2 at the latest, on average. Work of some jobs that are released from
    a moment on cannot be done, on average, before a machine that begins with it then and does nothing else; and jobs
    weigh for their work as much as sets of those that weigh more, each set with what its last weighs more than the
    next (summation by parts). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Fluid.
Import ListNotations.
Open Scope Z_scope.

(** Jobs (arrival, work) in blocks of a machine that does [m] in a tick: twice the sum of moments of all work, in
    units of 1 / [m]. A block began with [b], and has [y] to do. *)
Fixpoint blocks (m b y : Z) (l : list (Z * Z)) : Z :=
  match l with
  | [] => (b + y) * (b + y) - b * b
  | (r, a) :: rest =>
      if (b <=? r * m) && (r * m <? b + y)
      then blocks m b (y + a) rest
      else (b + y) * (b + y) - b * b + blocks m (r * m) a rest
  end.

Section Busy.
  Variables (I : instance) (s : schedule).
  (** What a job holds of a machine of speed [m] while it runs. *)
  Variables (share_of : job -> Z) (m : Z).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hm : 1 <= m.
  (** Jobs that the machine is about. *)
  Variable those : list (nat * job).
  Hypothesis Hthose : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\
    finished I (snd kj) (runs_of (fst kj) s) = true /\ 0 <= share_of (snd kj).
  Hypothesis Hrent : rentable s share_of m those.

  Definition first_held (kj : nat * job) : list Z := firstn (Z.to_nat (shortest (snd kj))) (held_ticks s (fst kj)).
  Definition twice (t : Z) : Z := 2 * t + 1.
  Definition work_in (kj : nat * job) : Z := share_of (snd kj) * shortest (snd kj).
  Definition busy (kj : nat * job) : Z := share_of (snd kj) * sum twice (first_held kj).

  Lemma first_held_length kj : In kj those -> Z.of_nat (length (first_held kj)) = shortest (snd kj).
  Proof.
    intros Hin. destruct (Hthose kj Hin) as (Hk & Hdone & _).
    pose proof (held_ticks_enough I s _ _ Hsound Hs Hk Hdone).
    pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)).
    unfold first_held. rewrite firstn_length_le; lia.
  Qed.

  Lemma first_held_some kj (f : Z -> Z) : (forall t, 0 <= f t) ->
    sum f (first_held kj) <= sum f (held_ticks s (fst kj)).
  Proof.
    intros Hf. unfold first_held. set (n := Z.to_nat _).
    rewrite <- (firstn_skipn n (held_ticks s (fst kj))) at 2. rewrite sum_app.
    assert (0 <= sum f (skipn n (held_ticks s (fst kj)))) by (apply sum_nonneg; auto). lia.
  Qed.

  Lemma first_held_in kj t : In kj those -> In t (first_held kj) -> arrival (snd kj) <= t < completion s (fst kj).
  Proof.
    intros Hin Ht. destruct (Hthose kj Hin) as (Hk & _ & _). apply (held_ticks_bounds I s _ _ Hs Hk).
    unfold first_held in Ht. rewrite <- (firstn_skipn (Z.to_nat (shortest (snd kj)))).
    apply in_app_iff. now left.
  Qed.

  (** A job completes no sooner than half of its time after it was busy on average. *)
  Lemma busy_completion kj : In kj those ->
    busy kj + work_in kj * shortest (snd kj) <= 2 * work_in kj * completion s (fst kj).
  Proof.
    intros Hin. destruct (Hthose kj Hin) as (Hk & Hdone & Hshare).
    pose proof (first_held_length kj Hin) as Hlength.
    pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp.
    assert (Hnd : NoDup (first_held kj)).
    { assert (H : NoDup (held_ticks s (fst kj))) by (apply nodup_held_ticks; apply Hs).
      rewrite <- (firstn_skipn (Z.to_nat (shortest (snd kj)))) in H. now apply nodup_app_left in H. }
    pose proof (distinct_sum_before (completion s (fst kj)) (first_held kj) Hnd
                  (fun t Ht => proj2 (first_held_in kj t Hin Ht))) as H.
    rewrite Hlength in H.
    assert (Htwice : sum twice (first_held kj) = 2 * sum same (first_held kj) + shortest (snd kj)).
    { rewrite <- Hlength. clear. unfold twice, same. induction (first_held kj) as [|t l IH]; cbn [sum length]; [lia|].
      rewrite IH. lia. }
    unfold busy, work_in. rewrite Htwice. set (p := shortest (snd kj)) in *. set (S := sum same _) in *.
    set (g := share_of (snd kj)) in *. set (C := completion s (fst kj)) in *.
    assert (H' : 2 * S + p + p * p <= 2 * p * C) by lia.
    replace (g * (2 * S + p) + g * p * p) with (g * (2 * S + p + p * p)) by ring.
    replace (2 * (g * p) * C) with (g * (2 * p * C)) by ring. apply Z.mul_le_mono_nonneg_l; assumption.
  Qed.

  Lemma descending_sum n : forall b, sum (fun t => 2 * (b + Z.of_nat n - t)) (ticks b (b + Z.of_nat n))
    = Z.of_nat n * (Z.of_nat n + 1).
  Proof.
    induction n as [|n IH]; intros b; [unfold ticks; replace (b + Z.of_nat 0 - b) with 0 by lia; reflexivity|].
    rewrite (ticks_app b (b + 1)) by lia. rewrite sum_app.
    assert (Hone : ticks b (b + 1) = [b]).
    { unfold ticks. replace (Z.to_nat (b + 1 - b)) with 1%nat by lia. cbn. f_equal. lia. }
    rewrite Hone. cbn [sum]. specialize (IH (b + 1)).
    replace (b + 1 + Z.of_nat n) with (b + Z.of_nat (S n)) in IH by lia. rewrite IH. lia.
  Qed.

  (** Work that is released from a moment on. *)
  Lemma block_at_least some b y :
    NoDup some -> incl some those -> (forall kj, In kj some -> b <= arrival (snd kj)) -> 0 <= b ->
    y = sum work_in some ->
    (b * m + y) * (b * m + y) - b * m * (b * m) <= m * sum busy some.
  Proof.
    intros Hnd Hincl Harrive Hb Hy.
    assert (Hpos : 0 <= y).
    { rewrite Hy. apply sum_nonneg. intros kj Hin. destruct (Hthose kj (Hincl kj Hin)) as (Hk & _ & Hshare).
      pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)). unfold work_in. nia. }
    set (n := y / m). assert (Hdiv : y = m * n + y mod m) by (apply Z.div_mod; lia).
    assert (Hmod : 0 <= y mod m < m) by (apply Z.mod_pos_bound; lia).
    assert (Hn : 0 <= n) by (apply Z.div_pos; lia).
    set (theta := 2 * (b + n) + 1).
    set (f := fun t => if (b <=? t) && (t <? b + n) then theta - twice t else 0).
    assert (Hf : forall t, 0 <= f t).
    { intros t. unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + n)); cbn [andb]; lia. }
    assert (Hsum : sum f (ticks b (b + n)) = n * (n + 1)).
    { replace n with (Z.of_nat (Z.to_nat n)) by lia. rewrite <- (descending_sum (Z.to_nat n) b).
      replace (Z.of_nat (Z.to_nat n)) with n by lia. apply sum_ext. intros t Ht. apply in_ticks in Ht.
      unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + n)); cbn [andb]; lia. }
    pose proof (Hrent some f (ticks b (b + n)) Hnd Hincl (nodup_ticks _ _) Hf) as Hpaid. rewrite Hsum in Hpaid.
    assert (Hin : forall t, f t <> 0 -> In t (ticks b (b + n))).
    { intros t Ht. apply in_ticks. unfold f in Ht. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + n)); cbn [andb] in Ht; lia. }
    specialize (Hpaid Hin).
    assert (Hbusy : theta * y <= sum busy some + sum (fun kj => share_of (snd kj) * sum f (held_ticks s (fst kj))) some).
    { rewrite Hy, <- sum_scale, <- sum_add. apply sum_le. intros kj Hkj.
      destruct (Hthose kj (Hincl kj Hkj)) as (Hk & _ & Hshare).
      pose proof (first_held_length kj (Hincl kj Hkj)) as Hlength.
      pose proof (first_held_some kj f Hf) as Hless.
      assert (Hticks : theta * Z.of_nat (length (first_held kj)) <= sum twice (first_held kj) + sum f (first_held kj)).
      { rewrite <- sum_const, <- sum_add. apply sum_le. intros t Ht.
        destruct (first_held_in kj t (Hincl kj Hkj) Ht) as [Hat _]. specialize (Harrive kj Hkj).
        unfold f, theta, twice. destruct (Z.leb_spec b t), (Z.ltb_spec t (b + n)); cbn [andb]; lia. }
      rewrite Hlength in Hticks. unfold work_in, busy.
      replace (theta * (share_of (snd kj) * shortest (snd kj))) with (share_of (snd kj) * (theta * shortest (snd kj))) by ring.
      rewrite <- Z.mul_add_distr_l. apply Z.mul_le_mono_nonneg_l; [assumption|]. lia. }
    assert (Hleast : theta * y - m * (n * (n + 1)) <= sum busy some) by lia.
    assert (H : m * (theta * y - m * (n * (n + 1))) <= m * sum busy some) by (apply Z.mul_le_mono_nonneg_l; lia).
    eapply Z.le_trans; [|exact H]. unfold theta. set (r := y mod m) in *. rewrite Hdiv. nia.
  Qed.

  Lemma blocks_at_least l : forall some b y,
    NoDup (some ++ l) -> incl (some ++ l) those -> (forall kj, In kj some -> b <= arrival (snd kj)) -> 0 <= b ->
    y = sum work_in some ->
    blocks m (b * m) y (map (fun kj => (arrival (snd kj), work_in kj)) l) <= m * sum busy (some ++ l).
  Proof.
    induction l as [|kj l IH]; intros some b y Hnd Hincl Harrive Hb Hy; cbn [map blocks].
    - rewrite app_nil_r in *. now apply block_at_least.
    - assert (Hperm : Permutation (some ++ kj :: l) ((kj :: some) ++ l)) by (cbn; symmetry; apply Permutation_middle).
      assert (Hnd' : NoDup ((kj :: some) ++ l)) by (eapply Permutation_NoDup; eassumption).
      destruct ((b * m <=? arrival (snd kj) * m) && (arrival (snd kj) * m <? b * m + y)) eqn:E.
      + apply andb_prop in E. destruct E as [E _]. apply Z.leb_le in E.
        rewrite (sum_perm _ _ _ Hperm). apply IH; try assumption.
        * intros x Hx. apply Hincl. eapply Permutation_in; [symmetry; exact Hperm|exact Hx].
        * intros x [<-|Hx]; [nia|now apply Harrive].
        * cbn [sum]. lia.
      + rewrite sum_app, (Z.mul_add_distr_l m). apply Z.add_le_mono.
        * apply block_at_least; try assumption.
          -- now apply nodup_app_left in Hnd.
          -- intros x Hx. apply Hincl. apply in_app_iff. now left.
        * assert (Hin : In kj those) by (apply Hincl, in_app_iff; right; now left).
          change (kj :: l) with ([kj] ++ l). apply IH.
          -- cbn. clear - Hnd. induction some as [|x some IH]; cbn in Hnd; [exact Hnd|]. inversion Hnd. now apply IH.
          -- intros x Hx. apply Hincl. apply in_app_iff. right. exact Hx.
          -- intros x [<-|[]]. lia.
          -- destruct (Hthose kj Hin) as (Hk & _). destruct (sound_in _ _ _ Hsound Hk) as (Ha & _). exact Ha.
          -- cbn [sum]. lia.
  Qed.

  (** Weight of a unit of a job's work. *)
  Definition density (kj : nat * job) : Q := Qnum (weight (snd kj)) # (Qden (weight (snd kj)) * Z.to_pos (work_in kj)).

  Fixpoint place_by_arrival (kj : nat * job) (l : list (nat * job)) : list (nat * job) :=
    match l with
    | [] => [kj]
    | x :: rest => if arrival (snd kj) <=? arrival (snd x) then kj :: l else x :: place_by_arrival kj rest
    end.

  Definition all_blocks (some : list (nat * job)) : Z :=
    match some with
    | [] => 0
    | kj :: rest => blocks m (arrival (snd kj) * m) (work_in kj) (map (fun x => (arrival (snd x), work_in x)) rest)
    end.

  Definition next_density (l : list (nat * job)) : Q := match l with kj :: _ => density kj | [] => 0%Q end.

  Fixpoint falling (l : list (nat * job)) : bool :=
    match l with
    | kj :: rest => Qle_bool (next_density rest) (density kj) && falling rest
    | [] => true
    end.

  (** Of every set of those that weigh most for their work, what its last weighs more than the next, times twice the
      moments of all its work. *)
  Fixpoint levels (before l : list (nat * job)) : list Q :=
    match l with
    | [] => []
    | kj :: rest =>
        let some := place_by_arrival kj before in
        let more := (density kj - next_density rest)%Q in
        (if Qeq_bool more 0 then 0%Q else more * inject_Z (all_blocks some))%Q :: levels some rest
    end.

  Lemma place_permutes kj l : Permutation (place_by_arrival kj l) (kj :: l).
  Proof.
    induction l as [|x l IH]; cbn [place_by_arrival]; [reflexivity|].
    destruct (_ <=? _); [reflexivity|]. rewrite IH. apply perm_swap.
  Qed.

  Lemma all_blocks_at_least some : NoDup some -> incl some those -> all_blocks some <= m * sum busy some.
  Proof.
    intros Hnd Hincl. destruct some as [|kj rest]; cbn [all_blocks]; [cbn; lia|].
    change (sum busy (kj :: rest)) with (sum busy ([kj] ++ rest)). apply blocks_at_least; try assumption.
    - intros x [<-|[]]. lia.
    - destruct (Hthose kj (Hincl kj (or_introl eq_refl))) as (Hk & _).
      destruct (sound_in _ _ _ Hsound Hk) as (Ha & _). exact Ha.
    - cbn [sum]. lia.
  Qed.

  Lemma levels_at_most l : forall before,
    NoDup (before ++ l) -> incl (before ++ l) those -> falling l = true ->
    (sumQ (fun x => x) (levels before l)
     <= sumQ (fun kj => density kj * inject_Z (m * busy kj)) l + next_density l * inject_Z (m * sum busy before))%Q.
  Proof.
    induction l as [|kj l IH]; intros before Hnd Hincl Hfall; cbn [levels sumQ next_density].
    - rewrite Qmult_0_l. apply Qle_refl.
    - cbn [falling] in Hfall. apply andb_prop in Hfall. destruct Hfall as [Hmore Hfall]. apply Qle_bool_iff in Hmore.
      set (some := place_by_arrival kj before).
      assert (Hperm : Permutation some (kj :: before)) by apply place_permutes.
      assert (Hperm' : Permutation (before ++ kj :: l) (some ++ l)).
      { rewrite Hperm. cbn. symmetry. apply Permutation_middle. }
      assert (Hnd' : NoDup (some ++ l)) by (eapply Permutation_NoDup; eassumption).
      assert (Hincl' : incl (some ++ l) those).
      { intros x Hx. apply Hincl. eapply Permutation_in; [symmetry; exact Hperm'|exact Hx]. }
      specialize (IH some Hnd' Hincl' Hfall).
      assert (Hblocks : all_blocks some <= m * sum busy some).
      { apply all_blocks_at_least; [now apply nodup_app_left in Hnd'|].
        intros x Hx. apply Hincl', in_app_iff. now left. }
      assert (Hsum : sum busy some = busy kj + sum busy before) by (rewrite (sum_perm _ _ _ Hperm); reflexivity).
      set (more := (density kj - next_density l)%Q).
      assert (Hpos : (0 <= more)%Q) by (unfold more; now apply Qle_minus_iff in Hmore).
      assert (Hfirst : ((if Qeq_bool more 0 then 0 else more * inject_Z (all_blocks some))
                        <= more * inject_Z (m * sum busy some))%Q).
      { destruct (Qeq_bool more 0) eqn:E.
        - apply Qeq_bool_iff in E. rewrite E, Qmult_0_l. apply Qle_refl.
        - rewrite !(Qmult_comm more). apply Qmult_le_compat_r; [|exact Hpos]. now rewrite <- Zle_Qle. }
      eapply Qle_trans; [apply Qplus_le_compat; [exact Hfirst|exact IH]|].
      rewrite Hsum, Z.mul_add_distr_l, inject_Z_plus. unfold more.
      apply Qle_lteq. right. ring.
  Qed.

  Lemma density_positive kj : In kj those -> (0 <= density kj)%Q.
  Proof.
    intros Hin. destruct (Hthose kj Hin) as (Hk & _). destruct (sound_in _ _ _ Hsound Hk) as (_ & _ & Hw & _).
    unfold density, Qle. cbn. lia.
  Qed.

  Hypothesis Hshares : forall kj, In kj those -> 1 <= share_of (snd kj).

  Theorem busy_at_most l : NoDup l -> incl l those -> falling l = true ->
    (sumQ (fun kj => weight (snd kj) * (shortest (snd kj) # 2)) l
     + sumQ (fun x => x) (levels [] l) * (1 # (2 * Z.to_pos m))
     <= sumQ (fun kj => weight (snd kj) * inject_Z (completion s (fst kj))) l)%Q.
  Proof.
    intros Hnd Hincl Hfall. pose proof (levels_at_most l [] Hnd Hincl Hfall) as H.
    cbn [sum] in H. rewrite Z.mul_0_r, Qmult_0_r, Qplus_0_r in H.
    assert (Hhalf : (0 <= 1 # (2 * Z.to_pos m))%Q) by (unfold Qle; cbn; lia).
    eapply Qle_trans.
    { apply Qplus_le_compat; [apply Qle_refl|]. apply Qmult_le_compat_r; [exact H|exact Hhalf]. }
    clear H Hnd Hfall. induction l as [|kj l IH]; cbn [sumQ].
    - rewrite Qmult_0_l. apply Qle_refl.
    - specialize (IH (fun x Hx => Hincl x (or_intror Hx))).
      assert (Hin : In kj those) by (apply Hincl; now left).
      assert (Hone : (weight (snd kj) * (shortest (snd kj) # 2)
                      + density kj * inject_Z (m * busy kj) * (1 # (2 * Z.to_pos m))
                      <= weight (snd kj) * inject_Z (completion s (fst kj)))%Q).
      { pose proof (busy_completion kj Hin) as Hc. destruct (Hthose kj Hin) as (Hk & _ & _).
        pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp. specialize (Hshares kj Hin).
        assert (Hwork : 1 <= work_in kj) by (unfold work_in; nia).
        destruct (sound_in _ _ _ Hsound Hk) as (_ & _ & Hw & _).
        setoid_replace (weight (snd kj) * (shortest (snd kj) # 2)
                        + density kj * inject_Z (m * busy kj) * (1 # (2 * Z.to_pos m)))%Q
          with (weight (snd kj) * ((work_in kj * shortest (snd kj) + busy kj) # (2 * Z.to_pos (work_in kj))))%Q.
        - rewrite !(Qmult_comm (weight (snd kj))). apply Qmult_le_compat_r; [|unfold Qle; cbn; lia].
          unfold Qle. cbn [Qnum Qden inject_Z]. rewrite Pos2Z.inj_mul, Z2Pos.id by lia. lia.
        - unfold density, Qeq, Qplus, Qmult, inject_Z. cbn [Qnum Qden].
          rewrite !Pos2Z.inj_mul, !Z2Pos.id by lia. ring. }
      eapply Qle_trans; [|apply Qplus_le_compat; [exact Hone|exact IH]].
      apply Qle_lteq. right. ring.
  Qed.
End Busy.
