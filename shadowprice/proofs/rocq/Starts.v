(** Starts that take time: a schedule in which each job pays one is a schedule of longer jobs, of the same cost. *)

From Coq Require Import List ZArith QArith Lia Bool.
From Shadowprice Require Import Sums Schedule Utility Checker.
Import ListNotations.
Open Scope Z_scope.

(** Of the class: every job that is complete has paid a start, in one run or in several. *)
Definition starts_are_paid (I : instance) (s : schedule) : Prop :=
  forall k j, nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
    least_start I <= sum overhead (runs_of k s).

(** ** Who pays all charges pays a start *)

Definition check_charges (c : charges) : bool :=
  (0 <=? start_charge c) && (0 <=? migration c) && forallb (fun entry => 0 <=? snd entry) (restarts c).

Lemma restart_charge_positive c g :
  forallb (fun entry => 0 <=? snd entry) (restarts c) = true -> 0 <= restart_charge c g.
Proof.
  intros H. unfold restart_charge. rewrite forallb_forall in H. destruct (find _ _) as [entry|] eqn:E.
  - apply find_some in E. apply Z.leb_le. now apply H.
  - destruct (restarts c) as [|first rest]; [cbn; lia|].
    apply Z.leb_le, H. assert (Hne : first :: rest <> []) by discriminate.
    rewrite (app_removelast_last (0, 0) Hne) at 2. apply in_app_iff. right. now left.
Qed.

Lemma owed_at_positive c g before r : check_charges c = true -> 0 <= owed_at c g before r.
Proof.
  unfold check_charges, owed_at. rewrite !andb_true_iff, !Z.leb_le. intros ((Hs & Hm) & Hr).
  destruct (goes_on r); [lia|].
  destruct before; [|lia]. pose proof (restart_charge_positive c g Hr).
  destruct (same_pieces _ _); lia.
Qed.

(** Whoever makes progress has paid what he owed. *)
Lemma charges_paid_owed c g runs : forall owed before,
  check_charges c = true -> 0 <= owed -> (forall r, In r runs -> 0 <= overhead r) ->
  charges_paid c g owed before runs = true ->
  (exists r, In r runs /\ ran r <> 0) -> owed <= sum overhead runs.
Proof.
  induction runs as [|r later IH]; intros owed before Hc Howed Hpos Hpaid (x & Hx & Hprogress); [destruct Hx|].
  cbn [charges_paid] in Hpaid. rewrite !andb_true_iff in Hpaid. destruct Hpaid as [[_ Hleft] Hlater].
  pose proof (owed_at_positive c g before r Hc) as Hat.
  assert (Hrest : 0 <= sum overhead later) by (apply sum_nonneg; intros; apply Hpos; now right).
  cbn [sum]. set (left := owed + owed_at c g before r - overhead r) in *.
  apply orb_prop in Hleft. destruct Hleft as [Hzero|Hsome].
  - apply Z.eqb_eq in Hzero. lia.
  - apply andb_prop in Hsome. destruct Hsome as [Hsome Hnone].
    apply Z.ltb_lt in Hsome. apply Z.eqb_eq in Hnone.
    destruct Hx as [->|Hx]; [lia|].
    assert (left <= sum overhead later).
    { apply (IH left (Some r)); try assumption; try lia.
      - intros; apply Hpos; now right.
      - now exists x. }
    lia.
Qed.

Lemma charges_paid_start c g runs :
  check_charges c = true -> (forall r, In r runs -> 0 <= overhead r) ->
  charges_paid c g 0 None runs = true -> (exists r, In r runs /\ ran r <> 0) ->
  start_charge c <= sum overhead runs.
Proof.
  destruct runs as [|r later]; intros Hc Hpos Hpaid (x & Hx & Hprogress); [destruct Hx|].
  cbn [charges_paid] in Hpaid. rewrite !andb_true_iff in Hpaid. destruct Hpaid as [[Hon Hleft] Hlater].
  unfold may_go_on in Hon. rewrite orb_false_r in Hon. apply negb_true_iff in Hon.
  assert (Hrest : 0 <= sum overhead later) by (apply sum_nonneg; intros; apply Hpos; now right).
  unfold owed_at in Hleft, Hlater. rewrite Hon in Hleft, Hlater. cbn [sum].
  set (left := 0 + (start_charge c + 0) - overhead r) in *.
  apply orb_prop in Hleft. destruct Hleft as [Hzero|Hsome].
  - apply Z.eqb_eq in Hzero. lia.
  - apply andb_prop in Hsome. destruct Hsome as [Hsome Hnone].
    apply Z.ltb_lt in Hsome. apply Z.eqb_eq in Hnone.
    destruct Hx as [->|Hx]; [lia|].
    assert (left <= sum overhead later); [|lia].
    apply (charges_paid_owed c g later left (Some r)); try assumption; try lia.
    + intros; apply Hpos; now right.
    + now exists x.
