(** Jobs that run as copies on whole nodes: what their schedules are, and that none does with less than the checker says.

    A copy does steps of its job's work, as many as the GPUs that it uses do in its time at most. A job has at most so many
    copies at once, and no node has two. How much of its work a job does in a tick is no whole number: work is dealt to
    scenarios, in which jobs hold whole ticks (Dealing.v), and bounds are of these on average (Scenarios.v). *)

From Coq Require Import List ZArith QArith Lia Lqa Bool Permutation.
From Shadowprice Require Import Sums Schedule Duality Utility Checker Claim Graphs Scenarios Dealing.
Import ListNotations.
Open Scope Z_scope.

(** Steps of the whole job; steps that a GPU of a type does in a tick; speeds by the rows of its profile.
    [theta]: a number by which the checker counts what the fastest nodes do; any is as good. *)
Record copied := Copied { steps_of : Z; rates : list (nat * Q); speeds_of : list Q; theta : Q }.

(** Of the instance, whose jobs have what they do at least for times and gangs: GPUs of [least_work] are one machine.
    [machines]: the nodes. *)
Record copies := Copies { least_work : instance; machines : list node; copied_jobs : list copied; most_copies : Z }.

(** A run on one node, whose condition is a row of the profile, and its steps. *)
Record copy := Copy { its_run : run; its_steps : Z }.

Definition rate_on (K : copied) (ty : nat) : option Q :=
  option_map snd (find (fun entry => Nat.eqb (fst entry) ty) (rates K)).

(** Steps in a tick. *)
Definition copy_fits (C : copies) (c : copy) : Prop :=
  let r := its_run c in
  exists j K m g n rate v,
    nth_error (jobs (least_work C)) (of_job r) = Some j /\ nth_error (copied_jobs C) (of_job r) = Some K /\
    arrival j <= start r < stop r /\ 0 <= overhead r /\ 0 <= its_steps c /\
    pieces r = [(m, g)] /\ nth_error (machines C) m = Some n /\ 1 <= g <= gpus n /\
    rate_on K (gpu_type n) = Some rate /\ nth_error (speeds_of K) (condition r) = Some v /\
    (inject_Z (its_steps c) <= inject_Z g * rate * v * inject_Z (stop r - start r - overhead r))%Q.

Definition nodes_of_run (r : run) : list (nat * Z) := map (fun piece => (fst piece, 1)) (pieces r).
Definition job_of_run (r : run) : list (nat * Z) := [(of_job r, 1)].

Definition steps_done (s : list copy) (k : nat) : Z :=
  sum (fun c => if Nat.eqb (of_job (its_run c)) k then its_steps c else 0) s.

Definition all_done (C : copies) (s : list copy) (k : nat) : bool :=
  match nth_error (copied_jobs C) k with Some K => steps_of K <=? steps_done s k | None => false end.

(** When the last copy with steps ends. *)
Definition complete_at_last (s : list copy) (k : nat) : Z :=
  fold_right (fun c last => if Nat.eqb (of_job (its_run c)) k && (1 <=? its_steps c) then Z.max (stop (its_run c)) last else last) 0 s.

(** A schedule of the class. *)
Definition copies_feasible (C : copies) (s : list copy) : Prop :=
  Forall (copy_fits C) s /\
  (forall m n, nth_error (machines C) m = Some n -> forall t, in_use nodes_of_run (map its_run s) m t <= 1) /\
  (forall k j, nth_error (jobs (least_work C)) k = Some j -> forall t, in_use job_of_run (map its_run s) k t <= most_copies C) /\
  (forall k j, nth_error (jobs (least_work C)) k = Some j -> counts (least_work C) j = true -> until (least_work C) = None ->
     all_done C s k = true).

Definition copies_cost (o : objective) (C : copies) (s : list copy) : Q :=
  let I := least_work C in
  let completions := sumQ (cost_now I (complete_at_last s) (all_done C s)) (counted I) in
  match o with
  | Completion => completions
  | Flow => (completions - sumQ (fun kj => weight (snd kj) * inject_Z (arrival (snd kj))) (counted I))%Q
  | Makespan => inject_Z (fold_right (fun kj last => Z.max (complete_at_last s (fst kj)) last) 0 (counted I) - first_arrival I)
  end.

Definition copies_earned (C : copies) (round : Z) (s : list copy) : Q :=
  sumQ (earned_now (least_work C) (complete_at_last s) (all_done C s) round) (counted (least_work C)).

(** ** What jobs do at least *)

Definition largestQ (l : list Q) : Q := most_of l.

Definition all_gpus (C : copies) : Z := sum gpus (machines C).

(** Steps that a GPU does in a tick at most; and those of all copies of a job. *)
Definition best_rate (K : copied) : Q := (largestQ (map snd (rates K)) * largestQ (speeds_of K))%Q.

Definition node_rate (K : copied) (n : node) : Q :=
  match rate_on K (gpu_type n) with Some rate => (inject_Z (gpus n) * rate * largestQ (speeds_of K))%Q | None => 0%Q end.

Definition fastest (C : copies) (K : copied) : Q :=
  (inject_Z (most_copies C) * theta K + sumQ (fun n => largestQ [node_rate K n - theta K]) (machines C))%Q.

Definition scale (C : copies) : Z := Zpos (per_gpu (least_work C)).

Definition check_copied (C : copies) (j : job) (K : copied) : bool :=
  let p := shortest j in
  let a := gang j * p / scale C in
  let slow := Qle_bool (inject_Z a * best_rate K) (inject_Z (steps_of K)) in
  match times j with
  | [(key, ticks)] => Nat.eqb (fst key) 0 && Nat.eqb (snd key) 0 && (ticks =? p)
  | _ => false
  end
  && (1 <=? steps_of K) && forallb (fun entry => Qle_bool 0 (snd entry)) (rates K) && forallb (Qle_bool 0) (speeds_of K)
  && Qle_bool 0 (theta K) && (gang j * p =? scale C * a)
  && (slow || (gang j <=? scale C))
  && ((p =? 1) || Qle_bool (inject_Z p * fastest C K) (inject_Z (steps_of K)) || (slow && (p * all_gpus C <=? a))).

Fixpoint check_all_copied (C : copies) (js : list job) (Ks : list copied) : bool :=
  match js, Ks with
  | [], [] => true
  | j :: js, K :: Ks => check_copied C j K && check_all_copied C js Ks
  | _, _ => false
  end.

Definition check_copies_instance (C : copies) : bool :=
  check_instance (least_work C) && check_all_copied C (jobs (least_work C)) (copied_jobs C) && (0 <=? most_copies C)
  && forallb (fun n => 1 <=? gpus n) (machines C) && (capacity (least_work C) =? scale C * all_gpus C).

Lemma largestQ_at_least x l : In x l -> (x <= largestQ l)%Q.
Proof. exact (in_most_of x l). Qed.

Lemma largestQ_positive l : (0 <= largestQ l)%Q.
Proof. exact (most_of_positive l). Qed.

Lemma check_all_nth C js : forall Ks, check_all_copied C js Ks = true ->
  length Ks = length js /\
  forall k j K, nth_error js k = Some j -> nth_error Ks k = Some K -> check_copied C j K = true.
