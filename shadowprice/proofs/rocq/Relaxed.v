(** Bounds of an instance whose jobs take at least so long, wherever they run and however: every schedule in which jobs
    hold their gangs for that long is one of an instance in which they take that long everywhere, of no higher cost. *)

From Coq Require Import List ZArith QArith Lia Bool.
From Shadowprice Require Import Sums Schedule Duality Utility Checker Starts Claim.
Import ListNotations.
Open Scope Z_scope.

Definition types_of (I : instance) : list nat := nodup Nat.eq_dec (map gpu_type (nodes I)).

Definition taking (types : list nat) (j : job) (v : Z) : job :=
  Job (arrival j) (gang j) (weight j) (map (fun ty => ((ty, 0%nat), v)) types)
    (watched j) (worth j) (deadline j) (quota j).

(** The instance whose jobs take so many ticks each, and in which nothing is charged or lost. *)
Definition taking_all (I : instance) (ticks_of : list Z) : instance :=
  Instance (nodes I) (map (fun jv => taking (types_of I) (fst jv) (snd jv)) (combine (jobs I) ticks_of))
    (Charges 0 0 []) false (until I) (per_gpu I) None [] (quotas I) (amounts I) (once I) (widest I) None 0.

(** A run all of whose ticks are progress. *)
Definition plain (r : run) : run := Run (of_job r) (start r) (stop r) 0 (pieces r) 0 (uses r) (goes_on r).

Lemma time_on_taking types ty j v : In ty types -> time_on ty 0 (taking types j v) = Some v.
Proof.
  intros H. unfold time_on, taking. cbn [times]. induction types as [|x l IH]; cbn; [destruct H|].
  destruct (Nat.eqb_spec x ty) as [->|Hne]; cbn; [reflexivity|]. apply IH. destruct H as [->|H]; [congruence|assumption].
Qed.

Lemma type_in I k n : nth_error (nodes I) k = Some n -> In (gpu_type n) (types_of I).
Proof. intros H. apply nodup_In, in_map. eapply nth_error_In. exact H. Qed.

Lemma runs_of_plain k s : runs_of k (map plain s) = map plain (runs_of k s).
Proof.
  unfold runs_of. induction s as [|r s IH]; cbn; [reflexivity|]. rewrite IH. now destruct (Nat.eqb (of_job r) k).
Qed.

Lemma latest_plain runs : latest (map plain runs) = latest runs.
Proof. unfold latest. induction runs as [|r l IH]; cbn; [reflexivity|]. now rewrite IH. Qed.

Lemma completion_plain s k : completion (map plain s) k = completion s k.
Proof. unfold completion. rewrite runs_of_plain. apply latest_plain. Qed.

Lemma held_plain s n t : held (map plain s) n t = held s n t.
Proof. unfold held. induction s as [|r s IH]; cbn [map sum]; [reflexivity|]. now rewrite IH. Qed.

