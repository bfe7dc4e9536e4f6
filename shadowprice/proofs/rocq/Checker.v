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

(** Jobs by what a unit of their work weighs. *)
Module HeaviestFirst <: TotalLeBool.
  Definition t : Type := Q * numbered_job.
  Definition leb (x y : t) : bool := Qle_bool (fst y) (fst x).
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof.
    intros x y. unfold leb. rewrite !Qle_bool_iff. destruct (Qlt_le_dec (fst x) (fst y)) as [H|H]; [right|now left].
    now apply Qlt_le_weak.
  Qed.
End HeaviestFirst.
Module SortHeaviest := Sort HeaviestFirst.

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
  && forallb (fun entry => 1 <=? snd entry) (times j) && (0 <=? Qnum (worth j)).

Lemma check_instance_job_sound j : check_instance_job j = true -> sound_job j.
Proof.
  unfold check_instance_job, sound_job. rewrite !andb_true_iff, !Z.leb_le, forallb_forall.
  intros (((((H1 & H2) & H3) & H4) & H5) & H6). repeat split; try assumption.
  - intros E. rewrite E in H4. discriminate.
  - intros entry Hin. specialize (H5 entry Hin). now apply Z.leb_le.
Qed.

Definition check_instance (I : instance) : bool :=
  forallb check_instance_job (jobs I)
  && match saves I with Some c => (1 <=? between c) && (0 <=? writing c) | None => true end.

Lemma check_instance_sound I : check_instance I = true -> sound I.
Proof.
  unfold check_instance. rewrite andb_true_iff, forallb_forall. intros [Hjobs Hrule]. split.
  - rewrite Forall_forall. intros j Hj. apply check_instance_job_sound. now apply Hjobs.
  - intros c Hc. rewrite Hc, andb_true_iff, !Z.leb_le in Hrule. exact Hrule.
Qed.

(** ** Runs of a job *)

Definition check_piece (I : instance) (j : job) (c : nat) (piece : nat * Z) : bool :=
  (1 <=? snd piece)
  && match nth_error (nodes I) (fst piece) with
     | Some n => match time_on (gpu_type n) c j with Some _ => true | None => false end
     | None => false
     end.

Definition check_run (I : instance) (j : job) (r : run) : bool :=
  (arrival j <=? start r) && (start r <? stop r)
  && (0 <=? overhead r) && (overhead r <=? stop r - start r)
  && ((gang j <=? sum snd (pieces r)) && (sum snd (pieces r) <=? widest I * gang j))
  && negb (match pieces r with [] => true | _ => false end)
  && forallb (check_piece I j (condition r)) (pieces r).

Lemma check_run_sound I j r :
  nth_error (jobs I) (of_job r) = Some j -> check_run I j r = true -> run_fits I r.
Proof.
  unfold check_run, run_fits.
  rewrite !andb_true_iff, !Z.leb_le, Z.ltb_lt, forallb_forall.
  intros Hj ((((((H1 & H2) & H3) & H4) & H5) & H6) & H7). exists j. repeat split; try tauto.
  - intros E. rewrite E in H6. discriminate.
  - specialize (H7 _ H). unfold check_piece in H7. apply andb_prop in H7. now apply Z.leb_le.
  - specialize (H7 _ H). unfold check_piece in H7. apply andb_prop in H7. destruct H7 as [_ H7].
    destruct (nth_error (nodes I) (fst piece)) as [n|]; [|discriminate].
    destruct (time_on (gpu_type n) (condition r) j) as [t|] eqn:E; [|discriminate]. now exists n, t.
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
    intros x Hx. now apply Hl.
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
  if goes_on r then 0
  else start_charge c
       + match before with
         | None => 0
         | Some b => restart_charge c g + (if same_pieces (pieces b) (pieces r) then 0 else migration c)
         end.