Proof.
  induction js as [|j js IH]; intros Ks H; destruct Ks as [|K Ks]; cbn in H; try discriminate.
  - split; [reflexivity|]. intros k j K Hj. destruct k; discriminate.
  - apply andb_prop in H. destruct H as [H1 H2]. destruct (IH Ks H2) as [H3 H4]. split; [cbn; now f_equal|].
    intros [|k] j' K' Hj HK; cbn in *; [congruence|now apply (H4 k)].
Qed.

Section Least.
  Variables (C : copies) (s : list copy).
  Let I := least_work C.
  Hypothesis Hcheck : check_copies_instance C = true.
  Hypothesis Hs : copies_feasible C s.

  Lemma instance_facts : sound I /\ (forall k j, nth_error (jobs I) k = Some j -> exists K, nth_error (copied_jobs C) k = Some K /\ check_copied C j K = true)
    /\ 0 <= most_copies C /\ (forall n, In n (machines C) -> 1 <= gpus n) /\ capacity I = scale C * all_gpus C.
  Proof.
    unfold check_copies_instance in Hcheck. rewrite !andb_true_iff, forallb_forall in Hcheck.
    destruct Hcheck as ((((H1 & H2) & H3) & H4) & H5). split; [now apply check_instance_sound|]. split; [|split; [|split]].
    - intros k j Hj. destruct (check_all_nth _ _ _ H2) as [Hlen Hall].
      destruct (nth_error (copied_jobs C) k) as [K|] eqn:E.
      + exists K. split; [reflexivity|now apply (Hall k)].
      + apply nth_error_None in E. assert (k < length (jobs I))%nat by (apply nth_error_Some; congruence). fold I in Hlen. lia.
    - now apply Z.leb_le.
    - intros n Hn. apply Z.leb_le. now apply H4.
    - now apply Z.eqb_eq.
  Qed.

  Definition long (c : copy) : Z := stop (its_run c) - start (its_run c).
  Definition product (l : list Z) : Z := fold_right Z.mul 1 l.

  (** Units that a tick is divided into: a multiple of all lengths of copies times all steps of jobs. *)
  Definition units : Z := product (map long s) * product (map steps_of (copied_jobs C)).

  Lemma product_positive l : (forall x, In x l -> 1 <= x) -> 1 <= product l.
  Proof.
    induction l as [|x l IH]; cbn; intros H; [lia|]. assert (1 <= x) by (apply H; now left).
    assert (1 <= product l) by (apply IH; intros; apply H; now right). unfold product in *. nia.
  Qed.

  Lemma product_divides x l : In x l -> (x | product l).
  Proof.
    induction l as [|y l IH]; cbn; [intros []|]. intros [->|H]; [exists (product l); unfold product; ring|].
    destruct (IH H) as (q & Hq). exists (y * q). unfold product in *. rewrite Hq. ring.
  Qed.

  Lemma copy_facts c : In c s -> copy_fits C c.
  Proof. intros H. destruct Hs as (Hf & _). rewrite Forall_forall in Hf. now apply Hf. Qed.

  Lemma long_positive c : In c s -> 1 <= long c.
  Proof. intros H. destruct (copy_facts c H) as (j & K & m & g & n & rate & v & _ & _ & Ht & _). unfold long. lia. Qed.

  Lemma steps_positive K : In K (copied_jobs C) -> 1 <= steps_of K.
  Proof.
    intros H. destruct instance_facts as (_ & Hall & _). apply In_nth_error in H. destruct H as (k & Hk).
    unfold check_copies_instance in Hcheck. rewrite !andb_true_iff in Hcheck. destruct Hcheck as ((((_ & H2) & _) & _) & _).
    destruct (check_all_nth _ _ _ H2) as [Hlen _].
    destruct (nth_error (jobs I) k) as [j|] eqn:E.
    - destruct (Hall k j E) as (K' & HK & Hc). assert (K' = K) by congruence. subst K'.
      unfold check_copied in Hc. cbv zeta in Hc. rewrite !andb_true_iff, Z.leb_le in Hc. tauto.
    - apply nth_error_None in E. assert (k < length (copied_jobs C))%nat by (apply nth_error_Some; congruence). fold I in Hlen. lia.
  Qed.

  Lemma units_positive : 1 <= units.
  Proof.
    unfold units. assert (1 <= product (map long s)).
    { apply product_positive. intros x Hx. apply in_map_iff in Hx. destruct Hx as (c & <- & Hc). now apply long_positive. }
    assert (1 <= product (map steps_of (copied_jobs C))).
    { apply product_positive. intros x Hx. apply in_map_iff in Hx. destruct Hx as (K & <- & HK). now apply steps_positive. }
    nia.
  Qed.

  (** Units that a copy does in each of its ticks. *)
  Definition in_tick (p : Z) (K : copied) (c : copy) : Z := p * its_steps c * (units / (long c * steps_of K)).

  Lemma in_tick_is p K c : In c s -> In K (copied_jobs C) ->
    in_tick p K c * (long c * steps_of K) = p * its_steps c * units.
  Proof.
    intros Hc HK. pose proof (long_positive c Hc). pose proof (steps_positive K HK).
    assert (Hd : (long c * steps_of K | units)).
    { destruct (product_divides (long c) (map long s) (in_map _ _ _ Hc)) as (q1 & H1).
      destruct (product_divides (steps_of K) (map steps_of (copied_jobs C)) (in_map _ _ _ HK)) as (q2 & H2).
      exists (q1 * q2). unfold units. rewrite H1, H2. ring. }
    destruct Hd as (q & Hq). unfold in_tick. rewrite Hq, Z.div_mul by nia. ring.
  Qed.

  Definition mine_of (k : nat) : list copy := filter (fun c => Nat.eqb (of_job (its_run c)) k) s.

  Definition raw (k : nat) (p : Z) (K : copied) (t : Z) : Z :=
    sum (fun c => if active t (its_run c) then in_tick p K c else 0) (mine_of k).

  (** Units that a job does in a tick, of those that a tick has. *)
  Definition done_in (k : nat) (t : Z) : Z :=
    match nth_error (jobs I) k, nth_error (copied_jobs C) k with
    | Some j, Some K => Z.min units (raw k (shortest j) K t)
    | _, _ => 0
    end.

  Lemma in_mine k c : In c (mine_of k) <-> In c s /\ of_job (its_run c) = k.
  Proof. unfold mine_of. rewrite filter_In, Nat.eqb_eq. tauto. Qed.

  Lemma in_tick_positive p K c : 0 <= p -> In c s -> In K (copied_jobs C) -> 0 <= in_tick p K c.
  Proof.
    intros Hp Hc HK. destruct (copy_facts c Hc) as (j & K' & m & g & n & rate & v & _ & _ & _ & _ & Hst & _).
    unfold in_tick. apply Z.mul_nonneg_nonneg; [nia|]. apply Z.div_pos; [pose proof units_positive; lia|].
    pose proof (long_positive c Hc). pose proof (steps_positive K HK). nia.
  Qed.

  Lemma raw_positive k p K t : 0 <= p -> In K (copied_jobs C) -> 0 <= raw k p K t.
  Proof.
    intros Hp HK. apply sum_nonneg. intros c Hc. apply in_mine in Hc. destruct (active t (its_run c)); [|lia].
    now apply in_tick_positive.
  Qed.

  Lemma done_between k t : 0 <= done_in k t <= units.
  Proof.
    unfold done_in. pose proof units_positive. destruct (nth_error (jobs I) k) as [j|] eqn:Ej; [|lia].
    destruct (nth_error (copied_jobs C) k) as [K|] eqn:EK; [|lia].
    destruct instance_facts as (Hsound & _). pose proof (shortest_positive j (sound_in _ _ _ Hsound Ej)) as Hp.
    pose proof (raw_positive k (shortest j) K t ltac:(lia) (nth_error_In _ _ EK)). lia.
  Qed.

  (** *** How fast copies are *)

  Definition gpus_of_copy (c : copy) : Z := sum snd (pieces (its_run c)).
  Definition node_of (c : copy) : nat := match pieces (its_run c) with piece :: _ => fst piece | [] => 0%nat end.

  Definition rate_of_copy (K : copied) (c : copy) : Q :=
    match nth_error (machines C) (node_of c) with
    | Some n => match rate_on K (gpu_type n) with
                | Some rate => (inject_Z (gpus_of_copy c) * rate * largestQ (speeds_of K))%Q
                | None => 0%Q
                end
    | None => 0%Q
    end.

  Lemma rates_positive K : In K (copied_jobs C) -> (forall ty rate, rate_on K ty = Some rate -> (0 <= rate)%Q /\ (rate <= largestQ (map snd (rates K)))%Q)
    /\ (forall v, In v (speeds_of K) -> (0 <= v)%Q) /\ (0 <= theta K)%Q.
  Proof.
    intros HK. apply In_nth_error in HK. destruct HK as (k & Hk).
    unfold check_copies_instance in Hcheck. rewrite !andb_true_iff in Hcheck. destruct Hcheck as ((((_ & H2) & _) & _) & _).
    destruct (check_all_nth _ _ _ H2) as [Hlen Hall].
    destruct (nth_error (jobs (least_work C)) k) as [j|] eqn:E.
    2: { apply nth_error_None in E. assert (k < length (copied_jobs C))%nat by (apply nth_error_Some; congruence). lia. }
    specialize (Hall k j K E Hk). unfold check_copied in Hall. cbv zeta in Hall. rewrite !andb_true_iff, !forallb_forall in Hall.
    destruct Hall as (((((((_ & _) & Hr) & Hv) & Ht) & _) & _) & _).
    split; [|split].
    - intros ty rate H. unfold rate_on in H. destruct (find _ _) as [entry|] eqn:F; [|discriminate]. injection H as <-.
      apply find_some in F. destruct F as [F _]. split; [apply Qle_bool_iff; now apply Hr|]. apply largestQ_at_least. now apply in_map.
    - intros v Hin. apply Qle_bool_iff. now apply Hv.
    - now apply Qle_bool_iff.
  Qed.

  Lemma one_node_each c : In c s -> exists m g n, pieces (its_run c) = [(m, g)] /\ nth_error (machines C) m = Some n /\ 1 <= g <= gpus n
    /\ node_of c = m /\ gpus_of_copy c = g.
  Proof.
    intros H. destruct (copy_facts c H) as (j & K & m & g & n & rate & v & _ & _ & _ & _ & _ & Hp & Hn & Hg & _).
    exists m, g, n. unfold node_of, gpus_of_copy. rewrite Hp. cbn. repeat split; try assumption; lia.
  Qed.

  (** Steps in a tick are no more than the rate; in units of ticks. *)
  Lemma in_tick_rate k K p c : 0 <= p -> In c (mine_of k) -> nth_error (copied_jobs C) k = Some K ->
    (inject_Z (in_tick p K c) * inject_Z (steps_of K) <= inject_Z (p * units) * rate_of_copy K c)%Q.
  Proof.
    intros Hp Hc HK. apply in_mine in Hc. destruct Hc as [Hc Hof]. pose proof (nth_error_In _ _ HK) as HKin.
    destruct (copy_facts c Hc) as (j & K' & m & g & n & rate & v & _ & HK' & Ht & Ho & Hst & Hpieces & Hn & Hg & Hrate & Hv & Hle).
    rewrite Hof in HK'. assert (K' = K) by congruence. subst K'.
    destruct (rates_positive K HKin) as (Hr & Hspeeds & _). destruct (Hr _ _ Hrate) as [Hr0 _].
    pose proof (Hspeeds v (nth_error_In _ _ Hv)) as Hv0. pose proof (largestQ_at_least v _ (nth_error_In _ _ Hv)) as Hv1.
    assert (Er : (rate_of_copy K c == inject_Z g * rate * largestQ (speeds_of K))%Q).
    { unfold rate_of_copy, node_of, gpus_of_copy. rewrite Hpieces. cbn [fst snd sum]. rewrite Hn, Hrate, Z.add_0_r. reflexivity. }
    assert (Hlong : (0 < inject_Z (long c))%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zlt_Qlt; pose proof (long_positive c Hc); lia).
    apply (Qmult_le_r _ _ _ Hlong). rewrite Er, <- !inject_Z_mult.
    replace (in_tick p K c * steps_of K * long c) with (p * its_steps c * units) by (rewrite <- (in_tick_is p K c Hc HKin); ring).
    replace (p * its_steps c * units) with (p * units * its_steps c) by ring. rewrite inject_Z_mult, <- Qmult_assoc.
    rewrite !(Qmult_comm (inject_Z (p * units))). apply Qmult_le_compat_r.
    2: { change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. pose proof units_positive. nia. }
    eapply Qle_trans; [exact Hle|].
    assert (Hg0 : (0 <= inject_Z g)%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zle_Qle; lia).
    assert (Hgr : (0 <= inject_Z g * rate)%Q) by (apply Qmult_le_0_compat; assumption).
    apply Qle_trans with (inject_Z g * rate * v * inject_Z (long c))%Q.
    - rewrite !(Qmult_comm (inject_Z g * rate * v)). apply Qmult_le_compat_r; [|apply Qmult_le_0_compat; assumption].
      rewrite <- Zle_Qle. unfold long. lia.
    - apply Qmult_le_compat_r; [|now apply Qlt_le_weak]. rewrite !(Qmult_comm (inject_Z g * rate)).
      now apply Qmult_le_compat_r.
  Qed.

  Definition now (t : Z) (k : nat) : list copy := filter (fun c => active t (its_run c)) (mine_of k).

  Lemma raw_now k p K t : raw k p K t = sum (in_tick p K) (now t k).
  Proof. unfold raw, now. now rewrite sum_filter. Qed.

  Lemma sum_inject {A} (f : A -> Z) l : (inject_Z (sum f l) == sumQ (fun x => inject_Z (f x)) l)%Q.
  Proof. induction l as [|x l IH]; cbn [sum sumQ]; [reflexivity|]. rewrite inject_Z_plus, IH. reflexivity. Qed.

  Lemma raw_rate k K p t : 0 <= p -> nth_error (copied_jobs C) k = Some K ->
    (inject_Z (raw k p K t) * inject_Z (steps_of K) <= inject_Z (p * units) * sumQ (rate_of_copy K) (now t k))%Q.
  Proof.
    intros Hp HK. rewrite raw_now, sum_inject.
    setoid_replace (sumQ (fun x => inject_Z (in_tick p K x)) (now t k) * inject_Z (steps_of K))%Q
      with (sumQ (fun x => inject_Z (steps_of K) * inject_Z (in_tick p K x)) (now t k))%Q
      by (rewrite sumQ_scale; ring).
    rewrite <- sumQ_scale. apply sumQ_le. intros c Hc. unfold now in Hc. apply filter_In in Hc. destruct Hc as [Hc _].
    rewrite Qmult_comm. now apply (in_tick_rate k).
  Qed.

  Definition running (t : Z) : list copy := filter (fun c => active t (its_run c)) s.

  Lemma now_is t k : now t k = filter (fun c => Nat.eqb (of_job (its_run c)) k) (running t).
  Proof.
    unfold now, mine_of, running. generalize s. intros l. induction l as [|c l IH]; cbn; [reflexivity|].
    destruct (Nat.eqb (of_job (its_run c)) k) eqn:E1, (active t (its_run c)) eqn:E2; cbn; rewrite ?E1, ?E2, ?IH; reflexivity.
  Qed.

  Lemma in_running t c : In c (running t) -> In c s.
  Proof. unfold running. intros H. now apply filter_In in H. Qed.

  Lemma sumQ_filter {A} (f : A -> Q) (test : A -> bool) l : (forall x, In x l -> (0 <= f x)%Q) -> (sumQ f (filter test l) <= sumQ f l)%Q.
  Proof.
    induction l as [|x l IH]; cbn; intros H; [apply Qle_refl|]. assert (0 <= f x)%Q by (apply H; now left).
    assert (sumQ f (filter test l) <= sumQ f l)%Q by (apply IH; intros; apply H; now right).
    destruct (test x); cbn; lra.
  Qed.

  Lemma count_of_job t k : Z.of_nat (length (now t k)) = in_use job_of_run (map its_run s) k t.
  Proof.
    rewrite now_is. unfold in_use, running. rewrite sum_map. rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const, !sum_filter.
    apply sum_ext. intros c _. unfold job_of_run. cbn [sum fst snd].
    destruct (active t (its_run c)); [|reflexivity]. destruct (Nat.eqb (of_job (its_run c)) k); reflexivity.
  Qed.

  Lemma count_of_node t m : sum (fun c => if Nat.eqb (node_of c) m then 1 else 0) (running t) = in_use nodes_of_run (map its_run s) m t.
  Proof.
    unfold in_use, running. rewrite sum_map, sum_filter. apply sum_ext. intros c Hc.
    destruct (one_node_each c Hc) as (m' & g & n & Hp & _ & _ & Hm & _). unfold nodes_of_run. rewrite Hp. cbn [map sum fst snd].
    rewrite Hm. destruct (active t (its_run c)); [|reflexivity]. destruct (Nat.eqb m' m); reflexivity.
  Qed.

  Definition of_machine (f : node -> Q) (m : nat) : Q := match nth_error (machines C) m with Some n => f n | None => 0%Q end.

  Lemma all_machines f : (sumQ (of_machine f) (seq 0 (length (machines C))) == sumQ f (machines C))%Q.
  Proof.
    assert (H : forall l b, (forall i n, nth_error l i = Some n -> nth_error (machines C) (b + i) = Some n) ->
      (sumQ (of_machine f) (seq b (length l)) == sumQ f l)%Q).
    { induction l as [|n l IH]; intros b Hl; cbn [length seq sumQ]; [reflexivity|].
      rewrite (IH (S b)).
      - unfold of_machine. specialize (Hl 0%nat n eq_refl). rewrite Nat.add_0_r in Hl. rewrite Hl. reflexivity.
      - intros i x Hi. replace (S b + i)%nat with (b + S i)%nat by lia. now apply Hl. }
    apply H. intros; assumption.
  Qed.

  (** A function of nodes, over those that copies are on at some time: no node is counted twice. *)
  Lemma over_nodes t (f : node -> Q) : (forall n, (0 <= f n)%Q) ->
    (sumQ (fun c => of_machine f (node_of c)) (running t) <= sumQ f (machines C))%Q.
  Proof.
    intros Hf. rewrite <- all_machines.
    assert (Hpos : forall m, (0 <= of_machine f m)%Q) by (intros m; unfold of_machine; destruct (nth_error _ _); [apply Hf|apply Qle_refl]).
    assert (E : (sumQ (fun c => of_machine f (node_of c)) (running t)
                 == sumQ (fun m => inject_Z (sum (fun c => if Nat.eqb (node_of c) m then 1%Z else 0%Z) (running t)) * of_machine f m) (seq 0 (length (machines C))))%Q).
    { assert (H1 : forall c, In c (running t) ->
        (of_machine f (node_of c) == sumQ (fun m => inject_Z (if Nat.eqb (node_of c) m then 1%Z else 0%Z) * of_machine f m) (seq 0 (length (machines C))))%Q).
      { intros c Hc. destruct (one_node_each c (in_running t c Hc)) as (m & g & n & _ & Hn & _ & Hm & _). rewrite Hm.
        assert (Hlt : (m < length (machines C))%nat) by (apply nth_error_Some; congruence).
        assert (H : forall b len, (sumQ (fun i => inject_Z (if Nat.eqb m i then 1%Z else 0%Z) * of_machine f i) (seq b len)
                    == if (b <=? m)%nat && (m <? b + len)%nat then of_machine f m else 0)%Q).
        { clear. intros b len. revert b. induction len as [|len IH]; intros b; cbn [seq sumQ].
          - destruct (Nat.leb_spec b m), (Nat.ltb_spec m (b + 0)); try lia; reflexivity.
          - rewrite IH. destruct (Nat.eqb_spec m b) as [->|Hne].
            + destruct (Nat.leb_spec (S b) b), (Nat.leb_spec b b), (Nat.ltb_spec b (b + S len)); try lia; cbn [andb]; unfold inject_Z; ring.
            + destruct (Nat.leb_spec (S b) m), (Nat.leb_spec b m), (Nat.ltb_spec m (S b + len)), (Nat.ltb_spec m (b + S len)); try lia;
                cbn [andb]; unfold inject_Z; ring. }
        rewrite H. destruct (Nat.leb_spec 0 m), (Nat.ltb_spec m (0 + length (machines C))); try lia. reflexivity. }
      rewrite (sumQ_ext _ _ _ H1), sumQ_swap. apply sumQ_ext. intros m _. rewrite sum_inject.
      rewrite (Qmult_comm (sumQ _ _)), <- sumQ_scale. apply sumQ_ext. intros c _. apply Qmult_comm. }
    rewrite E. apply sumQ_le. intros m Hm. apply in_seq in Hm.
    rewrite count_of_node. rewrite <- (Qmult_1_l (of_machine f m)) at 2. apply Qmult_le_compat_r; [|apply Hpos].
    change 1%Q with (inject_Z 1). rewrite <- Zle_Qle. destruct Hs as (_ & Hone & _).
    destruct (nth_error (machines C) m) as [n|] eqn:En; [now apply (Hone m n)|]. apply nth_error_None in En. lia.
  Qed.

  Lemma gpus_running t : sum gpus_of_copy (running t) <= all_gpus C.
  Proof.
    assert (H : (sumQ (fun c => inject_Z (gpus_of_copy c)) (running t) <= sumQ (fun n => inject_Z (Z.max 0 (gpus n))) (machines C))%Q).
    { eapply Qle_trans; [|apply (over_nodes t (fun n => inject_Z (Z.max 0 (gpus n))))].
      - apply sumQ_le. intros c Hc. destruct (one_node_each c (in_running t c Hc)) as (m & g & n & _ & Hn & Hg & Hm & Hgpus).
        rewrite Hm, Hgpus. unfold of_machine. rewrite Hn. rewrite <- Zle_Qle. lia.
      - intros n. change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. lia. }
    rewrite <- !sum_inject, <- Zle_Qle in H. unfold all_gpus.
    rewrite (sum_ext (fun n => Z.max 0 (gpus n)) gpus) in H; [exact H|].
    intros n Hn. destruct instance_facts as (_ & _ & _ & Hg & _). specialize (Hg n Hn). lia.
  Qed.

  Lemma rate_by_gpus K c : In K (copied_jobs C) -> In c s -> (rate_of_copy K c <= inject_Z (gpus_of_copy c) * best_rate K)%Q.
  Proof.
    intros HK Hc. destruct (rates_positive K HK) as (Hr & _ & _).
    destruct (one_node_each c Hc) as (m & g & n & _ & Hn & Hg & Hm & Hgpus).
    assert (Hg0 : (0 <= inject_Z (gpus_of_copy c))%Q) by (rewrite Hgpus; change 0%Q with (inject_Z 0); rewrite <- Zle_Qle; lia).
    unfold rate_of_copy, best_rate. rewrite Hm, Hn. rewrite Qmult_assoc. destruct (rate_on K (gpu_type n)) as [rate|] eqn:E.
    - apply Qmult_le_compat_r; [|apply largestQ_positive]. rewrite !(Qmult_comm (inject_Z _)).
      apply Qmult_le_compat_r; [now apply (Hr (gpu_type n))|exact Hg0].
    - apply Qmult_le_0_compat; [|apply largestQ_positive]. apply Qmult_le_0_compat; [exact Hg0|apply largestQ_positive].
  Qed.

  Lemma rate_by_node K c n : In K (copied_jobs C) -> In c s -> nth_error (machines C) (node_of c) = Some n ->
    (rate_of_copy K c <= node_rate K n)%Q.
  Proof.
    intros HK Hc Hn. destruct (rates_positive K HK) as (Hr & _ & _).
    destruct (one_node_each c Hc) as (m & g & n' & _ & Hn' & Hg & Hm & Hgpus). assert (n' = n) by congruence. subst n'.
    unfold rate_of_copy, node_rate. rewrite Hn. destruct (rate_on K (gpu_type n)) as [rate|] eqn:E; [|apply Qle_refl].
    destruct (Hr _ _ E) as [H0 _]. apply Qmult_le_compat_r; [|apply largestQ_positive].
    apply Qmult_le_compat_r; [|exact H0]. rewrite <- Zle_Qle. lia.
  Qed.

  (** All copies of a job at a time do no more than the fastest. *)
  Lemma fastest_at_least k j K t : nth_error (jobs I) k = Some j -> nth_error (copied_jobs C) k = Some K ->
    (sumQ (rate_of_copy K) (now t k) <= fastest C K)%Q.
  Proof.
    intros Hj HK. pose proof (nth_error_In _ _ HK) as HKin. destruct (rates_positive K HKin) as (_ & _ & Htheta).
    set (f := fun n => largestQ [node_rate K n - theta K]%Q).
    assert (Hf : forall n, (0 <= f n)%Q) by (intros; apply largestQ_positive).
    assert (H1 : (sumQ (rate_of_copy K) (now t k) <= sumQ (fun c => theta K + of_machine f (node_of c)) (now t k))%Q).
    { apply sumQ_le. intros c Hc. rewrite now_is in Hc. apply filter_In in Hc. destruct Hc as [Hc _]. apply in_running in Hc.
      destruct (one_node_each c Hc) as (m & g & n & _ & Hn & _ & Hm & _). unfold of_machine. rewrite Hm, Hn.
      pose proof (rate_by_node K c n HKin Hc ltac:(now rewrite Hm)). unfold f.
      pose proof (largestQ_at_least (node_rate K n - theta K)%Q [(node_rate K n - theta K)%Q] (or_introl eq_refl)). lra. }
    eapply Qle_trans; [exact H1|]. rewrite sumQ_add, sumQ_all, count_of_job. unfold fastest. apply Qplus_le_compat.
    - apply Qmult_le_compat_r; [|exact Htheta]. rewrite <- Zle_Qle. destruct Hs as (_ & _ & Hmost & _). now apply (Hmost k j).
    - eapply Qle_trans; [|apply (over_nodes t f Hf)]. rewrite now_is. apply sumQ_filter.
      intros c _. unfold of_machine. destruct (nth_error (machines C) (node_of c)); [apply Hf|apply Qle_refl].
  Qed.

  Lemma rates_by_gpus k K t : nth_error (copied_jobs C) k = Some K ->
    (sumQ (rate_of_copy K) (now t k) <= inject_Z (sum gpus_of_copy (now t k)) * best_rate K)%Q.
  Proof.
    intros HK. rewrite sum_inject, Qmult_comm, <- sumQ_scale. apply sumQ_le. intros c Hc. rewrite now_is in Hc.
    apply filter_In in Hc. destruct Hc as [Hc _]. rewrite Qmult_comm. apply rate_by_gpus; [eapply nth_error_In; exact HK|].
    now apply (in_running t).
  Qed.

  Lemma gpus_now t k : 0 <= sum gpus_of_copy (now t k) <= all_gpus C.
  Proof.
    assert (Hpos : forall c, In c (running t) -> 0 <= gpus_of_copy c).
    { intros c Hc. destruct (one_node_each c (in_running t c Hc)) as (m & g & n & _ & _ & Hg & _ & E). lia. }
    rewrite now_is. split.
    - apply sum_nonneg. intros c Hc. apply filter_In in Hc. now apply Hpos.
    - eapply Z.le_trans; [|apply (gpus_running t)]. rewrite sum_filter. apply sum_le. intros c Hc. specialize (Hpos c Hc).
      destruct (Nat.eqb _ _); lia.
  Qed.

  Lemma best_positive K : (0 <= best_rate K)%Q.
  Proof. unfold best_rate. apply Qmult_le_0_compat; apply largestQ_positive. Qed.

  (** What is checked of a job. *)
  Lemma checked k j K : nth_error (jobs I) k = Some j -> nth_error (copied_jobs C) k = Some K ->
    let p := shortest j in let a := gang j * p / scale C in
    times j = [((0%nat, 0%nat), p)] /\ 1 <= steps_of K /\ gang j * p = scale C * a /\
    ((inject_Z a * best_rate K <= inject_Z (steps_of K))%Q \/ gang j <= scale C) /\
    (p = 1 \/ (inject_Z p * fastest C K <= inject_Z (steps_of K))%Q
     \/ ((inject_Z a * best_rate K <= inject_Z (steps_of K))%Q /\ p * all_gpus C <= a)).
  Proof.
    intros Hj HK. destruct instance_facts as (_ & Hall & _). destruct (Hall k j Hj) as (K' & HK' & Hc).
    assert (K' = K) by congruence. subst K'. unfold check_copied in Hc. cbv zeta in *. rewrite !andb_true_iff, !orb_true_iff in Hc.
    destruct Hc as (((((((Ht & Hsteps) & _) & _) & _) & Ha) & Hroom) & Hspeed).
    split; [|split; [now apply Z.leb_le|split; [now apply Z.eqb_eq|split]]].
    - destruct (times j) as [|[[ty c] ticks] [|]]; try discriminate. rewrite !andb_true_iff in Ht. destruct Ht as ((H1 & H2) & H3).
      apply Nat.eqb_eq in H1, H2. apply Z.eqb_eq in H3. cbn [fst snd] in *. now subst ty c ticks.
    - destruct Hroom as [H|H]; [left; now apply Qle_bool_iff|right; now apply Z.leb_le].
    - destruct Hspeed as [[H|H]|H].
      + left. now apply Z.eqb_eq.
      + right. left. now apply Qle_bool_iff.
      + right. right. rewrite andb_true_iff in H. destruct H as [H1 H2]. split; [now apply Qle_bool_iff|now apply Z.leb_le].
  Qed.

  Lemma raw_fits k j K : nth_error (jobs I) k = Some j -> nth_error (copied_jobs C) k = Some K ->
    shortest j = 1 \/ forall t, raw k (shortest j) K t <= units.
  Proof.
    intros Hj HK. destruct (checked k j K Hj HK) as (_ & Hsteps & _ & _ & Hspeed). cbv zeta in *.
    set (p := shortest j) in *. set (a := gang j * p / scale C) in *.
    destruct instance_facts as (Hsound & _). pose proof (shortest_positive j (sound_in _ _ _ Hsound Hj)) as Hp. fold p in Hp.
    pose proof units_positive as Hu.
    destruct Hspeed as [H|H]; [now left|right]. intros t.
    pose proof (raw_rate k K p t ltac:(lia) HK) as Hraw.
    assert (Hlimit : (inject_Z p * sumQ (rate_of_copy K) (now t k) <= inject_Z (steps_of K))%Q).
    { assert (Hp0 : (0 <= inject_Z p)%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zle_Qle; lia).
      destruct H as [H|[H1 H2]].
      - eapply Qle_trans; [|exact H]. rewrite !(Qmult_comm (inject_Z p)). apply Qmult_le_compat_r; [|exact Hp0].
        now apply (fastest_at_least k j).
      - eapply Qle_trans; [|exact H1]. pose proof (rates_by_gpus k K t HK) as Hg. pose proof (gpus_now t k) as [Hg0 Hg1].
        apply Qle_trans with (inject_Z p * (inject_Z (sum gpus_of_copy (now t k)) * best_rate K))%Q.
        + rewrite !(Qmult_comm (inject_Z p)). now apply Qmult_le_compat_r.
        + rewrite Qmult_assoc. apply Qmult_le_compat_r; [|apply best_positive]. rewrite <- inject_Z_mult, <- Zle_Qle. nia. }
    assert (Hs0 : (0 < inject_Z (steps_of K))%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zlt_Qlt; lia).
    rewrite Zle_Qle. apply (proj1 (Qmult_le_r _ _ _ Hs0)). eapply Qle_trans; [exact Hraw|].
    rewrite inject_Z_mult, (Qmult_comm (inject_Z p)), <- Qmult_assoc, !(Qmult_comm (inject_Z units)).
    apply Qmult_le_compat_r; [exact Hlimit|]. change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. lia.
  Qed.

  (** A job holds no more, for all that it does, than its copies use. *)
  Lemma room_of_job k j K t : nth_error (jobs I) k = Some j -> nth_error (copied_jobs C) k = Some K ->
    gang j * done_in k t <= units * (scale C * sum gpus_of_copy (now t k)).
  Proof.
    intros Hj HK. destruct (checked k j K Hj HK) as (_ & Hsteps & Ha & Hroom & _). cbv zeta in *.
    set (p := shortest j) in *. set (a := gang j * p / scale C) in *.
    destruct instance_facts as (Hsound & _). pose proof (sound_in _ _ _ Hsound Hj) as Hsj.
    pose proof (shortest_positive j Hsj) as Hp. fold p in Hp. destruct Hsj as (_ & Hg & _).
    pose proof units_positive as Hu. pose proof (gpus_now t k) as [Hg0 _]. set (h := sum gpus_of_copy (now t k)) in *.
    assert (Hsc : 1 <= scale C) by (unfold scale; lia).
    unfold done_in. rewrite Hj, HK. fold p. pose proof (raw_positive k p K t ltac:(lia) (nth_error_In _ _ HK)) as Hraw0.
    destruct Hroom as [Hslow|Hsmall].
    - assert (H : gang j * raw k p K t <= units * (scale C * h)); [|nia].
      pose proof (raw_rate k K p t ltac:(lia) HK) as Hraw. pose proof (rates_by_gpus k K t HK) as Hrates. fold h in Hrates.
      assert (Hs0 : (0 < inject_Z (steps_of K))%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zlt_Qlt; lia).
      rewrite Zle_Qle. apply (proj1 (Qmult_le_r _ _ _ Hs0)). rewrite inject_Z_mult, <- Qmult_assoc.
      assert (Hgang : (0 <= inject_Z (gang j))%Q) by (change 0%Q with (inject_Z 0); rewrite <- Zle_Qle; lia).
      apply Qle_trans with (inject_Z (gang j) * (inject_Z (p * units) * (inject_Z h * best_rate K)))%Q.
      + rewrite !(Qmult_comm (inject_Z (gang j))). apply Qmult_le_compat_r; [|exact Hgang].
        eapply Qle_trans; [exact Hraw|]. rewrite !(Qmult_comm (inject_Z (p * units))). apply Qmult_le_compat_r; [exact Hrates|].
        change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. nia.
      + setoid_replace (inject_Z (gang j) * (inject_Z (p * units) * (inject_Z h * best_rate K)))%Q
          with (inject_Z (units * (scale C * h)) * (inject_Z a * best_rate K))%Q.
        * rewrite !(Qmult_comm (inject_Z (units * (scale C * h)))). apply Qmult_le_compat_r; [exact Hslow|].
          change 0%Q with (inject_Z 0). rewrite <- Zle_Qle. nia.
        * rewrite !Qmult_assoc, <- !inject_Z_mult.
          replace (gang j * (p * units) * h) with (units * (scale C * h) * a) by (rewrite (Z.mul_assoc (gang j)), Ha; ring). reflexivity.
    - destruct (Z.eq_dec h 0) as [Hz|Hnz].
      + assert (Hnone : raw k p K t = 0).
        { rewrite raw_now. assert (Hempty : now t k = []).
          { assert (Hpos : forall c, In c (now t k) -> 1 <= gpus_of_copy c).
            { intros c Hc. rewrite now_is in Hc. apply filter_In in Hc. destruct Hc as [Hc _].
              destruct (one_node_each c (in_running t c Hc)) as (m & g & n & _ & _ & Hg' & _ & E'). lia. }
            assert (Hsum : sum gpus_of_copy (now t k) = 0) by exact Hz. clear - Hpos Hsum.
            destruct (now t k) as [|c l]; [reflexivity|]. exfalso. cbn [sum] in Hsum.
            assert (1 <= gpus_of_copy c) by (apply Hpos; now left).
            assert (0 <= sum gpus_of_copy l) by (apply sum_nonneg; intros x Hx; specialize (Hpos x (or_intror Hx)); lia). lia. }
          now rewrite Hempty. }
        rewrite Hnone. nia.
      + apply Z.le_trans with (scale C * units).
        * apply Z.mul_le_mono_nonneg; lia.
        * replace (units * (scale C * h)) with (scale C * units * h) by ring.
          rewrite <- (Z.mul_1_r (scale C * units)) at 1. apply Z.mul_le_mono_nonneg_l; [nia|lia].
  Qed.

  Lemma room_of_all t : sum (fun kj => gang (snd kj) * done_in (fst kj) t) (numbered I) <= units * capacity I.
  Proof.
    destruct instance_facts as (Hsound & Hall & _ & _ & Hcap). rewrite Hcap.
    pose proof units_positive as Hu. assert (Hsc : 1 <= scale C) by (unfold scale; lia).
    transitivity (sum (fun kj => units * (scale C * sum gpus_of_copy (now t (fst kj)))) (numbered I)).
    { apply sum_le. intros [k j] Hin. apply in_numbered in Hin. cbn [fst snd]. destruct (Hall k j Hin) as (K & HK & _).
      now apply (room_of_job k j K). }
    rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [lia|]. rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [lia|].
    eapply Z.le_trans; [|exact (gpus_running t)].
    rewrite (sum_ext _ (fun kj => sum (fun c => if Nat.eqb (of_job (its_run c)) (fst kj) then gpus_of_copy c else 0) (running t)))
      by (intros kj _; rewrite now_is; apply sum_filter).
    rewrite sum_swap. apply sum_le. intros c Hc.
    destruct (one_node_each c (in_running t c Hc)) as (m & g & n & _ & _ & Hg & _ & E).
    assert (H : sum (fun kj => if Nat.eqb (of_job (its_run c)) (fst kj) then gpus_of_copy c else 0) (numbered I)
                = sum (fun k => if Nat.eqb (of_job (its_run c)) k then gpus_of_copy c else 0) (seq 0 (length (jobs I)))).
    { apply (sum_numbered I (fun k => if Nat.eqb (of_job (its_run c)) k then gpus_of_copy c else 0)). }
    rewrite H. clear H. destruct (Nat.lt_ge_cases (of_job (its_run c)) (length (jobs I))) as [Hlt|Hge].
    - now rewrite one_of_range.
    - transitivity (sum (fun _ : nat => 0) (seq 0 (length (jobs I)))); [|rewrite sum_const; lia].
      apply Z.eq_le_incl, sum_ext. intros k Hk. apply in_seq in Hk. destruct (Nat.eqb_spec (of_job (its_run c)) k); lia.
  Qed.

  Lemma complete_after k c : In c s -> of_job (its_run c) = k -> 1 <= its_steps c -> stop (its_run c) <= complete_at_last s k.
  Proof.
    unfold complete_at_last. intros Hc Hof Hst. clear Hs. induction s as [|x l IH]; cbn; [destruct Hc|].
    destruct Hc as [->|Hc].
    - rewrite Hof, Nat.eqb_refl. assert (1 <=? its_steps c = true) as -> by now apply Z.leb_le. cbn. lia.
    - specialize (IH Hc). destruct (_ && _); lia.
  Qed.

  Lemma active_for c a b v : a <= start (its_run c) -> start (its_run c) <= stop (its_run c) -> stop (its_run c) <= b ->
    sum (fun t => if active t (its_run c) then v else 0) (ticks a b) = long c * v.
  Proof.
    intros H1 H2 H3. rewrite (ticks_app a (start (its_run c)) b) by lia.
    rewrite (ticks_app (start (its_run c)) (stop (its_run c)) b) by lia. rewrite !sum_app.
    assert (Hnone : forall x y, (forall t, x <= t < y -> active t (its_run c) = false) -> sum (fun t => if active t (its_run c) then v else 0) (ticks x y) = 0).
    { intros x y H. transitivity (sum (fun _ : Z => 0) (ticks x y)); [|rewrite sum_const; lia]. apply sum_ext.
      intros t Ht. apply in_ticks in Ht. now rewrite (H t Ht). }
    rewrite (Hnone a), (Hnone (stop (its_run c))).
    - rewrite (sum_ext _ (fun _ => v)).
      + rewrite sum_const, length_ticks, Z.max_r by lia. unfold long. ring.
      + intros t Ht. apply in_ticks in Ht. unfold active.
        assert (start (its_run c) <=? t = true) as -> by (apply Z.leb_le; lia).
        assert (t <? stop (its_run c) = true) as -> by (apply Z.ltb_lt; lia). reflexivity.
    - intros t Ht. unfold active. destruct (Z.ltb_spec t (stop (its_run c))); [lia|]. now rewrite andb_false_r.
    - intros t Ht. unfold active. destruct (Z.leb_spec (start (its_run c)) t); [lia|reflexivity].
  Qed.

  Lemma arrival_of k j c : nth_error (jobs I) k = Some j -> In c (mine_of k) -> arrival j <= start (its_run c) < stop (its_run c).
  Proof.
    intros Hj Hc. apply in_mine in Hc. destruct Hc as [Hc Hof].
    destruct (copy_facts c Hc) as (j' & K & m & g & n & rate & v & Hj' & _ & Ht & _). rewrite Hof in Hj'. fold I in Hj'.
    assert (j' = j) by congruence. now subst.
  Qed.

  (** Whoever has done all his steps has done units of as many ticks as he takes. *)
  Lemma all_units k j : nth_error (jobs I) k = Some j -> all_done C s k = true ->
    arrival j <= complete_at_last s k /\ units * shortest j <= so_far (done_in k) (arrival j) (complete_at_last s k).
  Proof.
    intros Hj Hdone. destruct instance_facts as (Hsound & Hall & _). destruct (Hall k j Hj) as (K & HK & _).
    destruct (checked k j K Hj HK) as (_ & Hsteps & _). cbv zeta in *.
    pose proof (shortest_positive j (sound_in _ _ _ Hsound Hj)) as Hp. set (p := shortest j) in *. pose proof units_positive as Hu.
    unfold all_done in Hdone. rewrite HK in Hdone. apply Z.leb_le in Hdone. set (b := complete_at_last s k).
    assert (Hmine : steps_done s k = sum its_steps (mine_of k)) by (unfold steps_done, mine_of; now rewrite sum_filter).
    assert (Hsome : exists c, In c (mine_of k) /\ 1 <= its_steps c).
    { destruct (existsb (fun c => 1 <=? its_steps c) (mine_of k)) eqn:E.
      - apply existsb_exists in E. destruct E as (c & Hc & Hst). exists c. split; [exact Hc|now apply Z.leb_le].
      - exfalso. assert (Hz : sum its_steps (mine_of k) <= 0); [|lia].
        transitivity (sum (fun _ : copy => 0) (mine_of k)); [|rewrite sum_const; lia]. apply sum_le. intros c Hc.
        destruct (Z.leb_spec 1 (its_steps c)) as [Hst|]; [|lia]. exfalso. apply Z.leb_le in Hst.
        assert (existsb (fun c => 1 <=? its_steps c) (mine_of k) = true) by (apply existsb_exists; eauto). congruence. }
    split.
    { destruct Hsome as (c & Hc & Hst). pose proof (arrival_of k j c Hj Hc). apply in_mine in Hc. destruct Hc as [Hc Hof].
      pose proof (complete_after k c Hc Hof Hst). fold b in H0. lia. }
    assert (Htotal : units * p <= sum (raw k p K) (ticks (arrival j) b)).
    { assert (E : sum (raw k p K) (ticks (arrival j) b) = sum (fun c => long c * in_tick p K c) (mine_of k)).
      { unfold raw. rewrite sum_swap. apply sum_ext. intros c Hc. pose proof (arrival_of k j c Hj Hc) as Ht.
        destruct (Z.leb_spec 1 (its_steps c)) as [Hst|Hst].
        - apply in_mine in Hc. destruct Hc as [Hc Hof]. apply active_for; try lia. now apply complete_after.
        - assert (Hzero : in_tick p K c = 0).
          { apply in_mine in Hc. destruct Hc as [Hc _].
            destruct (copy_facts c Hc) as (j' & K' & m & g & n & rate & v & _ & _ & _ & _ & H0 & _). unfold in_tick.
            replace (its_steps c) with 0 by lia. ring. }
          rewrite Hzero. rewrite (sum_ext _ (fun _ => 0)) by (intros t _; destruct (active t (its_run c)); reflexivity).
          rewrite sum_const. lia. }
      rewrite E.
      assert (Hall' : sum (fun c => steps_of K * (long c * in_tick p K c)) (mine_of k) = p * units * sum its_steps (mine_of k)).
      { rewrite <- sum_scale. apply sum_ext. intros c Hc. apply in_mine in Hc. destruct Hc as [Hc _].
        pose proof (in_tick_is p K c Hc (nth_error_In _ _ HK)) as H. nia. }
      rewrite sum_scale in Hall'. set (all := sum (fun c => long c * in_tick p K c) (mine_of k)) in *. nia. }
    unfold so_far. destruct (raw_fits k j K Hj HK) as [Hone|Hfits].
    - (* a tick that is full suffices *)
      fold p in Hone. destruct (existsb (fun t => units <=? raw k p K t) (ticks (arrival j) b)) eqn:E.
      + apply existsb_exists in E. destruct E as (t & Ht & Hfull). apply Z.leb_le in Hfull.
        assert (Hat : done_in k t = units) by (unfold done_in; rewrite Hj, HK; fold p; lia).
        apply in_split in Ht. destruct Ht as (l1 & l2 & ->). rewrite sum_app. cbn [sum]. rewrite Hat, Hone.
        assert (0 <= sum (done_in k) l1) by (apply sum_nonneg; intros; apply done_between).
        assert (0 <= sum (done_in k) l2) by (apply sum_nonneg; intros; apply done_between). lia.
      + rewrite (sum_ext (done_in k) (raw k p K)); [exact Htotal|]. intros t Ht. unfold done_in. rewrite Hj, HK. fold p.
        destruct (Z.leb_spec units (raw k p K t)) as [Hfull|]; [|lia]. exfalso. apply Z.leb_le in Hfull.
        assert (existsb (fun t => units <=? raw k p K t) (ticks (arrival j) b) = true) by (apply existsb_exists; eauto). congruence.
    - rewrite (sum_ext (done_in k) (raw k p K)); [exact Htotal|]. intros t _. unfold done_in. rewrite Hj, HK. fold p.
      specialize (Hfits t). fold p in Hfits. lia.
  Qed.

  (** *** Scenarios *)

  Definition many : nat := Z.to_nat units.
  Definition arrived (k : nat) : Z := match nth_error (jobs I) k with Some j => arrival j | None => 0 end.
  Definition held_of (k w : nat) : list Z := held_in many (done_in k) (arrived k) w (complete_at_last s k).

  Lemma many_is : Z.of_nat many = units.
  Proof. unfold many. pose proof units_positive. lia. Qed.

  Lemma some_units : (1 <= many)%nat.
  Proof. pose proof many_is. pose proof units_positive. lia. Qed.

  Lemma done_fits k t : 0 <= done_in k t <= Z.of_nat many.
  Proof. rewrite many_is. apply done_between. Qed.

  Lemma held_of_distinct k w : NoDup (held_of k w).
  Proof. apply held_distinct. Qed.

  Lemma held_of_bounds k j w t : nth_error (jobs I) k = Some j -> In t (held_of k w) -> arrival j <= t < complete_at_last s k.
  Proof. intros Hj H. apply held_within in H. unfold arrived in H. now rewrite Hj in H. Qed.

  Lemma held_of_enough k j w : nth_error (jobs I) k = Some j -> (w < many)%nat -> all_done C s k = true ->
    shortest j <= Z.of_nat (length (held_of k w)).
  Proof.
    intros Hj Hw Hdone. destruct (all_units k j Hj Hdone) as [H1 H2]. destruct instance_facts as (Hsound & _).
    pose proof (shortest_positive j (sound_in _ _ _ Hsound Hj)).
    assert (Ha : arrived k = arrival j) by (unfold arrived; now rewrite Hj).
    unfold held_of. rewrite Ha. apply held_enough; try assumption; [apply some_units|apply done_fits|lia|].
    rewrite many_is. exact H2.
  Qed.

  Lemma held_of_room (f : Z -> Z) all : NoDup all -> (forall t, 0 <= f t) -> (forall t, f t <> 0 -> In t all) ->
    sum (fun kj => gang (snd kj) * sum (fun w => sum f (held_of (fst kj) w)) (seq 0 many)) (numbered I)
    <= Z.of_nat many * capacity I * sum f all.
  Proof.
    intros Hnd Hf Hin. destruct instance_facts as (Hsound & _).
    transitivity (sum (fun kj => sum (fun t => f t * (gang (snd kj) * done_in (fst kj) t)) all) (numbered I)).
    { apply sum_le. intros [k j] Hk. cbn [fst snd]. apply in_numbered in Hk.
      destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _).
      unfold held_of. rewrite (held_on_average many (done_in k) (arrived k) some_units (done_fits k)).
      rewrite (sum_ext (fun t => f t * (gang j * done_in k t)) (fun t => gang j * (done_in k t * f t))) by (intros; ring).
      rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_included; [apply nodup_ticks| |].
      - intros t. pose proof (done_between k t). specialize (Hf t). nia.
      - intros t _ Ht. apply Hin. intros E. rewrite E, Z.mul_0_r in Ht. congruence. }
    rewrite sum_swap. rewrite <- sum_scale. apply sum_le. intros t _. rewrite sum_scale. pose proof (room_of_all t) as H.
    rewrite many_is. specialize (Hf t). nia.
  Qed.

  Lemma all_counted_done k j : nth_error (jobs I) k = Some j -> counts I j = true -> until I = None -> all_done C s k = true.
  Proof. destruct Hs as (_ & _ & _ & H). apply H. Qed.

  Lemma times_are_simple j : In j (jobs I) -> times j = [((0%nat, 0%nat), shortest j)].
  Proof.
    intros H. apply In_nth_error in H. destruct H as (k & Hj). destruct instance_facts as (_ & Hall & _).
    destruct (Hall k j Hj) as (K & HK & _). now destruct (checked k j K Hj HK).
  Qed.
End Least.