Qed.

Lemma starts_paid I s :
  sound I -> check_charges (charged I) = true -> least_start I <= start_charge (charged I) ->
  feasible I s -> obeys I s -> starts_are_paid I s.
Proof.
  intros Hsound Hc Hleast Hs Hobeys k j Hk Hdone. eapply Z.le_trans; [exact Hleast|]. pose proof (charges_are_paid I s Hobeys k j Hk) as Hcharges.
  pose proof (progress_enough I s k j Hsound Hs Hk Hdone) as Henough.
  pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp.
  apply (charges_paid_start (charged I) (gang j) (runs_of k s) Hc); try assumption.
  - intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (_ & Ho & _). lia.
  - destruct (existsb (fun r => negb (ran r =? 0)) (runs_of k s)) eqn:E.
    + apply existsb_exists in E. destruct E as (r & Hr & Hne). exists r. split; [assumption|].
      apply negb_true_iff, Z.eqb_neq in Hne. exact Hne.
    + exfalso. assert (sum ran (runs_of k s) = 0); [|lia].
      transitivity (sum (fun _ : run => 0) (runs_of k s)); [|rewrite sum_const; lia].
      apply sum_ext. intros r Hr.
      destruct (Z.eqb_spec (ran r) 0) as [|Hne]; [assumption|].
      exfalso. assert (existsb (fun r => negb (ran r =? 0)) (runs_of k s) = true).
      { apply existsb_exists. exists r. split; [assumption|]. apply negb_true_iff, Z.eqb_neq. exact Hne. }
      congruence.
Qed.

(** ** Longer jobs *)

Definition longer (c : Z) (j : job) : job :=
  Job (arrival j) (gang j) (weight j) (map (fun entry => (fst entry, shortest j + c)) (times j))
    (watched j) (worth j) (deadline j) (quota j).

(** The instance whose jobs take a start more than where they are fastest, wherever they can run, and lose nothing. *)
Definition with_starts (I : instance) : instance :=
  Instance (nodes I) (map (longer (least_start I)) (jobs I)) (charged I) false (until I) (per_gpu I)
    None [] (quotas I) (amounts I) (once I) (widest I) (rounds I) (least_start I).

(** A run all of whose ticks are progress. *)
Definition all_progress (r : run) : run :=
  Run (of_job r) (start r) (stop r) 0 (pieces r) (condition r) (uses r) (goes_on r).

Lemma least_of_equals {A} (v : Z) (l : list (A * Z)) :
  fold_right (fun entry least => Z.min (snd entry) least) v (map (fun entry => (fst entry, v)) l) = v.
Proof. induction l as [|x l IH]; cbn; [reflexivity|]. rewrite IH. lia. Qed.

Lemma shortest_longer c j : sound_job j -> shortest (longer c j) = shortest j + c.
Proof.
  intros (_ & _ & _ & Hne & _). set (v := shortest j + c). unfold shortest at 1, longer. cbn [times].
  fold v. destruct (times j) as [|e l]; [congruence|]. cbn [map snd]. apply least_of_equals.
Qed.

Lemma time_on_longer c ty n j t : time_on ty n j = Some t -> time_on ty n (longer c j) = Some (shortest j + c).
Proof.
  unfold time_on, longer. cbn [times]. set (v := shortest j + c). clearbody v.
  induction (times j) as [|e l IH]; cbn; [discriminate|].
  destruct (Nat.eqb (fst (fst e)) ty && Nat.eqb (snd (fst e)) n); cbn; [reflexivity|exact IH].
Qed.

Lemma nth_with_starts I k :
  nth_error (jobs (with_starts I)) k = option_map (longer (least_start I)) (nth_error (jobs I) k).
Proof. cbn. apply nth_error_map. Qed.

