(** The claim of a certificate, checked: the schedule is one, and no schedule costs less than 1 / ratio of it. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Checker Starts.
Import ListNotations.
Open Scope Z_scope.

(** ** Sums of fractions, evaluated pairwise: denominators are all different *)

Definition addQ (x y : Q) : Q :=
  if Pos.eqb (Qden x) (Qden y) then (Qnum x + Qnum y) # Qden x else (x + y)%Q.

Lemma addQ_is x y : (addQ x y == x + y)%Q.
Proof.
  unfold addQ. destruct (Pos.eqb_spec (Qden x) (Qden y)) as [H|H]; [|reflexivity].
  unfold Qeq, Qplus. cbn. rewrite <- H, Pos2Z.inj_mul. ring.
Qed.

Definition whole (x : Q) : Q := x.

Fixpoint pairs (l : list Q) : list Q :=
  match l with
  | x :: y :: rest => addQ x y :: pairs rest
  | _ => l
  end.

Lemma pairs_sum : forall n l, (length l <= n)%nat -> (sumQ whole (pairs l) == sumQ whole l)%Q.
Proof.
  induction n as [|n IH]; intros l Hl.
  - destruct l; [reflexivity|cbn in Hl; lia].
  - destruct l as [|x [|y l]]; [reflexivity|reflexivity|]. cbn [pairs sumQ]. unfold whole at 1 3 4.
    rewrite addQ_is, IH by (cbn in Hl; lia). ring.
Qed.

Fixpoint total (fuel : nat) (l : list Q) : Q :=
  match l with
  | [] => 0%Q
  | [x] => x
  | _ => match fuel with O => sumQ whole l | S fuel => total fuel (pairs l) end
  end.

Lemma total_is fuel : forall l, (total fuel l == sumQ whole l)%Q.
Proof.
  induction fuel as [|fuel IH]; intros l; destruct l as [|x [|y l]]; cbn [total];
    try reflexivity; try (cbn; unfold whole; ring).
  rewrite IH. now apply (pairs_sum (length (x :: y :: l))).
Qed.

Definition sum_fractions {A} (f : A -> Q) (l : list A) : Q := total 64 (map f l).

Lemma sum_fractions_is {A} (f : A -> Q) l : (sum_fractions f l == sumQ f l)%Q.
Proof.
  unfold sum_fractions. rewrite total_is.
  induction l as [|x l IH]; cbn; [reflexivity|]. now rewrite IH.
Qed.

(** ** Bounds *)

Inductive multipliers := IntervalPrices (grid prices : list Z) | PlanPrices (grid prices : list Z) | Alone | Area.

Fixpoint increasingb (grid : list Z) : bool :=
  match grid with
  | a :: ((b :: _) as later) => (a <? b) && increasingb later
  | _ => true
  end.

Lemma increasingb_sound grid : increasingb grid = true -> increasing grid.
Proof.
  induction grid as [|a [|b later] IH]; intros H; [exact Logic.I|exact Logic.I|].
  cbn [increasingb] in H. apply andb_prop in H. destruct H as [Hab H].
  split; [now apply Z.ltb_lt|now apply IH].
Qed.

Definition check_prices (I : instance) (grid prices : list Z) : bool :=
  negb (match grid with [] => true | _ => false end)
  && increasingb grid && Nat.eqb (length grid) (S (length prices))
  && forallb (fun x => 0 <=? x) prices
  && forallb (fun j => hd 0 grid <=? arrival j) (jobs I).

(** The cost of the last tick of work if the cheapest are taken: no threshold gives more. Nothing
    below relies on that. *)
Fixpoint last_taken (left cost : Z) (offers : list (Z * Z)) : Z :=
  match offers with
  | [] => cost
  | (price, room) :: rest =>
      if room <=? 0 then last_taken left cost rest
      else if left <=? room then price else last_taken (left - room) price rest
  end.

Definition threshold_of (unit : positive) (grid prices : list Z) (j : job) : Z :=
  let p := shortest j in
  let w := Qnum (weight j) * Zpos unit in
  let rent := p * gang j * Zpos (Qden (weight j)) in
  last_taken p 0 (SortOffers.sort (offers (arrival j) p w rent grid prices)).

(** Prices are in units of 2^-20. *)
Definition price_unit : positive := 1048576.

Definition prices_value (I : instance) (grid prices : list Z) : Q :=
  (sum_fractions (least_busy price_unit grid prices (threshold_of price_unit grid prices)) (jobs I)
   - paid I 1 price_unit grid prices)%Q.

Lemma sumQ_numbered I (f : job -> Q) : sumQ (fun kj => f (snd kj)) (numbered I) = sumQ f (jobs I).
Proof.
  unfold numbered. generalize 0%nat. induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|].
  now rewrite IH.
