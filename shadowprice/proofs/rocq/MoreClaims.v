(** Claims by bounds that some classes alone have, or at prices of each job's own. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule Span Checker Starts Claim Lists Begins ListBound Windows Modes Priced Nodes.
Import ListNotations.
Open Scope Z_scope.

(** Lists; prices of gangs by their width; trees of windows of some jobs, by their numbers, whose moments are in parts of
    ticks, and whose prices in a unit; prices of what modes ask for, and of each job's own time where the last end counts;
    or of GPUs and nodes. *)
Inductive more_multipliers := ByLists (grid prices : list Z) (least : Q)
  | ByConfigurations (grid : list Z) (rows : list (Z * list Z))
  | ByWindows (fine : Z) (unit : Q) (those : list nat) (parts : tree)
  | ByModes (table : asks) (prices : mode_prices) (own : option (list Z))
  | ByNodes (table : several) (never : bool) (types : list Z) (rows : list node_row) (own : option (list Z)).

Record more_certificate := MoreCertificate {
  more_instance : instance;
  more_schedule : schedule;
  more_objective : objective;
  more_by : more_multipliers;
  more_cost : Q;
  more_bound : Q;
  more_ratio : Q
}.

(** Schedules that the bound is of: preemptive ones in which who is complete has paid a start; of lists those in which
    jobs begin in full, of modes those in which runs hold what their modes ask for, and of nodes those in which gangs are on several as
    the instance says. *)
Definition of_class (c : more_certificate) (other : schedule) : Prop :=
  feasible (more_instance c) other /\ starts_are_paid (more_instance c) other /\
  match more_by c with
  | ByLists _ _ _ => begins_in_full (more_instance c) other
  | ByModes table _ _ => fed (more_instance c) table other
  | ByNodes table never _ _ _ => spread_rightly (more_instance c) table never other
  | _ => True
  end.

Definition is_last (o : objective) : bool := match o with Makespan => true | _ => false end.

(** *** Windows *)

Definition alone_cost (kj : numbered_job) : Q := (weight (snd kj) * inject_Z (arrival (snd kj) + shortest (snd kj)))%Q.

Definition windows_of (fine : Z) (those : list numbered_job) : list window :=
  map (fun kj => (kj, (fine * (arrival (snd kj) + shortest (snd kj)), None))) those.

(** Least cost of jobs in a tree of windows, which complete no sooner than alone, and of the others as if alone. *)
Definition windows_value (I : instance) (fine : Z) (unit : Q) (mine : numbered_job -> bool) (t : tree) : option Q :=
  if (1 <=? fine) && (0 <=? Qnum unit) && match until I with None => true | Some _ => false end
  then
    match tree_value I fine unit t (windows_of fine (filter mine (counted I))) with
    | Some (Some value) => Some (sum_fractions alone_cost (filter (fun kj => negb (mine kj)) (counted I)) + value)%Q
    | _ => None
    end
  else None.

Lemma windows_value_sound I s fine unit mine t value :
  sound I -> feasible I s -> windows_value I fine unit mine t = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold windows_value. destruct (_ && _ && _) eqn:Hcheck; [|discriminate].
  rewrite !andb_true_iff, !Z.leb_le in Hcheck. destruct Hcheck as ((Hfine & Hunit) & Huntil).
  assert (Hlimit : until I = None) by (destruct (until I); [discriminate|reflexivity]).
  set (ws := windows_of fine (filter mine (counted I))).
  assert (Hfirst : map fst ws = filter mine (counted I)).
  { unfold ws, windows_of. rewrite map_map. cbn [fst]. apply map_id. }
  assert (Hdone : forall kj, In kj (counted I) -> arrival (snd kj) + shortest (snd kj) <= completion s (fst kj)).
  { intros [k j] Hin. apply in_counted in Hin. cbn [fst snd]. apply (completion_alone I s k j Hsound Hs); [apply Hin|].
    destruct Hs as (_ & _ & _ & Hdone). apply Hdone; [apply Hin|apply Hin|exact Hlimit]. }
  pose proof (tree_sound I s fine unit Hsound Hs Hfine Hunit Hlimit t ws) as H. rewrite Hfirst in H.
  destruct (tree_value I fine unit t ws) as [[found|]|]; try discriminate. intros [= <-].
  rewrite sum_fractions_is. cbn [cost]. rewrite (sumQ_split (fun kj => (weight (snd kj) * inject_Z (end_of I s kj))%Q) mine). apply Qplus_le_compat.
  - apply sumQ_le. intros [k j] Hin. apply filter_In in Hin. destruct Hin as [Hin _]. unfold alone_cost. cbn [fst snd].
    specialize (Hdone _ Hin). apply in_counted in Hin. destruct (sound_in _ _ _ Hsound (proj1 Hin)) as (_ & _ & Hw & _).
    rewrite !(Qmult_comm (weight j)). apply Qmult_le_compat_r; [|unfold Qle; cbn; lia].
    rewrite <- Zle_Qle. unfold end_of, ending. rewrite Hlimit. exact Hdone.
  - apply H.
    + intros w Hw. unfold ws, windows_of in Hw. apply in_map_iff in Hw. destruct Hw as (kj & <- & Hin). apply filter_In in Hin.
      destruct Hin as [Hin _]. unfold completes_within. cbn [fst snd]. split; [exact Hin|]. split; [|exact Logic.I].
      specialize (Hdone kj Hin). apply Z.mul_le_mono_nonneg_l; lia.
    + apply NoDup_filter. apply Fluid.nodup_of_fst, counted_distinct.
Qed.

(** Every job as if it were alone, the last. *)
Definition last_alone (I : instance) : Z :=
  fold_right (fun kj last => Z.max (arrival (snd kj) + shortest (snd kj)) last) 0 (counted I).

Lemma last_alone_sound I s : sound I -> feasible I s -> until I = None -> last_alone I <= last_completion I s.
Proof.
  intros Hsound Hs Hlimit. unfold last_alone.
  assert (H : forall l, incl l (counted I) ->
    fold_right (fun kj last => Z.max (arrival (snd kj) + shortest (snd kj)) last) 0 l <= last_completion I s).
  { induction l as [|[k j] l IH]; intros Hincl; cbn [fold_right].
    - unfold last_completion. clear. induction (counted I); cbn; lia.
    - specialize (IH (fun x Hx => Hincl x (or_intror Hx))). assert (Hin := Hincl (k, j) (or_introl eq_refl)).
      apply in_counted in Hin. destruct Hin as [Hk Hcounts]. cbn [snd].
      pose proof (completion_last I s k j Hk Hcounts). destruct Hs as (Hf & Ha & Hh & Hdone).
      pose proof (completion_alone I s k j Hsound (conj Hf (conj Ha (conj Hh Hdone))) Hk (Hdone k j Hk Hcounts Hlimit)). lia. }
  apply H, incl_refl.
Qed.

Definition at_least_alone (I : instance) (found : option Q) : option Q :=
  match until I with
  | None => option_map (fun value => let alone := inject_Z (last_alone (with_starts I)) in if Qle_bool value alone then alone else value) found
  | Some _ => None
  end.

Lemma at_least_alone_sound I s found value :
  sound I -> 0 <= least_start I -> feasible I s -> starts_are_paid I s ->
  (forall v, found = Some v -> (v <= inject_Z (last_completion I s))%Q) ->
  at_least_alone I found = Some value -> (value <= inject_Z (last_completion I s))%Q.
Proof.
  intros Hsound Hstart Hs Hpaid Hfound. unfold at_least_alone. destruct (until I) eqn:Hlimit; [discriminate|].
  destruct found as [v|]; [|discriminate]. cbn [option_map]. intros [= <-].
  pose proof (last_alone_sound (with_starts I) (map all_progress s) (sound_with_starts I Hsound Hstart)
                (feasible_with_starts I s Hsound Hstart Hs Hpaid) Hlimit) as H.
  rewrite last_with_starts in H. destruct (Qle_bool v _); [now rewrite <- Zle_Qle|now apply Hfound].
Qed.

(** Prices are 0 before a grid begins. *)
Definition rows_from_zero (grid : list Z) (rows : list (list Z)) : list Z * list (list Z) :=
  match grid with
  | a :: _ => if 0 <? a then (0 :: grid, map (cons 0) rows) else (grid, rows)
  | [] => (grid, rows)
  end.

Fixpoint whole_from_zero (t : tree) : tree :=
  match t with
  | Cut k moment up_to from_then => Cut k moment (whole_from_zero up_to) (whole_from_zero from_then)
  | Leaf grid rows => let '(grid, rows) := rows_from_zero grid rows in Leaf grid rows
  end.

(** Prices of all gangs, in units of 2^-20 of the largest weight. *)
Definition gang_prices (I : instance) (grid : list Z) (rows : list (Z * list Z)) : tree :=
  Leaf grid (map (fun kj => match find (fun row => fst row =? gang (snd kj)) rows with
                            | Some row => snd row
                            | None => []
                            end) (counted I)).

(** Least weighted sum of completions, or least last one. *)
Definition more_value (c : more_certificate) : option Q :=
  let I := more_instance c in
  match more_by c with
  | ByLists grid prices least =>
      let '(grid, prices) := from_zero grid prices in
      if check_lists I (is_last (more_objective c)) grid prices least then Some least else None
  | ByModes table prices None => if is_last (more_objective c) then None else fluid_of_modes I table prices
  | ByModes table prices (Some own) => if is_last (more_objective c) then at_least_alone I (span_of_modes I table prices own) else None
  | ByNodes table never types rows None =>
      if is_last (more_objective c) then None else fluid_on_nodes I types rows table never
  | ByNodes table never types rows (Some own) =>
      if is_last (more_objective c) then at_least_alone I (span_on_nodes I types rows table never own) else None
  | _ =>
      let B := with_starts I in
      if is_last (more_objective c) then None
      else match more_by c with
           | ByConfigurations grid rows =>
               windows_value B 1 (largest_weight B * (1 # 1048576)) (fun _ => true) (whole_from_zero (gang_prices B grid rows))
           | ByWindows fine unit those parts =>
               windows_value B fine unit (fun kj => existsb (Nat.eqb (fst kj)) those) (whole_from_zero parts)
           | _ => None
           end
  end.

(** What a cost is less than completions, or than the last one. *)
Definition offset (o : objective) (I : instance) : Q :=
  match o with
  | Completion => 0%Q
  | Flow => arrivals I
  | Makespan => inject_Z (first_arrival I)
  end.

Definition ends_of (o : objective) (I : instance) (all : list (job * list run)) : Q :=
  match o with Makespan => inject_Z (latest_of_all I all) | _ => completions I all end.

Definition check_more (c : more_certificate) : bool :=
  let I := more_instance c in
  let s := SortRuns.sort (more_schedule c) in
  check_runs I s
  && Qeq_bool (ends_of (more_objective c) I (by_job 0 (jobs I) s) - offset (more_objective c) I)%Q (more_cost c)
  && Qle_bool 1 (more_ratio c) && Qle_bool (more_cost c) (more_ratio c * more_bound c)
  && match more_by c with
     | ByModes table _ _ => check_fed I table s
     | ByNodes table never _ _ _ => check_spread I table never s
     | _ => true
     end
  && match more_value c with
     | Some value => Qle_bool (more_bound c) (value - offset (more_objective c) I)%Q
     | None => false
     end.

(** All is over by then where somebody runs whenever he can. *)
Definition busy_end (I : instance) : Z :=
  fold_right (fun kj last => Z.max (arrival (snd kj)) last) 0 (counted I) + sum (fun kj => shortest (snd kj)) (counted I).

(** Whether there are more lists than can be gone through; or windows that suffice if all jobs complete while somebody
    runs whenever he can, of which nothing is proven here. *)
Definition beyond_proof (c : more_certificate) : bool :=
  let B := with_starts (more_instance c) in
  match more_by c with
  | ByLists grid prices least =>
      let '(grid, prices) := from_zero grid prices in
      match lists_cost (more_instance c) (is_last (more_objective c)) grid prices least with None => true | Some _ => false end
  | ByWindows fine unit those parts =>
      let mine := fun kj : numbered_job => existsb (Nat.eqb (fst kj)) those in
      let ws := map (fun w => (fst w, (fst (snd w), Some (fine * busy_end B)))) (windows_of fine (filter mine (counted B))) in
      match tree_value B fine unit (whole_from_zero parts) ws with
      | Some (Some value) =>
          Qle_bool (more_bound c) (sum_fractions alone_cost (filter (fun kj => negb (mine kj)) (counted B)) + value
                                   - offset (more_objective c) (more_instance c))
      | _ => false
      end
  | _ => false
  end.

Lemma cost_is_ends o I s : (cost o I s == ends_of o I (each I s) - offset o I)%Q.
Proof.
  destruct o; cbn [ends_of offset].
  - rewrite completions_is. ring.
  - rewrite completions_is. apply flow_is.
  - cbn [cost]. rewrite latest_of_all_is. unfold Zminus. rewrite inject_Z_plus, inject_Z_opp. reflexivity.
Qed.

Lemma more_value_sound c value other :
  sound (more_instance c) -> 0 <= least_start (more_instance c) -> of_class c other -> more_value c = Some value ->
  (value - offset (more_objective c) (more_instance c) <= cost (more_objective c) (more_instance c) other)%Q.
Proof.
  intros Hsound Hstart (Hs & Hpaid & Hclass) Hvalue. set (I := more_instance c) in *.
  assert (H : (value <= match more_objective c with Makespan => inject_Z (last_completion I other) | _ => cost Completion I other end)%Q).
  { assert (Hwindows : forall fine unit mine t, is_last (more_objective c) = false ->
              windows_value (with_starts I) fine unit mine t = Some value -> (value <= cost Completion I other)%Q).
    { intros fine unit mine t _ Hv. eapply Qle_trans; [|now apply completions_with_starts].
      apply (windows_value_sound (with_starts I) _ fine unit mine t); [now apply sound_with_starts|now apply feasible_with_starts|exact Hv]. }
    unfold more_value in Hvalue. fold I in Hvalue. cbn zeta in Hvalue.
    destruct (more_by c) as [grid prices least|grid rows|fine unit those parts|table prices own|table never types rows own].
    - destruct (from_zero grid prices) as [grid' prices']. destruct (check_lists _ _ _ _ _) eqn:Hcheck; [|discriminate].
      injection Hvalue as <-.
      pose proof (lists_bound I other _ grid' prices' least Hsound Hstart Hs Hclass Hcheck) as H.
      destruct (more_objective c); exact H.
    - destruct (is_last (more_objective c)) eqn:Hlast; [discriminate|]. specialize (Hwindows _ _ _ _ eq_refl Hvalue).
      destruct (more_objective c); [exact Hwindows|exact Hwindows|discriminate].
    - destruct (is_last (more_objective c)) eqn:Hlast; [discriminate|]. specialize (Hwindows _ _ _ _ eq_refl Hvalue).
      destruct (more_objective c); [exact Hwindows|exact Hwindows|discriminate].
    - destruct own as [own|]; destruct (is_last (more_objective c)) eqn:Hlast; try discriminate.
      + pose proof (at_least_alone_sound I other _ value Hsound Hstart Hs Hpaid
                      (fun v => span_of_modes_sound I table other prices own v Hsound Hs Hclass) Hvalue) as H.
        destruct (more_objective c); try discriminate. exact H.
      + pose proof (fluid_of_modes_sound I table other prices value Hsound Hs Hclass Hvalue) as H.
        destruct (more_objective c); [exact H|exact H|discriminate].
    - destruct own as [own|]; destruct (is_last (more_objective c)) eqn:Hlast; try discriminate.
      + pose proof (at_least_alone_sound I other _ value Hsound Hstart Hs Hpaid
                      (fun v => span_on_nodes_sound I other types rows table never own v Hsound Hs Hclass) Hvalue) as H.
        destruct (more_objective c); try discriminate. exact H.
      + pose proof (fluid_on_nodes_sound I other types rows table never value Hsound Hs Hclass Hvalue) as H.
        destruct (more_objective c); [exact H|exact H|discriminate]. }
  destruct (more_objective c); cbn [offset].
  - unfold Qminus. setoid_replace (- 0)%Q with 0%Q by reflexivity. rewrite Qplus_0_r. exact H.
  - rewrite flow_is. apply Qplus_le_compat; [exact H|apply Qle_refl].
  - cbn [cost]. unfold Zminus. rewrite inject_Z_plus, inject_Z_opp. apply Qplus_le_compat; [exact H|apply Qle_refl].
Qed.

(** Where the checker says yes, the runs of the file are a schedule of its instance that obeys its rules and is of the
    class, its cost is as claimed, no schedule of the class costs less than the bound claimed, and so the schedule
    costs at most the ratio claimed times any other. *)
Theorem check_more_sound c : check_more c = true ->
  let I := more_instance c in
  exists s, Permutation s (more_schedule c) /\
    obeys I s /\ of_class c s /\
    (cost (more_objective c) I s == more_cost c)%Q /\
    forall other, of_class c other ->
      (more_bound c <= cost (more_objective c) I other)%Q /\
      (cost (more_objective c) I s <= more_ratio c * cost (more_objective c) I other)%Q.
Proof.
  unfold check_more. cbn zeta. rewrite !andb_true_iff. intros (((((Hruns & H1) & H3) & H4) & Hmine) & Hclaim).
  assert (Hcharged : check_charges (charged (more_instance c)) = true /\
            least_start (more_instance c) <= start_charge (charged (more_instance c))).
  { unfold check_runs in Hruns. rewrite !andb_true_iff, !Z.leb_le in Hruns. tauto. }
  apply check_runs_sound in Hruns. destruct Hruns as (Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hall).
  rewrite Hall in H1. set (I := more_instance c) in *. set (s := SortRuns.sort (more_schedule c)) in *.
  apply Qeq_bool_iff in H1. apply Qle_bool_iff in H3, H4. rewrite <- cost_is_ends in H1.
  destruct (more_value c) as [value|] eqn:Hvalue; [|discriminate]. apply Qle_bool_iff in Hclaim.
  exists s. split; [symmetry; apply SortRuns.Permuted_sort|]. split; [exact Hobeys|].
  split.
  { unfold of_class. fold I. split; [exact Hfeasible|]. split; [exact Hpaid|].
    destruct (more_by c); [|exact Logic.I|exact Logic.I| |].
    - apply begins_if_obeys; tauto.
    - now apply check_fed_sound.
    - now apply check_spread_sound. }
  split; [exact H1|]. intros other Hother.
  assert (Hbound : (more_bound c <= cost (more_objective c) I other)%Q).
  { eapply Qle_trans; [exact Hclaim|]. now apply more_value_sound. }
  split; [exact Hbound|]. rewrite H1. eapply Qle_trans; [exact H4|].
  rewrite !(Qmult_comm (more_ratio c)). apply Qmult_le_compat_r; [exact Hbound|].
  eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_more_sound.
