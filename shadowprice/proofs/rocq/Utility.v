(** The most that schedules earn in total (HADAR-any): what all GPUs cost in all rounds, and of each job the most that
    its utility exceeds the price of the time that completes it.

    Prices are of a GPU of a type in a round. For any threshold theta, a job that has done all its work by the end of
    a round has paid for it theta, less what it gained in every tick in which its best speed was worth more at theta
    than its GPUs cost (weak duality; derived). *)

From Coq Require Import List ZArith QArith Lia Bool.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality.
Import ListNotations.
Open Scope Z_scope.

(** ** Ticks in rounds *)

Section Rounds.
  Variable round : Z.
  Hypothesis Hround : 1 <= round.

  Lemma in_round k t : k * round <= t < (k + 1) * round -> t / round = k.
  Proof. intros H. symmetry. apply (Z.div_unique t round k (t - k * round)); lia. Qed.

  Lemma sum_of_round (f : Z -> Z) a k : k * round <= a ->
    sum (fun t => f (t / round)) (ticks a ((k + 1) * round)) = Z.max 0 ((k + 1) * round - a) * f k.
  Proof.
    intros Ha. rewrite <- length_ticks, (Z.mul_comm (Z.of_nat _)), <- sum_const. apply sum_ext.
    intros t Ht. apply in_ticks in Ht. now rewrite (in_round k t) by lia.
  Qed.

  Lemma sum_of_rounds (f : Z -> Z) n :
    sum (fun t => f (t / round)) (ticks 0 (Z.of_nat n * round))
    = round * sum (fun k => f (Z.of_nat k)) (seq 0 n).
  Proof.
    induction n as [|n IH]; [cbn; lia|].
    rewrite (ticks_app 0 (Z.of_nat n * round)) by nia. rewrite sum_app, IH.
    rewrite seq_S, sum_app. cbn [sum Nat.add].
    replace (Z.of_nat (S n)) with (Z.of_nat n + 1) by lia.
    rewrite sum_of_round by lia. nia.
  Qed.
End Rounds.

Lemma sum_of_nth row : sum (fun k => nth k row 0) (seq 0 (length row)) = sum same row.
Proof.
  induction row as [|x row IH]; [reflexivity|]. cbn [length seq sum nth].
  rewrite <- seq_shift, sum_map, IH. reflexivity.
Qed.

(** ** Rent at prices by type and round *)

