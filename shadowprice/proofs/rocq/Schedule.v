(** Instances, schedules, and what a schedule costs: the statements that everything else is about.

    Times are ticks, whole numbers. Nodes and jobs are known by their positions in lists. A schedule is a
    list of runs: a job holds its gang, so many GPUs on each of some nodes, from one tick to another. *)

From Coq Require Import List ZArith QArith Lia.
From Shadowprice Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Record node := Node { gpus : Z; gpu_type : nat }.

(** [times]: on which GPU types the job can run, and how many ticks all of it takes there. *)
Record job := Job { arrival : Z; gang : Z; weight : Q; times : list (nat * Z) }.

(** [overhead]: ticks of the run without progress. [pieces]: nodes, and GPUs held on each. *)
Record run := Run { of_job : nat; start : Z; stop : Z; overhead : Z; pieces : list (nat * Z) }.

(** What a start, a move to other GPUs, and a restart of a gang up to some size cost [ticks]. *)
Record charges := Charges { start_charge : Z; migration : Z; restarts : list (Z * Z) }.

(** [lost]: whether a job that is preempted loses what it has done. *)
Record instance := Instance { nodes : list node; jobs : list job; charged : charges; lost : bool }.

Definition schedule := list run.

Inductive objective := Completion | Flow | Makespan.

Definition time_on (ty : nat) (j : job) : option Z :=
  option_map snd (find (fun entry => Nat.eqb (fst entry) ty) (times j)).

(** Ticks of the whole job on the slowest node that a run is on; 0 for no node. *)
Definition pace (I : instance) (j : job) (r : run) : Z :=
  fold_right
    (fun piece slowest =>
       match nth_error (nodes I) (fst piece) with
       | Some n => match time_on (gpu_type n) j with Some t => Z.max t slowest | None => slowest end
       | None => slowest
       end)
    0 (pieces r).

Definition run_fits (I : instance) (r : run) : Prop :=
  exists j, nth_error (jobs I) (of_job r) = Some j /\
    arrival j <= start r < stop r /\
    0 <= overhead r <= stop r - start r /\
    sum snd (pieces r) = gang j /\
    pieces r <> [] /\
    forall piece, In piece (pieces r) ->
      1 <= snd piece /\
      exists n t, nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) j = Some t.

Definition active (t : Z) (r : run) : bool := (start r <=? t) && (t <? stop r).

(** GPUs of a node that are held at a tick. *)
Definition held (s : schedule) (n : nat) (t : Z) : Z :=
  sum (fun r => if active t r
                then sum (fun piece => if Nat.eqb (fst piece) n then snd piece else 0) (pieces r)
                else 0) s.

Definition runs_of (k : nat) (s : schedule) : list run := filter (fun r => Nat.eqb (of_job r) k) s.