Lemma nth_with_starts_inv I k j' : nth_error (jobs (with_starts I)) k = Some j' ->
  exists j, nth_error (jobs I) k = Some j /\ j' = longer (least_start I) j.
Proof.
  rewrite nth_with_starts. destruct (nth_error (jobs I) k) as [j|]; cbn; [|discriminate].
  intros [= <-]. now exists j.
Qed.

Lemma numbered_with_starts I :
  numbered (with_starts I)
  = map (fun kj => (fst kj, longer (least_start I) (snd kj))) (numbered I).
Proof.
  unfold numbered. cbn [jobs with_starts]. rewrite map_length. generalize 0%nat.
  induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|]. now rewrite IH.
Qed.

Lemma counts_with_starts I c j : counts (with_starts I) (longer c j) = counts I j.
Proof. reflexivity. Qed.

Lemma counted_with_starts I :
  counted (with_starts I)
  = map (fun kj => (fst kj, longer (least_start I) (snd kj))) (counted I).
Proof.
  unfold counted. rewrite numbered_with_starts. induction (numbered I) as [|kj l IH]; cbn [map filter]; [reflexivity|].
  cbn [snd]. rewrite counts_with_starts. destruct (counts I (snd kj)); cbn [map]; now rewrite IH.
Qed.

Lemma runs_all_progress k s : runs_of k (map all_progress s) = map all_progress (runs_of k s).
Proof.
  unfold runs_of. induction s as [|r s IH]; cbn; [reflexivity|]. rewrite IH.
  now destruct (Nat.eqb (of_job r) k).
Qed.

Lemma latest_all_progress runs : latest (map all_progress runs) = latest runs.
Proof. unfold latest. induction runs as [|r l IH]; cbn; [reflexivity|]. now rewrite IH. Qed.

Lemma completion_all_progress s k : completion (map all_progress s) k = completion s k.
Proof. unfold completion. rewrite runs_all_progress. apply latest_all_progress. Qed.

Lemma held_all_progress s n t : held (map all_progress s) n t = held s n t.
Proof. unfold held. induction s as [|r s IH]; cbn [map sum]; [reflexivity|]. now rewrite IH. Qed.

Lemma sound_with_starts I : sound I -> 0 <= least_start I -> sound (with_starts I).
Proof.
  intros [H _] Hc. split; [|discriminate]. rewrite Forall_forall in *. intros j' Hin.
  apply in_map_iff in Hin. destruct Hin as (j & <- & Hj). specialize (H j Hj).
  pose proof (shortest_positive j H). destruct H as (Ha & Hg & Hw & Hne & _ & Hworth).
  unfold sound_job, longer. cbn. repeat split; try assumption.
  - intros E. apply map_eq_nil in E. contradiction.
  - intros entry Hentry. apply in_map_iff in Hentry. destruct Hentry as (e & <- & _). cbn. lia.
Qed.

Lemma pace_with_starts I j r :
  0 <= shortest j + least_start I ->
  (forall piece, In piece (pieces r) -> exists n t,
     nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) (condition r) j = Some t) ->
  pieces r <> [] ->
  pace (with_starts I) (longer (least_start I) j) (all_progress r)
  = shortest j + least_start I.
Proof.
  set (c := least_start I). intros Hv Hpieces Hne. unfold pace. cbn [pieces all_progress nodes with_starts condition].
  assert (H : forall l, (forall piece, In piece l -> In piece (pieces r)) ->
    fold_right (fun piece slowest =>
       match nth_error (nodes I) (fst piece) with
       | Some n => match time_on (gpu_type n) (condition r) (longer c j) with
                   | Some t => Z.max t slowest | None => slowest end
       | None => slowest
       end) 0 l = match l with [] => 0 | _ => shortest j + c end).
  { induction l as [|p l IH]; cbn; intros Hl; [reflexivity|].
    destruct (Hpieces p (Hl p (or_introl eq_refl))) as (n & t & Hn & Ht).
    rewrite Hn, (time_on_longer c _ _ _ _ Ht), IH by (intros; apply Hl; now right).
    destruct l; lia. }
  rewrite H by trivial. destruct (pieces r); [congruence|reflexivity].
Qed.

(** Where nothing is lost, all the work is what counts. *)
Lemma work_finished I j runs :
  lost I = false -> saves I = None -> faults I = [] ->
  forall done, (done < 1)%Q -> (1 <= done + work I j runs)%Q -> finished_from I j done runs = true.