Section Rent.
  Variables (I : instance) (round : Z) (rows : list (list Z)) (number : nat).
  Hypothesis Hsound : sound I.
  Hypothesis Hround : 1 <= round.
  Hypothesis Hrows : forall row, In row rows -> length row = number /\ forall x, In x row -> 0 <= x.

  Definition price (ty : nat) (k : Z) : Z := nth (Z.to_nat k) (nth ty rows []) 0.

  Lemma price_positive ty k : 0 <= price ty k.
  Proof.
    unfold price. destruct (nth_in_or_default ty rows []) as [Hin| ->].
    - destruct (Hrows _ Hin) as [_ Hall].
      destruct (nth_in_or_default (Z.to_nat k) (nth ty rows []) 0) as [H| ->]; [now apply Hall|lia].
    - destruct (Z.to_nat k); cbn; lia.
  Qed.

  Lemma price_late ty k : Z.of_nat number <= k -> price ty k = 0.
  Proof.
    intros Hk. unfold price. destruct (nth_in_or_default ty rows []) as [Hin| ->].
    - destruct (Hrows _ Hin) as [Hlength _]. apply nth_overflow. lia.
    - destruct (Z.to_nat k); reflexivity.
  Qed.

  (** Price of a node's GPU, by the node's number. *)
  Definition at_node (k : Z) (n : nat) : Z :=
    match nth_error (nodes I) n with Some node => price (gpu_type node) k | None => 0 end.

  Lemma at_node_positive k n : 0 <= at_node k n.
  Proof. unfold at_node. destruct (nth_error _ _); [apply price_positive|lia]. Qed.

  (** What the GPUs of a run cost at a tick. *)
  Definition rate (r : run) (k : Z) : Z := sum (fun piece => snd piece * at_node k (fst piece)) (pieces r).

  Lemma rates_held s t k :
    Forall (run_fits I) s ->
    (forall k n, nth_error (nodes I) k = Some n -> held s k t <= gpus n) ->
    sum (fun r => if active t r then rate r k else 0) s
    <= sum (fun node => gpus node * price (gpu_type node) k) (nodes I).
  Proof.
    intros Hfits Hheld.
    assert (Hnodes : sum (fun r => if active t r then rate r k else 0) s
                     = sum (fun n => held s n t * at_node k n) (seq 0 (length (nodes I)))).
    { transitivity (sum (fun n => sum (fun r => if active t r
          then sum (fun piece => if Nat.eqb (fst piece) n then snd piece * at_node k (fst piece) else 0) (pieces r)
          else 0) s) (seq 0 (length (nodes I)))).
      - rewrite sum_swap. apply sum_ext. intros r Hr. destruct (active t r).
        + rewrite sum_swap. unfold rate. apply sum_ext. intros piece Hin.
          rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hp).
          destruct (Hp piece Hin) as (_ & n & _ & Hn & _).
          symmetry. apply one_of_range. apply nth_error_Some. congruence.
        + rewrite sum_const. lia.
      - apply sum_ext. intros n _. unfold held. rewrite Z.mul_comm, <- sum_scale. apply sum_ext. intros r _.
        destruct (active t r); [|lia]. rewrite <- sum_scale. apply sum_ext. intros piece _.
        destruct (Nat.eqb_spec (fst piece) n) as [->|]; lia. }
    rewrite Hnodes. clear Hnodes Hfits. unfold at_node.
    assert (H : forall (l : list node) b,
              (forall m n, nth_error l m = Some n -> held s (b + m) t <= gpus n) ->
              sum (fun m => held s m t
                            * match nth_error l (m - b) with Some node => price (gpu_type node) k | None => 0 end)
                  (seq b (length l))
              <= sum (fun node => gpus node * price (gpu_type node) k) l).
    { induction l as [|n l IH]; intros b Hl; cbn [length seq sum]; [lia|].
      rewrite Nat.sub_diag. cbn [nth_error].
      pose proof (Hl 0%nat n eq_refl) as H0. rewrite Nat.add_0_r in H0.
      pose proof (price_positive (gpu_type n) k).
      assert (Hrest : sum (fun m => held s m t * match nth_error l (m - S b) with
                        | Some node => price (gpu_type node) k | None => 0 end) (seq (S b) (length l))
              <= sum (fun node => gpus node * price (gpu_type node) k) l).
      { apply IH. intros m n' Hm. replace (S b + m)%nat with (b + S m)%nat by lia. now apply Hl. }
      rewrite (sum_ext _ (fun m => held s m t * match nth_error l (m - S b) with
                        | Some node => price (gpu_type node) k | None => 0 end) (seq (S b) (length l))).
      - nia.
      - intros m Hm. apply in_seq in Hm. replace (m - b)%nat with (S (m - S b)) by lia. reflexivity. }
    specialize (H (nodes I) 0%nat Hheld).
    erewrite sum_ext; [exact H|]. intros m _. cbn beta. now rewrite Nat.sub_0_r.
  Qed.

  (** Rent of a job's runs. *)
  Definition rents (s : schedule) (k : nat) : Z :=
    sum (fun r => sum (fun t => rate r (t / round)) (ticks (start r) (stop r))) (runs_of k s).

  (** Rent of all GPUs, over a round's length. *)
  Definition all_rents : Z := sum (fun node => gpus node * sum same (nth (gpu_type node) rows [])) (nodes I).

  Lemma sum_row ty : sum (fun k => price ty (Z.of_nat k)) (seq 0 number) = sum same (nth ty rows []).
  Proof.
    destruct (nth_in_or_default ty rows []) as [Hin|E].
    - destruct (Hrows _ Hin) as [Hlength _]. rewrite <- sum_of_nth, Hlength. apply sum_ext.
      intros k _. unfold price. now rewrite Nat2Z.id.
    - rewrite E. cbn [sum]. transitivity (sum (fun _ : nat => 0) (seq 0 number)); [|rewrite sum_const; lia].
      apply sum_ext. intros k _. unfold price. rewrite E. destruct (Z.to_nat (Z.of_nat k)); reflexivity.
  Qed.

  Lemma rate_positive s r k : Forall (run_fits I) s -> In r s -> 0 <= rate r k.
  Proof.
    intros Hfits Hr. unfold rate. apply sum_nonneg. intros piece Hin. rewrite Forall_forall in Hfits.
    destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hp). destruct (Hp piece Hin) as [Hg _].
    pose proof (at_node_positive k (fst piece)). nia.
  Qed.

  Lemma sum_numbered (g : nat -> Z) : sum (fun kj => g (fst kj)) (numbered I) = sum g (seq 0 (length (jobs I))).
  Proof.
    unfold numbered. generalize 0%nat. induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|]. now rewrite IH.
  Qed.

  Lemma rents_positive s k : feasible I s -> 0 <= rents s k.
  Proof.
    intros (Hfits & _). unfold rents. apply sum_nonneg. intros r Hr. apply sum_nonneg. intros t _.
    apply in_runs_of in Hr. destruct Hr as [Hr _]. now apply (rate_positive s).
  Qed.

  Lemma rents_at_most s : feasible I s ->
    sum (fun kj => rents s (fst kj)) (counted I) <= round * all_rents.
  Proof.
    intros Hs. assert (Hwhole := Hs). destruct Hs as (Hfits & _ & Hheld & _).
    transitivity (sum (fun kj => rents s (fst kj)) (numbered I)).
    { unfold counted. rewrite sum_filter. apply sum_le. intros kj _.
      pose proof (rents_positive s (fst kj) Hwhole). destruct (counts I (snd kj)); lia. }
    rewrite (sum_numbered (rents s)). set (f := fun r t => rate r (t / round)).
    transitivity (sum (fun r => sum (f r) (ticks (start r) (stop r))) s).
    { unfold rents, runs_of.
      rewrite (sum_ext _ (fun k => sum (fun r => if Nat.eqb (of_job r) k
                                                 then sum (f r) (ticks (start r) (stop r)) else 0) s)).
      2: { intros k _. now rewrite sum_filter. }
      rewrite sum_swap. apply sum_le. intros r Hr. rewrite Forall_forall in Hfits.
      destruct (Hfits r Hr) as (j & Hj & _). rewrite one_of_range; [lia|]. apply nth_error_Some. congruence. }
    set (all := ticks 0 (Z.of_nat number * round)).
    transitivity (sum (fun r => sum (fun t => if active t r then f r t else 0) all) s).
    { apply sum_le. intros r Hr. rewrite <- sum_filter. apply sum_included; [apply nodup_ticks| |].
      - intros t. now apply (rate_positive s).
      - intros t Ht Hft. apply in_ticks in Ht.
        assert (Hact : active t r = true).
        { unfold active. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
        apply filter_In. split; [|assumption]. apply in_ticks.
        rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j & Hj & Harr & _).
        destruct (sound_in _ _ _ Hsound Hj) as (Ha & _). split; [lia|].
        destruct (Z_lt_ge_dec t (Z.of_nat number * round)) as [|Hlate]; [assumption|]. exfalso. apply Hft.
        unfold f, rate. transitivity (sum (fun _ : nat * Z => 0) (pieces r)); [|rewrite sum_const; lia].
        apply sum_ext. intros piece _. unfold at_node. destruct (nth_error (nodes I) (fst piece)); [|apply Z.mul_0_r].
        rewrite price_late; [apply Z.mul_0_r|]. apply Z.div_le_lower_bound; nia. }
    rewrite sum_swap.
    transitivity (sum (fun t => (fun k => sum (fun node => gpus node * price (gpu_type node) k) (nodes I)) (t / round)) all).
    { apply sum_le. intros t _. unfold f. apply rates_held; [assumption|].
      intros k n Hk. now apply Hheld. }
    pose proof (sum_of_rounds round Hround
                  (fun k => sum (fun node => gpus node * price (gpu_type node) k) (nodes I)) number) as Hsum.
    cbn beta in Hsum. etransitivity; [apply Z.eq_le_incl; exact Hsum|].
    unfold all_rents. apply Z.eq_le_incl. f_equal.
    rewrite sum_swap. apply sum_ext. intros node _. rewrite sum_scale, sum_row. reflexivity.
  Qed.

  (** ** What a job pays at least *)

  (** Speeds of a job: ticks of all of it, and the types on which it is as fast. *)
  Definition speeds (j : job) : list (Z * list nat) :=
    map (fun entry => (snd entry,
                       map (fun other => fst (fst other)) (filter (fun other => snd other <=? snd entry) (times j))))
        (times j).

  Fixpoint cheapest_of (found : Z) (types : list nat) (k : Z) : Z :=
    match types with
    | [] => found
    | ty :: rest => cheapest_of (Z.min found (price ty k)) rest k
    end.

  Definition column (types : list nat) (k : Z) : Z :=
    match types with [] => 0 | ty :: rest => cheapest_of (price ty k) rest k end.

  Lemma cheapest_of_at_most types k : forall found,
    cheapest_of found types k <= found /\ forall ty, In ty types -> cheapest_of found types k <= price ty k.
  Proof.
    induction types as [|x types IH]; intros found; cbn [cheapest_of]; [split; [lia|intros ty []]|].
    destruct (IH (Z.min found (price x k))) as [H1 H2]. split; [lia|]. intros ty [->|Hin]; [lia|now apply H2].
  Qed.

  Lemma column_at_most types k ty : In ty types -> column types k <= price ty k.
  Proof.
    unfold column. destruct types as [|x rest]; [intros []|].
    destruct (cheapest_of_at_most rest k (price x k)) as [H1 H2]. intros [->|Hin]; [exact H1|now apply H2].
  Qed.

  Lemma column_positive types k : 0 <= column types k.
  Proof.
    unfold column. destruct types as [|x rest]; [lia|].
    assert (H : forall l found, 0 <= found -> 0 <= cheapest_of found l k).
    { induction l as [|y l IH]; intros found Hf; cbn [cheapest_of]; [exact Hf|].
      apply IH. pose proof (price_positive y k). lia. }
    apply H, price_positive.
  Qed.

  (** A job's work in units that all its speeds do a whole number of in a tick. *)
  Definition measure (j : job) : Z := fold_right (fun entry all => Z.lcm (snd entry) all) 1 (times j).

  Lemma measure_of j : sound_job j ->
    1 <= measure j /\ forall entry, In entry (times j) -> (snd entry | measure j).
  Proof.
    intros (_ & _ & _ & _ & H & _). unfold measure. induction (times j) as [|e l IH]; cbn [fold_right].
    - split; [lia|intros entry []].
    - assert (1 <= snd e) by (apply H; now left).
      destruct IH as [Hpos Hall]; [intros; apply H; now right|].
      set (m := fold_right _ 1 l) in *. split.
      + pose proof (Z.lcm_nonneg (snd e) m).
        assert (Z.lcm (snd e) m <> 0) by (rewrite Z.lcm_eq_0; lia). lia.
      + intros entry [->|Hin]; [apply Z.divide_lcm_l|].
        eapply Z.divide_trans; [now apply Hall|apply Z.divide_lcm_r].
  Qed.

  (** What a tick is worth more than it costs at most, at a threshold of [n] / [d] for a unit of work. *)
  Definition gains (n d work : Z) (offers : list (Z * list nat)) (k : Z) : Z :=
    fold_right (fun offer most => Z.max most (n * (work / fst offer) - d * column (snd offer) k)) 0 offers.

  Lemma gains_positive n d work offers k : 0 <= gains n d work offers k.
  Proof. unfold gains. induction offers; cbn; lia. Qed.

  Lemma gains_at_least n d work offers k offer : In offer offers ->
    n * (work / fst offer) - d * column (snd offer) k <= gains n d work offers k.
  Proof.
    unfold gains. induction offers as [|x l IH]; cbn [fold_right]; [intros []|].
    intros [->|Hin]; [lia|]. specialize (IH Hin). lia.
  Qed.

  Lemma pace_entry j r :
    sound_job j -> pieces r <> [] ->
    (forall piece, In piece (pieces r) -> exists n t,
       nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) (condition r) j = Some t) ->
    exists offer, In offer (speeds j) /\ fst offer = pace I j r /\
      forall piece, In piece (pieces r) -> exists n,
        nth_error (nodes I) (fst piece) = Some n /\ In (gpu_type n) (snd offer).
  Proof.
    intros Hj Hne Hpieces.
    assert (Hentry : forall ty c t, time_on ty c j = Some t -> exists entry,
              In entry (times j) /\ snd entry = t /\ fst (fst entry) = ty).
    { intros ty c t H. unfold time_on in H. destruct (find _ _) as [entry|] eqn:E; [|discriminate].
      cbn in H. injection H as <-. apply find_some in E. destruct E as [Hin E]. apply andb_prop in E.
      destruct E as [E _]. apply Nat.eqb_eq in E. now exists entry. }
    assert (Hpositive : forall entry, In entry (times j) -> 1 <= snd entry) by apply Hj.
    assert (H : forall l, (forall piece, In piece l -> In piece (pieces r)) ->
      let slowest := fold_right (fun piece slowest =>
         match nth_error (nodes I) (fst piece) with
         | Some n => match time_on (gpu_type n) (condition r) j with Some t => Z.max t slowest | None => slowest end
         | None => slowest
         end) 0 l in
      (l = [] \/ exists entry, In entry (times j) /\ snd entry = slowest) /\ 0 <= slowest /\
      forall piece, In piece l -> exists n t, nth_error (nodes I) (fst piece) = Some n /\
        time_on (gpu_type n) (condition r) j = Some t /\ t <= slowest).
    { induction l as [|p l IH]; cbn [fold_right]; intros Hl.
      - split; [now left|]. split; [lia|]. intros piece [].
      - destruct (Hpieces p (Hl p (or_introl eq_refl))) as (n & t & Hn & Ht). cbn zeta. rewrite Hn, Ht.
        destruct (IH (fun x Hx => Hl x (or_intror Hx))) as (Hslow & Hpos & Hall).
        set (slowest := fold_right _ 0 l) in *. split; [right|split; [lia|]].
        + destruct (Hentry _ _ _ Ht) as (entry & Hin & Hsnd & _). specialize (Hpositive entry Hin).
          destruct (Z.max_spec t slowest) as [[Hlt ->]|[_ ->]]; [|now exists entry].
          destruct Hslow as [->|Hslow]; [cbn in slowest; lia|exact Hslow].
        + intros piece [<-|Hin]; [exists n, t; repeat split; try assumption; lia|].
          destruct (Hall piece Hin) as (n' & t' & Hn' & Ht' & Hle). exists n', t'. repeat split; try assumption. lia. }
    destruct (H (pieces r) (fun _ x => x)) as (Hslow & _ & Hall). fold (pace I j r) in Hslow, Hall.
    destruct Hslow as [E|(entry & Hin & Hsnd)]; [congruence|].
    exists (snd entry, map (fun other => fst (fst other)) (filter (fun other => snd other <=? snd entry) (times j))).
    split; [unfold speeds; apply in_map_iff; now exists entry|]. split; [exact Hsnd|].
    intros piece Hp. destruct (Hall piece Hp) as (n & t & Hn & Ht & Hle). exists n. split; [exact Hn|].
    destruct (Hentry _ _ _ Ht) as (other & Hother & Ht' & <-). cbn [snd].
    apply (in_map (fun other => fst (fst other))). apply filter_In. split; [exact Hother|]. apply Z.leb_le. lia.
  Qed.

  Lemma rent_at_least s k j n d :
    feasible I s -> nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true -> 0 <= n -> 0 <= d ->
    gang j * (n * measure j
              - sum (fun t => gains n d (measure j) (speeds j) (t / round)) (held_ticks s k)) <= d * rents s k.
  Proof.
    intros Hs Hk Hdone Hn Hd.
    assert (Hj := sound_in _ _ _ Hsound Hk). destruct (measure_of j Hj) as [Hm Hdivide].
    pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork.
    set (m := measure j) in *. set (g := gains n d m (speeds j)).
    assert (Hg : 1 <= gang j) by apply Hj.
    (* every run *)
    assert (Hrun : forall r, In r (runs_of k s) ->
      (pace I j r | m) /\ 1 <= pace I j r /\
      gang j * (n * (ran r * (m / pace I j r)) - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
      <= d * sum (fun t => rate r (t / round)) (ticks (start r) (stop r))).
    { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & Ho & Hgang & Hne & Hpieces).
      destruct (pace_entry j r Hj Hne (fun p Hp => proj2 (Hpieces p Hp))) as (offer & Hin & Hpace & Htypes).
      assert (Hoffer : exists entry, In entry (times j) /\ snd entry = pace I j r).
      { unfold speeds in Hin. apply in_map_iff in Hin. destruct Hin as (entry & <- & Hin). now exists entry. }
      destruct Hoffer as (entry & Hentry & Hsnd).
      assert (Hp : 1 <= pace I j r).
      { rewrite <- Hsnd. destruct Hj as (_ & _ & _ & _ & Hpos & _). now apply Hpos. }
      split; [rewrite <- Hsnd; now apply Hdivide|]. split; [exact Hp|].
      assert (Htick : forall t, gang j * (n * (m / pace I j r) - g (t / round)) <= d * rate r (t / round)).
      { intros t. pose proof (gains_at_least n d m (speeds j) (t / round) offer Hin) as Hgain.
        rewrite Hpace in Hgain. fold g in Hgain.
        assert (Hrate : gang j * column (snd offer) (t / round) <= rate r (t / round)).
        { assert (Hcolumn : 0 <= column (snd offer) (t / round)) by apply column_positive.
          eapply Z.le_trans; [apply Z.mul_le_mono_nonneg_r; [exact Hcolumn|exact (proj1 Hgang)]|].
          unfold rate. rewrite Z.mul_comm, <- sum_scale. apply sum_le. intros piece Hpiece.
          destruct (Htypes piece Hpiece) as (node & Hnode & Hty). destruct (Hpieces piece Hpiece) as [Hone _].
          unfold at_node. rewrite Hnode. pose proof (column_at_most _ (t / round) _ Hty). nia. }
        nia. }
      assert (Hsum : gang j * (n * (m / pace I j r) * Z.of_nat (length (ticks (start r) (stop r)))
                               - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
                     <= d * sum (fun t => rate r (t / round)) (ticks (start r) (stop r))).
      { rewrite <- sum_const, <- (sum_scale d).
        replace (sum (fun _ => n * (m / pace I j r)) (ticks (start r) (stop r))
                 - sum (fun t => g (t / round)) (ticks (start r) (stop r)))
          with (sum (fun t => n * (m / pace I j r) - g (t / round)) (ticks (start r) (stop r))).
        - rewrite <- sum_scale. apply sum_le. intros t _. apply Htick.
        - clear. induction (ticks (start r) (stop r)) as [|t l IH]; cbn [sum]; lia. }
      rewrite length_ticks in Hsum.
      assert (0 <= m / pace I j r) by (apply Z.div_pos; lia).
      assert (Hran : ran r <= Z.max 0 (stop r - start r)) by (unfold ran; lia).
      assert (n * (ran r * (m / pace I j r)) <= n * (m / pace I j r) * Z.max 0 (stop r - start r)).
      { replace (n * (m / pace I j r) * Z.max 0 (stop r - start r))
          with (n * (Z.max 0 (stop r - start r) * (m / pace I j r))) by ring.
        apply Z.mul_le_mono_nonneg_l; [assumption|]. apply Z.mul_le_mono_nonneg_r; assumption. }
      eapply Z.le_trans; [|exact Hsum]. apply Z.mul_le_mono_nonneg_l; lia. }
    (* all of the work *)
    assert (Hall : m <= sum (fun r => ran r * (m / pace I j r)) (runs_of k s)).
    { assert (Hwork' : (1 <= sum (fun r => (ran r * (m / pace I j r))%Z) (runs_of k s) # Z.to_pos m)%Q).
      { rewrite <- sumQ_same_denominator. eapply Qle_trans; [exact Hwork|]. unfold work. apply sumQ_le.
        intros r Hr. destruct (Hrun r Hr) as ((q & Hq) & Hp & _). unfold share, Qle. cbn [Qnum Qden].
        rewrite !Z2Pos.id by lia. rewrite Hq, Z.div_mul by lia. apply Z.eq_le_incl. ring. }
      unfold Qle in Hwork'. cbn [Qnum Qden] in Hwork'. rewrite Z2Pos.id in Hwork' by lia. lia. }
    unfold rents, held_ticks. rewrite sum_flat_map.
    assert (Htotal : gang j * (n * sum (fun r => ran r * (m / pace I j r)) (runs_of k s)
                     - sum (fun r => sum (fun t => g (t / round)) (ticks (start r) (stop r))) (runs_of k s))
              <= d * sum (fun r => sum (fun t => rate r (t / round)) (ticks (start r) (stop r))) (runs_of k s)).
    { clear Hall Hwork Hdone. induction (runs_of k s) as [|r l IH]; cbn [sum]; [lia|].
      destruct (Hrun r (or_introl eq_refl)) as (_ & _ & Hr).
      specialize (IH (fun x Hx => Hrun x (or_intror Hx))). nia. }
    eapply Z.le_trans; [|exact Htotal]. apply Z.mul_le_mono_nonneg_l; [lia|].
    assert (n * m <= n * sum (fun r => ran r * (m / pace I j r)) (runs_of k s)) by (apply Z.mul_le_mono_nonneg_l; lia).
    fold g. lia.
  Qed.
End Rent.

(** ** Utilities *)

Lemma utility_positive I round j k : sound_job j -> (0 <= utility I round j k)%Q.
Proof.
  intros (_ & _ & _ & _ & _ & Hworth). unfold utility.
  assert (H : (0 <= worth j)%Q) by (unfold Qle; cbn; lia).
  destruct (match until I with Some limit => limit <=? k * round | None => false end); [apply Qle_refl|].
  destruct (deadline j) as [due|].
  - destruct (_ <=? due); [exact H|apply Qle_refl].
  - apply Qmult_le_0_compat; [exact H|]. unfold Qle. cbn. lia.
Qed.

Lemma utility_falls I round j k later : sound_job j -> 1 <= round -> k <= later ->
  (utility I round j later <= utility I round j k)%Q.
Proof.
  intros Hj Hround Hle. pose proof (utility_positive I round j k Hj) as Hpos. unfold utility in *.
  assert (Hmore : k * round <= later * round) by nia.
  destruct (until I) as [limit|].
  - destruct (Z.leb_spec limit (later * round)); [destruct (limit <=? k * round); exact Hpos|].
    destruct (Z.leb_spec limit (k * round)); [lia|].
    revert Hpos. destruct (deadline j) as [due|]; intros Hpos.
    + destruct (Z.leb_spec ((later + 1) * round) due); [|exact Hpos].
      destruct (Z.leb_spec ((k + 1) * round) due); [apply Qle_refl|nia].
    + rewrite !(Qmult_comm (worth j)). apply Qmult_le_compat_r.
      * unfold Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia.
      * destruct Hj as (_ & _ & _ & _ & _ & Hworth). unfold Qle. cbn. lia.
  - revert Hpos. destruct (deadline j) as [due|]; intros Hpos.
    + destruct (Z.leb_spec ((later + 1) * round) due); [|exact Hpos].
      destruct (Z.leb_spec ((k + 1) * round) due); [apply Qle_refl|nia].
    + rewrite !(Qmult_comm (worth j)). apply Qmult_le_compat_r.
      * unfold Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia.
      * destruct Hj as (_ & _ & _ & _ & _ & Hworth). unfold Qle. cbn. lia.
Qed.

(** ** Thresholds: those at which the cheapest time that completes a job is bought. Nothing below relies on that. *)

(** The cheapest way on from a speed and its cost to greater speeds: price of a unit of work, and what is reached. *)
Definition way_on (speed cost : Z) (offers : list (Z * Z)) : option (Q * (Z * Z)) :=
  fold_left
    (fun best offer =>
       if fst offer <=? speed then best
       else let slope := (snd offer - cost) # Z.to_pos (fst offer - speed) in
            match best with
            | Some (least, _) => if Qle_bool least slope then best else Some (slope, offer)
            | None => Some (slope, offer)
            end) offers None.

(** Pieces of work that a cell offers: price of a unit, and how many. *)
Fixpoint pieces_of (fuel : nat) (speed cost ticks : Z) (offers : list (Z * Z)) : list (Q * Z) :=
  match fuel with
  | O => []
  | S fuel =>
      match way_on speed cost offers with
      | None => []
      | Some (slope, offer) =>
          (slope, (fst offer - speed) * ticks) :: pieces_of fuel (fst offer) (snd offer) ticks offers
      end
  end.

Fixpoint place (piece : Q * Z) (l : list (Q * Z)) : list (Q * Z) :=
  match l with
  | [] => [piece]
  | first :: rest => if Qle_bool (fst piece) (fst first) then piece :: l else first :: place piece rest
  end.

Fixpoint first_units (left : Z) (l : list (Q * Z)) : list (Q * Z) :=
  match l with
  | [] => []
  | piece :: rest => if left <=? snd piece then [piece] else piece :: first_units (left - snd piece) rest
  end.

Section Payoff.
  Variables (I : instance) (round : Z) (rows : list (list Z)) (number : nat).
  (** What a unit of the prices, for a tick of a unit of GPUs, is worth. *)
  Variable each : Q.

  (** A round, from a job's arrival on: its ticks, and units of work and price of a tick at each speed. *)
  Definition cell_of (work : Z) (offers : list (Z * list nat)) (a k : Z) : Z * list (Z * Z) :=
    (Z.max 0 ((k + 1) * round - Z.max a (k * round)),
     map (fun offer => (work / fst offer, column rows (snd offer) k)) offers).

  Definition gained (n d : Z) (cell : Z * list (Z * Z)) : Z :=
    fst cell * fold_right (fun offer most => Z.max most (n * fst offer - d * snd offer)) 0 (snd cell).

  (** The most that a job's utility by a round from [k] on exceeds the price of its time, of [fuel] rounds. *)
  Fixpoint payoffs (j : job) (work : Z) (offers : list (Z * list nat)) (fuel : nat) (k : Z)
    (past : list (Z * list (Z * Z))) (taken : list (Q * Z)) (best : Q) : Q :=
    match fuel with
    | O => best
    | S fuel =>
        let worth := utility I round j k in
        if Qle_bool worth best then best
        else
          let cell := cell_of work offers (arrival j) k in
          let past := cell :: past in
          let taken := first_units work
            (fold_right place taken (pieces_of (length (snd cell)) 0 0 (fst cell) (snd cell))) in
          let theta := fst (last taken (0%Q, 0)) in
          let up := Z.max 0 (Qnum theta) in
          let best :=
            if (k + 1) * round <? arrival j + shortest j then best
            else
              let cost := gang j * (up * work - sum (gained up (Zpos (Qden theta))) past) in
              let value := (worth - (cost # Qden theta) * each)%Q in
              if Qle_bool best value then value else best in
          payoffs j work offers fuel (k + 1) past taken best
    end.

  Definition payoff (j : job) : Q :=
    let first := arrival j / round in
    payoffs j (measure j) (speeds j) (Z.to_nat (Z.of_nat number - first)) first [] []
      (utility I round j (Z.max first (Z.of_nat number))).

  Hypothesis Hround : 1 <= round.
  Hypothesis Heach : (0 <= each)%Q.

  Lemma gained_is n d work offers a k :
    gained n d (cell_of work offers a k)
    = Z.max 0 ((k + 1) * round - Z.max a (k * round)) * gains rows n d work offers k.
  Proof.
    unfold gained, cell_of, gains. cbn [fst snd]. f_equal.
    induction offers as [|offer l IH]; cbn [map fold_right fst snd]; [reflexivity|]. now rewrite IH.
  Qed.

  Lemma gained_so_far n d work offers a k :
    sum (fun t => gains rows n d work offers (t / round)) (ticks a (Z.max a ((k + 1) * round)))
    = gained n d (cell_of work offers a k)
      + sum (fun t => gains rows n d work offers (t / round)) (ticks a (Z.max a (k * round))).
  Proof.
    rewrite gained_is. rewrite (ticks_app a (Z.max a (k * round)) (Z.max a ((k + 1) * round))) by nia.
    rewrite sum_app, Z.add_comm. f_equal.
    destruct (Z_le_gt_dec a ((k + 1) * round)) as [H|H].
    - rewrite (Z.max_r a ((k + 1) * round)) by lia. apply sum_of_round; lia.
    - replace (Z.max a ((k + 1) * round)) with a by lia. replace (Z.max a (k * round)) with a by nia.
      unfold ticks. rewrite Z.sub_diag. cbn [Z.to_nat seq map sum]. rewrite Z.max_l by lia. lia.
  Qed.

  Lemma payoffs_best j work offers fuel : forall k past taken best,
    (best <= payoffs j work offers fuel k past taken best)%Q.
  Proof.
    induction fuel as [|fuel IH]; intros k past taken best; cbn [payoffs]; [apply Qle_refl|].
    destruct (Qle_bool _ best); [apply Qle_refl|].
    eapply Qle_trans; [|apply IH]. destruct (_ <? _); [apply Qle_refl|].
    match goal with |- (_ <= if Qle_bool best ?v then _ else _)%Q => destruct (Qle_bool best v) eqn:E end.
    - now apply Qle_bool_iff.
    - apply Qle_refl.
  Qed.

  Lemma less_rent value rent : 0 <= rent -> (value - inject_Z rent * each <= value)%Q.
  Proof.
    intros Hrent. apply Qle_minus_iff. setoid_replace (value + - (value - inject_Z rent * each))%Q
      with (inject_Z rent * each)%Q by ring.
    apply Qmult_le_0_compat; [|exact Heach]. unfold Qle. cbn. lia.
  Qed.

  (** A job that is complete by the end of round [at_round] has paid no less than it says. *)
  Lemma payoffs_sound j work offers rent at_round :
    sound_job j -> 0 <= rent -> arrival j + shortest j <= (at_round + 1) * round ->
    (forall n d, 0 <= n -> 0 <= d ->
       gang j * (n * work - sum (fun t => gains rows n d work offers (t / round))
                                (ticks (arrival j) ((at_round + 1) * round))) <= d * rent) ->
    forall fuel k past taken best,
    k <= at_round < k + Z.of_nat fuel ->
    (forall n d, sum (gained n d) past
       = sum (fun t => gains rows n d work offers (t / round)) (ticks (arrival j) (Z.max (arrival j) (k * round)))) ->
    (utility I round j at_round - inject_Z rent * each <= payoffs j work offers fuel k past taken best)%Q.
  Proof.
    intros Hj Hrent Hlong Hpaid. pose proof (shortest_positive j Hj) as Hp.
    induction fuel as [|fuel IH]; intros k past taken best Hk Hpast; [lia|]. cbn [payoffs].
    destruct (Qle_bool (utility I round j k) best) eqn:Hworth.
    { apply Qle_bool_iff in Hworth. eapply Qle_trans; [now apply less_rent|].
      eapply Qle_trans; [|exact Hworth]. apply utility_falls; try assumption. lia. }
    match goal with |- (_ <= payoffs _ _ _ _ _ ?p ?t ?b)%Q => set (past' := p); set (taken' := t); set (best' := b) end.
    assert (Hpast' : forall n d, sum (gained n d) past'
       = sum (fun t => gains rows n d work offers (t / round)) (ticks (arrival j) (Z.max (arrival j) ((k + 1) * round)))).
    { intros n d. unfold past'. cbn [sum]. rewrite Hpast. symmetry. apply gained_so_far. }
    destruct (Z.eq_dec k at_round) as [->|Hne].
    - eapply Qle_trans; [|apply payoffs_best]. unfold best'.
      destruct (Z.ltb_spec ((at_round + 1) * round) (arrival j + shortest j)); [lia|].
      fold past'. set (theta := fst (last taken' (0%Q, 0))). set (up := Z.max 0 (Qnum theta)).
      rewrite Hpast', (Z.max_r (arrival j)) by lia.
      set (cost := gang j * _).
      assert (Hcost : ((cost # Qden theta) <= inject_Z rent)%Q).
      { specialize (Hpaid up (Zpos (Qden theta)) ltac:(unfold up; lia) ltac:(lia)).
        unfold Qle. cbn [Qnum Qden inject_Z]. unfold cost. lia. }
      assert (Hvalue : (utility I round j at_round - inject_Z rent * each
                        <= utility I round j at_round - (cost # Qden theta) * each)%Q).
      { apply Qplus_le_compat; [apply Qle_refl|]. apply Qopp_le_compat. now apply Qmult_le_compat_r. }
      destruct (Qle_bool best (utility I round j at_round - (cost # Qden theta) * each)) eqn:E; [exact Hvalue|].
      eapply Qle_trans; [exact Hvalue|].
      destruct (Qlt_le_dec best (utility I round j at_round - (cost # Qden theta) * each)) as [Hlt|Hle]; [|exact Hle].
      apply Qlt_le_weak, Qle_bool_iff in Hlt. congruence.
    - apply IH; [lia|exact Hpast'].
  Qed.

  Hypothesis Hsound : sound I.
  Hypothesis Hrows : forall row, In row rows -> length row = number /\ forall x, In x row -> 0 <= x.

  Lemma payoff_of_job s k j :
    feasible I s -> nth_error (jobs I) k = Some j ->
    ((if finished I j (runs_of k s) then utility I round j ((completion s k - 1) / round) else 0)
     - inject_Z (rents I round rows s k) * each <= payoff j)%Q.
  Proof.
    intros Hs Hk. assert (Hj := sound_in _ _ _ Hsound Hk).
    pose proof (rents_positive I round rows number Hrows s k Hs) as Hrent.
    destruct (finished I j (runs_of k s)) eqn:Hdone.
    - pose proof (completion_alone I s k j Hsound Hs Hk Hdone) as Halone.
      pose proof (shortest_positive j Hj) as Hp. assert (Ha : 0 <= arrival j) by apply Hj.
      set (at_round := (completion s k - 1) / round).
      assert (Hround' : at_round * round <= completion s k - 1 < (at_round + 1) * round).
      { unfold at_round. pose proof (Z.div_mod (completion s k - 1) round ltac:(lia)).
        pose proof (Z.mod_pos_bound (completion s k - 1) round ltac:(lia)). lia. }
      assert (Hfirst : arrival j / round <= at_round) by (apply Z.div_le_mono; lia).
      assert (Hfirst0 : 0 <= arrival j / round) by (apply Z.div_pos; lia).
      destruct (Z_lt_ge_dec at_round (Z.of_nat number)) as [Hbefore|Hafter].
      + unfold payoff. apply payoffs_sound; try assumption; [lia| |lia|].
        * intros n d Hn Hd. eapply Z.le_trans; [|exact (rent_at_least I round rows number Hsound Hrows s k j n d Hs Hk Hdone Hn Hd)].
          assert (Hg : 1 <= gang j) by apply Hj. apply Z.mul_le_mono_nonneg_l; [lia|].
          apply Z.sub_le_mono_l. apply sum_included.
          -- apply nodup_held_ticks. apply Hs.
          -- intros t. apply gains_positive.
          -- intros t Ht _. apply in_ticks. pose proof (held_ticks_bounds I s k j Hs Hk t Ht). lia.
        * intros n d. cbn [sum]. rewrite Z.max_l.
          -- unfold ticks. rewrite Z.sub_diag. reflexivity.
          -- rewrite Z.mul_comm. apply Z.mul_div_le. lia.
      + eapply Qle_trans; [now apply less_rent|]. unfold payoff.
        eapply Qle_trans; [|apply payoffs_best]. apply utility_falls; try assumption. lia.
    - eapply Qle_trans; [now apply less_rent|]. unfold payoff.
      eapply Qle_trans; [|apply payoffs_best]. now apply utility_positive.
  Qed.

  Theorem utility_at_most s : feasible I s ->
    (earned I round s <= sumQ (fun kj => payoff (snd kj)) (counted I) + inject_Z (round * all_rents I rows) * each)%Q.
  Proof.
    intros Hs.
    assert (H1 : (earned I round s - inject_Z (sum (fun kj => rents I round rows s (fst kj)) (counted I)) * each
                  <= sumQ (fun kj => payoff (snd kj)) (counted I))%Q).
    { set (net := fun kj : nat * job =>
                    ((if finished I (snd kj) (runs_of (fst kj) s)
                      then utility I round (snd kj) ((completion s (fst kj) - 1) / round) else 0)
                     - inject_Z (rents I round rows s (fst kj)) * each)%Q).
      assert (Hnet : (sumQ net (counted I) <= sumQ (fun kj => payoff (snd kj)) (counted I))%Q).
      { apply sumQ_le. intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk _].
        exact (payoff_of_job s k j Hs Hk). }
      eapply Qle_trans; [|exact Hnet]. unfold net. clear Hnet net.
      unfold earned. cbn [fst snd]. clear.
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
End Payoff.