Definition apart (r r' : run) : Prop := stop r <= start r' \/ stop r' <= start r.

Fixpoint sumQ {A} (f : A -> Q) (l : list A) : Q :=
  match l with
  | [] => 0%Q
  | x :: rest => (f x + sumQ f rest)%Q
  end.

(** Share of a job that runs do: ticks of progress over ticks of the whole job at the run's pace. *)
Definition work (I : instance) (j : job) (runs : list run) : Q :=
  sumQ (fun r => (stop r - start r - overhead r) # Z.to_pos (pace I j r)) runs.

(** A schedule of the class: preemptive, no two jobs share a GPU, whatever is charged. *)
Definition feasible (I : instance) (s : schedule) : Prop :=
  Forall (run_fits I) s /\
  (forall k, ForallOrdPairs apart (runs_of k s)) /\
  (forall k n, nth_error (nodes I) k = Some n -> forall t, held s k t <= gpus n) /\
  (forall k j, nth_error (jobs I) k = Some j -> (1 <= work I j (runs_of k s))%Q).

Definition completion (s : schedule) (k : nat) : Z :=
  fold_right (fun r latest => Z.max (stop r) latest) 0 (runs_of k s).

Definition numbered (I : instance) : list (nat * job) :=
  combine (seq 0 (length (jobs I))) (jobs I).

Definition first_arrival (I : instance) : Z :=
  match jobs I with
  | [] => 0
  | j :: rest => fold_right (fun j earliest => Z.min (arrival j) earliest) (arrival j) rest
  end.

Definition last_completion (I : instance) (s : schedule) : Z :=
  fold_right (fun kj latest => Z.max (completion s (fst kj)) latest) 0 (numbered I).

Definition cost (o : objective) (I : instance) (s : schedule) : Q :=
  match o with
  | Completion =>
      sumQ (fun kj => (weight (snd kj) * inject_Z (completion s (fst kj)))%Q) (numbered I)
  | Flow =>
      sumQ (fun kj => (weight (snd kj)
                       * inject_Z (completion s (fst kj) - arrival (snd kj)))%Q) (numbered I)
  | Makespan => inject_Z (last_completion I s - first_arrival I)
  end.

(** What makes sense of an instance. *)
Definition sound_job (j : job) : Prop :=
  0 <= arrival j /\ 1 <= gang j /\ 0 <= Qnum (weight j) /\
  times j <> [] /\ forall entry, In entry (times j) -> 1 <= snd entry.

Definition sound (I : instance) : Prop := Forall sound_job (jobs I).

Definition capacity (I : instance) : Z := sum gpus (nodes I).

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
  intros H Hk. unfold sound in H. rewrite Forall_forall in H. apply H.
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
  intros (_ & _ & _ & Hne & H). unfold shortest. destruct (times j) as [|e l]; [congruence|].
  assert (H' : forall entry, In entry l -> 1 <= snd entry) by (intros; apply H; now right).
  assert (1 <= snd e) by (apply H; now left). clear H Hne.
  induction l as [|x l IH]; cbn; [assumption|].
  assert (1 <= snd x) by (apply H'; now left).
  assert (1 <= fold_right (fun entry least => Z.min (snd entry) least) (snd e) l)
    by (apply IH; intros; apply H'; now right). lia.
Qed.

Lemma time_on_shortest ty j t : time_on ty j = Some t -> shortest j <= t.
Proof.
  unfold time_on. destruct (find _ _) as [entry|] eqn:Hfind; [|discriminate].
  cbn. intros [= <-]. apply shortest_least. now apply find_some in Hfind.
Qed.

Lemma pace_shortest I j r :
  (forall piece, In piece (pieces r) -> exists n t,
     nth_error (nodes I) (fst piece) = Some n /\ time_on (gpu_type n) j = Some t) ->
  pieces r <> [] -> shortest j <= pace I j r.
Proof.
  unfold pace. intros H Hne. destruct (pieces r) as [|piece rest]; [congruence|]. cbn.
  destruct (H piece (or_introl eq_refl)) as (n & t & Hn & Ht). rewrite Hn, Ht.
  apply time_on_shortest in Ht. lia.
Qed.

Lemma in_runs_of k s r : In r (runs_of k s) <-> In r s /\ of_job r = k.
Proof. unfold runs_of. rewrite filter_In, Nat.eqb_eq. tauto. Qed.

Lemma completion_after s k r : In r (runs_of k s) -> stop r <= completion s k.
Proof.
  unfold completion. induction (runs_of k s) as [|x l IH]; cbn; [intros []|].
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

(** A job makes progress for at least as long as it takes where it is fastest. *)
Lemma progress_enough I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j ->
  shortest j <= sum (fun r => stop r - start r - overhead r) (runs_of k s).
Proof.
  intros Hsound (Hfits & _ & _ & Hwork) Hk.
  pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hp.
  specialize (Hwork k j Hk).
  assert (Hall : forall r, In r (runs_of k s) ->
            0 <= overhead r <= stop r - start r /\ shortest j <= pace I j r).
  { intros r Hr. apply in_runs_of in Hr. destruct Hr as [Hr Hof].
    rewrite Forall_forall in Hfits.
    destruct (Hfits r Hr) as (j' & Hj' & Harr & Hover & _ & Hne & Hpieces).
    rewrite Hof in Hj'. assert (j' = j) by congruence. subst.
    repeat split; try lia. apply pace_shortest; [|assumption].
    intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Ht). eauto. }
  assert (Hle : (work I j (runs_of k s)
                 <= sum (fun r => (stop r - start r - overhead r)%Z) (runs_of k s)
                    # Z.to_pos (shortest j))%Q).
  { rewrite <- sumQ_same_denominator. unfold work. apply sumQ_le. intros r Hr.
    destruct (Hall r Hr) as (Ho & Hpace).
    unfold Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia. }
  assert (H : (1 <= sum (fun r => (stop r - start r - overhead r)%Z) (runs_of k s)
                    # Z.to_pos (shortest j))%Q) by (eapply Qle_trans; eassumption).
  unfold Qle in H. cbn [Qnum Qden] in H. rewrite Z2Pos.id in H by lia. lia.
Qed.

(** It holds its gang no shorter. *)
Lemma held_ticks_enough I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j ->
  shortest j <= Z.of_nat (length (held_ticks s k)).
Proof.
  intros Hsound Hs Hk. etransitivity; [exact (progress_enough I s k j Hsound Hs Hk)|].
  unfold held_ticks. rewrite length_flat_map. apply sum_le. intros r Hr. rewrite length_ticks.
  apply in_runs_of in Hr. destruct Hr as [Hr _]. destruct Hs as [Hfits _].
  rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (? & _ & _ & Ho & _). lia.
Qed.

(** No job completes before it has run, alone on GPUs where it is fastest, since it arrived. *)
Lemma completion_alone I s k j :
  sound I -> feasible I s -> nth_error (jobs I) k = Some j -> arrival j + shortest j <= completion s k.
Proof.
  intros Hsound Hs Hk.
  pose proof (held_ticks_enough I s k j Hsound Hs Hk) as Henough.
  pose proof (shortest_positive _ (sound_in _ _ _ Hsound Hk)) as Hp.
  assert (Z.of_nat (length (held_ticks s k)) <= Z.max 0 (completion s k - arrival j)).
  { apply distinct_in_range; [apply nodup_held_ticks; apply Hs|].
    exact (held_ticks_bounds I s k j Hs Hk). }
  lia.
Qed.
