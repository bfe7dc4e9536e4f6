(** Instances, schedules, and what a schedule costs: the statements that everything else is about.

    Times are ticks, whole numbers. Nodes and jobs are known by their positions in lists. A schedule is a
    list of runs: a job holds its gang, so many GPUs on each of some nodes, from one tick to another. *)

From Coq Require Import List ZArith QArith Lia.
From Shadowprice Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Record node := Node { gpus : Z; gpu_type : nat }.

(** [times]: on which GPU types and under which conditions (being spread, with so many CPUs) the job can run, and how
    many ticks all of it takes then. [watched]: whether the job counts. [worth] and [deadline] are of its utility. *)
Record job := Job {
  arrival : Z; gang : Z; weight : Q; times : list (nat * nat * Z);
  watched : bool; worth : Q; deadline : option Z; quota : option nat
}.

(** [overhead]: ticks of the run without progress. [pieces]: nodes, and GPUs held on each. [uses]: amounts of other
    things that it holds. [goes_on]: whether it goes on from the job's run before, on the same GPUs. *)
Record run := Run {
  of_job : nat; start : Z; stop : Z; overhead : Z; pieces : list (nat * Z);
  condition : nat; uses : list (nat * Z); goes_on : bool
}.

(** What a start, a move to other GPUs, and a restart of a gang up to some size cost [ticks]. *)
Record charges := Charges { start_charge : Z; migration : Z; restarts : list (Z * Z) }.

(** A checkpoint is written after [between] ticks of progress, which takes [writing] ticks. *)
Record checkpoint := Checkpoint { between : Z; writing : Z }.

(** [lost]: whether a job that is preempted loses what it has done. [until]: when schedules were stopped, if they
    were. [per_gpu]: of how many units a GPU is, in which gangs and GPUs of nodes are counted. [faults]: nodes that
    are down from one tick to another. [quotas]: of each the ticks from which on jobs may hold so much. [amounts]:
    what there is of other things. [once]: whether each job begins once. [widest]: how many times its gang a job may
    hold. [rounds]: of how many ticks the rounds are that runs are in, where they are. [least_start]: what a
    job of the class has paid at least before it is complete. *)
Record instance := Instance {
  nodes : list node; jobs : list job; charged : charges; lost : bool; until : option Z; per_gpu : positive;
  saves : option checkpoint; faults : list (nat * Z * Z); quotas : list (list (Z * Z)); amounts : list Z; once : bool; widest : Z; rounds : option Z;
  least_start : Z
}.

Definition schedule := list run.

Inductive objective := Completion | Flow | Makespan.

Definition time_on (ty c : nat) (j : job) : option Z :=
  option_map snd (find (fun entry => Nat.eqb (fst (fst entry)) ty && Nat.eqb (snd (fst entry)) c) (times j)).

(** Ticks of the whole job on the slowest node that a run is on; 0 for no node. *)
Definition pace (I : instance) (j : job) (r : run) : Z :=
  fold_right
    (fun piece slowest =>
       match nth_error (nodes I) (fst piece) with
       | Some n =>
           match time_on (gpu_type n) (condition r) j with Some t => Z.max t slowest | None => slowest end
       | None => slowest
       end)
    0 (pieces r).

Definition run_fits (I : instance) (r : run) : Prop :=
  exists j, nth_error (jobs I) (of_job r) = Some j /\
    arrival j <= start r < stop r /\
    0 <= overhead r <= stop r - start r /\
    gang j <= sum snd (pieces r) <= widest I * gang j /\
    pieces r <> [] /\
    forall piece, In piece (pieces r) ->
      1 <= snd piece /\
      exists n t, nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) (condition r) j = Some t.

Definition active (t : Z) (r : run) : bool := (start r <=? t) && (t <? stop r).

(** GPUs of a node that are held at a tick. *)
Definition held (s : schedule) (n : nat) (t : Z) : Z :=
  sum (fun r => if active t r
                then sum (fun piece => if Nat.eqb (fst piece) n then snd piece else 0) (pieces r)
                else 0) s.

Definition runs_of (k : nat) (s : schedule) : list run := filter (fun r => Nat.eqb (of_job r) k) s.