Proof.
  intros Hlost Hsaves Hfaults. unfold work. induction runs as [|r later IH]; cbn [finished_from sumQ]; intros done Hdone Hwork.
  - exfalso. rewrite Qplus_0_r in Hwork. now apply (Qlt_not_le _ _ Hdone).
  - unfold before_run, cut_short. rewrite Hlost, Hfaults. cbn [andb existsb].
    unfold made. rewrite Hsaves. destruct (Qle_bool 1 _) eqn:E; cbn [orb]; [reflexivity|]. apply IH.
    + apply Qnot_le_lt. intros H. apply Qle_bool_iff in H. congruence.
    + rewrite addQ_is, <- Qplus_assoc. exact Hwork.
Qed.

Lemma finished_with_starts I s k j :
  sound I -> 0 <= least_start I -> feasible I s -> starts_are_paid I s ->
  nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
  finished (with_starts I) (longer (least_start I) j) (map all_progress (runs_of k s)) = true.
Proof.
  intros Hsound Hc Hs Hpaid Hk Hdone.
  set (c := least_start I) in *. set (p := shortest j + c).
  pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp.
  assert (Hpace : forall r, In r (runs_of k s) -> pace (with_starts I) (longer c j) (all_progress r) = p).
  { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (_ & _ & _ & Hne & Hpieces).
    apply pace_with_starts; [lia| |assumption].
    intros piece Hin. now destruct (Hpieces piece Hin). }
  pose proof (progress_enough I s k j Hsound Hs Hk Hdone) as Henough.
  pose proof (Hpaid k j Hk Hdone) as Hstart. fold c in Hstart.
  assert (Hsum : p <= sum (fun r => stop r - start r) (runs_of k s)).
  { transitivity (sum ran (runs_of k s) + sum overhead (runs_of k s)).
    - unfold p. lia.
    - rewrite <- sum_add. apply Z.eq_le_incl. apply sum_ext. unfold ran. intros; lia. }
  apply work_finished; try reflexivity. rewrite Qplus_0_l. unfold work.
  assert (Hwork : (sumQ (fun r => share (with_starts I) (longer c j) r (ran r)) (map all_progress (runs_of k s))
                   == sum (fun r => (stop r - start r)%Z) (runs_of k s) # Z.to_pos p)%Q).
  { rewrite <- sumQ_same_denominator. clear Hsum Hstart Henough Hdone.
    induction (runs_of k s) as [|r l IH]; cbn [map sumQ]; [reflexivity|].
    rewrite IH by (intros; apply Hpace; now right). unfold share. rewrite Hpace by now left.
    unfold ran. cbn [start stop overhead all_progress]. rewrite Z.sub_0_r. reflexivity. }
  rewrite Hwork. unfold Qle. cbn [Qnum Qden]. rewrite Z2Pos.id by lia. lia.
Qed.

Lemma feasible_with_starts I s :
  sound I -> 0 <= least_start I -> feasible I s -> starts_are_paid I s ->
  feasible (with_starts I) (map all_progress s).
Proof.
  intros Hsound Hc Hs Hpaid. assert (Hwhole := Hs). destruct Hs as (Hfits & Happart & Hheld & Hall).
  rewrite Forall_forall in Hfits. repeat split.
  - rewrite Forall_forall. intros r' Hin. apply in_map_iff in Hin. destruct Hin as (r & <- & Hr).
    destruct (Hfits r Hr) as (j & Hj & Ht & Ho & Hg & Hne & Hpieces).
    exists (longer (least_start I) j). cbn [of_job start stop overhead pieces condition all_progress].
    split; [now rewrite nth_with_starts, Hj|]. cbn [arrival gang longer].
    split; [exact Ht|]. split; [lia|]. split; [exact Hg|]. split; [exact Hne|].
    intros piece Hin. destruct (Hpieces piece Hin) as (Hone & n & t & Hn & Htime). split; [exact Hone|].
    exists n, (shortest j + least_start I). split; [exact Hn|]. now apply time_on_longer with (t := t).
  - intros k. rewrite runs_all_progress. specialize (Happart k). induction Happart as [|r l Hl _ IH]; cbn; constructor.
    + rewrite Forall_forall in *. intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & Hy).
      exact (Hl y Hy).
    + exact IH.
  - intros k n Hk t. rewrite held_all_progress. now apply Hheld.
  - intros k j' Hk Hcounts Huntil. apply nth_with_starts_inv in Hk. destruct Hk as (j & Hk & ->).
    rewrite runs_all_progress. apply finished_with_starts; try assumption. now apply Hall.
Qed.

Lemma completions_with_starts I s :
  sound I -> 0 <= least_start I -> feasible I s -> starts_are_paid I s ->
  (cost Completion (with_starts I) (map all_progress s) <= cost Completion I s)%Q.
Proof.
  intros Hsound Hc Hs Hpaid. cbn [cost].
  assert (H : forall kj, In kj (counted I) ->
    end_of (with_starts I) (map all_progress s) (fst kj, longer (least_start I) (snd kj))
    <= end_of I s kj).
  { intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk _]. unfold end_of, ending. cbn [fst snd].
    cbn [until with_starts]. rewrite runs_all_progress, latest_all_progress.
    destruct (until I) as [limit|]; [|lia].
    destruct (finished I j (runs_of k s)) eqn:E.
    - rewrite (finished_with_starts I s k j Hsound Hc Hs Hpaid Hk E). lia.
    - destruct (finished (with_starts I) _ _); lia. }
  rewrite counted_with_starts.
  assert (Hw : forall kj, In kj (counted I) -> (0 <= weight (snd kj))%Q).
  { intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk _].
    destruct (sound_in _ _ _ Hsound Hk) as (_ & _ & Hweight & _). unfold Qle. cbn in *. lia. }
  induction (counted I) as [|kj l IH]; cbn [map sumQ]; [apply Qle_refl|].
  apply Qplus_le_compat; [|apply IH; [intros x Hx; apply H; now right|intros x Hx; apply Hw; now right]].
  cbn [snd weight longer]. rewrite !(Qmult_comm (weight (snd kj))).
  apply Qmult_le_compat_r; [|apply Hw; now left]. rewrite <- Zle_Qle. apply H. now left.
