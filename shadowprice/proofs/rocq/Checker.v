(** The checker: it answers yes only where the certificate proves its claim ([check_sound]). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation Sorting.Mergesort Orders.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span.
Import ListNotations.
Open Scope Z_scope.

(** ** Lists in order; nothing below relies on how they were sorted *)

Module ByFirst <: TotalLeBool.
  Definition t : Type := Z * Z.
  Definition leb (x y : t) : bool := fst x <=? fst y.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End ByFirst.
Module SortOffers := Sort ByFirst.

Module ByJobAndStart <: TotalLeBool.
  Definition t : Type := run.
  Definition leb (x y : t) : bool :=
    (of_job x <? of_job y)%nat || (Nat.eqb (of_job x) (of_job y) && (start x <=? start y)).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof.
    intros x y. unfold leb. destruct (Nat.ltb_spec (of_job x) (of_job y)); [now left|].
    destruct (Nat.ltb_spec (of_job y) (of_job x)); [now right|]. cbn.
    assert (of_job x = of_job y) as -> by lia. rewrite Nat.eqb_refl. cbn. rewrite !Z.leb_le. lia.
  Qed.
End ByJobAndStart.
Module SortRuns := Sort ByJobAndStart.

(** A change of the GPUs held on a node: (node, tick, more or fewer). *)
Definition event : Type := nat * Z * Z.
Definition event_node (e : event) : nat := fst (fst e).
Definition event_tick (e : event) : Z := snd (fst e).

Module ByNodeAndTick <: TotalLeBool.
  Definition t : Type := event.
  Definition leb (x y : t) : bool :=
    (event_node x <? event_node y)%nat
    || (Nat.eqb (event_node x) (event_node y)
        && ((event_tick x <? event_tick y)
            || ((event_tick x =? event_tick y) && (snd x <=? snd y)))).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof.
    intros x y. unfold leb. destruct (Nat.ltb_spec (event_node x) (event_node y)); [now left|].
    destruct (Nat.ltb_spec (event_node y) (event_node x)); [now right|]. cbn.
    assert (event_node x = event_node y) as -> by lia. rewrite Nat.eqb_refl. cbn.
    destruct (Z.ltb_spec (event_tick x) (event_tick y)); [now left|].
    destruct (Z.ltb_spec (event_tick y) (event_tick x)); [now right|]. cbn.
    assert (event_tick x = event_tick y) as -> by lia. rewrite Z.eqb_refl. cbn.
    rewrite !Z.leb_le. lia.
  Qed.
End ByNodeAndTick.
Module SortEvents := Sort ByNodeAndTick.

Module LatestFirst <: TotalLeBool.
  Definition t : Type := numbered_job.
  Definition leb (x y : t) : bool := arrival (snd y) <=? arrival (snd x).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End LatestFirst.
Module SortJobs := Sort LatestFirst.

(** The first elements that pass a test, and those after them. *)
Fixpoint span {A} (test : A -> bool) (l : list A) : list A * list A :=
  match l with
  | [] => ([], [])
  | x :: rest =>
      if test x then let '(mine, others) := span test rest in (x :: mine, others) else ([], l)
  end.

Lemma span_app {A} (test : A -> bool) l mine others :
  span test l = (mine, others) -> l = mine ++ others /\ forall x, In x mine -> test x = true.
Proof.
  revert mine others. induction l as [|x l IH]; cbn; intros mine others H.
  - injection H as <- <-. split; [reflexivity|intros x []].
  - destruct (test x) eqn:Hx.
    + destruct (span test l) as [m o]. injection H as <- <-.
      destruct (IH m o eq_refl) as [-> Hm]. split; [reflexivity|].
      intros y [<-|Hy]; [assumption|now apply Hm].
    + injection H as <- <-. split; [reflexivity|intros y []].
Qed.

Lemma filter_all {A} (test : A -> bool) l : (forall x, In x l -> test x = true) -> filter test l = l.
Proof.
  induction l as [|x l IH]; cbn; intros H; [reflexivity|].
  rewrite (H x (or_introl eq_refl)). f_equal. apply IH. intros; apply H; now right.
Qed.

Lemma filter_none {A} (test : A -> bool) l : (forall x, In x l -> test x = false) -> filter test l = [].
Proof.
  induction l as [|x l IH]; cbn; intros H; [reflexivity|].
  rewrite (H x (or_introl eq_refl)). apply IH. intros; apply H; now right.
Qed.

(** ** Instances *)

Definition check_instance_job (j : job) : bool :=
  (0 <=? arrival j) && (1 <=? gang j) && (0 <=? Qnum (weight j))
  && negb (match times j with [] => true | _ => false end)
  && forallb (fun entry => 1 <=? snd entry) (times j).

Lemma check_instance_job_sound j : check_instance_job j = true -> sound_job j.
Proof.
  unfold check_instance_job, sound_job. rewrite !andb_true_iff, !Z.leb_le, forallb_forall.
  intros ((((H1 & H2) & H3) & H4) & H5). repeat split; try assumption.
  - intros E. rewrite E in H4. discriminate.
  - intros entry Hin. specialize (H5 entry Hin). now apply Z.leb_le.
Qed.

(** ** Runs of a job *)

Definition check_piece (I : instance) (j : job) (piece : nat * Z) : bool :=
  (1 <=? snd piece)
  && match nth_error (nodes I) (fst piece) with
     | Some n => match time_on (gpu_type n) j with Some _ => true | None => false end
     | None => false
     end.

Definition check_run (I : instance) (j : job) (r : run) : bool :=
  (arrival j <=? start r) && (start r <? stop r)
  && (0 <=? overhead r) && (overhead r <=? stop r - start r)
  && (sum snd (pieces r) =? gang j)
  && negb (match pieces r with [] => true | _ => false end)
  && forallb (check_piece I j) (pieces r).

Lemma check_run_sound I j r :
  nth_error (jobs I) (of_job r) = Some j -> check_run I j r = true -> run_fits I r.
Proof.
  unfold check_run, run_fits.
  rewrite !andb_true_iff, !Z.leb_le, Z.ltb_lt, Z.eqb_eq, forallb_forall.
  intros Hj ((((((H1 & H2) & H3) & H4) & H5) & H6) & H7). exists j. repeat split; try assumption.
  - intros E. rewrite E in H6. discriminate.
  - specialize (H7 _ H). unfold check_piece in H7. apply andb_prop in H7. now apply Z.leb_le.
  - specialize (H7 _ H). unfold check_piece in H7. apply andb_prop in H7. destruct H7 as [_ H7].
    destruct (nth_error (nodes I) (fst piece)) as [n|]; [|discriminate].
    destruct (time_on (gpu_type n) j) as [t|] eqn:E; [|discriminate]. now exists n, t.
Qed.

Fixpoint one_by_one (runs : list run) : bool :=
  match runs with
  | r :: ((r' :: _) as later) => (stop r <=? start r') && one_by_one later
  | _ => true
  end.

Lemma one_by_one_sound runs :
  (forall r, In r runs -> start r < stop r) -> one_by_one runs = true -> ForallOrdPairs apart runs.
Proof.
  intros Hfit H.
  assert (Hafter : forall l r, (forall x, In x (r :: l) -> start x < stop x) ->
            one_by_one (r :: l) = true -> Forall (fun x => stop r <= start x) l).
  { induction l as [|r' l IH]; intros r Hl Hone; constructor.
    - cbn in Hone. apply andb_prop in Hone. destruct Hone as [Hone _]. now apply Z.leb_le.
    - cbn [one_by_one] in Hone. apply andb_prop in Hone. destruct Hone as [Hfirst Hone].
      apply Z.leb_le in Hfirst.
      specialize (IH r' (fun x Hx => Hl x (or_intror Hx)) Hone).
      rewrite Forall_forall in *. intros x Hx. specialize (IH x Hx).
      pose proof (Hl r' (or_intror (or_introl eq_refl))). lia. }
  induction runs as [|r l IH]; constructor.
  - pose proof (Hafter l r Hfit H) as Hl. rewrite Forall_forall in *.
    intros x Hx. specialize (Hl x Hx). now left.
  - apply IH; [intros x Hx; apply Hfit; now right|].
    destruct l; [reflexivity|]. cbn [one_by_one] in H. now apply andb_prop in H.
Qed.

(** *** Charges: paid before any progress, in full *)

Definition restart_charge (c : charges) (g : Z) : Z :=
  match find (fun entry => g <=? fst entry) (restarts c) with
  | Some entry => snd entry
  | None => snd (last (restarts c) (0, 0))
  end.

Fixpoint same_pieces (p q : list (nat * Z)) : bool :=
  match p, q with
  | [], [] => true
  | x :: p, y :: q => Nat.eqb (fst x) (fst y) && (snd x =? snd y) && same_pieces p q
  | _, _ => false
  end.

Definition owed_at (c : charges) (g : Z) (before : option run) (r : run) : Z :=
  start_charge c
  + match before with
    | None => 0
    | Some b => restart_charge c g + (if same_pieces (pieces b) (pieces r) then 0 else migration c)
    end.

(** What is owed when a run begins: the start, the restart if it is not the first, the move if it holds
    other GPUs, and what runs before it left unpaid. A run makes progress only if it leaves nothing. *)
Fixpoint charges_paid (c : charges) (g owed : Z) (before : option run) (runs : list run) : bool :=
  match runs with
  | [] => true
  | r :: later =>
      let left := owed + owed_at c g before r - overhead r in
      ((left =? 0) || ((0 <? left) && (stop r - start r - overhead r =? 0)))
      && charges_paid c g left (Some r) later
  end.

(** The last tick of the last run completes the job: without it some work would be left. *)
Definition ends_in_time (I : instance) (j : job) (runs : list run) : bool :=
  match rev runs with
  | [] => false
  | r :: _ =>
      (0 <? stop r - start r - overhead r)
      && negb (Qle_bool (1 + (1 # Z.to_pos (pace I j r))) (work I j runs))
  end.

(** Runs whose work counts: the last, where what was done before is lost. *)
Definition counted (I : instance) (runs : list run) : list run :=
  if lost I then match rev runs with [] => [] | r :: _ => [r] end else runs.

(** Where work is lost no run before the last does all of it. *)
Definition done_once (I : instance) (j : job) (runs : list run) : bool :=
  negb (lost I && existsb (fun r => Qle_bool 1 (work I j [r])) (removelast runs)).

Definition check_job (I : instance) (j : job) (runs : list run) : bool :=
  forallb (check_run I j) runs && one_by_one runs && Qle_bool 1 (work I j runs)
  && charges_paid (charged I) (gang j) 0 None runs
  && (ends_in_time I j (counted I runs) && Qle_bool 1 (work I j (counted I runs)) && done_once I j runs).

Fixpoint check_jobs (I : instance) (k : nat) (js : list job) (runs : list run) : bool :=
  match js with
  | [] => match runs with [] => true | _ => false end
  | j :: rest =>
      let '(mine, others) := span (fun r => Nat.eqb (of_job r) k) runs in
      check_job I j mine && check_jobs I (S k) rest others
  end.

Lemma check_jobs_from I js : forall k runs r,
  check_jobs I k js runs = true -> In r runs -> (k <= of_job r)%nat.
Proof.
  induction js as [|j js IH]; cbn; intros k runs r H Hin.
  - destruct runs; [destruct Hin|discriminate].
  - destruct (span _ runs) as [mine others] eqn:Hspan.
    apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
    destruct Hspan as [-> Hmine]. apply in_app_iff in Hin. destruct Hin as [Hin|Hin].
    + specialize (Hmine r Hin). apply Nat.eqb_eq in Hmine. lia.
    + specialize (IH _ _ _ H Hin). lia.
Qed.

Lemma check_jobs_sound I js : forall k runs,
  check_jobs I k js runs = true ->
  forall i j, nth_error js i = Some j -> check_job I j (runs_of (k + i) runs) = true.
Proof.
  induction js as [|j0 js IH]; cbn; intros k runs H i j Hi; [destruct i; discriminate|].
  destruct (span _ runs) as [mine others] eqn:Hspan.
  apply andb_prop in H. destruct H as [Hj H]. apply span_app in Hspan.
  destruct Hspan as [-> Hmine].
  assert (Hfrom := fun r => check_jobs_from I js (S k) others r H).
  unfold runs_of. rewrite filter_app. destruct i as [|i].
  - cbn in Hi. injection Hi as ->. rewrite Nat.add_0_r.
    rewrite (filter_all _ mine Hmine), (filter_none _ others), app_nil_r; [assumption|].
    intros r Hr. specialize (Hfrom r Hr). apply Nat.eqb_neq. lia.
  - rewrite (filter_none _ mine).
    + cbn [app]. replace (k + S i)%nat with (S k + i)%nat by lia. now apply IH.
    + intros r Hr. specialize (Hmine r Hr). apply Nat.eqb_eq in Hmine. apply Nat.eqb_neq. lia.
Qed.

Lemma check_jobs_known I js : forall k runs r,
  check_jobs I k js runs = true -> In r runs -> (of_job r < k + length js)%nat.
Proof.
  induction js as [|j js IH]; cbn; intros k runs r H Hin.
  - destruct runs; [destruct Hin|discriminate].
  - destruct (span _ runs) as [mine others] eqn:Hspan.
    apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
    destruct Hspan as [-> Hmine]. apply in_app_iff in Hin. destruct Hin as [Hin|Hin].
    + specialize (Hmine r Hin). apply Nat.eqb_eq in Hmine. lia.
    + specialize (IH _ _ _ H Hin). lia.
Qed.

(** Completions of all jobs, in one pass over the sorted runs. *)
Definition latest (runs : list run) : Z := fold_right (fun r c => Z.max (stop r) c) 0 runs.

Fixpoint latest_by_job (k : nat) (js : list job) (runs : list run) : list Z :=
  match js with
  | [] => []
  | _ :: rest =>
      let '(mine, others) := span (fun r => Nat.eqb (of_job r) k) runs in
      latest mine :: latest_by_job (S k) rest others
  end.

Lemma latest_by_job_is I js : forall k runs,
  check_jobs I k js runs = true ->
  latest_by_job k js runs = map (completion runs) (seq k (length js)).
Proof.
  induction js as [|j js IH]; cbn; intros k runs H; [reflexivity|].
  destruct (span _ runs) as [mine others] eqn:Hspan.
  apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
  destruct Hspan as [-> Hmine].
  assert (Hfrom := fun r => check_jobs_from I js (S k) others r H). f_equal.
  - unfold completion, runs_of. rewrite filter_app, (filter_all _ mine Hmine).
    rewrite (filter_none _ others), app_nil_r; [reflexivity|].
    intros r Hr. specialize (Hfrom r Hr). apply Nat.eqb_neq. lia.
  - rewrite (IH _ _ H). apply map_ext_in. intros i Hi. apply in_seq in Hi.
    unfold completion, runs_of. rewrite filter_app, (filter_none _ mine); [reflexivity|].
    intros r Hr. specialize (Hmine r Hr). apply Nat.eqb_eq in Hmine. apply Nat.eqb_neq. lia.
Qed.

(** ** GPUs of nodes *)

Definition events (s : schedule) : list event :=
  flat_map (fun r => flat_map (fun piece => [(fst piece, stop r, - snd piece);
                                             (fst piece, start r, snd piece)]) (pieces r)) s.

Fixpoint sweep (most now latest : Z) (l : list event) : bool :=
  match l with
  | [] => true
  | e :: rest =>
      (latest <=? event_tick e) && (now + snd e <=? most)
      && sweep most (now + snd e) (event_tick e) rest
  end.

Definition changed (t : Z) (e : event) : Z := if event_tick e <=? t then snd e else 0.

Lemma sweep_sound most l : forall now latest t,
  now <= most -> sweep most now latest l = true -> now + sum (changed t) l <= most.
Proof.
  induction l as [|e l IH]; cbn [sweep sum]; intros now latest t Hnow H; [lia|].
  apply andb_prop in H. destruct H as [H Hrest]. apply andb_prop in H. destruct H as [_ Hmost].
  apply Z.leb_le in Hmost. unfold changed at 1. destruct (Z.leb_spec (event_tick e) t) as [Ht|Ht].
  - specialize (IH (now + snd e) (event_tick e) t Hmost Hrest). lia.
  - assert (Hzero : forall m n u, t < u -> sweep m n u l = true -> sum (changed t) l = 0).
    { clear. induction l as [|e l IH]; cbn [sweep sum]; intros m n u Hu H; [reflexivity|].
      apply andb_prop in H. destruct H as [H Hrest]. apply andb_prop in H. destruct H as [Hle _].
      apply Z.leb_le in Hle. unfold changed at 1.
      assert (event_tick e <=? t = false) as -> by (apply Z.leb_gt; lia).
      rewrite (IH m (n + snd e) (event_tick e)); [lia|lia|assumption]. }
    rewrite (Hzero _ _ _ Ht Hrest). lia.
Qed.

Fixpoint check_nodes (k : nat) (ns : list node) (l : list event) : bool :=
  match ns with
  | [] => match l with [] => true | _ => false end
  | n :: rest =>
      let '(mine, others) := span (fun e => Nat.eqb (event_node e) k) l in
      (0 <=? gpus n) && match mine with [] => true | e :: _ => sweep (gpus n) 0 (event_tick e) mine end
      && check_nodes (S k) rest others
  end.

Lemma check_nodes_from ns : forall k l e,
  check_nodes k ns l = true -> In e l -> (k <= event_node e)%nat.
Proof.
  induction ns as [|n ns IH]; cbn; intros k l e H Hin.
  - destruct l; [destruct Hin|discriminate].
  - destruct (span _ l) as [mine others] eqn:Hspan.
    apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
    destruct Hspan as [-> Hmine]. apply in_app_iff in Hin. destruct Hin as [Hin|Hin].
    + specialize (Hmine e Hin). apply Nat.eqb_eq in Hmine. lia.
    + specialize (IH _ _ _ H Hin). lia.
Qed.

Lemma check_nodes_sound ns : forall k l,
  check_nodes k ns l = true ->
  forall i n, nth_error ns i = Some n ->
  forall t, sum (changed t) (filter (fun e => Nat.eqb (event_node e) (k + i)) l) <= gpus n.
Proof.
  induction ns as [|n0 ns IH]; cbn; intros k l H i n Hi t; [destruct i; discriminate|].
  destruct (span _ l) as [mine others] eqn:Hspan.
  apply andb_prop in H. destruct H as [Hn H]. apply span_app in Hspan.
  destruct Hspan as [-> Hmine].
  assert (Hfrom := fun e => check_nodes_from ns (S k) others e H).
  rewrite filter_app. destruct i as [|i].
  - cbn in Hi. injection Hi as ->. rewrite Nat.add_0_r.
    rewrite (filter_all _ mine Hmine), (filter_none _ others), app_nil_r.
    + apply andb_prop in Hn. destruct Hn as [Hpos Hsweep]. apply Z.leb_le in Hpos.
      destruct mine as [|e mine]; [cbn; lia|].
      pose proof (sweep_sound _ _ 0 _ t Hpos Hsweep). lia.
    + intros e He. specialize (Hfrom e He). apply Nat.eqb_neq. lia.
  - rewrite (filter_none _ mine).
    + cbn [app]. replace (k + S i)%nat with (S k + i)%nat by lia. now apply IH.
    + intros e He. specialize (Hmine e He). apply Nat.eqb_eq in Hmine. apply Nat.eqb_neq. lia.
Qed.

Lemma held_by_events s k t :
  (forall r, In r s -> start r < stop r) ->
  held s k t = sum (changed t) (filter (fun e => Nat.eqb (event_node e) k) (events s)).
Proof.
  intros Hs. unfold held, events. rewrite sum_filter, sum_flat_map. apply sum_ext. intros r Hr.
  specialize (Hs r Hr). rewrite sum_flat_map.
  transitivity (sum (fun piece => if active t r then if Nat.eqb (fst piece) k then snd piece else 0
                                  else 0) (pieces r)).
  - destruct (active t r); [reflexivity|]. rewrite sum_const. lia.
  - apply sum_ext. intros piece _. cbn [sum]. unfold event_node, changed, event_tick, active.
    cbn [fst snd]. destruct (Nat.eqb (fst piece) k).
    + destruct (Z.leb_spec (start r) t), (Z.ltb_spec t (stop r)), (Z.leb_spec (stop r) t);
        cbn; lia.
    + destruct ((start r <=? t) && (t <? stop r)); lia.
Qed.

(** ** The schedule *)

Definition check_schedule (I : instance) (s : schedule) : bool :=
  check_jobs I 0 (jobs I) s && check_nodes 0 (nodes I) (SortEvents.sort (events s)).

(** Beyond the class: charges are paid, work is done by what counts of it, and no job holds GPUs after the tick that
    completes it. *)
Definition charges_are_paid (I : instance) (s : schedule) : Prop :=
  forall k j, nth_error (jobs I) k = Some j ->
    charges_paid (charged I) (gang j) 0 None (runs_of k s) = true.

Definition work_is_counted (I : instance) (s : schedule) : Prop :=
  forall k j, nth_error (jobs I) k = Some j ->
    ends_in_time I j (counted I (runs_of k s)) = true /\
    (1 <= work I j (counted I (runs_of k s)))%Q /\ done_once I j (runs_of k s) = true.

Lemma check_schedule_sound I s :
  check_schedule I s = true -> feasible I s /\ charges_are_paid I s /\ work_is_counted I s.
Proof.
  unfold check_schedule. intros H. apply andb_prop in H. destruct H as [Hjobs Hnodes].
  assert (Heach := fun k j Hk => check_jobs_sound I (jobs I) 0 s Hjobs k j Hk). cbn in Heach.
  assert (Hrun : forall r, In r s -> exists j, nth_error (jobs I) (of_job r) = Some j /\
                                        check_run I j r = true).
  { intros r Hr. pose proof (check_jobs_known I (jobs I) 0 s r Hjobs Hr) as Hlt. cbn in Hlt.
    destruct (nth_error (jobs I) (of_job r)) as [j|] eqn:Hj.
    - exists j. split; [reflexivity|]. specialize (Heach _ _ Hj). unfold check_job in Heach.
      rewrite !andb_true_iff, forallb_forall in Heach. destruct Heach as ((((Hall & _) & _) & _) & _).
      apply Hall. apply in_runs_of. tauto.
    - apply nth_error_None in Hj. lia. }
  assert (Hlength : forall r, In r s -> start r < stop r).
  { intros r Hr. destruct (Hrun r Hr) as (j & _ & Hcheck). unfold check_run in Hcheck.
    rewrite !andb_true_iff, Z.ltb_lt in Hcheck. tauto. }
  split; [repeat split|split].
  - rewrite Forall_forall. intros r Hr. destruct (Hrun r Hr) as (j & Hj & Hcheck).
    now apply (check_run_sound I j).
  - intros k. destruct (nth_error (jobs I) k) as [j|] eqn:Hj.
    + specialize (Heach _ _ Hj). unfold check_job in Heach. rewrite !andb_true_iff in Heach.
      apply one_by_one_sound; [|tauto]. intros r Hr. apply Hlength. now apply in_runs_of in Hr.
    + assert (runs_of k s = []) as ->; [|constructor]. apply filter_none. intros r Hr.
      pose proof (check_jobs_known I (jobs I) 0 s r Hjobs Hr). apply nth_error_None in Hj.
      apply Nat.eqb_neq. cbn in *. lia.
  - intros k n Hk t. rewrite (held_by_events s k t Hlength).
    pose proof (check_nodes_sound _ 0 _ Hnodes k n Hk t) as Hheld. cbn in Hheld.
    rewrite sum_filter in *.
    erewrite sum_perm; [exact Hheld|]. apply SortEvents.Permuted_sort.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. apply Qle_bool_iff. tauto.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. tauto.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. rewrite <- Qle_bool_iff. tauto.
Qed.
