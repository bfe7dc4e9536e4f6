(** Certificates of jobs that run as copies. *)

From Coq Require Import List ZArith QArith Lia Lqa Bool.
From Shadowprice Require Import Sums Schedule Duality Utility Fluid Checker Claim Graphs Scenarios AverageBusy Dealing Copies.
Import ListNotations.
Open Scope Z_scope.

(** ** The schedule *)

Definition check_copy (C : copies) (c : copy) : bool :=
  let r := its_run c in
  match nth_error (jobs (least_work C)) (of_job r), nth_error (copied_jobs C) (of_job r), pieces r with
  | Some j, Some K, [(m, g)] =>
      match nth_error (machines C) m, nth_error (speeds_of K) (condition r) with
      | Some n, Some v =>
          match rate_on K (gpu_type n) with
          | Some rate =>
              (arrival j <=? start r) && (start r <? stop r) && (0 <=? overhead r) && (0 <=? its_steps c)
              && (1 <=? g) && (g <=? gpus n)
              && Qle_bool (inject_Z (its_steps c)) (inject_Z g * rate * v * inject_Z (stop r - start r - overhead r))
          | None => false
          end
      | _, _ => false
      end
  | _, _, _ => false
  end.

Lemma check_copy_sound C c : check_copy C c = true -> copy_fits C c.
Proof.
  unfold check_copy, copy_fits. cbv zeta.
  destruct (nth_error (jobs (least_work C)) _) as [j|] eqn:Hj; [|discriminate].
  destruct (nth_error (copied_jobs C) _) as [K|] eqn:HK; [|discriminate].
  destruct (pieces (its_run c)) as [|[m g] [|]] eqn:Hp; try discriminate.
  destruct (nth_error (machines C) m) as [n|] eqn:Hn; [|discriminate].
  destruct (nth_error (speeds_of K) _) as [v|] eqn:Hv; [|discriminate].
  destruct (rate_on K (gpu_type n)) as [rate|] eqn:Hr; [|discriminate].
  rewrite !andb_true_iff, !Z.leb_le, Z.ltb_lt, Qle_bool_iff. intros H.
  exists j, K, m, g, n, rate, v. intuition.
Qed.

Definition check_copy_runs (C : copies) (s : list copy) : bool :=
  let I := least_work C in
  check_copies_instance C && forallb (check_copy C) s
  && check_use nodes_of_run (map (fun _ => 1) (machines C)) (map its_run s)
  && check_use job_of_run (map (fun _ => most_copies C) (jobs I)) (map its_run s)
  && forallb (fun kj => negb (counts I (snd kj)) || match until I with Some _ => true | None => all_done C s (fst kj) end) (numbered I).

Lemma check_copy_runs_sound C s : check_copy_runs C s = true -> check_copies_instance C = true /\ copies_feasible C s.
Proof.
  unfold check_copy_runs. cbv zeta. rewrite !andb_true_iff, !forallb_forall. intros ((((H1 & H2) & H3) & H4) & H5).
  split; [exact H1|].
  assert (Hfits : forall c, In c s -> copy_fits C c) by (intros c Hc; apply check_copy_sound; now apply H2).
  assert (Hlength : forall r, In r (map its_run s) -> start r < stop r).
  { intros r Hr. apply in_map_iff in Hr. destruct Hr as (c & <- & Hc).
    destruct (Hfits c Hc) as (j & K & m & g & n & rate & v & _ & _ & Ht & _). lia. }
  split; [now rewrite Forall_forall|]. split; [|split].
  - intros m n Hn t. apply (check_use_sound nodes_of_run (map (fun _ => 1) (machines C)) _ Hlength H3).
    now rewrite nth_error_map, Hn.
  - intros k j Hj t. apply (check_use_sound job_of_run (map (fun _ => most_copies C) (jobs (least_work C))) _ Hlength H4).
    now rewrite nth_error_map, Hj.
  - intros k j Hj Hcounts Huntil. specialize (H5 (k, j) (proj2 (in_numbered _ k j) Hj)). cbn [fst snd] in H5.
    rewrite Hcounts, Huntil in H5. exact H5.
Qed.

(** ** The claim *)

Definition unstopped (I : instance) : bool :=
  (1 <=? capacity I) && match until I with None => true | Some _ => false end.

Lemma unstopped_sound I : unstopped I = true -> 1 <= capacity I /\ until I = None.
Proof. unfold unstopped. rewrite andb_true_iff, Z.leb_le. destruct (until I); intros [H1 H2]; [discriminate|now split]. Qed.

Definition copies_bound (o : objective) (by_them : multipliers) (C : copies) : option Q :=
  let I := least_work C in
  let least := match by_them with
               | IntervalPrices grid prices => if check_prices I grid prices then Some (prices_value I grid prices) else None
               | Alone => Some (alone_value I)
               | OneMachine => fluid_value I
               | BusyTimes => if unstopped I then busy_value I else None
               | _ => None
               end in
  match o with
  | Completion => least
  | Flow => option_map (fun value => value - sumQ (fun kj => weight (snd kj) * inject_Z (arrival (snd kj))) (counted I))%Q least
  | Makespan =>
      match by_them with
      | Area _ => if unstopped I
                  then Some (inject_Z (area_value I false (SortJobs.sort (counted I)) (first_arrival I + 2 ^ 200) 0 0 0 - first_arrival I))
                  else None
      | _ => None
      end
  end.