(** A run goes on from the one before at once, on the same GPUs. *)
Definition may_go_on (before : option run) (r : run) : bool :=
  negb (goes_on r)
  || match before with Some b => (stop b =? start r) && same_pieces (pieces b) (pieces r) | None => false end.

(** What is owed when a run begins: the start, the restart if it is not the first, the move if it holds
    other GPUs, and what runs before it left unpaid. A run makes progress only if it leaves nothing. *)
Fixpoint charges_paid (c : charges) (g owed : Z) (before : option run) (runs : list run) : bool :=
  match runs with
  | [] => true
  | r :: later =>
      let left := owed + owed_at c g before r - overhead r in
      may_go_on before r
      && ((left =? 0) || ((0 <? left) && (ran r =? 0)))
      && charges_paid c g left (Some r) later
  end.

(** *** Progress *)

(** The last tick of a run is no progress: a checkpoint is written. *)
Definition idle (I : instance) (n : Z) : bool :=
  match saves I with
  | Some c => (0 <? writing c)
              && (let rest := n mod (between c + writing c) in (rest =? 0) || (between c <? rest))
  | None => false
  end.

(** Whether the last run completes the job, with its last tick, without which some work would be left; none if the
    job holds GPUs after the tick that completes it. *)
Fixpoint completes (I : instance) (j : job) (done : Q) (runs : list run) : option bool :=
  match runs with
  | [] => Some false
  | r :: later =>
      let before := before_run I done r in
      let all := addQ before (share I j r (made I (ran r))) in
      if Qle_bool 1 all
      then match later with
           | [] => if (0 <? ran r) && negb (idle I (ran r))
                      && negb (Qle_bool (1 + (1 # Z.to_pos (pace I j r))) all)
                   then Some true else None
           | _ => None
           end
      else completes I j (if cut_short I r then addQ before (share I j r (saved I (ran r))) else all) later
  end.

Lemma completes_finished I j runs : forall done answer,
  completes I j done runs = Some answer -> finished_from I j done runs = answer.
Proof.
  induction runs as [|r later IH]; cbn [completes finished_from]; intros done answer H; [congruence|].
  destruct (Qle_bool 1 _); cbn [orb]; [|now apply IH].
  destruct later; [|discriminate]. destruct (_ && _ && _); [congruence|discriminate].
Qed.

(** Jobs that count have to be complete, unless schedules were stopped. *)
Definition required (I : instance) (j : job) : bool :=
  counts I j && match until I with None => true | Some _ => false end.

Definition check_progress (I : instance) (j : job) (runs : list run) : bool :=
  match completes I j 0 runs with
  | Some complete => complete || negb (required I j)
  | None => false
  end.

(** Where jobs begin once, all runs but the first go on. *)
Definition begins_once (I : instance) (runs : list run) : bool := negb (once I) || forallb goes_on (tl runs).

(** Where runs are in rounds, all begin with one, and end with one or complete their job. *)
Definition in_rounds (I : instance) (j : job) (runs : list run) : bool :=
  match rounds I with
  | None => true
  | Some round =>
      forallb (fun r => start r mod round =? 0) runs
      && forallb (fun r => stop r mod round =? 0) (removelast runs)
      && (finished I j runs || match rev runs with r :: _ => stop r mod round =? 0 | [] => true end)
  end.

Definition check_job (I : instance) (j : job) (runs : list run) : bool :=
  forallb (check_run I j) runs && one_by_one runs
  && charges_paid (charged I) (gang j) 0 None runs && check_progress I j runs && begins_once I runs && in_rounds I j runs.

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

(** Runs of every job, in one pass over the sorted runs. *)
Fixpoint by_job (k : nat) (js : list job) (runs : list run) : list (job * list run) :=
  match js with
  | [] => []
  | j :: rest =>
      let '(mine, others) := span (fun r => Nat.eqb (of_job r) k) runs in
      (j, mine) :: by_job (S k) rest others
  end.

Definition each (I : instance) (s : schedule) : list (job * list run) :=
  map (fun kj => (snd kj, runs_of (fst kj) s)) (numbered I).

Lemma by_job_is I js : forall k runs,
  check_jobs I k js runs = true ->
  by_job k js runs = map (fun kj => (snd kj, runs_of (fst kj) runs)) (combine (seq k (length js)) js).
Proof.
  induction js as [|j js IH]; cbn [check_jobs by_job length seq combine map fst snd]; intros k runs H; [reflexivity|].
  destruct (span _ runs) as [mine others] eqn:Hspan.
  apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
  destruct Hspan as [-> Hmine].
  assert (Hfrom := fun r => check_jobs_from I js (S k) others r H). f_equal.
  - f_equal. unfold runs_of. rewrite filter_app, (filter_all _ mine Hmine).
    rewrite (filter_none _ others), app_nil_r; [reflexivity|].
    intros r Hr. specialize (Hfrom r Hr). apply Nat.eqb_neq. lia.
  - rewrite (IH _ _ H). apply map_ext_in. intros [i x] Hi. apply in_combine_l, in_seq in Hi. cbn [fst snd].
    f_equal. unfold runs_of. rewrite filter_app, (filter_none _ mine); [reflexivity|].
    intros r Hr. specialize (Hmine r Hr). apply Nat.eqb_eq in Hmine. apply Nat.eqb_neq. lia.
Qed.

(** ** GPUs of nodes *)

(** What is held of a thing at a tick; GPUs of a node are one. *)
Definition in_use (of_run : run -> list (nat * Z)) (s : schedule) (n : nat) (t : Z) : Z :=
  sum (fun r => if active t r
                then sum (fun piece => if Nat.eqb (fst piece) n then snd piece else 0) (of_run r)
                else 0) s.

Definition events (of_run : run -> list (nat * Z)) (s : schedule) : list event :=
  flat_map (fun r => flat_map (fun piece => [(fst piece, stop r, - snd piece);
                                             (fst piece, start r, snd piece)]) (of_run r)) s.

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

Fixpoint check_amounts (k : nat) (ns : list Z) (l : list event) : bool :=
  match ns with
  | [] => match l with [] => true | _ => false end
  | n :: rest =>
      let '(mine, others) := span (fun e => Nat.eqb (event_node e) k) l in
      (0 <=? n) && match mine with [] => true | e :: _ => sweep n 0 (event_tick e) mine end
      && check_amounts (S k) rest others
  end.

Lemma check_amounts_from ns : forall k l e,
  check_amounts k ns l = true -> In e l -> (k <= event_node e)%nat.
Proof.
  induction ns as [|n ns IH]; cbn; intros k l e H Hin.
  - destruct l; [destruct Hin|discriminate].
  - destruct (span _ l) as [mine others] eqn:Hspan.
    apply andb_prop in H. destruct H as [_ H]. apply span_app in Hspan.
    destruct Hspan as [-> Hmine]. apply in_app_iff in Hin. destruct Hin as [Hin|Hin].
    + specialize (Hmine e Hin). apply Nat.eqb_eq in Hmine. lia.
    + specialize (IH _ _ _ H Hin). lia.
Qed.

Lemma check_amounts_sound ns : forall k l,
  check_amounts k ns l = true ->
  forall i n, nth_error ns i = Some n ->
  forall t, sum (changed t) (filter (fun e => Nat.eqb (event_node e) (k + i)) l) <= n.
Proof.
  induction ns as [|n0 ns IH]; cbn; intros k l H i n Hi t; [destruct i; discriminate|].
  destruct (span _ l) as [mine others] eqn:Hspan.
  apply andb_prop in H. destruct H as [Hn H]. apply span_app in Hspan.
  destruct Hspan as [-> Hmine].
  assert (Hfrom := fun e => check_amounts_from ns (S k) others e H).
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

Lemma in_use_by_events of_run s k t :
  (forall r, In r s -> start r < stop r) ->
  in_use of_run s k t = sum (changed t) (filter (fun e => Nat.eqb (event_node e) k) (events of_run s)).
Proof.
  intros Hs. unfold in_use, events. rewrite sum_filter, sum_flat_map. apply sum_ext. intros r Hr.
  specialize (Hs r Hr). rewrite sum_flat_map.
  transitivity (sum (fun piece => if active t r then if Nat.eqb (fst piece) k then snd piece else 0
                                  else 0) (of_run r)).
  - destruct (active t r); [reflexivity|]. rewrite sum_const. lia.
  - apply sum_ext. intros piece _. cbn [sum]. unfold event_node, changed, event_tick, active.
    cbn [fst snd]. destruct (Nat.eqb (fst piece) k).
    + destruct (Z.leb_spec (start r) t), (Z.ltb_spec t (stop r)), (Z.leb_spec (stop r) t);
        cbn; lia.
    + destruct ((start r <=? t) && (t <? stop r)); lia.
Qed.

Definition check_use (of_run : run -> list (nat * Z)) (most : list Z) (s : schedule) : bool :=
  check_amounts 0 most (SortEvents.sort (events of_run s)).

Lemma check_use_sound of_run most s :
  (forall r, In r s -> start r < stop r) -> check_use of_run most s = true ->
  forall k n, nth_error most k = Some n -> forall t, in_use of_run s k t <= n.
Proof.
  intros Hlength Hcheck k n Hk t. rewrite (in_use_by_events of_run s k t Hlength).
  pose proof (check_amounts_sound _ 0 _ Hcheck k n Hk t) as Hheld. cbn in Hheld.
  rewrite sum_filter in *.
  erewrite sum_perm; [exact Hheld|]. apply SortEvents.Permuted_sort.
Qed.

(** ** Rules beyond GPUs *)

(** No run is on a node that is down. *)
Definition nodes_are_up (I : instance) (s : schedule) : bool :=
  forallb (fun r =>
    forallb (fun fault =>
      (stop r <=? snd (fst fault)) || (snd fault <=? start r)
      || negb (existsb (fun piece => Nat.eqb (fst piece) (fst (fst fault))) (pieces r))) (faults I)) s.

(** What a quota allows from the last of its beginnings on. *)
Fixpoint allowed (periods : list (Z * Z)) (t now : Z) : Z :=
  match periods with
  | [] => now
  | (begin, most) :: later => if begin <=? t then allowed later t most else now
  end.

(** Runs of jobs with a quota: (quota, GPUs, run). *)
Definition of_quotas (all : list (job * list run)) : list (nat * Z * run) :=
  flat_map (fun jr => match quota (fst jr) with
                      | Some q => map (fun r => (q, gang (fst jr), r)) (snd jr)
                      | None => []
                      end) all.

(** No run begins with which the jobs of its quota hold more than it has then. *)
Definition within_quotas (I : instance) (all : list (job * list run)) : bool :=
  let runs := of_quotas all in
  forallb (fun x =>
    let '(q, _, r) := x in
    match nth_error (quotas I) q with
    | Some periods =>
        sum (fun y => let '(p, g, other) := y in
                      if Nat.eqb p q && active (start r) other then g else 0) runs
        <=? Zpos (per_gpu I) * allowed periods (start r) 0
    | None => false
    end) runs.

(** Nobody holds GPUs after schedules were stopped, nor after all watched jobs are complete. *)
Definition is_over (I : instance) (s : schedule) (all : list (job * list run)) : bool :=
  match until I with Some limit => forallb (fun r => stop r <=? limit) s | None => true end
  && (negb (forallb (fun jr => negb (watched (fst jr)) || finished I (fst jr) (snd jr)) all)
      || let last := fold_right (fun jr last => if watched (fst jr) then Z.max (latest (snd jr)) last else last) 0 all in
         forallb (fun r => stop r <=? last) s).

(** ** The schedule *)

Definition check_schedule (I : instance) (s : schedule) : bool :=
  check_jobs I 0 (jobs I) s && check_use pieces (map gpus (nodes I)) s && check_use uses (amounts I) s
  && nodes_are_up I s
  && (let all := by_job 0 (jobs I) s in within_quotas I all && is_over I s all).

(** Beyond the class: charges are paid, no job holds GPUs after the tick that completes it, there is as much of other
    things as is held, no run is on a node that is down, quotas are kept, and nobody goes on when all is over. *)
Record obeys (I : instance) (s : schedule) : Prop := Obeys {
  charges_are_paid : forall k j, nth_error (jobs I) k = Some j ->
    charges_paid (charged I) (gang j) 0 None (runs_of k s) = true;
  completed_in_time : forall k j, nth_error (jobs I) k = Some j -> completes I j 0 (runs_of k s) <> None;
  jobs_begin_once : forall k j, nth_error (jobs I) k = Some j -> begins_once I (runs_of k s) = true;
  runs_are_in_rounds : forall k j, nth_error (jobs I) k = Some j -> in_rounds I j (runs_of k s) = true;
  amounts_suffice : forall k n, nth_error (amounts I) k = Some n -> forall t, in_use uses s k t <= n;
  on_nodes_that_are_up : nodes_are_up I s = true;
  quotas_are_kept : within_quotas I (each I s) = true;
  over_in_time : is_over I s (each I s) = true
}.

Lemma check_schedule_sound I s :
  check_schedule I s = true -> feasible I s /\ obeys I s.
Proof.
  unfold check_schedule. cbn zeta. rewrite !andb_true_iff.
  intros ((((Hjobs & Hnodes) & Hamounts) & Hup) & Hquotas & Hover).
  rewrite (by_job_is I _ _ _ Hjobs) in Hquotas, Hover. fold (numbered I) in Hquotas, Hover.
  fold (each I s) in Hquotas, Hover.
  assert (Heach := fun k j Hk => check_jobs_sound I (jobs I) 0 s Hjobs k j Hk). cbn in Heach.
  assert (Hrun : forall r, In r s -> exists j, nth_error (jobs I) (of_job r) = Some j /\
                                        check_run I j r = true).
  { intros r Hr. pose proof (check_jobs_known I (jobs I) 0 s r Hjobs Hr) as Hlt. cbn in Hlt.
    destruct (nth_error (jobs I) (of_job r)) as [j|] eqn:Hj.
    - exists j. split; [reflexivity|]. specialize (Heach _ _ Hj). unfold check_job in Heach.
      rewrite !andb_true_iff, forallb_forall in Heach. destruct Heach as (((((Hall & _) & _) & _) & _) & _).
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
  - intros k n Hk t. apply (check_use_sound pieces (map gpus (nodes I)) s Hlength Hnodes).
    now apply map_nth_error.
  - intros k j Hj Hcounts Huntil. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. destruct Heach as (((_ & Hprogress) & _) & _). unfold check_progress in Hprogress.
    destruct (completes I j 0 (runs_of k s)) as [complete|] eqn:E; [|discriminate].
    apply completes_finished in E. unfold required in Hprogress. rewrite Hcounts, Huntil in Hprogress.
    cbn in Hprogress. rewrite orb_false_r in Hprogress. unfold finished. congruence.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. tauto.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. destruct Heach as (((_ & Hprogress) & _) & _). unfold check_progress in Hprogress.
    intros E. rewrite E in Hprogress. discriminate.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. tauto.
  - intros k j Hj. specialize (Heach _ _ Hj). unfold check_job in Heach.
    rewrite !andb_true_iff in Heach. tauto.
  - exact (check_use_sound uses (amounts I) s Hlength Hamounts).
  - exact Hup.
  - exact Hquotas.
  - exact Hover.
Qed.
