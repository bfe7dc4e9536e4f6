(** Certificates of jobs with graphs: a run's condition says which replicas it has on each of its nodes, and at which
    speed beside that. The class has all mappings; the bound is of jobs that take the least that any takes. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule Utility Checker Starts Claim Doubles Graphs Relaxed.
Import ListNotations.
Open Scope Z_scope.

(** Replicas of every stage on each of the nodes of a run, in their order, and the speed by which its time is divided. *)
Definition way : Type := list row * Q.

(** Of jobs with a graph: the graph, iterations, and speeds that their runs may have. [sizes]: GPUs of every node. *)
Record mapped := Mapped { over_network : network; sizes : list Z; graphs : list (option (graph * Q * list Q)) }.

Definition graph_of (P : mapped) (k : nat) : option (graph * Q * list Q) := nth k (graphs P) None.

Definition way_ticks (P : mapped) (G : graph) (work : Q) (w : way) : Z :=
  at_speed (iterations_ticks G work (slowest (over_network P) G (fst w))) (snd w).

(** Of every type and way, whose number is a condition, the ticks of the job. *)
Definition times_of (P : mapped) (types : list nat) (G : graph) (work : Q) (ways : list way) : list (nat * nat * Z) :=
  flat_map (fun ty => map (fun cw => ((ty, fst cw), way_ticks P G work (snd cw))) (combine (seq 0 (length ways)) ways)) types.

Definition in_ways (P : mapped) (types : list nat) (ways : list (list way)) (kj : nat * job) : job :=
  match graph_of P (fst kj) with
  | Some (G, work, _) =>
      Job (arrival (snd kj)) (gang (snd kj)) (weight (snd kj)) (times_of P types G work (nth (fst kj) ways []))
        (watched (snd kj)) (worth (snd kj)) (deadline (snd kj)) (quota (snd kj))
  | None => snd kj
  end.

(** The instance whose jobs with graphs run in these ways. *)
Definition with_ways (P : mapped) (ways : list (list way)) (I : instance) : instance :=
  Instance (nodes I) (map (in_ways P (types_of I) ways) (numbered I)) (charged I) (lost I) (until I) (per_gpu I)
    (saves I) (faults I) (quotas I) (amounts I) (once I) (widest I) (rounds I) (least_start I).

(** A run of a job with a graph is on different nodes, has a replica on each of its GPUs, and no more on a node than it has. *)
Definition well_placed (P : mapped) (ways : list (list way)) (r : run) : Prop :=
  forall G work speeds, graph_of P (of_job r) = Some (G, work, speeds) ->
    exists w, nth_error (nth (of_job r) ways []) (condition r) = Some w /\
      maps_all (over_network P) G (fst w) = true /\ In (snd w) speeds /\ NoDup (map fst (pieces r)) /\
      Forall2 (fun here piece => sum (fun n => n) here = snd piece /\ snd piece <= nth (fst piece) (sizes P) 0) (fst w) (pieces r).

Definition all_placed (P : mapped) (ways : list (list way)) (s : schedule) : Prop := Forall (well_placed P ways) s.

Definition same_speed (x y : Q) : bool := (Qnum x =? Qnum y) && Pos.eqb (Qden x) (Qden y).

Lemma same_speed_is x y : same_speed x y = true -> x = y.
Proof.
  unfold same_speed. rewrite andb_true_iff, Z.eqb_eq, Pos.eqb_eq. destruct x, y. cbn. intros [-> ->]. reflexivity.
Qed.

Fixpoint distinct (l : list nat) : bool :=
  match l with [] => true | x :: rest => negb (existsb (Nat.eqb x) rest) && distinct rest end.

Lemma distinct_sound l : distinct l = true -> NoDup l.
Proof.
  induction l as [|x l IH]; cbn; intros H; constructor; apply andb_prop in H; destruct H as [H1 H2].
  - intros Hin. apply negb_true_iff in H1. assert (existsb (Nat.eqb x) l = true); [|congruence].
    apply existsb_exists. exists x. split; [exact Hin|apply Nat.eqb_refl].
  - now apply IH.
Qed.

Fixpoint fill (P : mapped) (rows : list row) (held : list (nat * Z)) : bool :=
  match rows, held with
  | [], [] => true
  | here :: rows, piece :: held =>
      (sum (fun n => n) here =? snd piece) && (snd piece <=? nth (fst piece) (sizes P) 0) && fill P rows held
  | _, _ => false
  end.

Lemma fill_sound P rows : forall held, fill P rows held = true ->
  Forall2 (fun here piece => sum (fun n => n) here = snd piece /\ snd piece <= nth (fst piece) (sizes P) 0) rows held.
Proof.
  induction rows as [|here rows IH]; intros held H; destruct held as [|piece held]; cbn in H; try discriminate; constructor.
  - rewrite !andb_true_iff, Z.eqb_eq, Z.leb_le in H. tauto.
  - rewrite !andb_true_iff in H. now apply IH.
Qed.

Definition check_placed (P : mapped) (ways : list (list way)) (r : run) : bool :=
  match graph_of P (of_job r) with
  | None => true
  | Some (G, work, speeds) =>
      match nth_error (nth (of_job r) ways []) (condition r) with
      | None => false
      | Some w => maps_all (over_network P) G (fst w) && existsb (same_speed (snd w)) speeds
                  && distinct (map fst (pieces r)) && fill P (fst w) (pieces r)
      end
  end.

Lemma check_placed_sound P ways r : check_placed P ways r = true -> well_placed P ways r.
Proof.
  unfold check_placed, well_placed. intros H G work speeds E. rewrite E in H.
  destruct (nth_error _ _) as [w|]; [|discriminate]. exists w. rewrite !andb_true_iff in H.
  destruct H as (((H1 & H2) & H3) & H4). repeat split; try assumption.
  - apply existsb_exists in H2. destruct H2 as (x & Hx & Hsame). apply same_speed_is in Hsame. now subst.
  - now apply distinct_sound.
  - now apply fill_sound.
Qed.

(** *** What they take at least *)

Definition least_in_any (P : mapped) (G : graph) (work : Q) (speeds : list Q) : option Z :=
  let N := over_network P in
  let total := sum (fun st => replicas st) (stages G) in
  let most := fold_right Z.max 0 (sizes P) in
  let here := if total <=? Z.min most (largest N) then [iterations_ticks G work (slowest N G [map replicas (stages G)])] else [] in
  let apart := if (2 <=? length (sizes P))%nat then [iterations_ticks G work (spread N G)] else [] in
  match flat_map (fun ticks => map (at_speed ticks) speeds) (here ++ apart) with
  | [] => None
  | first :: rest => Some (fold_right Z.min first rest)
  end.

Definition least_ticks_of (P : mapped) (kj : nat * job) : option Z :=
  match graph_of P (fst kj) with
  | Some (G, work, speeds) => least_in_any P G work speeds
  | None => Some (shortest (snd kj))
  end.

Fixpoint all_of {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some x :: rest => option_map (cons x) (all_of rest)
  | None :: _ => None
  end.

(** Of every job its least time and a start. *)
Definition least_of_all (P : mapped) (I : instance) : option (list Z) :=
  all_of (map (fun kj => option_map (Z.add (least_start I)) (least_ticks_of P kj)) (numbered I)).

Definition check_mapped (P : mapped) (I : instance) : bool :=
  check_network (over_network P) && Nat.eqb (length (sizes P)) (length (nodes I))
  && forallb (fun x => match x with
                       | Some (G, work, speeds) =>
                           check_graph G && Qle_bool 0 work && forallb (fun v => negb (Qle_bool v 0)) speeds
                       | None => true
                       end) (graphs P)
  && forallb (fun kj => match graph_of P (fst kj) with Some _ => true | None => check_instance_job (snd kj) end) (numbered I).

Lemma nth_all_of {A} (l : list (option A)) : forall found k x,
  all_of l = Some found -> nth_error found k = Some x -> nth_error l k = Some (Some x).
Proof.
  induction l as [|[y|] l IH]; cbn; intros found k x H Hk; try discriminate.
  - injection H as <-. destruct k; discriminate.
  - destruct (all_of l) as [rest|]; [|discriminate]. injection H as <-. destruct k; cbn in *; [congruence|]. now apply (IH rest).
Qed.

Lemma length_all_of {A} (l : list (option A)) : forall found, all_of l = Some found -> length found = length l.
Proof.
  induction l as [|[y|] l IH]; cbn; intros found H; try discriminate.
  - now injection H as <-.
  - destruct (all_of l) as [rest|]; [|discriminate]. injection H as <-. cbn. f_equal. now apply IH.
Qed.

Lemma fold_min first rest x : In x (first :: rest) -> fold_right Z.min first rest <= x.
Proof.
  intros H. induction rest as [|y l IH]; cbn in *; [destruct H as [->|[]]; lia|].
  destruct H as [->|[->|H]]; [specialize (IH (or_introl eq_refl)); lia|lia|specialize (IH (or_intror H)); lia].
Qed.

Lemma fold_min_in first rest : In (fold_right Z.min first rest) (first :: rest).
Proof.
  induction rest as [|y l IH]; cbn; [now left|]. destruct (Z.min_spec y (fold_right Z.min first l)) as [[_ ->]|[_ ->]].
  - right. now left.
  - destruct IH as [IH|IH]; [left; exact IH|right; right; exact IH].
Qed.

Lemma fold_max_at_least l x : In x l -> x <= fold_right Z.max 0 l.
Proof. induction l as [|y l IH]; cbn; [intros []|]. intros [->|H]; [lia|]. specialize (IH H). lia. Qed.

Lemma same_length {A B} (R : A -> B -> Prop) l k : Forall2 R l k -> length l = length k.
Proof. induction 1; cbn; congruence. Qed.

Section Ways.
  Variables (P : mapped) (I : instance) (least : list Z).
  Hypothesis Hcheck : check_mapped P I = true.
  Hypothesis Hleast : least_of_all P I = Some least.
  Hypothesis Hstart : 0 <= least_start I.

  Lemma graph_sound k G work speeds : graph_of P k = Some (G, work, speeds) ->
    sound_graph G /\ (0 <= work)%Q /\ forall v, In v speeds -> (0 < v)%Q.
  Proof.
    intros H. unfold check_mapped in Hcheck. rewrite !andb_true_iff, !forallb_forall in Hcheck.
    destruct Hcheck as ((_ & Hg) & _). unfold graph_of in H.
    destruct (nth_in_or_default k (graphs P) None) as [Hin|E]; [|congruence]. rewrite H in Hin.
    specialize (Hg _ Hin). cbn in Hg. rewrite !andb_true_iff, forallb_forall, Qle_bool_iff in Hg.
    destruct Hg as ((Hg & Hw) & Hv). split; [now apply check_graph_sound|]. split; [exact Hw|].
    intros v Hin'. specialize (Hv v Hin'). apply negb_true_iff in Hv. apply Qnot_le_lt. intros Hle.
    apply Qle_bool_iff in Hle. congruence.
  Qed.

  Lemma network_sound : sound_network (over_network P).
  Proof. unfold check_mapped in Hcheck. rewrite !andb_true_iff in Hcheck. apply check_network_sound. tauto. Qed.

  Lemma sizes_known : length (sizes P) = length (nodes I).
  Proof. unfold check_mapped in Hcheck. rewrite !andb_true_iff, Nat.eqb_eq in Hcheck. tauto. Qed.

  (** A way that fits the nodes it is on takes the least time at least. *)
  Lemma way_at_least k G work speeds v rows speed held :
    graph_of P k = Some (G, work, speeds) -> least_in_any P G work speeds = Some v ->
    maps_all (over_network P) G rows = true -> In speed speeds -> NoDup (map fst held) ->
    (forall piece, In piece held -> exists n, nth_error (nodes I) (fst piece) = Some n) ->
    Forall2 (fun here piece => sum (fun n => n) here = snd piece /\ snd piece <= nth (fst piece) (sizes P) 0) rows held ->
    v <= way_ticks P G work (rows, speed).
  Proof.
    intros Hk Hv Hmaps Hspeed Hnd Hnodes Hfill. destruct (graph_sound _ _ _ _ Hk) as (HG & Hwork & Hspeeds).
    pose proof network_sound as HN. set (N := over_network P) in *. unfold least_in_any in Hv. fold N in Hv.
    set (total := sum (fun st => replicas st) (stages G)) in *. set (most := fold_right Z.max 0 (sizes P)) in *.
    set (here := if total <=? Z.min most (largest N) then [iterations_ticks G work (slowest N G [map replicas (stages G)])] else []) in *.
    set (apart := if (2 <=? length (sizes P))%nat then [iterations_ticks G work (spread N G)] else []) in *.
    assert (Hticks : exists ticks, In ticks (here ++ apart) /\ ticks <= iterations_ticks G work (slowest N G rows)).
    { destruct rows as [|first [|second others]].
      - unfold maps_all in Hmaps. rewrite !andb_true_iff in Hmaps. destruct Hmaps as (_ & H). discriminate.
      - pose proof (one_node N G [first] Hmaps first eq_refl) as E.
        exists (iterations_ticks G work (slowest N G [first])). split; [|lia]. apply in_app_iff. left.
        inversion Hfill as [|? piece ? rest [Hsum Hsize] Hrest]; subst. inversion Hrest; subst.
        destruct (row_of N G [map replicas (stages G)] Hmaps (map replicas (stages G)) (or_introl eq_refl)) as (_ & _ & H1 & H2).
        rewrite sum_map in H1, H2, Hsum. unfold here. fold total in H1, H2, Hsum.
        assert (Hmost : total <= most).
        { unfold most. destruct (nth_in_or_default (fst piece) (sizes P) 0) as [Hin|E0].
          - pose proof (fold_max_at_least _ _ Hin). lia.
          - rewrite E0 in Hsize. lia. }
        assert (total <=? Z.min most (largest N) = true) as -> by (apply Z.leb_le; lia). now left.
      - exists (iterations_ticks G work (spread N G)). split.
        + apply in_app_iff. right. unfold apart.
          assert (Hlen : (2 <= length held)%nat).
          { pose proof (same_length _ _ _ Hfill) as H. cbn in H. lia. }
          assert ((2 <=? length (sizes P))%nat = true) as ->; [|now left]. apply Nat.leb_le. rewrite sizes_known.
          assert (Hincl : incl (map fst held) (seq 0 (length (nodes I)))).
          { intros x Hx. apply in_map_iff in Hx. destruct Hx as (piece & <- & Hx). destruct (Hnodes piece Hx) as (n & Hn).
            apply in_seq. split; [lia|]. cbn. apply nth_error_Some. congruence. }
          pose proof (NoDup_incl_length Hnd Hincl) as H. rewrite map_length, seq_length in H. lia.
        + apply iterations_monotone; try assumption. apply spread_at_least; try assumption. cbn. lia. }
    destruct Hticks as (ticks & Hin & Hle).
    destruct (flat_map (fun ticks => map (at_speed ticks) speeds) (here ++ apart)) as [|first rest] eqn:E; [discriminate|].
    injection Hv as <-. eapply Z.le_trans.
    - apply (fold_min first rest (at_speed ticks speed)). rewrite <- E. apply in_flat_map. exists ticks. split; [exact Hin|].
      now apply in_map.
    - unfold way_ticks. cbn [fst snd]. apply at_speed_monotone; [now apply Hspeeds|exact Hle].
  Qed.

  Lemma least_nth k j v : nth_error (jobs I) k = Some j -> nth_error least k = Some v ->
    exists u, least_ticks_of P (k, j) = Some u /\ v = least_start I + u.
  Proof.
    intros Hj Hv. pose proof (nth_all_of _ _ _ _ Hleast Hv) as H. rewrite nth_error_map in H.
    assert (Hn : nth_error (numbered I) k = Some (k, j)).
    { unfold numbered. assert (Hgen : forall (l : list job) b i, nth_error l i = Some j ->
        nth_error (combine (seq b (length l)) l) i = Some ((b + i)%nat, j)).
      { clear. induction l as [|x l IH]; intros b i Hi; [destruct i; discriminate|]. destruct i as [|i]; cbn in *.
        - injection Hi as ->. now rewrite Nat.add_0_r.
        - rewrite (IH (S b) i Hi), Nat.add_succ_r. reflexivity. }
      rewrite (Hgen _ 0%nat _ Hj). reflexivity. }
    rewrite Hn in H. cbn [option_map] in H. destruct (least_ticks_of P (k, j)) as [u|]; [|discriminate]. cbn in H.
    injection H as <-. now exists u.
  Qed.

  Lemma length_least : length least = length (jobs I).
  Proof.
    rewrite (length_all_of _ _ Hleast), map_length. unfold numbered. rewrite combine_length, seq_length. lia.
  Qed.

  Lemma least_positive_of k j u : nth_error (jobs I) k = Some j -> least_ticks_of P (k, j) = Some u -> 1 <= u.
  Proof.
    intros Hj Hu. unfold least_ticks_of in Hu. cbn [fst snd] in Hu. destruct (graph_of P k) as [[[G work] speeds]|] eqn:E.
    - unfold least_in_any in Hu. cbv zeta in Hu.
      set (all := flat_map (fun ticks => map (at_speed ticks) speeds) _) in *.
      assert (Hall : forall x, In x all -> 1 <= x).
      { intros x Hx. apply in_flat_map in Hx. destruct Hx as (ticks & Ht & Hx). apply in_map_iff in Hx.
        destruct Hx as (v & <- & _). apply at_speed_positive. apply in_app_iff in Ht.
        destruct Ht as [Ht|Ht]; destruct (_ <=? _)%Z in Ht || destruct (_ <=? _)%nat in Ht; try (now destruct Ht);
          (destruct Ht as [<-|[]]; apply iterations_positive). }
      destruct all as [|first rest]; [discriminate|]. injection Hu as <-. apply Hall, fold_min_in.
    - injection Hu as <-. apply shortest_positive. apply check_instance_job_sound.
      unfold check_mapped in Hcheck. rewrite !andb_true_iff, !forallb_forall in Hcheck. destruct Hcheck as (_ & Hj').
      specialize (Hj' (k, j) (proj2 (in_numbered I k j) Hj)). cbn [fst snd] in Hj'. now rewrite E in Hj'.
  Qed.
  Lemma least_positive v : In v least -> 1 <= v.
  Proof.
    intros H. apply In_nth_error in H. destruct H as (k & Hk).
    assert (Hlt : (k < length (jobs I))%nat) by (rewrite <- length_least; apply nth_error_Some; congruence).
    destruct (nth_error (jobs I) k) as [j|] eqn:Hj; [|apply nth_error_None in Hj; lia].
    destruct (least_nth k j v Hj Hk) as (u & Hu & ->). pose proof (least_positive_of k j u Hj Hu). lia.
  Qed.

  Section Schedule.
    Variables (ways : list (list way)) (s : schedule).
    Let W := with_ways P ways I.
    Hypothesis Hsound : sound W.
    Hypothesis Hs : feasible W s.
    Hypothesis Hpaid : starts_are_paid W s.
    Hypothesis Hplaced : all_placed P ways s.

    Lemma jobs_of_ways k j' : nth_error (jobs W) k = Some j' ->
      exists j, nth_error (jobs I) k = Some j /\ j' = in_ways P (types_of I) ways (k, j).
    Proof.
      unfold W, with_ways. cbn [jobs]. rewrite nth_error_map. destruct (nth_error (numbered I) k) as [[i j]|] eqn:E; [|discriminate].
      cbn [option_map]. intros [= <-].
      assert (Hgen : forall (l : list job) b n x, nth_error (combine (seq b (length l)) l) n = Some x ->
        fst x = (b + n)%nat /\ nth_error l n = Some (snd x)).
      { clear. induction l as [|y l IH]; intros b n x Hn; [destruct n; discriminate|]. destruct n as [|n]; cbn in *.
        - injection Hn as <-. cbn. split; [lia|reflexivity].
        - destruct (IH (S b) n x Hn) as [H1 H2]. split; [lia|exact H2]. }
      destruct (Hgen _ _ _ _ E) as [H1 H2]. cbn in H1, H2. subst i. now exists j.
    Qed.

    Lemma time_is_of_way types G work l ty c w t j :
      times j = times_of P types G work l -> nth_error l c = Some w -> time_on ty c j = Some t ->
      t = way_ticks P G work w.
    Proof.
      intros Hj Hc H. unfold time_on in H. destruct (find _ _) as [entry|] eqn:E; [|discriminate]. injection H as <-.
      apply find_some in E. destruct E as [Hin E]. apply andb_prop in E. destruct E as [_ E]. apply Nat.eqb_eq in E.
      rewrite Hj in Hin. unfold times_of in Hin. apply in_flat_map in Hin. destruct Hin as (ty' & _ & Hin).
      apply in_map_iff in Hin. destruct Hin as ([c' w'] & <- & Hin). cbn [fst snd] in *. subst c'.
      assert (Hgen : forall (l : list way) b x, In x (combine (seq b (length l)) l) ->
        (b <= fst x)%nat /\ nth_error l (fst x - b) = Some (snd x)).
      { clear. induction l as [|y l IH]; intros b x Hx; [destruct Hx|]. cbn in Hx. destruct Hx as [<-|Hx].
        - cbn. rewrite Nat.sub_diag. split; [lia|reflexivity].
        - destruct (IH (S b) x Hx) as [H1 H2]. split; [lia|].
          replace (fst x - b)%nat with (S (fst x - S b)) by lia. exact H2. }
      destruct (Hgen _ _ _ Hin) as [_ H]. cbn in H. rewrite Nat.sub_0_r in H. congruence.
    Qed.

    Lemma pace_at_least k j' r u j : In r (runs_of k s) -> nth_error (jobs W) k = Some j' ->
      nth_error (jobs I) k = Some j -> least_ticks_of P (k, j) = Some u -> u <= pace W j' r.
    Proof.
      intros Hr Hk Hj Hu. destruct (jobs_of_ways k j' Hk) as (j0 & Hj0 & E). assert (j0 = j) by congruence. subst j0.
      destruct (run_of_fits W s k j' r Hs Hk Hr) as (_ & _ & _ & Hne & Hpieces).
      unfold least_ticks_of in Hu. cbn [fst snd] in Hu. unfold in_ways in E. cbn [fst snd] in E.
      apply in_runs_of in Hr. destruct Hr as [Hr Hof].
      destruct (graph_of P k) as [[[G work] speeds]|] eqn:EG.
      - unfold all_placed in Hplaced. rewrite Forall_forall in Hplaced. pose proof (Hplaced r Hr) as Hwell.
        unfold well_placed in Hwell. rewrite Hof in Hwell. destruct (Hwell G work speeds EG) as (w & Hw & Hmaps & Hspeed & Hnd & Hfill).
        assert (Hle : u <= way_ticks P G work w).
        { destruct w as [rows speed]. apply (way_at_least k G work speeds u rows speed (pieces r)); try assumption.
          intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & _ & Hn & _). now exists n. }
        eapply Z.le_trans; [exact Hle|]. unfold pace. destruct (pieces r) as [|piece rest] eqn:Ep; [congruence|]. cbn [fold_right].
        destruct (Hpieces piece (or_introl eq_refl)) as (_ & n & t & Hn & Ht). rewrite Hn, Ht.
        assert (Ht' : t = way_ticks P G work w).
        { refine (time_is_of_way (types_of I) G work (nth k ways []) _ _ w t j' _ Hw Ht). rewrite E. reflexivity. }
        lia.
      - subst j'. injection Hu as <-. apply pace_shortest; [|exact Hne].
        intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Ht). eauto.
    Qed.

    (** Who is complete has held his gang for the least time and a start. *)
    Lemma held_at_least k j' v : nth_error (jobs W) k = Some j' -> nth_error least k = Some v ->
      finished W j' (runs_of k s) = true -> v <= sum (fun r => stop r - start r) (runs_of k s).
    Proof.
      intros Hk Hv Hdone. destruct (jobs_of_ways k j' Hk) as (j & Hj & _).
      destruct (least_nth k j v Hj Hv) as (u & Hu & ->). pose proof (least_positive_of k j u Hj Hu) as Hpos.
      pose proof (finished_work W s k j' Hsound Hs Hk Hdone) as Hwork.
      assert (Hall : forall r, In r (runs_of k s) -> 0 <= ran r /\ u <= pace W j' r).
      { intros r Hr. split; [|now apply (pace_at_least k j' r u j)].
        destruct (run_of_fits W s k j' r Hs Hk Hr) as (_ & Ho & _). unfold ran. lia. }
      assert (Hran : u <= sum ran (runs_of k s)).
      { assert (Hle : (work W j' (runs_of k s) <= sum ran (runs_of k s) # Z.to_pos u)%Q).
        { rewrite <- sumQ_same_denominator. unfold work. apply sumQ_le. intros r Hr. destruct (Hall r Hr) as (Ho & Hpace).
          unfold share, Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia. }
        assert (H : (1 <= sum ran (runs_of k s) # Z.to_pos u)%Q) by (eapply Qle_trans; eassumption).
        unfold Qle in H. cbn [Qnum Qden] in H. rewrite Z2Pos.id in H by lia. lia. }
      pose proof (Hpaid k j' Hk Hdone) as Hp. change (least_start W) with (least_start I) in Hp.
      transitivity (sum ran (runs_of k s) + sum overhead (runs_of k s)); [lia|].
      rewrite <- sum_add. apply Z.eq_le_incl. apply sum_ext. unfold ran. intros; lia.
    Qed.

    Lemma taking_ways : taking_all W least = taking_all I least.
    Proof.
      assert (H : forall js b ts,
        map (fun jv => taking (types_of I) (fst jv) (snd jv)) (combine (map (in_ways P (types_of I) ways) (combine (seq b (length js)) js)) ts)
        = map (fun jv => taking (types_of I) (fst jv) (snd jv)) (combine js ts)).
      { induction js as [|j js IH]; intros b ts; [reflexivity|]. cbn [length seq combine map].
        destruct ts as [|t ts]; [reflexivity|]. cbn [combine map fst snd]. f_equal; [|apply IH].
        unfold in_ways. cbn [fst snd]. destruct (graph_of P b) as [[[G work] speeds]|]; reflexivity. }
      unfold taking_all. change (types_of W) with (types_of I).
      change (jobs W) with (map (in_ways P (types_of I) ways) (combine (seq 0 (length (jobs I))) (jobs I))).
      rewrite H. reflexivity.
    Qed.

    Lemma jobs_length : length least = length (jobs W).
    Proof. rewrite length_least. unfold W, with_ways. cbn [jobs]. rewrite map_length. unfold numbered. rewrite combine_length, seq_length. lia. Qed.

    Lemma jobs_sound j : In j (jobs W) -> 0 <= arrival j /\ 1 <= gang j /\ 0 <= Qnum (weight j) /\ 0 <= Qnum (worth j).
    Proof.
      intros H. destruct Hsound as [Hj _]. rewrite Forall_forall in Hj. destruct (Hj j H) as (H1 & H2 & H3 & _ & _ & H4). tauto.
    Qed.

    Hypothesis Hnodes : nodes I <> [].

    Theorem ways_cost o by_them bound : bound_of o by_them (taking_all I least) = Some bound -> (bound <= cost o W s)%Q.
    Proof.
      intros H. rewrite <- taking_ways in H.
      eapply Qle_trans; [|exact (cost_taking W least s jobs_length jobs_sound least_positive Hs held_at_least o)].
      apply (bound_of_sound o by_them (taking_all W least) bound); try assumption; try reflexivity.
      - exact (sound_taking W least jobs_length jobs_sound Hnodes least_positive).
      - intros r Hr. apply in_map_iff in Hr. destruct Hr as (x & <- & _). cbn. lia.
      - exact (feasible_taking W least s jobs_length least_positive Hs held_at_least).
    Qed.

    Theorem ways_earn round u prices most : most_of_rows round u prices (taking_all I least) = Some most ->
      (earned W round s <= most)%Q.
    Proof.
      intros H. rewrite <- taking_ways in H.
      eapply Qle_trans; [exact (earned_taking W least s jobs_length jobs_sound least_positive Hs held_at_least round)|].
      apply (most_of_rows_sound round u prices (taking_all W least) most); try assumption; try reflexivity.
      - exact (sound_taking W least jobs_length jobs_sound Hnodes least_positive).
      - intros r Hr. apply in_map_iff in Hr. destruct Hr as (x & <- & _). cbn. lia.
      - exact (feasible_taking W least s jobs_length least_positive Hs held_at_least).
    Qed.
  End Schedule.
End Ways.

(** ** Certificates *)

(** The claim, whose instance has no times of jobs with graphs, and the ways in which these run in its schedule. *)
Record graph_certificate := GraphCertificate { placing : mapped; ways_used : list (list way); claim_of : certificate }.

Definition some_nodes (I : instance) : bool := match nodes I with [] => false | _ => true end.

Definition cost_of_runs (o : objective) (I : instance) (all : list (job * list run)) : Q :=
  match o with
  | Completion => completions I all
  | Flow => (completions I all - arrivals I)%Q
  | Makespan => inject_Z (latest_of_all I all - first_arrival I)
  end.

Lemma cost_of_runs_is o I s : (cost_of_runs o I (each I s) == cost o I s)%Q.
Proof.
  destruct o; cbn [cost_of_runs].
  - apply completions_is.
  - rewrite flow_is, completions_is. reflexivity.
  - cbn [cost]. now rewrite latest_of_all_is.
Qed.

Definition check_mapped_runs (P : mapped) (ways : list (list way)) (I : instance) (s : schedule) : bool :=
  some_nodes I && check_mapped P I && check_runs (with_ways P ways I) s && forallb (check_placed P ways) s.

Definition check_graphs (g : graph_certificate) : bool :=
  let c := claim_of g in
  let I := of_instance c in
  let W := with_ways (placing g) (ways_used g) I in
  let s := SortRuns.sort (of_schedule c) in
  check_mapped_runs (placing g) (ways_used g) I s
  && match least_of_all (placing g) I with
     | Some least =>
         match bound_of (of_objective c) (by_multipliers c) (taking_all I least) with
         | Some bound =>
             Qeq_bool (cost_of_runs (of_objective c) W (by_job 0 (jobs W) s)) (claimed_cost c)
             && Qle_bool (claimed_bound c) bound && Qle_bool 1 (claimed_ratio c)
             && Qle_bool (claimed_cost c) (claimed_ratio c * claimed_bound c)
         | None => false
         end
     | None => false
     end.

Lemma check_mapped_runs_sound P ways I runs :
  check_mapped_runs P ways I (SortRuns.sort runs) = true ->
  let W := with_ways P ways I in let s := SortRuns.sort runs in
  nodes I <> [] /\ check_mapped P I = true /\ sound W /\ 0 <= least_start I /\ feasible W s /\ obeys W s /\
  starts_are_paid W s /\ all_placed P ways s /\ by_job 0 (jobs W) s = each W s.
Proof.
  unfold check_mapped_runs. rewrite !andb_true_iff. intros (((Hnodes & Hmapped) & Hruns) & Hplaced). cbv zeta.
  apply check_runs_sound in Hruns. destruct Hruns as (H1 & H2 & H3 & H4 & H5 & H6).
  split; [unfold some_nodes in Hnodes; destruct (nodes I); discriminate|].
  split; [exact Hmapped|]. split; [exact H1|]. split; [exact H2|]. split; [exact H3|]. split; [exact H4|]. split; [exact H5|].
  split; [|exact H6]. unfold all_placed. rewrite Forall_forall. rewrite forallb_forall in Hplaced.
  intros r Hr. apply check_placed_sound. now apply Hplaced.
Qed.

(** Where the checker says yes, the runs of the file are a schedule of its instance in the ways that it says, which obeys
    the rules and costs what is claimed; and no schedule in whatever ways (mappings of graphs on nodes, and speeds that
    jobs may have), in which who is complete has paid a start, costs less than the bound claimed. *)
Theorem check_graphs_sound g : check_graphs g = true ->
  let c := claim_of g in
  let W := fun ways => with_ways (placing g) ways (of_instance c) in
  exists s, Permutation s (of_schedule c) /\
    feasible (W (ways_used g)) s /\ obeys (W (ways_used g)) s /\ starts_are_paid (W (ways_used g)) s /\
    all_placed (placing g) (ways_used g) s /\
    (cost (of_objective c) (W (ways_used g)) s == claimed_cost c)%Q /\
    forall ways other, sound (W ways) -> feasible (W ways) other -> starts_are_paid (W ways) other ->
      all_placed (placing g) ways other ->
      (claimed_bound c <= cost (of_objective c) (W ways) other)%Q /\
      (claimed_cost c <= claimed_ratio c * cost (of_objective c) (W ways) other)%Q.
Proof.
  unfold check_graphs. cbv zeta. rewrite andb_true_iff. intros (Hruns & Hclaim).
  set (c := claim_of g) in *. set (I := of_instance c) in *.
  apply check_mapped_runs_sound in Hruns. cbv zeta in Hruns.
  destruct Hruns as (Hnodes & Hmapped & Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hplaced & Hall).
  destruct (least_of_all (placing g) I) as [least|] eqn:Hleast; [|discriminate].
  destruct (bound_of _ _ _) as [bound|] eqn:Hbound; [|discriminate]. rewrite Hall in Hclaim.
  rewrite !andb_true_iff in Hclaim. destruct Hclaim as (((H1 & H2) & H3) & H4).
  apply Qeq_bool_iff in H1. apply Qle_bool_iff in H2, H3, H4. rewrite cost_of_runs_is in H1.
  exists (SortRuns.sort (of_schedule c)).
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hobeys|]. split; [exact Hpaid|]. split; [exact Hplaced|].
  split; [exact H1|]. intros ways other Hs Hother Hpays Hwell.
  assert (Hleast' : (claimed_bound c <= cost (of_objective c) (with_ways (placing g) ways I) other)%Q).
  { eapply Qle_trans; [exact H2|].
    exact (ways_cost (placing g) I least Hmapped Hleast Hstart ways other Hs Hother Hpays Hwell Hnodes _ _ _ Hbound). }
  split; [exact Hleast'|]. eapply Qle_trans; [exact H4|]. rewrite !(Qmult_comm (claimed_ratio c)).
  apply Qmult_le_compat_r; [exact Hleast'|]. eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_graphs_sound.

Record graph_utility_certificate := GraphUtility { utility_placing : mapped; utility_ways : list (list way); utility_claim : utility_certificate }.

Definition check_graph_utility (g : graph_utility_certificate) : bool :=
  let c := utility_claim g in
  let I := utility_instance c in
  let W := with_ways (utility_placing g) (utility_ways g) I in
  let s := SortRuns.sort (utility_schedule c) in
  check_mapped_runs (utility_placing g) (utility_ways g) I s && negb (by_type c)
  && match least_of_all (utility_placing g) I, rows c with
     | Some least, [prices] =>
         match most_of_rows (round_length c) (unit c) prices (taking_all I least) with
         | Some most =>
             Qle_bool (claimed_earned c) (all_earned W (round_length c) (by_job 0 (jobs W) s))
             && Qle_bool most (claimed_most c) && Qle_bool 1 (claimed_multiple c)
             && Qle_bool (claimed_most c) (claimed_multiple c * claimed_earned c)
         | None => false
         end
     | _, _ => false
     end.

(** The same of total utilities. *)
Theorem check_graph_utility_sound g : check_graph_utility g = true ->
  let c := utility_claim g in
  let W := fun ways => with_ways (utility_placing g) ways (utility_instance c) in
  exists s, Permutation s (utility_schedule c) /\
    feasible (W (utility_ways g)) s /\ obeys (W (utility_ways g)) s /\ starts_are_paid (W (utility_ways g)) s /\
    all_placed (utility_placing g) (utility_ways g) s /\
    (claimed_earned c <= earned (W (utility_ways g)) (round_length c) s)%Q /\
    forall ways other, sound (W ways) -> feasible (W ways) other -> starts_are_paid (W ways) other ->
      all_placed (utility_placing g) ways other ->
      (earned (W ways) (round_length c) other <= claimed_most c)%Q /\
      (earned (W ways) (round_length c) other <= claimed_multiple c * claimed_earned c)%Q.
Proof.
  unfold check_graph_utility. cbv zeta. rewrite !andb_true_iff. intros ((Hruns & _) & Hclaim).
  set (c := utility_claim g) in *. set (I := utility_instance c) in *.
  apply check_mapped_runs_sound in Hruns. cbv zeta in Hruns.
  destruct Hruns as (Hnodes & Hmapped & Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hplaced & Hall).
  destruct (least_of_all (utility_placing g) I) as [least|] eqn:Hleast; [|discriminate].
  destruct (rows c) as [|prices [|]]; try discriminate.
  destruct (most_of_rows _ _ _ _) as [most|] eqn:Hmost; [|discriminate]. rewrite Hall in Hclaim.
  rewrite !andb_true_iff in Hclaim. destruct Hclaim as (((H1 & H2) & H3) & H4). apply Qle_bool_iff in H1, H2, H3, H4.
  exists (SortRuns.sort (utility_schedule c)).
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hobeys|]. split; [exact Hpaid|]. split; [exact Hplaced|].
  split.
  { eapply Qle_trans; [exact H1|]. unfold all_earned. rewrite sum_fractions_is, mine_is, sumQ_map. apply Qle_refl. }
  intros ways other Hs Hother Hpays Hwell.
  assert (Hleast' : (earned (with_ways (utility_placing g) ways I) (round_length c) other <= claimed_most c)%Q).
  { eapply Qle_trans; [|exact H2].
    exact (ways_earn (utility_placing g) I least Hmapped Hleast Hstart ways other Hs Hother Hpays Hwell Hnodes _ _ _ _ Hmost). }
  split; [exact Hleast'|]. eapply Qle_trans; [exact Hleast'|exact H4].
Qed.

Print Assumptions check_graph_utility_sound.