Lemma copies_bound_sound o by_them C s bound :
  check_copies_instance C = true -> copies_feasible C s -> copies_bound o by_them C = Some bound ->
  (bound <= copies_cost o C s)%Q.
Proof.
  intros Hcheck Hs. set (I := least_work C).
  destruct (instance_facts C Hcheck) as (Hsound & _).
  assert (Hn := some_units C s Hcheck Hs).
  assert (Hd := held_of_distinct C s). assert (Hb := held_of_bounds C s).
  assert (He := fun k j w => held_of_enough C s Hcheck Hs k j w).
  assert (Hr := held_of_room C s Hcheck Hs). assert (Ha := all_counted_done C s Hs).
  assert (Hall : forall value, match by_them with
               | IntervalPrices grid prices => if check_prices I grid prices then Some (prices_value I grid prices) else None
               | Alone => Some (alone_value I)
               | OneMachine => fluid_value I
               | BusyTimes => if unstopped I then busy_value I else None
               | _ => None
               end = Some value -> (value <= sumQ (cost_now I (complete_at_last s) (all_done C s)) (counted I))%Q).
  { intros value Hvalue. destruct by_them as [grid prices|grid prices| |one| | |]; try discriminate.
    - destruct (check_prices I grid prices) eqn:Hp; [|discriminate]. assert (E : prices_value I grid prices = value) by congruence.
      rewrite <- E. exact (prices_on_average I (many C s) (held_of C s) _ _ Hsound Hn Hd Hb He Hr Ha grid prices Hp).
    - assert (E : alone_value I = value) by congruence. rewrite <- E.
      exact (alone_on_average I (many C s) (held_of C s) _ _ Hsound Hn Hd Hb He Ha).
    - exact (fluid_on_average I (many C s) (held_of C s) _ _ Hsound Hn Hd Hb He Hr Ha value Hvalue).
    - destruct (unstopped I) eqn:Hu; [|discriminate]. apply unstopped_sound in Hu. destruct Hu as [Hm Hu].
      exact (busy_value_on_average I (many C s) (held_of C s) _ _ Hsound Hn Hd Hb He Hr Ha Hu Hm value Hvalue). }
  unfold copies_bound. cbv zeta. fold I. destruct o; intros H.
  - cbn [copies_cost]. fold I. now apply Hall.
  - cbn [copies_cost]. fold I.
    match type of H with option_map _ ?x = _ => destruct x as [value|] eqn:E; [|discriminate] end.
    cbn [option_map] in H. assert (Eb : (value - sumQ (fun kj => weight (snd kj) * inject_Z (arrival (snd kj))) (counted I))%Q = bound) by congruence.
    rewrite <- Eb. apply Qplus_le_compat; [now apply Hall|apply Qle_refl].
  - destruct by_them as [| | |one| | |]; try discriminate H. destruct (unstopped I) eqn:Hu; [|discriminate H].
    apply unstopped_sound in Hu. destruct Hu as [Hm Hu].
    assert (E : inject_Z (area_value I false (SortJobs.sort (counted I)) (first_arrival I + 2 ^ 200) 0 0 0 - first_arrival I) = bound) by congruence.
    rewrite <- E. cbn [copies_cost]. fold I. rewrite <- Zle_Qle. apply Z.sub_le_mono_r.
    apply (span_on_average I (many C s) (held_of C s) _ _ Hsound Hn Hd Hb He Hr Ha Hu Hm _ []); try reflexivity.
    + cbn. symmetry. apply SortJobs.Permuted_sort.
    + intros kj [].
    + clear. unfold last_of_all. induction (counted I); cbn; lia.
Qed.

Record copy_certificate := CopyCertificate {
  of_copies : copies; copies_in : list copy; copy_objective : objective; copy_multipliers : multipliers;
  copy_cost : Q; copy_bound : Q; copy_ratio : Q
}.

Definition check_copies (c : copy_certificate) : bool :=
  check_copy_runs (of_copies c) (copies_in c)
  && match copies_bound (copy_objective c) (copy_multipliers c) (of_copies c) with
     | Some bound =>
         Qeq_bool (copies_cost (copy_objective c) (of_copies c) (copies_in c)) (copy_cost c)
         && Qle_bool (copy_bound c) bound && Qle_bool 1 (copy_ratio c)
         && Qle_bool (copy_cost c) (copy_ratio c * copy_bound c)
     | None => false
     end.

(** Where the checker says yes, the copies of the file are a schedule of its instance that costs what is claimed, and no
    schedule of such copies costs less than the bound claimed. *)
Theorem check_copies_sound c : check_copies c = true ->
  let C := of_copies c in
  copies_feasible C (copies_in c) /\
  (copies_cost (copy_objective c) C (copies_in c) == copy_cost c)%Q /\
  forall other, copies_feasible C other ->
    (copy_bound c <= copies_cost (copy_objective c) C other)%Q /\
    (copy_cost c <= copy_ratio c * copies_cost (copy_objective c) C other)%Q.
