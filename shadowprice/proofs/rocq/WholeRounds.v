(** The most that schedules earn in total whose runs begin with rounds: what a run leaves of a round stays idle, so that
    it may as well hold its GPUs until then, and works in whole rounds (HADAR-any, whole rounds). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Utility Checker Starts Claim.
Import ListNotations.
Open Scope Z_scope.

(** Of the class: every run begins with a round. *)
Definition begins_with_rounds (round : Z) (s : schedule) : Prop := forall r, In r s -> start r mod round = 0.

(** The instance in which nothing is lost. *)
Definition plain (I : instance) : instance :=
  Instance (nodes I) (jobs I) (charged I) false (until I) (per_gpu I) None [] (quotas I) (amounts I) (once I) (widest I)
    (rounds I) (least_start I).

(** The first round that begins at a moment or later begins then. *)
Definition up (round t : Z) : Z := - (- t / round) * round.

(** Runs that end with rounds. *)
Definition in_full (round : Z) (r : run) : run :=
  Run (of_job r) (start r) (up round (stop r)) (overhead r) (pieces r) (condition r) (uses r) (goes_on r).

Section Rounds.
  Variable round : Z.
  Hypothesis Hround : 1 <= round.

  Lemma up_bounds t : t <= up round t < t + round.
  Proof.
    unfold up. pose proof (Z.div_mod (- t) round ltac:(lia)). pose proof (Z.mod_pos_bound (- t) round ltac:(lia)). nia.
  Qed.

  Lemma up_least t k : t <= k * round -> up round t <= k * round.
  Proof.
    intros H. pose proof (up_bounds t) as Hup. unfold up in *. set (q := - (- t / round)) in *.
    assert (q < k + 1) by (apply (Z.mul_lt_mono_pos_r round); lia). apply Z.mul_le_mono_nonneg_r; lia.
  Qed.

  Lemma up_max a b : up round (Z.max a b) = Z.max (up round a) (up round b).
  Proof.
    assert (Hle : forall x y, x <= y -> up round x <= up round y).
    { intros x y H. pose proof (up_bounds y) as Hy. unfold up in Hy |- * at 2. apply up_least. lia. }
    destruct (Z.max_spec a b) as [[H ->]|[H ->]]; [specialize (Hle a b)|specialize (Hle b a)]; lia.
  Qed.

  Lemma up_round t : (up round t - 1) / round = (t - 1) / round.
  Proof.
    pose proof (up_bounds t). set (q := - (- t / round)) in *. assert (E : up round t = q * round) by reflexivity. rewrite E in *.
    transitivity (q - 1); [symmetry; apply (Z.div_unique (q * round - 1) round (q - 1) (round - 1)); lia|].
    apply (Z.div_unique (t - 1) round (q - 1) (t - 1 - (q - 1) * round)); lia.
  Qed.

  Lemma multiple t : t mod round = 0 -> t = t / round * round.
  Proof. intros H. pose proof (Z.div_mod t round ltac:(lia)). lia. Qed.

  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hbegin : begins_with_rounds round s.

  Let full := map (in_full round) s.

  Lemma runs_in_full k : runs_of k full = map (in_full round) (runs_of k s).
  Proof.
    unfold full, runs_of. clear. induction s as [|r l IH]; cbn; [reflexivity|]. rewrite IH. now destruct (Nat.eqb (of_job r) k).
  Qed.

  Lemma completion_in_full k : completion full k = up round (completion s k).
  Proof.
    unfold completion. rewrite runs_in_full. unfold latest. induction (runs_of k s) as [|r l IH]; cbn [map fold_right].
    - unfold up. reflexivity.
    - rewrite IH, up_max. reflexivity.
  Qed.

  Lemma active_in_full t r : In r s -> active t (in_full round r) = true -> active (t / round * round) r = true.
  Proof.
    intros Hr. unfold active. cbn [start stop in_full]. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt. intros [H1 H2].
    pose proof (multiple _ (Hbegin r Hr)) as Hstart. pose proof (up_bounds (stop r)) as Hup.
    pose proof (Z.div_mod t round ltac:(lia)). pose proof (Z.mod_pos_bound t round ltac:(lia)).
    unfold up in *. set (a := start r / round) in *. set (b := - (- stop r / round)) in *. set (q := t / round) in *. split.
    - rewrite Hstart. apply Z.mul_le_mono_nonneg_r; [lia|].
      assert (a < q + 1) by (apply (Z.mul_lt_mono_pos_r round); lia). lia.
    - assert (q < b) by (apply (Z.mul_lt_mono_pos_r round); lia).
      assert (q * round <= (b - 1) * round) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
  Qed.

  Lemma finished_in_full k j : nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
    finished (plain I) j (runs_of k full) = true.
  Proof.
    intros Hk Hdone. pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork. rewrite runs_in_full.
    apply work_finished; try reflexivity. rewrite Qplus_0_l. eapply Qle_trans; [exact Hwork|]. unfold work. clear - Hround.
    induction (runs_of k s) as [|r l IH]; cbn [map sumQ]; [apply Qle_refl|]. apply Qplus_le_compat; [|exact IH].
    change (share (plain I) j (in_full round r) (ran (in_full round r))) with (share I j r (ran (in_full round r))).
    apply share_le. unfold ran. cbn [stop start overhead in_full]. pose proof (up_bounds (stop r)). lia.
  Qed.

  Lemma feasible_in_full : feasible (plain I) full.
  Proof.
    assert (Hwhole := Hs). destruct Hs as (Hfits & Happart & Hheld & Hall). rewrite Forall_forall in Hfits. repeat split.
    - rewrite Forall_forall. intros r' Hin. apply in_map_iff in Hin. destruct Hin as (r & <- & Hr).
      destruct (Hfits r Hr) as (j & Hj & Ht & Ho & Hrest). exists j. split; [exact Hj|].
      cbn [start stop overhead pieces condition in_full]. pose proof (up_bounds (stop r)). split; [lia|]. split; [lia|]. exact Hrest.
    - intros k. rewrite runs_in_full. specialize (Happart k).
      assert (Hin : forall r, In r (runs_of k s) -> start r mod round = 0).
      { intros r Hr. apply in_runs_of in Hr. apply Hbegin. apply Hr. }
      revert Hin. induction Happart as [|r l Hl _ IH]; intros Hin; cbn [map]; constructor; [|apply IH; intros; apply Hin; now right].
      rewrite Forall_forall in *. intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & Hy). unfold apart in *.
      cbn [stop start in_full]. specialize (Hl y Hy). rewrite (multiple _ (Hin y (or_intror Hy))) in *. now apply up_least.
    - intros k n Hk t. etransitivity; [|apply (Hheld k n Hk (t / round * round))]. unfold held, full. rewrite sum_map. apply sum_le.
      intros r Hr. cbn [pieces in_full].
      assert (Hpos : 0 <= sum (fun piece => if Nat.eqb (fst piece) k then snd piece else 0) (pieces r)).
      { apply sum_nonneg. intros piece Hp. destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hpieces).
        destruct (Hpieces piece Hp) as [Hone _]. destruct (Nat.eqb _ _); lia. }
      destruct (active t (in_full round r)) eqn:E.
      + rewrite (active_in_full t r Hr E). lia.
      + destruct (active _ r); lia.
    - intros k j Hk Hcounts Huntil. apply finished_in_full; [exact Hk|]. now apply Hall.
  Qed.

  Lemma sound_plain : sound (plain I).
  Proof. destruct Hsound as [H _]. split; [exact H|discriminate]. Qed.

  Lemma earned_in_full : (earned I round s <= earned (plain I) round full)%Q.
  Proof.
    unfold earned. change (counted (plain I)) with (counted I). apply sumQ_le. intros [k j] Hin. apply in_counted in Hin.
    destruct Hin as [Hk _]. cbn [fst snd]. change (utility (plain I)) with (utility I).
    pose proof (sound_in _ _ _ Hsound Hk) as Hj. rewrite completion_in_full, up_round.
    destruct (finished I j (runs_of k s)) eqn:E.
    - rewrite (finished_in_full k j Hk E). apply Qle_refl.
    - destruct (finished (plain I) _ _); [now apply utility_positive|apply Qle_refl].
  Qed.

  Lemma whole_in_full r : In r full -> start r mod round = 0 /\ stop r mod round = 0.
  Proof.
    intros Hin. unfold full in Hin. apply in_map_iff in Hin. destruct Hin as (x & <- & Hx). cbn [start stop in_full].
    split; [now apply Hbegin|]. unfold up. apply Z.mod_mul. lia.
  Qed.