Qed.

Lemma last_with_starts I s : last_completion (with_starts I) (map all_progress s) = last_completion I s.
Proof.
  unfold last_completion. rewrite counted_with_starts.
  induction (counted I) as [|kj l IH]; cbn [map fold_right]; [reflexivity|].
  rewrite IH. cbn [fst]. now rewrite completion_all_progress.
Qed.

Lemma first_with_starts I : first_arrival (with_starts I) = first_arrival I.
Proof.
  unfold first_arrival. rewrite counted_with_starts. destruct (counted I) as [|kj l]; [reflexivity|].
  cbn [map snd arrival longer]. induction l as [|x l IH]; cbn [map fold_right snd arrival longer]; [reflexivity|].
  now rewrite IH.
Qed.

Lemma earned_with_starts I round s :
  sound I -> 0 <= least_start I -> feasible I s -> starts_are_paid I s ->
  (earned I round s <= earned (with_starts I) round (map all_progress s))%Q.
Proof.
  intros Hsound Hc Hs Hpaid. unfold earned. rewrite counted_with_starts.
  assert (H : forall kj, In kj (counted I) ->
    ((if finished I (snd kj) (runs_of (fst kj) s)
      then utility I round (snd kj) ((completion s (fst kj) - 1) / round) else 0)
     <= (if finished (with_starts I) (longer (least_start I) (snd kj)) (runs_of (fst kj) (map all_progress s))
         then utility I round (snd kj) ((completion s (fst kj) - 1) / round) else 0))%Q).
  { intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk _]. cbn [fst snd].
    pose proof (sound_in _ _ _ Hsound Hk) as Hj.
    destruct (finished I j (runs_of k s)) eqn:E.
    - rewrite runs_all_progress, (finished_with_starts I s k j Hsound Hc Hs Hpaid Hk E). apply Qle_refl.
    - destruct (finished (with_starts I) _ _); [now apply utility_positive|apply Qle_refl]. }
  induction (counted I) as [|kj l IH]; cbn [map sumQ]; [apply Qle_refl|].
  apply Qplus_le_compat; [|apply IH; intros x Hx; apply H; now right].
  cbn [fst snd]. rewrite completion_all_progress. exact (H kj (or_introl eq_refl)).
Qed.