Qed.

Lemma check_prices_sound I grid prices : check_prices I grid prices = true ->
  grid <> [] /\ increasing grid /\ length grid = S (length prices) /\
  (forall x, In x prices -> 0 <= x) /\
  (forall k j, nth_error (jobs I) k = Some j -> hd 0 grid <= arrival j).
Proof.
  unfold check_prices. rewrite !andb_true_iff. intros ((((H1 & H2) & H3) & H4) & H5). repeat split.
  - intros ->. discriminate.
  - now apply increasingb_sound.
  - now apply Nat.eqb_eq.
  - intros x Hx. rewrite forallb_forall in H4. apply Z.leb_le. now apply H4.
  - intros k j Hk. rewrite forallb_forall in H5. apply Z.leb_le. apply H5.
    eapply nth_error_In. eassumption.
Qed.

Lemma prices_value_sound I grid prices s :
  sound I -> feasible I s -> check_prices I grid prices = true ->
  (prices_value I grid prices <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs Hcheck. apply check_prices_sound in Hcheck.
  destruct Hcheck as (H1 & H2 & H3 & H4 & H5).
  unfold prices_value. rewrite sum_fractions_is.
  rewrite <- (sumQ_numbered I). apply weak_duality; try assumption.
  intros s' k j Hs' Hk. now apply least_busy_job with (I := I).
Qed.

(** Prices of plans are in units of 2^-20 of the largest weight, and are 0 before the grid begins. *)
Definition largest_weight (I : instance) : Q :=
  fold_right (fun j most => if Qle_bool (weight j) most then most else weight j) 0%Q (jobs I).

Definition from_zero (grid prices : list Z) : list Z * list Z :=
  match grid with
  | a :: _ => if 0 <? a then (0 :: grid, 0 :: prices) else (grid, prices)
  | [] => (grid, prices)
  end.

(** None where all weights are 0. *)
Definition plans_value (I : instance) (grid prices : list Z) : option Q :=
  let '(grid, prices) := from_zero grid prices in
  match Qnum (largest_weight I) with
  | Zpos over =>
      let under := (Qden (largest_weight I) * price_unit)%positive in
      if check_prices I grid prices
      then Some (sum_fractions (least_plan over under grid prices) (jobs I)
                 - paid I over under grid prices)%Q
      else None
  | _ => None
  end.

Lemma plans_value_sound I grid prices s value :
  sound I -> feasible I s -> plans_value I grid prices = Some value ->
  (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold plans_value. destruct (from_zero grid prices) as [grid' prices'].
  destruct (Qnum (largest_weight I)) as [|over|]; try discriminate.
  destruct (check_prices I grid' prices') eqn:Hcheck; [|discriminate]. intros [= <-].
  apply check_prices_sound in Hcheck. destruct Hcheck as (H1 & H2 & _ & H4 & H5).
  rewrite sum_fractions_is, <- (sumQ_numbered I). apply weak_duality; try assumption.
  intros s' k j Hs' Hk. now apply least_plan_job with (I := I).
Qed.

(** Every job as if it were alone. *)
Definition alone_value (I : instance) : Q :=
  sum_fractions (fun j => (weight j * inject_Z (arrival j + shortest j))%Q) (jobs I).

Lemma alone_value_sound I s : sound I -> feasible I s -> (alone_value I <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold alone_value.
  rewrite sum_fractions_is, <- (sumQ_numbered I (fun j => (weight j * inject_Z (arrival j + shortest j))%Q)).
  cbn [cost]. apply sumQ_le. intros [k j] Hin. cbn [fst snd]. apply in_numbered in Hin.
  destruct (sound_in _ _ _ Hsound Hin) as (_ & _ & Hweight & _).
  rewrite !(Qmult_comm (weight j)). apply Qmult_le_compat_r.
  - rewrite <- Zle_Qle. exact (completion_alone I s k j Hsound Hs Hin).
  - unfold Qle. cbn. lia.
Qed.

(** Jobs from the last that arrives: work of those so far, gangs beyond half of the GPUs one by one. *)
Fixpoint area_value (I : instance) (l : list numbered_job) (r area lone best : Z) : Z :=
  match l with
  | [] => best
  | kj :: rest =>
      let r := Z.min r (arrival (snd kj)) in
      let area := area + area_of kj in
      let lone := lone + alone I kj in
      let span := Z.max (- (- area / capacity I)) lone in
      area_value I rest r area lone
        (Z.max best (Z.max (r + span) (arrival (snd kj) + shortest (snd kj))))
  end.

Lemma area_value_sound I s : sound I -> feasible I s -> 0 < capacity I ->
  forall rest some r area lone best,
  Permutation (some ++ rest) (numbered I) ->
  (forall kj, In kj some -> r <= arrival (snd kj)) ->
  area = sum area_of some -> lone = sum (alone I) some ->
  best <= last_completion I s ->
  area_value I rest r area lone best <= last_completion I s.
Proof.
  intros Hsound Hs Hcap. induction rest as [|kj rest IH]; intros some r area lone best Hperm Hr Harea Hlone Hbest;
    cbn [area_value]; [assumption|].
  set (r' := Z.min r (arrival (snd kj))).
  assert (Hperm' : Permutation ((kj :: some) ++ rest) (numbered I)).
  { etransitivity; [|exact Hperm]. cbn. apply Permutation_middle. }
  assert (Hr' : forall x, In x (kj :: some) -> r' <= arrival (snd x)).
  { intros x [<-|Hx]; [unfold r'; lia|]. specialize (Hr x Hx). unfold r'. lia. }
  pose proof (area_bound I s (kj :: some) rest r' Hsound Hs Hperm' Hr') as H1.
  pose proof (alone_bound I s (kj :: some) rest r' Hsound Hs Hperm' Hr') as H2.
  pose proof (single_bound I s (kj :: some) rest Hsound Hs Hperm' kj (or_introl eq_refl)) as H3.
  pose proof (shortest_positive (snd kj)) as Hp.
  assert (Hk : sound_job (snd kj)).
  { eapply sound_in; [eassumption|]. apply (in_some I (kj :: some) rest Hperm'). now left. }
  specialize (Hp Hk).
  assert (Huntil : r' <= last_completion I s) by (unfold r'; lia).
  cbn [sum] in H1, H2. apply (IH (kj :: some)); try assumption.
  - cbn [sum]. lia.
  - cbn [sum]. lia.
  - assert (- (- (area + area_of kj) / capacity I) <= last_completion I s - r').
    { apply Z.opp_le_mono. rewrite Z.opp_involutive. apply Z.div_le_lower_bound; nia. }
    lia.
Qed.

(** ** Certificates *)

Record certificate := Certificate {
  of_instance : instance;
  of_schedule : schedule;
  of_objective : objective;
  by_multipliers : multipliers;
  claimed_cost : Q;
  claimed_bound : Q;
  claimed_ratio : Q
}.

Definition arrivals (I : instance) : Q :=
  sum_fractions (fun j => (weight j * inject_Z (arrival j))%Q) (jobs I).

Definition completions (I : instance) (ends : list Z) : Q :=
  sum_fractions (fun ej => (weight (snd ej) * inject_Z (fst ej))%Q) (combine ends (jobs I)).

Definition latest_of_all (ends : list Z) : Z := fold_right Z.max 0 ends.

(** Cost of jobs that complete at these ends, and bound; none where the bound is none of the objective. Bounds are
    of jobs that take a start longer. *)
Definition cost_and_bound (c : certificate) (ends : list Z) : option (Q * Q) :=
  let I := of_instance c in
  let B := with_starts I in
  match of_objective c, by_multipliers c with
  | Completion, IntervalPrices grid prices =>
      if check_prices B grid prices
      then Some (completions I ends, prices_value B grid prices) else None
  | Flow, IntervalPrices grid prices =>
      if check_prices B grid prices
      then Some ((completions I ends - arrivals I)%Q, (prices_value B grid prices - arrivals I)%Q)
      else None
  | Completion, PlanPrices grid prices =>
      option_map (pair (completions I ends)) (plans_value B grid prices)
  | Flow, PlanPrices grid prices =>
      option_map (fun value => ((completions I ends - arrivals I)%Q, (value - arrivals I)%Q))
        (plans_value B grid prices)
  | Completion, Alone => Some (completions I ends, alone_value B)
  | Flow, Alone => Some ((completions I ends - arrivals I)%Q, (alone_value B - arrivals I)%Q)
  | Makespan, Area =>
      if 0 <? capacity B
      then Some (inject_Z (latest_of_all ends - first_arrival I),
                 inject_Z (area_value B (SortJobs.sort (numbered B)) (first_arrival I + 2 ^ 200) 0 0 0
                           - first_arrival I))
      else None
  | _, _ => None
  end.

Definition check (c : certificate) : bool :=
  let s := SortRuns.sort (of_schedule c) in
  forallb check_instance_job (jobs (of_instance c))
  && check_charges (charged (of_instance c))
  && check_schedule (of_instance c) s
  && match cost_and_bound c (latest_by_job 0 (jobs (of_instance c)) s) with
     | Some (cost, bound) =>
         Qeq_bool cost (claimed_cost c) && Qle_bool (claimed_bound c) bound
         && Qle_bool 1 (claimed_ratio c)
         && Qle_bool (claimed_cost c) (claimed_ratio c * claimed_bound c)
     | None => false
     end.

(** ** What an answer of yes means *)

Lemma flow_is I s : (cost Flow I s == cost Completion I s - arrivals I)%Q.
Proof.
  unfold arrivals. rewrite sum_fractions_is. cbn [cost].
  rewrite <- (sumQ_numbered I (fun j => (weight j * inject_Z (arrival j))%Q)).
  induction (numbered I) as [|kj l IH]; cbn [sumQ]; [ring|]. rewrite IH.
  unfold Zminus. rewrite inject_Z_plus, inject_Z_opp. ring.
Qed.

Definition ends_of (I : instance) (s : schedule) : list Z :=
  map (completion s) (seq 0 (length (jobs I))).

Lemma completions_is I s : (completions I (ends_of I s) == cost Completion I s)%Q.
Proof.
  unfold completions, ends_of. rewrite sum_fractions_is. cbn [cost]. unfold numbered.
  generalize 0%nat. induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|].
  now rewrite IH.
Qed.

Lemma latest_of_all_is I s : latest_of_all (ends_of I s) = last_completion I s.
Proof.
  unfold latest_of_all, ends_of, last_completion, numbered.
  generalize 0%nat. induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|].
  now rewrite IH.
Qed.

Lemma cost_and_bound_sound c s cost_s bound :
  sound (of_instance c) -> 0 <= start_charge (charged (of_instance c)) ->
  cost_and_bound c (ends_of (of_instance c) s) = Some (cost_s, bound) ->
  (cost_s == cost (of_objective c) (of_instance c) s)%Q /\
  forall other, feasible (of_instance c) other -> starts_are_paid (of_instance c) other ->
    (bound <= cost (of_objective c) (of_instance c) other)%Q.
Proof.
  intros Hsound Hstart. set (I := of_instance c) in *.
  assert (HB := sound_with_starts I Hsound Hstart).
  assert (Hlong : forall other, feasible I other -> starts_are_paid I other ->
            feasible (with_starts I) (map all_progress other))
    by (intros; now apply feasible_with_starts).
  assert (Hcompletions : forall value,
    (forall s', feasible (with_starts I) s' -> (value <= cost Completion (with_starts I) s')%Q) ->
    forall other, feasible I other -> starts_are_paid I other -> (value <= cost Completion I other)%Q).
  { intros value Hvalue other Hother Hpaid. rewrite <- completions_with_starts. now apply Hvalue, Hlong. }
  assert (Hflow : forall value,
    (forall s', feasible (with_starts I) s' -> (value <= cost Completion (with_starts I) s')%Q) ->
    forall other, feasible I other -> starts_are_paid I other -> (value - arrivals I <= cost Flow I other)%Q).
  { intros value Hvalue other Hother Hpaid. rewrite flow_is. apply Qplus_le_compat; [|apply Qle_refl].
    now apply Hcompletions. }
  unfold cost_and_bound. fold I.
  destruct (of_objective c), (by_multipliers c) as [grid prices|grid prices| |]; try discriminate.
  - destruct (check_prices _ _ _) eqn:Hcheck; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply prices_value_sound.
  - destruct (plans_value _ _ _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply (plans_value_sound _ grid prices).
  - intros [= <- <-]. split; [apply completions_is|].
    apply Hcompletions. intros. now apply alone_value_sound.
  - destruct (check_prices _ _ _) eqn:Hcheck; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply prices_value_sound.
  - destruct (plans_value _ _ _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply (plans_value_sound _ grid prices).
  - intros [= <- <-]. split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply alone_value_sound.
  - destruct (0 <? capacity (with_starts I)) eqn:Hcap; [|discriminate].
    apply Z.ltb_lt in Hcap. intros [= <- <-].
    split; [cbn [cost]; now rewrite latest_of_all_is|].
    intros other Hother Hpaid. cbn [cost]. rewrite <- Zle_Qle.
    apply Z.sub_le_mono_r. rewrite <- last_with_starts.
    apply (area_value_sound _ _ HB (Hlong other Hother Hpaid) Hcap _ []); try reflexivity.
    + cbn. symmetry. apply SortJobs.Permuted_sort.
    + intros kj [].
    + unfold last_completion. induction (numbered (with_starts I)); cbn; lia.
Qed.

(** Where the checker says yes, the runs of the file are a schedule of its instance with all charges paid, in which
    the last run of each job does all of it where work is lost, its cost is as claimed, no schedule of the instance that may preempt, in which no two jobs share a GPU and every
    job pays a start, costs less than the bound claimed, and so the schedule costs at most the ratio claimed times
    any other. It is one of these schedules itself. *)
Theorem check_sound c : check c = true ->
  let I := of_instance c in
  exists s, Permutation s (of_schedule c) /\
    feasible I s /\ charges_are_paid I s /\ work_is_counted I s /\ starts_are_paid I s /\
    (cost (of_objective c) I s == claimed_cost c)%Q /\
    forall other, feasible I other -> starts_are_paid I other ->
      (claimed_bound c <= cost (of_objective c) I other)%Q /\
      (cost (of_objective c) I s <= claimed_ratio c * cost (of_objective c) I other)%Q.
Proof.
  unfold check. cbn zeta. rewrite !andb_true_iff, forallb_forall.
  intros (((Hjobs & Hcharged) & Hschedule) & Hclaim).
  assert (Hsound : sound (of_instance c)).
  { unfold sound. rewrite Forall_forall. intros j Hj. apply check_instance_job_sound. now apply Hjobs. }
  assert (Hstart : 0 <= start_charge (charged (of_instance c))).
  { unfold check_charges in Hcharged. rewrite !andb_true_iff, Z.leb_le in Hcharged. tauto. }
  exists (SortRuns.sort (of_schedule c)).
  assert (Hends := Hschedule). unfold check_schedule in Hends. apply andb_prop in Hends.
  destruct Hends as [Hends _]. apply latest_by_job_is in Hends.
  rewrite Hends in Hclaim. fold (ends_of (of_instance c) (SortRuns.sort (of_schedule c))) in Hclaim.
  apply check_schedule_sound in Hschedule. destruct Hschedule as (Hfeasible & Hcharges & Hcounted).
  destruct (cost_and_bound c _) as [[cost_s bound]|] eqn:Hvalue; [|discriminate].
  rewrite !andb_true_iff in Hclaim. destruct Hclaim as (((H1 & H2) & H3) & H4).
  apply Qeq_bool_iff in H1. apply Qle_bool_iff in H2, H3, H4.
  destruct (cost_and_bound_sound c _ _ _ Hsound Hstart Hvalue) as [Hcost Hbound].
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hcharges|]. split; [exact Hcounted|].
  split; [now apply starts_paid|]. split; [rewrite <- Hcost; exact H1|].
  intros other Hother Hpaid. split.
  - eapply Qle_trans; [exact H2|]. now apply Hbound.
  - rewrite <- Hcost, H1. eapply Qle_trans; [exact H4|].
    rewrite !(Qmult_comm (claimed_ratio c)). apply Qmult_le_compat_r.
    + eapply Qle_trans; [exact H2|]. now apply Hbound.
    + eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_sound.