End Rounds.

(** ** Ways in which work is counted *)

Section Ways.
  Variables (I : instance) (round : Z) (rows : list (list Z)) (number : nat).

  (** Work that is done at least, and what is done of it in a tick at each speed; and the types of the speed. *)
  Definition way : Type := Z * list (Z * list nat).

  Definition way_of (work : Z) (rate : Z -> Z) (j : job) : way :=
    (work, map (fun offer => (rate (fst offer), snd offer)) (speeds j)).

  (** Rounds at a speed do at most this many times as much as those at one at which the job takes so many ticks. *)
  Definition times_as_much (slow fast : Z) : Z := - (- slow / fast).

  Definition ways (j : job) : list way :=
    way_of (measure j) (fun ticks => measure j / ticks) j
    :: map (fun entry => way_of (up round (snd entry)) (times_as_much (snd entry)) j) (times j).

  Definition gains_of (n d : Z) (offers : list (Z * list nat)) (k : Z) : Z :=
    fold_right (fun offer most => Z.max most (n * fst offer - d * column rows (snd offer) k)) 0 offers.

  Hypothesis Hround : 1 <= round.
  Hypothesis Hsound : sound I.
  Hypothesis Hrows : forall row, In row rows -> length row = number /\ forall x, In x row -> 0 <= x.

  Lemma gains_of_positive n d offers k : 0 <= gains_of n d offers k.
  Proof. unfold gains_of. induction offers; cbn; lia. Qed.

  Lemma gains_of_at_least n d offers k offer : In offer offers ->
    n * fst offer - d * column rows (snd offer) k <= gains_of n d offers k.
  Proof.
    unfold gains_of. induction offers as [|x l IH]; cbn [fold_right]; [intros []|].
    intros [->|Hin]; [lia|]. specialize (IH Hin). lia.
  Qed.

  Variable s : schedule.
  Hypothesis Hs : feasible I s.
  Hypothesis Hwhole : forall r, In r s -> start r mod round = 0 /\ stop r mod round = 0.

  Lemma rent_of_way k j work rate n d :
    nth_error (jobs I) k = Some j -> 0 <= n -> 0 <= d -> (forall t, 1 <= t -> 0 <= rate t) ->
    work <= sum (fun r => (stop r - start r) * rate (pace I j r)) (runs_of k s) ->
    gang j * (n * work - sum (fun t => gains_of n d (snd (way_of work rate j)) (t / round)) (held_ticks s k))
    <= d * rents I round rows s k.
  Proof.
    intros Hk Hn Hd Hrate Hwork. assert (Hj := sound_in _ _ _ Hsound Hk). assert (Hg : 1 <= gang j) by apply Hj.
    set (g := gains_of n d (snd (way_of work rate j))).
    assert (Hrun : forall r, In r (runs_of k s) ->
      gang j * (n * ((stop r - start r) * rate (pace I j r)) - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
      <= d * sum (fun t => Utility.rate I rows r (t / round)) (ticks (start r) (stop r))).
    { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & Ho & Hgang & Hne & Hpieces).
      destruct (pace_entry I j r Hj Hne (fun p Hp => proj2 (Hpieces p Hp))) as (offer & Hin & Hpace & Htypes).
      assert (Hoffer : In (rate (pace I j r), snd offer) (snd (way_of work rate j))).
      { unfold way_of. cbn [snd]. apply in_map_iff. exists offer. split; [now rewrite Hpace|exact Hin]. }
      assert (Htick : forall t, gang j * (n * rate (pace I j r) - g (t / round)) <= d * Utility.rate I rows r (t / round)).
      { intros t. pose proof (gains_of_at_least n d _ (t / round) _ Hoffer) as Hgain. cbn [fst snd] in Hgain. fold g in Hgain.
        assert (Hrent : gang j * column rows (snd offer) (t / round) <= Utility.rate I rows r (t / round)).
        { assert (Hcolumn : 0 <= column rows (snd offer) (t / round)) by (apply (column_positive rows number); exact Hrows).
          eapply Z.le_trans; [apply Z.mul_le_mono_nonneg_r; [exact Hcolumn|exact (proj1 Hgang)]|].
          unfold Utility.rate. rewrite Z.mul_comm, <- sum_scale. apply sum_le. intros piece Hpiece.
          destruct (Htypes piece Hpiece) as (node & Hnode & Hty). destruct (Hpieces piece Hpiece) as [Hone _].
          unfold at_node. rewrite Hnode. pose proof (column_at_most rows _ (t / round) _ Hty). nia. }
        nia. }
      assert (Hsum : gang j * (n * rate (pace I j r) * Z.of_nat (length (ticks (start r) (stop r)))
                               - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
                     <= d * sum (fun t => Utility.rate I rows r (t / round)) (ticks (start r) (stop r))).
      { rewrite <- sum_const, <- (sum_scale d).
        replace (sum (fun _ => n * rate (pace I j r)) (ticks (start r) (stop r))
                 - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
          with (sum (fun t => n * rate (pace I j r) - g (t / round)) (ticks (start r) (stop r))).
        - rewrite <- sum_scale. apply sum_le. intros t _. apply Htick.
        - clear. induction (ticks (start r) (stop r)) as [|t l IH]; cbn [sum]; lia. }
      rewrite length_ticks in Hsum. rewrite Z.max_r in Hsum by lia.
      replace (n * ((stop r - start r) * rate (pace I j r))) with (n * rate (pace I j r) * (stop r - start r)) by ring. exact Hsum. }
    unfold rents, held_ticks. rewrite sum_flat_map.
    assert (Htotal : gang j * (n * sum (fun r => (stop r - start r) * rate (pace I j r)) (runs_of k s)
                     - sum (fun r => sum (fun t => g (t / round)) (ticks (start r) (stop r))) (runs_of k s))
              <= d * sum (fun r => sum (fun t => Utility.rate I rows r (t / round)) (ticks (start r) (stop r))) (runs_of k s)).
    { clear Hwork. induction (runs_of k s) as [|r l IH]; cbn [sum]; [lia|].
      specialize (Hrun r (or_introl eq_refl)) as Hr. specialize (IH (fun x Hx => Hrun x (or_intror Hx))). nia. }
    eapply Z.le_trans; [|exact Htotal]. apply Z.mul_le_mono_nonneg_l; [lia|].
    assert (n * work <= n * sum (fun r => (stop r - start r) * rate (pace I j r)) (runs_of k s)) by (apply Z.mul_le_mono_nonneg_l; lia).
    fold g. lia.
  Qed.

  (** What a job that is complete has done at least, in each way of counting. *)
  Lemma work_of_ways k j : nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
    forall w, In w (ways j) -> forall n d, 0 <= n -> 0 <= d ->
    gang j * (n * fst w - sum (fun t => gains_of n d (snd w) (t / round)) (held_ticks s k)) <= d * rents I round rows s k.
  Proof.
    intros Hk Hdone w Hw n d Hn Hd. assert (Hj := sound_in _ _ _ Hsound Hk). destruct (measure_of j Hj) as [Hm Hdivide].
    pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork.
    assert (Hruns : forall r, In r (runs_of k s) -> 1 <= pace I j r /\ (pace I j r | measure j) /\ 0 <= ran r <= stop r - start r /\
              stop r - start r = (stop r - start r) / round * round /\ 0 <= (stop r - start r) / round).
    { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & Ho & Hgang & Hne & Hpieces).
      destruct (pace_entry I j r Hj Hne (fun p Hp => proj2 (Hpieces p Hp))) as (offer & Hin & Hpace & _).
      unfold speeds in Hin. apply in_map_iff in Hin. destruct Hin as (entry & <- & Hin). cbn [fst] in Hpace.
      assert (Hp : 1 <= snd entry) by (destruct Hj as (_ & _ & _ & _ & Hpos & _); now apply Hpos).
      rewrite <- Hpace. split; [exact Hp|]. split; [now apply Hdivide|]. split; [unfold ran; lia|]. split; [|apply Z.div_pos; lia].
      apply in_runs_of in Hr. destruct (Hwhole r (proj1 Hr)) as [H1 H2]. apply multiple; [exact Hround|].
      rewrite Zminus_mod, H1, H2, Z.sub_0_r. apply Z.mod_0_l. lia. }
    destruct Hw as [<-|Hw].
    - apply rent_of_way; try assumption.
      + intros t Ht. apply Z.div_pos; lia.
      + assert (Hwork' : (1 <= sum (fun r => ((stop r - start r) * (measure j / pace I j r))%Z) (runs_of k s) # Z.to_pos (measure j))%Q).
        { rewrite <- sumQ_same_denominator. eapply Qle_trans; [exact Hwork|]. unfold work. apply sumQ_le.
          intros r Hr. destruct (Hruns r Hr) as (Hp & (q & Hq) & Hran & _). unfold share, Qle. cbn [Qnum Qden].
          rewrite !Z2Pos.id by lia. rewrite Hq, Z.div_mul by lia. assert (0 <= q) by nia.
          replace (ran r * (q * pace I j r)) with (ran r * (q * pace I j r)) by ring.
          replace ((stop r - start r) * q * pace I j r) with ((stop r - start r) * (q * pace I j r)) by ring.
          apply Z.mul_le_mono_nonneg_r; [apply Z.mul_nonneg_nonneg; lia|lia]. }
        unfold Qle in Hwork'. cbn [Qnum Qden] in Hwork'. rewrite Z2Pos.id in Hwork' by lia. cbn [fst way_of]. lia.
    - apply in_map_iff in Hw. destruct Hw as (entry & <- & Hin). set (p := snd entry).
      assert (Hp : 1 <= p) by (destruct Hj as (_ & _ & _ & _ & Hpos & _); now apply Hpos).
      assert (Hmuch : forall t, 1 <= t -> 0 <= times_as_much p t /\ p <= times_as_much p t * t).
      { intros t Ht. unfold times_as_much. pose proof (Z.div_mod (- p) t ltac:(lia)). pose proof (Z.mod_pos_bound (- p) t ltac:(lia)).
        split; [|nia]. assert (- p / t <= 0); [|lia]. apply Z.div_le_upper_bound; lia. }
      apply rent_of_way; try assumption; [intros t Ht; now apply Hmuch|]. cbn [fst way_of].
      set (done := sum (fun r => (stop r - start r) / round * times_as_much p (pace I j r)) (runs_of k s)).
      assert (Hsame : sum (fun r => (stop r - start r) * times_as_much p (pace I j r)) (runs_of k s) = done * round).
      { unfold done. rewrite Z.mul_comm, <- sum_scale. apply sum_ext. intros r Hr. destruct (Hruns r Hr) as (_ & _ & _ & Hlen & _).
        rewrite Hlen at 1. ring. }
      rewrite Hsame. apply up_least; [exact Hround|].
      assert (Hwork' : (1 <= sum (fun r => ((stop r - start r) * times_as_much p (pace I j r))%Z) (runs_of k s) # Z.to_pos p)%Q).
      { rewrite <- sumQ_same_denominator. eapply Qle_trans; [exact Hwork|]. unfold work. apply sumQ_le.
        intros r Hr. destruct (Hruns r Hr) as (Hpace & _ & Hran & _). destruct (Hmuch (pace I j r) Hpace) as [H0 H1].
        unfold share, Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia.
        transitivity ((stop r - start r) * p); [apply Z.mul_le_mono_nonneg_r; lia|].
        rewrite <- Z.mul_assoc. apply Z.mul_le_mono_nonneg_l; lia. }
      unfold Qle in Hwork'. cbn [Qnum Qden] in Hwork'. rewrite Z2Pos.id in Hwork' by lia. lia.
  Qed.
End Ways.

(** ** The most that a job earns over the price of its rounds *)

Section WholePayoff.
  Variables (I : instance) (round : Z) (rows : list (list Z)) (number : nat).
  (** What a unit of the prices, for a tick of a unit of GPUs, is worth. *)
  Variable each : Q.

  (** Of a way of counting: of each round so far what a tick does and costs at each speed, and pieces of work that
      cost least. *)
  Definition bought : Type := list (list (Z * Z)) * list (Q * Z).

  Definition cell_at (offers : list (Z * list nat)) (k : Z) : list (Z * Z) :=
    map (fun offer => (fst offer, column rows (snd offer) k)) offers.

  Definition gained_at (n d : Z) (cell : list (Z * Z)) : Z :=
    round * fold_right (fun offer most => Z.max most (n * fst offer - d * snd offer)) 0 cell.

  Definition onward (k : Z) (w : way) (p : bought) : bought :=
    let cell := cell_at (snd w) k in
    (cell :: fst p, first_units (fst w) (fold_right place (snd p) (pieces_of (length cell) 0 0 round cell))).

  (** Least price of the work; none if there is not as much. *)
  Definition way_cost (g : Z) (w : way) (p : bought) : option Q :=
    if 0 <? fst w - sum (gained_at 1 0) (fst p) then None
    else
      let theta := fst (last (snd p) (0%Q, 0)) in
      let most := Z.max 0 (Qnum theta) in
      Some (g * (most * fst w - sum (gained_at most (Zpos (Qden theta))) (fst p)) # Qden theta).

  Definition dearest_way (g : Z) (ps : list (way * bought)) : option Q :=
    fold_right (fun wp most => match way_cost g (fst wp) (snd wp), most with
                               | Some a, Some b => Some (if Qle_bool a b then b else a)
                               | _, _ => None
                               end) (Some 0%Q) ps.

  Fixpoint whole_payoffs (j : job) (fuel : nat) (k : Z) (ps : list (way * bought)) (best : Q) : Q :=
    match fuel with
    | O => best
    | S fuel =>
        let worth := utility I round j k in
        if Qle_bool worth best then best
        else
          let ps := map (fun wp => (fst wp, onward k (fst wp) (snd wp))) ps in
          let best := match dearest_way (gang j) ps with
                      | Some cost => let value := (worth - cost * each)%Q in if Qle_bool best value then value else best
                      | None => best
                      end in
          whole_payoffs j fuel (k + 1) ps best
    end.

  Definition whole_payoff (j : job) : Q :=
    let first := up round (arrival j) / round in
    whole_payoffs j (Z.to_nat (Z.of_nat number - first)) first (map (fun w => (w, ([], []))) (ways round j))
      (utility I round j (Z.max first (Z.of_nat number))).

  Hypothesis Hround : 1 <= round.
  Hypothesis Heach : (0 <= each)%Q.

  Lemma gained_at_is n d offers k : gained_at n d (cell_at offers k) = round * gains_of rows n d offers k.
  Proof.
    unfold gained_at, cell_at, gains_of. f_equal. induction offers as [|offer l IH]; cbn [map fold_right fst snd]; [reflexivity|].
    now rewrite IH.
  Qed.

  Lemma whole_payoffs_best j fuel : forall k ps best, (best <= whole_payoffs j fuel k ps best)%Q.
  Proof.
    induction fuel as [|fuel IH]; intros k ps best; cbn [whole_payoffs]; [apply Qle_refl|].
    destruct (Qle_bool _ best); [apply Qle_refl|]. eapply Qle_trans; [|apply IH].
    destruct (dearest_way _ _) as [cost|]; [|apply Qle_refl]. cbn zeta.
    match goal with |- (_ <= if Qle_bool best ?v then _ else _)%Q => destruct (Qle_bool best v) eqn:E end.
    - now apply Qle_bool_iff.
    - apply Qle_refl.
  Qed.

  Lemma dearest_at_most g ps (rent : Q) : (0 <= rent)%Q ->
    (forall wp, In wp ps -> exists cost, way_cost g (fst wp) (snd wp) = Some cost /\ (cost <= rent)%Q) ->
    exists cost, dearest_way g ps = Some cost /\ (cost <= rent)%Q.
  Proof.
    intros Hrent. induction ps as [|wp ps IH]; intros H; cbn [dearest_way fold_right].
    - exists 0%Q. split; [reflexivity|exact Hrent].
    - destruct (H wp (or_introl eq_refl)) as (a & -> & Ha).
      destruct IH as (b & Hb & Hle); [intros x Hx; apply H; now right|]. fold (dearest_way g ps). rewrite Hb.
      exists (if Qle_bool a b then b else a). split; [reflexivity|]. destruct (Qle_bool a b); assumption.
  Qed.

  Lemma whole_payoffs_sound j rent first at_round :
    sound_job j -> 0 <= rent ->
    forall fuel k ps best,
    first <= k <= at_round -> at_round < k + Z.of_nat fuel ->
    (forall wp, In wp ps -> forall n d, 0 <= n -> 0 <= d ->
       gang j * (n * fst (fst wp) - sum (fun t => gains_of rows n d (snd (fst wp)) (t / round))
                                        (ticks (first * round) ((at_round + 1) * round))) <= d * rent) ->
    (forall wp, In wp ps -> forall n d, sum (gained_at n d) (fst (snd wp))
       = sum (fun t => gains_of rows n d (snd (fst wp)) (t / round)) (ticks (first * round) (k * round))) ->
    (utility I round j at_round - inject_Z rent * each <= whole_payoffs j fuel k ps best)%Q.
  Proof.
    intros Hj Hrent. assert (Hg : 1 <= gang j) by apply Hj.
    assert (Hless : forall value, (value - inject_Z rent * each <= value)%Q) by (intros; now apply less_rent).
    induction fuel as [|fuel IH]; intros k ps best Hk Hfuel Hpaid Hpast; [lia|]. cbn [whole_payoffs].
    destruct (Qle_bool (utility I round j k) best) eqn:Hworth.
    { apply Qle_bool_iff in Hworth. eapply Qle_trans; [apply Hless|].
      eapply Qle_trans; [|exact Hworth]. apply utility_falls; try assumption. lia. }
    set (ps' := map (fun wp => (fst wp, onward k (fst wp) (snd wp))) ps).
    assert (Hpast' : forall wp, In wp ps' -> forall n d, sum (gained_at n d) (fst (snd wp))
       = sum (fun t => gains_of rows n d (snd (fst wp)) (t / round)) (ticks (first * round) ((k + 1) * round))).
    { intros wp Hin n d. unfold ps' in Hin. apply in_map_iff in Hin. destruct Hin as (old & <- & Hin). cbn [fst snd onward sum].
      rewrite (Hpast old Hin), gained_at_is. rewrite (ticks_app (first * round) (k * round) ((k + 1) * round)) by nia.
      rewrite sum_app, (sum_of_round round) by lia. replace ((k + 1) * round - k * round) with round by ring. rewrite Z.max_r by lia. apply Z.add_comm. }
    assert (Hpaid' : forall wp, In wp ps' -> forall n d, 0 <= n -> 0 <= d ->
       gang j * (n * fst (fst wp) - sum (fun t => gains_of rows n d (snd (fst wp)) (t / round))
                                        (ticks (first * round) ((at_round + 1) * round))) <= d * rent).
    { intros wp Hin. unfold ps' in Hin. apply in_map_iff in Hin. destruct Hin as (old & <- & Hin). cbn [fst]. now apply Hpaid. }
    destruct (Z.eq_dec k at_round) as [->|Hne].
    - eapply Qle_trans; [|apply whole_payoffs_best].
      destruct (dearest_at_most (gang j) ps' (inject_Z rent)) as (cost & -> & Hcost).
      + unfold Qle. cbn. lia.
      + intros wp Hin. unfold way_cost.
        destruct (Z.ltb_spec 0 (fst (fst wp) - sum (gained_at 1 0) (fst (snd wp)))) as [Hfew|_].
        { exfalso. rewrite (Hpast' wp Hin) in Hfew. specialize (Hpaid' wp Hin 1 0 ltac:(lia) ltac:(lia)). nia. }
        eexists. split; [reflexivity|]. set (theta := fst (last (snd (snd wp)) (0%Q, 0))).
        specialize (Hpaid' wp Hin (Z.max 0 (Qnum theta)) (Zpos (Qden theta)) ltac:(lia) ltac:(lia)).
        rewrite (Hpast' wp Hin). unfold Qle. cbn [Qnum Qden inject_Z]. lia.
      + cbn zeta.
        assert (Hvalue : (utility I round j at_round - inject_Z rent * each <= utility I round j at_round - cost * each)%Q).
        { apply Qplus_le_compat; [apply Qle_refl|]. apply Qopp_le_compat. now apply Qmult_le_compat_r. }
        destruct (Qle_bool best (utility I round j at_round - cost * each)) eqn:E; [exact Hvalue|].
        eapply Qle_trans; [exact Hvalue|].
        destruct (Qlt_le_dec best (utility I round j at_round - cost * each)) as [Hlt|Hle]; [|exact Hle].
        apply Qlt_le_weak, Qle_bool_iff in Hlt. congruence.
    - apply IH; [lia|lia|exact Hpaid'|exact Hpast'].
  Qed.

  Hypothesis Hsound : sound I.
  Hypothesis Hrows : forall row, In row rows -> length row = number /\ forall x, In x row -> 0 <= x.

  Variable s : schedule.
  Hypothesis Hs : feasible I s.
  Hypothesis Hwhole : forall r, In r s -> start r mod round = 0 /\ stop r mod round = 0.

  Lemma whole_payoff_of_job k j : nth_error (jobs I) k = Some j ->
    ((if finished I j (runs_of k s) then utility I round j ((completion s k - 1) / round) else 0)
     - inject_Z (rents I round rows s k) * each <= whole_payoff j)%Q.
  Proof.
    intros Hk. assert (Hj := sound_in _ _ _ Hsound Hk).
    pose proof (rents_positive I round rows number Hrows s k Hs) as Hrent.
    destruct (finished I j (runs_of k s)) eqn:Hdone.
    - pose proof (completion_alone I s k j Hsound Hs Hk Hdone) as Halone.
      pose proof (shortest_positive j Hj) as Hp. assert (Ha : 0 <= arrival j) by apply Hj. assert (Hg : 1 <= gang j) by apply Hj.
      set (at_round := (completion s k - 1) / round). set (first := up round (arrival j) / round).
      assert (Hround' : at_round * round <= completion s k - 1 < (at_round + 1) * round).
      { unfold at_round. pose proof (Z.div_mod (completion s k - 1) round ltac:(lia)).
        pose proof (Z.mod_pos_bound (completion s k - 1) round ltac:(lia)). lia. }
      assert (Hfirst : first * round = up round (arrival j)).
      { unfold first. symmetry. apply multiple; [exact Hround|]. unfold up. apply Z.mod_mul. lia. }
      pose proof (up_bounds round Hround (arrival j)) as Hup.
      assert (Hheld : forall t, In t (held_ticks s k) -> first * round <= t < completion s k).
      { intros t Ht. split; [|now apply (held_ticks_bounds I s k j Hs Hk t Ht)]. unfold held_ticks in Ht.
        apply in_flat_map in Ht. destruct Ht as (r & Hr & Ht). apply in_ticks in Ht.
        destruct (run_of_fits I s k j r Hs Hk Hr) as (Harr & _). apply in_runs_of in Hr.
        destruct (Hwhole r (proj1 Hr)) as [Hstart _]. rewrite Hfirst, (multiple round Hround _ Hstart) in *.
        assert (up round (arrival j) <= start r / round * round) by (apply up_least; [exact Hround|lia]). lia. }
      pose proof (held_ticks_enough I s k j Hsound Hs Hk Hdone) as Henough.
      assert (Hbegun : first <= at_round).
      { destruct (held_ticks s k) as [|t l] eqn:E; [cbn in Henough; lia|].
        specialize (Hheld t (or_introl eq_refl)). assert (first < at_round + 1) by (apply (Z.mul_lt_mono_pos_r round); lia). lia. }
      assert (Hfirst0 : 0 <= first) by (unfold first; apply Z.div_pos; lia).
      destruct (Z_lt_ge_dec at_round (Z.of_nat number)) as [Hbefore|Hafter].
      + unfold whole_payoff. cbn zeta. fold first. apply (whole_payoffs_sound j _ first at_round Hj Hrent); [lia|lia| |].
        * intros wp Hin n d Hn Hd. apply in_map_iff in Hin. destruct Hin as (w & <- & Hin). cbn [fst].
          eapply Z.le_trans; [|exact (work_of_ways I round rows number Hround Hsound Hrows s Hs Hwhole k j Hk Hdone w Hin n d Hn Hd)].
          apply Z.mul_le_mono_nonneg_l; [lia|]. apply Z.sub_le_mono_l. apply sum_included.
          -- apply nodup_held_ticks. apply Hs.
          -- intros t. apply gains_of_positive.
          -- intros t Ht _. apply in_ticks. specialize (Hheld t Ht). lia.
        * intros wp Hin n d. apply in_map_iff in Hin. destruct Hin as (w & <- & Hin). cbn [fst snd sum].
          unfold ticks. rewrite Z.sub_diag. reflexivity.
      + eapply Qle_trans; [now apply less_rent|]. unfold whole_payoff. cbn zeta. fold first.
        eapply Qle_trans; [|apply whole_payoffs_best]. apply utility_falls; try assumption. lia.
    - eapply Qle_trans; [now apply less_rent|]. unfold whole_payoff.
      eapply Qle_trans; [|apply whole_payoffs_best]. now apply utility_positive.
  Qed.

  Theorem whole_utility_at_most :
    (earned I round s <= sumQ (fun kj => whole_payoff (snd kj)) (counted I) + inject_Z (round * all_rents I rows) * each)%Q.
  Proof.
    assert (H1 : (earned I round s - inject_Z (sum (fun kj => rents I round rows s (fst kj)) (counted I)) * each
                  <= sumQ (fun kj => whole_payoff (snd kj)) (counted I))%Q).
    { set (net := fun kj : nat * job =>
                    ((if finished I (snd kj) (runs_of (fst kj) s)
                      then utility I round (snd kj) ((completion s (fst kj) - 1) / round) else 0)
                     - inject_Z (rents I round rows s (fst kj)) * each)%Q).
      assert (Hnet : (sumQ net (counted I) <= sumQ (fun kj => whole_payoff (snd kj)) (counted I))%Q).
      { apply sumQ_le. intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk _]. exact (whole_payoff_of_job k j Hk). }
      eapply Qle_trans; [|exact Hnet]. unfold net. clear Hnet net. unfold earned. cbn [fst snd]. clear.
      induction (counted I) as [|[k j] l IH]; cbn [sumQ sum fst snd].
      - setoid_replace (0 - inject_Z 0 * each)%Q with 0%Q by ring. apply Qle_refl.
      - rewrite inject_Z_plus. eapply Qle_trans; [|apply Qplus_le_compat; [apply Qle_refl|exact IH]].
        apply Qle_lteq. right. ring. }
    pose proof (rents_at_most I round rows number Hsound Hround Hrows s Hs) as H2.
    assert (H3 : (inject_Z (sum (fun kj => rents I round rows s (fst kj)) (counted I)) * each
                  <= inject_Z (round * all_rents I rows) * each)%Q).
    { apply Qmult_le_compat_r; [|exact Heach]. now rewrite <- Zle_Qle. }
    set (paid := (inject_Z (sum _ _) * each)%Q) in *. set (all := (inject_Z _ * each)%Q) in *.
    setoid_replace (earned I round s) with (earned I round s - paid + paid)%Q by ring.
    now apply Qplus_le_compat.
  Qed.
End WholePayoff.

(** ** Certificates *)

Definition most_in_whole_rounds (c : utility_certificate) : Q :=
  let I := plain (utility_instance c) in
  (sum_fractions (whole_payoff I (round_length c) (rows c) (rounds_in (rows c)) (each_tick c)) (counted_jobs I)
   + inject_Z (round_length c * all_rents I (rows c)) * each_tick c)%Q.

Definition check_whole_rounds (c : utility_certificate) : bool :=
  let I := utility_instance c in
  let s := SortRuns.sort (utility_schedule c) in
  check_runs I s && (1 <=? round_length c) && forallb (fun r => start r mod round_length c =? 0) s
  && (0 <=? Qnum (unit c)) && check_rows (rows c)
  && Qle_bool (claimed_earned c) (all_earned I (round_length c) (by_job 0 (jobs I) s))
  && Qle_bool (most_in_whole_rounds c) (claimed_most c)
  && Qle_bool 1 (claimed_multiple c)
  && Qle_bool (claimed_most c) (claimed_multiple c * claimed_earned c).

(** As [check_utility_sound], of schedules whose runs begin with rounds. *)
Theorem check_whole_rounds_sound c : check_whole_rounds c = true ->
  let I := utility_instance c in
  exists s, Permutation s (utility_schedule c) /\
    feasible I s /\ obeys I s /\ starts_are_paid I s /\ begins_with_rounds (round_length c) s /\
    (claimed_earned c <= earned I (round_length c) s)%Q /\
    forall other, feasible I other -> begins_with_rounds (round_length c) other ->
      (earned I (round_length c) other <= claimed_most c)%Q /\
      (earned I (round_length c) other <= claimed_multiple c * earned I (round_length c) s)%Q.
Proof.
  unfold check_whole_rounds. cbn zeta. rewrite !andb_true_iff.
  intros ((((((((Hruns & Hround) & Hbegin) & Hunit) & Hrows) & H1) & H2) & H3) & H4).
  apply check_runs_sound in Hruns. destruct Hruns as (Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hall).
  exists (SortRuns.sort (utility_schedule c)). rewrite Hall in H1.
  apply Qle_bool_iff in H1, H2, H3, H4. apply Z.leb_le in Hround, Hunit.
  set (I := utility_instance c) in *. set (round := round_length c) in *. set (s := SortRuns.sort (utility_schedule c)) in *.
  assert (Hearned : (claimed_earned c <= earned I round s)%Q).
  { eapply Qle_trans; [exact H1|]. unfold all_earned. rewrite sum_fractions_is, mine_is, sumQ_map. apply Qle_refl. }
  assert (Heach : (0 <= each_tick c)%Q) by (unfold each_tick, Qle; cbn; lia).
  assert (Hmost : forall other, feasible I other -> begins_with_rounds round other -> (earned I round other <= claimed_most c)%Q).
  { intros other Hother Hfirst. eapply Qle_trans; [|exact H2].
    eapply Qle_trans; [now apply (earned_in_full round Hround I other Hsound Hother)|].
    unfold most_in_whole_rounds. fold I round. rewrite sum_fractions_is.
    rewrite <- (sumQ_counted (plain I) (whole_payoff (plain I) round (rows c) (rounds_in (rows c)) (each_tick c))).
    apply whole_utility_at_most; try assumption.
    - now apply sound_plain.
    - now apply check_rows_sound.
    - now apply feasible_in_full.
    - intros r Hr. now apply (whole_in_full round Hround other Hfirst). }
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hobeys|]. split; [exact Hpaid|].
  split; [intros r Hr; rewrite forallb_forall in Hbegin; now apply Z.eqb_eq, Hbegin|]. split; [exact Hearned|].
  intros other Hother Hfirst. split; [now apply Hmost|].
  eapply Qle_trans; [now apply Hmost|]. eapply Qle_trans; [exact H4|].
  rewrite !(Qmult_comm (claimed_multiple c)). apply Qmult_le_compat_r; [exact Hearned|].
  eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_whole_rounds_sound.