(** Runs of a job are listed in their order. *)
Definition apart (r r' : run) : Prop := stop r <= start r'.

Fixpoint sumQ {A} (f : A -> Q) (l : list A) : Q :=
  match l with
  | [] => 0%Q
  | x :: rest => (f x + sumQ f rest)%Q
  end.

(** Progress that is saved by the end of so many ticks, and progress in them. *)
Definition saved (I : instance) (ran : Z) : Z :=
  match saves I with
  | Some c => ran / (between c + writing c) * between c
  | None => ran
  end.

Definition made (I : instance) (ran : Z) : Z :=
  match saves I with
  | Some c => saved I ran + Z.min (ran mod (between c + writing c)) (between c)
  | None => ran
  end.

Definition ran (r : run) : Z := stop r - start r - overhead r.

(** A run is cut short when one of its nodes goes down. *)
Definition cut_short (I : instance) (r : run) : bool :=
  existsb (fun fault => (snd (fst fault) =? stop r)
                        && existsb (fun piece => Nat.eqb (fst piece) (fst (fst fault))) (pieces r)) (faults I).

(** Share of the job that it has done before a run, and after it if it is not complete then. *)
Definition before_run (I : instance) (done : Q) (r : run) : Q :=
  if lost I && negb (goes_on r) then 0%Q else done.

Definition share (I : instance) (j : job) (r : run) (ticks : Z) : Q := ticks # Z.to_pos (pace I j r).

(** Sums of fractions of one denominator keep it. *)
Definition addQ (x y : Q) : Q :=
  if Pos.eqb (Qden x) (Qden y) then (Qnum x + Qnum y) # Qden x else (x + y)%Q.

(** Whether a job is complete after some run. *)
Fixpoint finished_from (I : instance) (j : job) (done : Q) (runs : list run) : bool :=
  match runs with
  | [] => false
  | r :: later =>
      let before := before_run I done r in
      let all := addQ before (share I j r (made I (ran r))) in
      Qle_bool 1 all
      || finished_from I j (if cut_short I r then addQ before (share I j r (saved I (ran r))) else all) later
  end.

Definition finished (I : instance) (j : job) (runs : list run) : bool := finished_from I j 0 runs.

(** Whether a job's completion is counted: it is watched, and arrived before schedules were stopped. *)
Definition counts (I : instance) (j : job) : bool :=
  watched j && match until I with Some limit => arrival j <? limit | None => true end.

(** A schedule of the class: preemptive, no node gives more than it has, whatever is charged. Jobs that count are
    complete in the end, unless schedules were stopped. *)
Definition feasible (I : instance) (s : schedule) : Prop :=
  Forall (run_fits I) s /\
  (forall k, ForallOrdPairs apart (runs_of k s)) /\
  (forall k n, nth_error (nodes I) k = Some n -> forall t, held s k t <= gpus n) /\
  (forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> until I = None ->
     finished I j (runs_of k s) = true).

Definition latest (runs : list run) : Z := fold_right (fun r latest => Z.max (stop r) latest) 0 runs.

Definition completion (s : schedule) (k : nat) : Z := latest (runs_of k s).

(** Until when a job counts: its completion, and no longer than until schedules were stopped. *)
Definition ending (I : instance) (j : job) (runs : list run) : Z :=
  match until I with
  | Some limit => if finished I j runs then Z.min limit (latest runs) else limit
  | None => latest runs
  end.

Definition numbered (I : instance) : list (nat * job) :=
  combine (seq 0 (length (jobs I))) (jobs I).

Definition counted (I : instance) : list (nat * job) := filter (fun kj => counts I (snd kj)) (numbered I).

Definition first_arrival (I : instance) : Z :=
  match counted I with
  | [] => 0
  | kj :: rest => fold_right (fun kj earliest => Z.min (arrival (snd kj)) earliest) (arrival (snd kj)) rest
  end.

Definition last_completion (I : instance) (s : schedule) : Z :=
  fold_right (fun kj latest => Z.max (completion s (fst kj)) latest) 0 (counted I).

Definition end_of (I : instance) (s : schedule) (kj : nat * job) : Z :=
  ending I (snd kj) (runs_of (fst kj) s).

Definition cost (o : objective) (I : instance) (s : schedule) : Q :=
  match o with
  | Completion => sumQ (fun kj => (weight (snd kj) * inject_Z (end_of I s kj))%Q) (counted I)
  | Flow =>
      sumQ (fun kj => (weight (snd kj) * inject_Z (end_of I s kj - arrival (snd kj)))%Q) (counted I)
  | Makespan => inject_Z (last_completion I s - first_arrival I)
  end.

(** Utility of a job that completes in round [k] of [round] ticks; a second has 2^20 of them. *)
Definition utility (I : instance) (round : Z) (j : job) (k : Z) : Q :=
  if match until I with Some limit => limit <=? k * round | None => false end then 0%Q
  else match deadline j with
       | Some due => if (k + 1) * round <=? due then worth j else 0%Q
       | None => (worth j * (1048576 # Z.to_pos (Z.max ((k + 1) * round - arrival j) round)))%Q
       end.

Definition earned (I : instance) (round : Z) (s : schedule) : Q :=
  sumQ (fun kj => if finished I (snd kj) (runs_of (fst kj) s)
                  then utility I round (snd kj) ((completion s (fst kj) - 1) / round) else 0%Q) (counted I).

(** What makes sense of an instance. *)
Definition sound_job (j : job) : Prop :=
  0 <= arrival j /\ 1 <= gang j /\ 0 <= Qnum (weight j) /\
  times j <> [] /\ (forall entry, In entry (times j) -> 1 <= snd entry) /\ 0 <= Qnum (worth j).

Definition sound_rule (c : checkpoint) : Prop := 1 <= between c /\ 0 <= writing c.

Definition sound (I : instance) : Prop :=
  Forall sound_job (jobs I) /\ forall c, saves I = Some c -> sound_rule c.

Definition capacity (I : instance) : Z := sum gpus (nodes I).

(** Share of a job that runs do, were nothing lost. *)
Definition work (I : instance) (j : job) (runs : list run) : Q := sumQ (fun r => share I j r (ran r)) runs.

(** Fewest ticks of a whole job on any type that it can run on. *)
Definition shortest (j : job) : Z :=
  match times j with
  | [] => 0
  | entry :: rest => fold_right (fun entry least => Z.min (snd entry) least) (snd entry) rest
  end.

(** ** What follows at once *)

Lemma in_numbered I k j : In (k, j) (numbered I) <-> nth_error (jobs I) k = Some j.
Proof.
  unfold numbered.
  assert (H : forall (l : list job) b, In (k, j) (combine (seq b (length l)) l) <->
                             (b <= k)%nat /\ nth_error l (k - b) = Some j).
  { induction l as [|x l IH]; intros b; cbn.
    - split; [tauto|]. intros [_ H]. destruct (k - b)%nat; discriminate.
    - rewrite IH. split.
      + intros [H|[Hb H]].
        * inversion H; subst. split; [lia|]. now rewrite Nat.sub_diag.
        * split; [lia|]. replace (k - b)%nat with (S (k - S b)) by lia. exact H.
      + intros [Hb H]. destruct (Nat.eq_dec b k) as [->|Hne].
        * rewrite Nat.sub_diag in H. cbn in H. left. congruence.
        * right. split; [lia|]. replace (k - b)%nat with (S (k - S b)) in H by lia. exact H. }
  rewrite H, Nat.sub_0_r. split; [tauto|]. intros; split; [lia|assumption].
Qed.

Lemma sound_in I k j : sound I -> nth_error (jobs I) k = Some j -> sound_job j.
Proof.
  intros [H _] Hk. rewrite Forall_forall in H. apply H.
  eapply nth_error_In; eassumption.
Qed.

Lemma shortest_least j entry : In entry (times j) -> shortest j <= snd entry.
Proof.
  unfold shortest. destruct (times j) as [|e l]; [intros []|].
  intros [->|H].
  - induction l as [|x l IH]; cbn; lia.
  - induction l as [|x l IH]; cbn in *; [contradiction|].
    destruct H as [->|H]; [lia|]. specialize (IH H). lia.
Qed.

Lemma shortest_positive j : sound_job j -> 1 <= shortest j.
Proof.
  intros (_ & _ & _ & Hne & H & _). unfold shortest. destruct (times j) as [|e l]; [congruence|].
  assert (H' : forall entry, In entry l -> 1 <= snd entry) by (intros; apply H; now right).
  assert (1 <= snd e) by (apply H; now left). clear H Hne.
  induction l as [|x l IH]; cbn; [assumption|].
  assert (1 <= snd x) by (apply H'; now left).
  assert (1 <= fold_right (fun entry least => Z.min (snd entry) least) (snd e) l)
    by (apply IH; intros; apply H'; now right). lia.
Qed.

Lemma time_on_shortest ty c j t : time_on ty c j = Some t -> shortest j <= t.
Proof.
  unfold time_on. destruct (find _ _) as [entry|] eqn:Hfind; [|discriminate].
  cbn. intros [= <-]. apply shortest_least. now apply find_some in Hfind.
Qed.

Lemma pace_shortest I j r :
  (forall piece, In piece (pieces r) -> exists n t,
     nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) (condition r) j = Some t) ->
  pieces r <> [] -> shortest j <= pace I j r.
Proof.
  unfold pace. intros H Hne. destruct (pieces r) as [|piece rest]; [congruence|]. cbn.
  destruct (H piece (or_introl eq_refl)) as (n & t & Hn & Ht). rewrite Hn, Ht.
  apply time_on_shortest in Ht. lia.
Qed.

Lemma in_runs_of k s r : In r (runs_of k s) <-> In r s /\ of_job r = k.
Proof. unfold runs_of. rewrite filter_In, Nat.eqb_eq. tauto. Qed.

Lemma in_counted I k j :
  In (k, j) (counted I) <-> nth_error (jobs I) k = Some j /\ counts I j = true.
Proof. unfold counted. rewrite filter_In, in_numbered. reflexivity. Qed.

Lemma completion_after s k r : In r (runs_of k s) -> stop r <= completion s k.
Proof.
  unfold completion, latest. induction (runs_of k s) as [|x l IH]; cbn; [intros []|].
  intros [->|H]; [lia|]. specialize (IH H). lia.
Qed.

Lemma sumQ_le {A} (f h : A -> Q) l :
  (forall x, In x l -> (f x <= h x)%Q) -> (sumQ f l <= sumQ h l)%Q.
Proof.
  induction l as [|x l IH]; cbn; intros H; [apply Qle_refl|].
  apply Qplus_le_compat; [apply H; now left|]. apply IH. intros; apply H; now right.
Qed.

Lemma sumQ_ext {A} (f h : A -> Q) l :
  (forall x, In x l -> (f x == h x)%Q) -> (sumQ f l == sumQ h l)%Q.
Proof.
  intros H. apply Qle_antisym; apply sumQ_le; intros x Hx; rewrite (H x Hx); apply Qle_refl.
Qed.

Lemma sumQ_add {A} (f h : A -> Q) l :
  (sumQ (fun x => f x + h x) l == sumQ f l + sumQ h l)%Q.
Proof. induction l as [|x l IH]; cbn; [reflexivity|]. rewrite IH. ring. Qed.

Lemma sumQ_same_denominator {A} (f : A -> Z) d l :
  (sumQ (fun x => f x # d) l == sum f l # d)%Q.
Proof.
  induction l as [|x l IH]; cbn; [reflexivity|]. rewrite IH.
  unfold Qeq, Qplus; cbn. rewrite Pos2Z.inj_mul. ring.
Qed.

(** ** Ticks that a job holds its gang *)

Definition held_ticks (s : schedule) (k : nat) : list Z :=
  flat_map (fun r => ticks (start r) (stop r)) (runs_of k s).

Lemma nodup_held_ticks s k : ForallOrdPairs apart (runs_of k s) -> NoDup (held_ticks s k).
Proof.
  unfold held_ticks. induction 1 as [|r l Hr Hl IH]; cbn; [constructor|].
  apply nodup_app; [apply nodup_ticks|exact IH|].
  intros t Ht Hin. apply in_ticks in Ht. apply in_flat_map in Hin.
  destruct Hin as (r' & Hr' & Ht'). apply in_ticks in Ht'.
  rewrite Forall_forall in Hr. specialize (Hr r' Hr'). unfold apart in Hr. lia.
Qed.

Lemma held_ticks_bounds I s k j :
  feasible I s -> nth_error (jobs I) k = Some j ->
  forall t, In t (held_ticks s k) -> arrival j <= t < completion s k.
Proof.
  intros (Hfits & _) Hk t Ht. apply in_flat_map in Ht. destruct Ht as (r & Hr & Ht).
  apply in_ticks in Ht. pose proof (completion_after _ _ _ Hr).
  apply in_runs_of in Hr. destruct Hr as [Hr Hof].
  rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j' & Hj' & Harr & _).
  rewrite Hof in Hj'. assert (j' = j) by congruence. subst. lia.
Qed.

(** What was saved is less than the progress, which is less than the time. *)
Lemma made_at_most I n :
  (forall c, saves I = Some c -> sound_rule c) -> 0 <= n -> 0 <= saved I n <= made I n /\ made I n <= n.
Proof.
  intros Hrule Hn. unfold made, saved. destruct (saves I) as [c|]; [|lia].
  destruct (Hrule c eq_refl) as [Hi Hw].
  pose proof (Z.div_mod n (between c + writing c) ltac:(lia)) as Hdiv.
  pose proof (Z.mod_pos_bound n (between c + writing c) ltac:(lia)) as Hmod.
  assert (0 <= n / (between c + writing c)) by (apply Z.div_pos; lia). nia.
Qed.

Lemma addQ_is x y : (addQ x y == x + y)%Q.
Proof.
  unfold addQ. destruct (Pos.eqb_spec (Qden x) (Qden y)) as [H|H]; [|reflexivity].
  unfold Qeq, Qplus. cbn. rewrite <- H, Pos2Z.inj_mul. ring.
Qed.

Lemma share_le I j r a b : a <= b -> (share I j r a <= share I j r b)%Q.
Proof. intros H. unfold share, Qle. cbn [Qnum Qden]. apply Z.mul_le_mono_nonneg_r; lia. Qed.

Lemma share_zero I j r : (share I j r 0 == 0)%Q.
Proof. unfold share, Qeq. cbn. lia. Qed.

Lemma finished_from_work I j runs :
  (forall c, saves I = Some c -> sound_rule c) -> (forall r, In r runs -> 0 <= ran r) ->
  forall done, (0 <= done)%Q -> finished_from I j done runs = true -> (1 <= done + work I j runs)%Q.
Proof.
  intros Hrule. unfold work. induction runs as [|r later IH]; intros Hran done Hdone; cbn [finished_from sumQ];
    [discriminate|].
  assert (Hr : 0 <= ran r) by (apply Hran; now left).
  destruct (made_at_most I (ran r) Hrule Hr) as [Hsaved Hmade].
  assert (Hbefore : (0 <= before_run I done r <= done)%Q).
  { unfold before_run. destruct (lost I && negb (goes_on r)); split; try assumption; apply Qle_refl. }
  set (before := before_run I done r) in *.
  assert (Hlater : (0 <= sumQ (fun r0 => share I j r0 (ran r0)) later)%Q).
  { clear - Hran. induction later as [|x l IH]; cbn [sumQ]; [apply Qle_refl|].
    rewrite <- (Qplus_0_l 0). apply Qplus_le_compat.
    - rewrite <- (share_zero I j x). apply share_le. apply Hran. right. now left.
    - apply IH. intros y [->|Hy]; apply Hran; [now left|right; now right]. }
  assert (Hfull : (addQ before (share I j r (made I (ran r))) <= done + share I j r (ran r))%Q).
  { rewrite addQ_is. apply Qplus_le_compat; [apply Hbefore|now apply share_le]. }
  intros H. apply orb_prop in H. rewrite Qplus_assoc. destruct H as [H|H].
  - apply Qle_bool_iff in H. rewrite <- (Qplus_0_r 1). apply Qplus_le_compat; [|assumption].
    eapply Qle_trans; eassumption.
  - apply IH in H.
    + eapply Qle_trans; [exact H|]. apply Qplus_le_compat; [|apply Qle_refl].
      destruct (cut_short I r); [|exact Hfull]. rewrite addQ_is.
      apply Qplus_le_compat; [apply Hbefore|]. apply share_le. lia.
    + intros; apply Hran; now right.
    + destruct (cut_short I r); rewrite addQ_is, <- (Qplus_0_l 0); apply Qplus_le_compat;
        try apply Hbefore; rewrite <- (share_zero I j r); apply share_le; lia.
Qed.

Lemma run_of_fits I s k j r :
  feasible I s -> nth_error (jobs I) k = Some j -> In r (runs_of k s) ->
  arrival j <= start r < stop r /\ 0 <= overhead r <= stop r - start r /\ gang j <= sum snd (pieces r) <= widest I * gang j /\
  pieces r <> [] /\
  forall piece, In piece (pieces r) ->
    1 <= snd piece /\
    exists n t, nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) (condition r) j = Some t.
Proof.
  intros (Hfits & _) Hk Hr. apply in_runs_of in Hr. destruct Hr as [Hr Hof]. rewrite Forall_forall in Hfits.
  destruct (Hfits r Hr) as (j' & Hj' & H). rewrite Hof in Hj'. assert (j' = j) by congruence. now subst.
Qed.

Lemma finished_work I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
  (1 <= work I j (runs_of k s))%Q.
Proof.
  intros [_ Hrule] Hs Hk H. rewrite <- (Qplus_0_l (work _ _ _)).
  apply finished_from_work; try assumption; [|apply Qle_refl].
  intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (_ & Ho & _). unfold ran. lia.
Qed.

(** A job makes progress for at least as long as it takes where it is fastest. *)
Lemma progress_enough I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
  shortest j <= sum ran (runs_of k s).
Proof.
  intros Hsound Hs Hk Hdone.
  pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hp.
  pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork.
  assert (Hall : forall r, In r (runs_of k s) -> 0 <= ran r /\ shortest j <= pace I j r).
  { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (_ & Hover & _ & Hne & Hpieces).
    unfold ran. split; [lia|]. apply pace_shortest; [|assumption].
    intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Ht). eauto. }
  assert (Hle : (work I j (runs_of k s) <= sum ran (runs_of k s) # Z.to_pos (shortest j))%Q).
  { rewrite <- sumQ_same_denominator. unfold work. apply sumQ_le. intros r Hr.
    destruct (Hall r Hr) as (Ho & Hpace).
    unfold share, Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia. }
  assert (H : (1 <= sum ran (runs_of k s) # Z.to_pos (shortest j))%Q) by (eapply Qle_trans; eassumption).
  unfold Qle in H. cbn [Qnum Qden] in H. rewrite Z2Pos.id in H by lia. lia.
Qed.

(** It holds its gang no shorter. *)
Lemma held_ticks_enough I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
  shortest j <= Z.of_nat (length (held_ticks s k)).
Proof.
  intros Hsound Hs Hk Hdone. etransitivity; [exact (progress_enough I s k j Hsound Hs Hk Hdone)|].
  unfold held_ticks. rewrite length_flat_map. apply sum_le. intros r Hr. rewrite length_ticks. unfold ran.
  apply in_runs_of in Hr. destruct Hr as [Hr _]. destruct Hs as [Hfits _].
  rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (? & _ & _ & Ho & _). lia.
Qed.

(** No job completes before it has run, alone on GPUs where it is fastest, since it arrived. *)
Lemma completion_alone I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> finished I j (runs_of k s) = true ->
  arrival j + shortest j <= completion s k.
Proof.
  intros Hsound Hs Hk Hdone.
  pose proof (held_ticks_enough I s k j Hsound Hs Hk Hdone) as Henough.
  pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp.
  assert (Z.of_nat (length (held_ticks s k)) <= Z.max 0 (completion s k - arrival j)).
  { apply distinct_in_range; [apply nodup_held_ticks; apply Hs|].
    exact (held_ticks_bounds I s k j Hs Hk). }
  lia.
Qed.

(** What holds of a job's completion and cannot cost more than all the time until schedules were stopped, holds of
    what the job counts. *)
Definition capped (I : instance) (j : job) (least : Q) : Q :=
  match until I with
  | Some limit => if Qle_bool least (weight j * inject_Z limit) then least else (weight j * inject_Z limit)%Q
  | None => least
  end.

Lemma capped_least I s k j least more :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> counts I j = true -> (0 <= more)%Q ->
  (finished I j (runs_of k s) = true -> (least <= weight j * inject_Z (completion s k) + more)%Q) ->
  (capped I j least <= weight j * inject_Z (end_of I s (k, j)) + more)%Q.
Proof.
  intros Hsound Hs Hk Hcounts Hmore Hleast. unfold capped, end_of, ending. cbn [fst snd].
  destruct (until I) as [limit|] eqn:Huntil.
  - assert (Hlimit : forall bound, (bound <= weight j * inject_Z limit)%Q ->
              (bound <= weight j * inject_Z limit + more)%Q).
    { intros bound H. rewrite <- (Qplus_0_r bound). now apply Qplus_le_compat. }
    assert (Hcap : (match Qle_bool least (weight j * inject_Z limit) with
                    | true => least | false => weight j * inject_Z limit end <= weight j * inject_Z limit)%Q).
    { destruct (Qle_bool least _) eqn:E; [now apply Qle_bool_iff|apply Qle_refl]. }
    destruct (finished I j (runs_of k s)); [|now apply Hlimit].
    destruct (Z.min_spec limit (latest (runs_of k s))) as [[_ ->]|[_ ->]]; [now apply Hlimit|].
    destruct (Qle_bool least (weight j * inject_Z limit)) eqn:E.
    + now apply Hleast.
    + eapply Qle_trans; [|now apply Hleast].
      destruct (Qlt_le_dec (weight j * inject_Z limit) least) as [H|H]; [now apply Qlt_le_weak|].
      apply Qle_bool_iff in H. congruence.
  - apply Hleast. destruct Hs as (_ & _ & _ & Hall). now apply Hall.
Qed.