Proof.
  unfold check_copies. cbv zeta. rewrite andb_true_iff. intros (Hruns & Hclaim).
  apply check_copy_runs_sound in Hruns. destruct Hruns as [Hinstance Hfeasible].
  destruct (copies_bound _ _ _) as [bound|] eqn:Hbound; [|discriminate].
  rewrite !andb_true_iff in Hclaim. destruct Hclaim as (((H1 & H2) & H3) & H4).
  apply Qeq_bool_iff in H1. apply Qle_bool_iff in H2, H3, H4.
  split; [exact Hfeasible|]. split; [exact H1|]. intros other Hother.
  assert (Hleast : (copy_bound c <= copies_cost (copy_objective c) (of_copies c) other)%Q).
  { eapply Qle_trans; [exact H2|]. exact (copies_bound_sound _ _ _ other bound Hinstance Hother Hbound). }
  split; [exact Hleast|]. eapply Qle_trans; [exact H4|]. rewrite !(Qmult_comm (copy_ratio c)).
  apply Qmult_le_compat_r; [exact Hleast|]. eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_copies_sound.

(** ** Total utility *)

Record copy_utility_certificate := CopyUtility {
  utility_copies : copies; utility_copies_in : list copy; copy_round : Z; copy_prices : list Z; copy_unit : Q;
  copy_earned : Q; copy_most : Q; copy_multiple : Q
}.

Definition each_unit (c : copy_utility_certificate) : Q :=
  Qnum (copy_unit c) # (Qden (copy_unit c) * Z.to_pos (copy_round c) * per_gpu (least_work (utility_copies c))).

Definition copies_most (c : copy_utility_certificate) : Q :=
  let I := least_work (utility_copies c) in
  (sum_fractions (payoff_of I (copy_round c) (copy_prices c) (each_unit c)) (counted_jobs I)
   + inject_Z (capacity I * (copy_round c * sum same (copy_prices c))) * each_unit c)%Q.

Definition check_copy_utility (c : copy_utility_certificate) : bool :=
  check_copy_runs (utility_copies c) (utility_copies_in c) && (1 <=? copy_round c) && (0 <=? Qnum (copy_unit c))
  && forallb (fun x => 0 <=? x) (copy_prices c)
  && Qle_bool (copy_earned c)
       (sum_fractions (earned_now (least_work (utility_copies c)) (complete_at_last (utility_copies_in c))
                         (all_done (utility_copies c) (utility_copies_in c)) (copy_round c)) (counted (least_work (utility_copies c))))
  && Qle_bool (copies_most c) (copy_most c) && Qle_bool 1 (copy_multiple c)
  && Qle_bool (copy_most c) (copy_multiple c * copy_earned c).

Theorem check_copy_utility_sound c : check_copy_utility c = true ->
  let C := utility_copies c in
  copies_feasible C (utility_copies_in c) /\
  (copy_earned c <= copies_earned C (copy_round c) (utility_copies_in c))%Q /\
  forall other, copies_feasible C other ->
    (copies_earned C (copy_round c) other <= copy_most c)%Q /\
    (copies_earned C (copy_round c) other <= copy_multiple c * copy_earned c)%Q.
Proof.
  unfold check_copy_utility. cbv zeta. rewrite !andb_true_iff. intros (((((((Hruns & Hround) & Hunit) & Hprices) & H1) & H2) & H3) & H4).
  apply check_copy_runs_sound in Hruns. destruct Hruns as [Hinstance Hfeasible].
  apply Z.leb_le in Hround, Hunit. rewrite forallb_forall in Hprices. apply Qle_bool_iff in H1, H2, H3, H4.
  split; [exact Hfeasible|]. split; [rewrite sum_fractions_is in H1; exact H1|]. intros other Hother.
  set (C := utility_copies c) in *. set (I := least_work C).
  assert (Heach : (0 <= each_unit c)%Q) by (unfold each_unit, Qle; cbn [Qnum Qden]; lia).
  assert (Hmost : (copies_earned C (copy_round c) other <= copy_most c)%Q).
  { eapply Qle_trans; [|exact H2]. unfold copies_most. fold C. fold I. rewrite sum_fractions_is.
    destruct (instance_facts C Hinstance) as (Hsound & _).
    exact (rounds_on_average I (many C other) (held_of C other) _ _ Hsound (some_units C other Hinstance Hother)
             (held_of_distinct C other) (held_of_bounds C other) (fun k j w => held_of_enough C other Hinstance Hother k j w)
             (held_of_room C other Hinstance Hother) (copy_round c) (copy_prices c) (each_unit c) Hround Heach
             (fun x Hx => proj1 (Z.leb_le 0 x) (Hprices x Hx)) (times_are_simple C Hinstance)). }
  split; [exact Hmost|]. eapply Qle_trans; [exact Hmost|exact H4].
Qed.

Print Assumptions check_copy_utility_sound.