Section Taking.
  Variables (I : instance) (ticks_of : list Z) (s : schedule).
  Hypothesis Hlength : length ticks_of = length (jobs I).
  Hypothesis Hsound : forall j, In j (jobs I) -> 0 <= arrival j /\ 1 <= gang j /\ 0 <= Qnum (weight j) /\ 0 <= Qnum (worth j).
  Hypothesis Hsome : nodes I <> [].
  Hypothesis Hpositive : forall v, In v ticks_of -> 1 <= v.
  Hypothesis Hs : feasible I s.
  (** Whoever is complete has held his gang so long. *)
  Hypothesis Henough : forall k j v, nth_error (jobs I) k = Some j -> nth_error ticks_of k = Some v ->
    finished I j (runs_of k s) = true -> v <= sum (fun r => stop r - start r) (runs_of k s).

  Let J := taking_all I ticks_of.

  Lemma types_not_empty : types_of I <> [].
  Proof.
    destruct (nodes I) as [|n l] eqn:E; [congruence|]. intros H.
    assert (Hin : In (gpu_type n) (types_of I)) by (apply (type_in I 0); now rewrite E). rewrite H in Hin. destruct Hin.
  Qed.

  Lemma nth_taking k j v : nth_error (jobs I) k = Some j -> nth_error ticks_of k = Some v ->
    nth_error (jobs J) k = Some (taking (types_of I) j v).
  Proof.
    intros Hj Hv. unfold J, taking_all. cbn [jobs]. rewrite nth_error_map.
    assert (H : nth_error (combine (jobs I) ticks_of) k = Some (j, v)); [|now rewrite H].
    clear - Hj Hv. revert k ticks_of Hj Hv. induction (jobs I) as [|x l IH]; intros k ts Hj Hv; [destruct k; discriminate|].
    destruct ts as [|t ts]; [destruct k; discriminate|]. destruct k; cbn in *; [congruence|now apply IH].
  Qed.

  Lemma ticks_known k j : nth_error (jobs I) k = Some j -> exists v, nth_error ticks_of k = Some v /\ 1 <= v.
  Proof.
    intros Hj. assert (Hk : (k < length ticks_of)%nat) by (rewrite Hlength; apply nth_error_Some; congruence).
    destruct (nth_error ticks_of k) as [v|] eqn:E; [|apply nth_error_None in E; lia].
    exists v. split; [reflexivity|]. apply Hpositive. eapply nth_error_In. exact E.
  Qed.

  Lemma nth_taking_inv k j' : nth_error (jobs J) k = Some j' ->
    exists j v, nth_error (jobs I) k = Some j /\ nth_error ticks_of k = Some v /\ j' = taking (types_of I) j v.
  Proof.
    intros H. assert (Hk : (k < length (jobs J))%nat) by (apply nth_error_Some; congruence).
    unfold J, taking_all in Hk. cbn [jobs] in Hk. rewrite map_length, combine_length, Hlength, Nat.min_id in Hk.
    destruct (nth_error (jobs I) k) as [j|] eqn:E; [|apply nth_error_None in E; lia].
    destruct (ticks_known k j E) as (v & Hv & _). exists j, v. rewrite (nth_taking k j v E Hv) in H.
    repeat split; congruence.
  Qed.

  Lemma sound_taking : sound J.
  Proof.
    split; [|discriminate]. rewrite Forall_forall. intros j' Hin. apply In_nth_error in Hin. destruct Hin as (k & Hk).
    destruct (nth_taking_inv k j' Hk) as (j & v & Hj & Hv & ->).
    destruct (Hsound j ltac:(eapply nth_error_In; exact Hj)) as (Ha & Hg & Hw & Hworth).
    unfold sound_job, taking. cbn [arrival gang weight times worth]. repeat split; try assumption.
    - intros E. apply map_eq_nil in E. now apply types_not_empty.
    - intros entry Hentry. apply in_map_iff in Hentry. destruct Hentry as (ty & <- & _). cbn [snd].
      apply Hpositive. eapply nth_error_In. exact Hv.
  Qed.

  Lemma run_in r j : In r s -> nth_error (jobs I) (of_job r) = Some j ->
    arrival j <= start r < stop r /\ gang j <= sum snd (pieces r) <= widest I * gang j /\ pieces r <> [] /\
    forall piece, In piece (pieces r) -> 1 <= snd piece /\ exists n, nth_error (nodes I) (fst piece) = Some n.
  Proof.
    intros Hr Hj. destruct Hs as (Hfits & _). rewrite Forall_forall in Hfits.
    destruct (Hfits r Hr) as (j' & Hj' & Ht & _ & Hg & Hne & Hp). assert (j' = j) by congruence. subst j'.
    repeat split; try tauto.
    - now destruct (Hp piece H).
    - destruct (Hp piece H) as (_ & n & _ & Hn & _). now exists n.
  Qed.

  Lemma pace_taking j v r : In r s -> nth_error (jobs I) (of_job r) = Some j -> 1 <= v ->
    pace J (taking (types_of I) j v) (plain r) = v.
  Proof.
    intros Hr Hj Hv. destruct (run_in r j Hr Hj) as (_ & _ & Hne & Hp). unfold pace. cbn [pieces plain condition].
    change (nodes J) with (nodes I).
    assert (H : forall l, (forall piece, In piece l -> In piece (pieces r)) ->
      fold_right (fun piece slowest =>
         match nth_error (nodes I) (fst piece) with
         | Some n => match time_on (gpu_type n) 0 (taking (types_of I) j v) with
                     | Some t => Z.max t slowest | None => slowest end
         | None => slowest
         end) 0 l = match l with [] => 0 | _ => v end).
    { induction l as [|p l IH]; cbn [fold_right]; intros Hl; [reflexivity|].
      destruct (Hp p (Hl p (or_introl eq_refl))) as (_ & n & Hn). rewrite Hn.
      rewrite (time_on_taking _ _ _ _ (type_in I _ _ Hn)), IH by (intros; apply Hl; now right). destruct l; lia. }
    rewrite H by trivial. destruct (pieces r); [congruence|reflexivity].
  Qed.

  Lemma finished_taking k j v : nth_error (jobs I) k = Some j -> nth_error ticks_of k = Some v ->
    finished I j (runs_of k s) = true ->
    finished J (taking (types_of I) j v) (map plain (runs_of k s)) = true.
  Proof.
    intros Hj Hv Hdone. pose proof (Henough k j v Hj Hv Hdone) as Hlong.
    destruct (ticks_known k j Hj) as (v' & Hv' & Hpos). assert (v' = v) by congruence. subst v'.
    apply work_finished; try reflexivity. rewrite Qplus_0_l. unfold work.
    assert (Hwork : (sumQ (fun r => share J (taking (types_of I) j v) r (ran r)) (map plain (runs_of k s))
                     == sum (fun r => (stop r - start r)%Z) (runs_of k s) # Z.to_pos v)%Q).
    { rewrite <- sumQ_same_denominator. clear Hlong Hdone.
      assert (Hall : forall r, In r (runs_of k s) -> pace J (taking (types_of I) j v) (plain r) = v).
      { intros r Hr. apply in_runs_of in Hr. destruct Hr as [Hr Hof]. apply pace_taking; try assumption. now rewrite Hof. }
      induction (runs_of k s) as [|r l IH]; cbn [map sumQ]; [reflexivity|].
      rewrite IH by (intros; apply Hall; now right). unfold share. rewrite Hall by now left.
      unfold ran. cbn [start stop overhead plain]. rewrite Z.sub_0_r. reflexivity. }
    rewrite Hwork. unfold Qle. cbn [Qnum Qden]. rewrite Z2Pos.id by lia. lia.
  Qed.

  Lemma feasible_taking : feasible J (map plain s).
  Proof.
    assert (Hwhole := Hs). destruct Hwhole as (Hfits & Happart & Hheld & Hall). repeat split.
    - rewrite Forall_forall. intros r' Hin. apply in_map_iff in Hin. destruct Hin as (r & <- & Hr).
      rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j & Hj & _).
      destruct (ticks_known _ j Hj) as (v & Hv & Hpos). destruct (run_in r j Hr Hj) as (Ht & Hg & Hne & Hp).
      exists (taking (types_of I) j v). cbn [of_job start stop overhead pieces condition plain].
      split; [now apply nth_taking|]. cbn [arrival gang taking]. split; [exact Ht|]. split; [lia|]. split; [exact Hg|].
      split; [exact Hne|]. intros piece Hin. destruct (Hp piece Hin) as (Hone & n & Hn). split; [exact Hone|].
      exists n, v. split; [exact Hn|]. apply time_on_taking. now apply (type_in I (fst piece)).
    - intros k. rewrite runs_of_plain. specialize (Happart k). induction Happart as [|r l Hl _ IH]; cbn; constructor.
      + rewrite Forall_forall in *. intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & Hy). exact (Hl y Hy).
      + exact IH.
    - intros k n Hk t. rewrite held_plain. now apply Hheld.
    - intros k j' Hk Hcounts Huntil. destruct (nth_taking_inv k j' Hk) as (j & v & Hj & Hv & ->).
      rewrite runs_of_plain. apply finished_taking; try assumption. now apply Hall.
  Qed.

  Lemma counted_taking : exists l, counted I = map fst l /\
    counted J = map (fun x => (fst (fst x), taking (types_of I) (snd (fst x)) (snd x))) l /\
    forall x, In x l -> nth_error (jobs I) (fst (fst x)) = Some (snd (fst x)) /\ nth_error ticks_of (fst (fst x)) = Some (snd x).
  Proof.
    exists (filter (fun x => counts I (snd (fst x))) (combine (numbered I) ticks_of)).
    assert (H : forall js ts b, length ts = length js ->
      let all := combine (combine (seq b (length js)) js) ts in
      filter (fun kj => counts I (snd kj)) (combine (seq b (length js)) js)
        = map fst (filter (fun x => counts I (snd (fst x))) all) /\
      filter (fun kj => counts J (snd kj))
        (combine (seq b (length (combine js ts))) (map (fun jv => taking (types_of I) (fst jv) (snd jv)) (combine js ts)))
        = map (fun x => (fst (fst x), taking (types_of I) (snd (fst x)) (snd x))) (filter (fun x => counts I (snd (fst x))) all)).
    { induction js as [|j js IH]; intros ts b Hl; cbn zeta.
      - destruct ts; [split; reflexivity|discriminate].
      - destruct ts as [|t ts]; [discriminate|]. cbn [length seq combine map filter fst snd].
        destruct (IH ts (S b) ltac:(cbn in Hl; lia)) as [H1 H2]. rewrite H1, H2.
        change (counts J (taking (types_of I) j t)) with (counts I j).
        destruct (counts I j); cbn [map fst snd]; split; reflexivity. }
    destruct (H (jobs I) ticks_of 0%nat Hlength) as [H1 H2]. split; [exact H1|]. split.
    - unfold counted, numbered, J, taking_all. cbn [jobs]. rewrite map_length. exact H2.
    - intros x Hx. apply filter_In in Hx. destruct Hx as [Hx _]. clear H H1 H2.
      unfold numbered in Hx. assert (Hgen : forall (js : list job) (ts : list Z) b x, In x (combine (combine (seq b (length js)) js) ts) ->
        (b <= fst (fst x))%nat /\ nth_error js (fst (fst x) - b) = Some (snd (fst x)) /\ nth_error ts (fst (fst x) - b) = Some (snd x)).
      { clear. induction js as [|j js IH]; intros ts b x Hx; cbn [length seq combine] in Hx; [destruct Hx|].
        destruct ts as [|t ts]; [destruct Hx|]. cbn [combine] in Hx. destruct Hx as [<-|Hx].
        - cbn [fst snd]. rewrite Nat.sub_diag. repeat split; try reflexivity; lia.
        - destruct (IH ts (S b) x Hx) as (Hb & H1 & H2).
          replace (fst (fst x) - b)%nat with (S (fst (fst x) - S b)) by lia. cbn [nth_error]. repeat split; try assumption; lia. }
      destruct (Hgen _ _ _ _ Hx) as (_ & H1 & H2). rewrite Nat.sub_0_r in *. now split.
  Qed.

  Lemma completions_taking : (cost Completion J (map plain s) <= cost Completion I s)%Q.
  Proof.
    destruct counted_taking as (l & Hl & HlJ & Hin). cbn [cost]. rewrite Hl, HlJ, !sumQ_map. apply sumQ_le.
    intros x Hx. destruct (Hin x Hx) as [Hj Hv]. cbn [fst snd weight taking].
    destruct (Hsound _ (nth_error_In _ _ Hj)) as (_ & _ & Hw & _).
    rewrite !(Qmult_comm (weight (snd (fst x)))). apply Qmult_le_compat_r; [|unfold Qle; cbn; lia].
    rewrite <- Zle_Qle. unfold end_of, ending. cbn [fst snd]. change (until J) with (until I).
    rewrite runs_of_plain, latest_plain. destruct (until I) as [limit|]; [|lia].
    destruct (finished I (snd (fst x)) (runs_of (fst (fst x)) s)) eqn:E.
    - rewrite (finished_taking _ _ _ Hj Hv E). lia.
    - destruct (finished J _ _); lia.
  Qed.

  Lemma last_taking : last_completion J (map plain s) = last_completion I s.
  Proof.
    destruct counted_taking as (l & Hl & HlJ & _). unfold last_completion. rewrite Hl, HlJ. clear Hl HlJ.
    induction l as [|x l IH]; cbn [map fold_right]; [reflexivity|].
    cbn [fst]. now rewrite completion_plain, IH.
  Qed.

  Lemma first_taking : first_arrival J = first_arrival I.
  Proof.
    destruct counted_taking as (l & Hl & HlJ & _). unfold first_arrival. rewrite Hl, HlJ. destruct l as [|x l]; [reflexivity|].
    cbn [map snd arrival taking]. clear Hl HlJ. induction l as [|y l IH]; cbn [map fold_right snd arrival taking]; [reflexivity|].
    now rewrite IH.
  Qed.

  Lemma arrivals_taking : (arrivals J == arrivals I)%Q.
  Proof.
    unfold arrivals. rewrite !sum_fractions_is, <- !sumQ_counted. destruct counted_taking as (l & Hl & HlJ & _).
    rewrite Hl, HlJ, !sumQ_map. reflexivity.
  Qed.

  Lemma cost_taking o : (cost o J (map plain s) <= cost o I s)%Q.
  Proof.
    destruct o.
    - exact completions_taking.
    - rewrite !flow_is, arrivals_taking. apply Qplus_le_compat; [exact completions_taking|apply Qle_refl].
    - cbn [cost]. rewrite last_taking, first_taking. apply Qle_refl.
  Qed.

  Lemma earned_taking round : (earned I round s <= earned J round (map plain s))%Q.
  Proof.
    destruct counted_taking as (l & Hl & HlJ & Hin). unfold earned. rewrite Hl, HlJ, !sumQ_map. apply sumQ_le.
    intros x Hx. destruct (Hin x Hx) as [Hj Hv]. cbn [fst snd]. rewrite completion_plain, runs_of_plain.
    assert (Hu : (0 <= utility I round (snd (fst x)) ((completion s (fst (fst x)) - 1) / round))%Q).
    { destruct (Hsound _ (nth_error_In _ _ Hj)) as (_ & _ & _ & Hworth). unfold utility.
      assert (H0 : (0 <= worth (snd (fst x)))%Q) by (unfold Qle; cbn; lia).
      destruct (match until I with Some limit => limit <=? _ | None => false end); [apply Qle_refl|].
      destruct (deadline (snd (fst x))); [destruct (_ <=? _); [exact H0|apply Qle_refl]|].
      apply Qmult_le_0_compat; [exact H0|]. unfold Qle. cbn. lia. }
    destruct (finished I (snd (fst x)) (runs_of (fst (fst x)) s)) eqn:E.
    - rewrite (finished_taking _ _ _ Hj Hv E). apply Qle_refl.
    - destruct (finished J _ _); [exact Hu|apply Qle_refl].
  Qed.
End Taking.

(** ** Bounds of such instances *)

Definition bound_of (o : objective) (by_them : multipliers) (J : instance) : option Q :=
  option_map snd (cost_and_bound (Certificate J [] o by_them 0 0 1) []).

Lemma same_bound (a other x b bound : Q) : Some (a, b) = Some (x, bound) -> exists y, Some (other, b) = Some (y, bound).
Proof. intros [= _ ->]. now exists other. Qed.

Lemma bound_of_any c some others cost_s bound : cost_and_bound c some = Some (cost_s, bound) ->
  exists other, cost_and_bound c others = Some (other, bound).
Proof.
  unfold cost_and_bound. cbv zeta. destruct (of_objective c), (by_multipliers c);
    lazymatch goal with
    | |- (if ?x then _ else _) = _ -> _ => destruct x
    | |- option_map _ ?x = _ -> _ => destruct x; unfold option_map
    | |- _ => idtac
    end;
    lazymatch goal with
    | |- None = _ -> _ => intros H; discriminate H
    | |- Some (?a, ?b) = _ -> exists _, Some (?other, _) = _ => exact (same_bound a other _ b bound)
    end.
Qed.

Theorem bound_of_sound o by_them J bound s :
  sound J -> least_start J = 0 -> (forall r, In r s -> 0 <= overhead r) -> feasible J s ->
  bound_of o by_them J = Some bound -> (bound <= cost o J s)%Q.
Proof.
  intros Hsound Hstart Hover Hs. unfold bound_of. set (c := Certificate J [] o by_them 0 0 1).
  destruct (cost_and_bound c []) as [[x b]|] eqn:E; [|discriminate]. cbn [option_map snd]. intros [= <-].
  destruct (bound_of_any c [] (each J s) x b E) as (y & Hy).
  destruct (cost_and_bound_sound c s y b Hsound ltac:(cbn [of_instance c]; lia) Hy) as [_ H].
  apply (H s Hs). intros k j _ _. cbn [of_instance c]. rewrite Hstart. apply sum_nonneg. intros r Hr.
  apply in_runs_of in Hr. now apply Hover.
Qed.

(** The most that is earned, at one row of prices. *)
Definition most_of_rows (round : Z) (u : Q) (prices : list Z) (J : instance) : option Q :=
  if (1 <=? round) && (0 <=? Qnum u) && forallb (fun x => 0 <=? x) prices
  then Some (most_earned (UtilityCertificate J [] round false [prices] u 0 0 1)) else None.

Lemma most_of_rows_sound round u prices J most s :
  sound J -> least_start J = 0 -> (forall r, In r s -> 0 <= overhead r) -> feasible J s ->
  most_of_rows round u prices J = Some most -> (earned J round s <= most)%Q.
Proof.
  intros Hsound Hstart Hover Hs. unfold most_of_rows. destruct (_ && _ && _) eqn:Hcheck; [|discriminate]. intros [= <-].
  rewrite !andb_true_iff, !Z.leb_le, forallb_forall in Hcheck. destruct Hcheck as ((Hround & Hu) & Hprices).
  assert (Hpaid : starts_are_paid J s).
  { intros k j _ _. rewrite Hstart. apply sum_nonneg. intros r Hr. apply in_runs_of in Hr. now apply Hover. }
  eapply Qle_trans; [apply earned_with_starts; try eassumption; lia|].
  unfold most_earned, priced. cbn [by_type utility_instance rows round_length hd].
  set (B := with_starts J). set (all := repeat prices _).
  set (c := UtilityCertificate J [] round false [prices] u 0 0 1).
  assert (Heach : (0 <= each_tick c)%Q) by (unfold each_tick, Qle; cbn; lia).
  rewrite sum_fractions_is, <- (sumQ_counted B (payoff B round all (rounds_in all) (each_tick c))).
  apply utility_at_most; try assumption.
  - apply sound_with_starts; [exact Hsound|lia].
  - intros row Hrow. assert (E : row = prices) by (unfold all in Hrow; now apply repeat_spec in Hrow).
    subst row. split.
    + unfold rounds_in, all. cbn [repeat hd]. reflexivity.
    + intros x Hx. apply Z.leb_le. now apply Hprices.
  - apply feasible_with_starts; try assumption. lia.
Qed.
