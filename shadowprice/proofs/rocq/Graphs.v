(** Job graphs: the time of an iteration of a mapping, and that no mapping takes less than the checker says.

    A graph has stages of replicas, one on each GPU of its job, and links. An iteration takes as long as its slowest
    replica, which computes, sums its parameters up in a ring, and sends and receives over the links of its stage: within
    its node at one bandwidth, beyond it at that of the node's interface, which it shares. *)

From Coq Require Import List ZArith QArith Qround Lia Lqa Bool.
From Shadowprice Require Import Sums Schedule Doubles.
Import ListNotations.
Open Scope Z_scope.

(** Replicas; seconds of computing; bytes of parameters. *)
Record stage := Stage { replicas : Z; compute : Q; parameters : Q }.

(** Bytes that a replica of the [source] sends. [exchange]: whether it is none of the graph's paths. *)
Record link := Link { source : nat; target : nat; sent : Q; exchange : bool }.

Record graph := Graph { microbatches : Z; stages : list stage; links : list link }.

(** Bandwidths [bytes/s], GPUs of the largest node, and whether each GPU has its part of the interface. *)
Record network := Network { intra : Q; nic : Q; largest : Z; each_gpu : bool }.

Definition replicas_of (G : graph) (s : nat) : Z :=
  match nth_error (stages G) s with Some st => replicas st | None => 0 end.

(** Replicas of every stage on a node. *)
Definition row : Type := list Z.
Definition on (here : row) (s : nat) : Z := nth s here 0.

(** Who exchanges with the replicas of a stage, and how many bytes each sends. *)
Definition traffic (G : graph) (s : nat) : list (nat * Q) :=
  flat_map (fun l =>
    (if Nat.eqb (source l) s then [(target l, sent l)] else [])
    ++ (if Nat.eqb (target l) s
        then [(source l, (sent l * (replicas_of G (source l) # Z.to_pos (replicas_of G (target l))))%Q)] else []))
    (links G).

(** Seconds of a byte. *)
Definition near_byte (N : network) : Q := / intra N.
Definition far_byte (N : network) : Q := / nic N.

(** Bytes that go round a ring of all replicas of a stage. *)
Definition ring (st : stage) : Q := ((2 * (replicas st - 1) # Z.to_pos (replicas st)) * parameters st)%Q.

(** Replicas of a node that share its interface. *)
Definition users (N : network) (G : graph) (here : row) : Z :=
  if each_gpu N then largest N
  else Z.max 1 (sum (fun s => if existsb (fun peer => (on here (fst peer) <? replicas_of G (fst peer))
                                                      && negb (Qeq_bool (snd peer) 0)) (traffic G s)
                              then on here s else 0) (seq 0 (length (stages G)))).

(** Part of a stage that is on a node. *)
Definition part_on (G : graph) (here : row) (s : nat) : Q := on here s # Z.to_pos (replicas_of G s).

Definition replica_s (N : network) (G : graph) (here : row) (s : nat) (st : stage) : Q :=
  (compute st
   + ring st * (if on here s =? replicas st then near_byte N else far_byte N)
   + sumQ (fun peer => 2 * snd peer * (part_on G here (fst peer) * near_byte N
                                       + (1 - part_on G here (fst peer)) * (inject_Z (users N G here) * far_byte N)))
       (traffic G s))%Q.

Definition more (x y : Q) : Q := if Qle_bool x y then y else x.
Definition fewer (x y : Q) : Q := if Qle_bool x y then x else y.

(** Largest of some fractions, 0 at least. *)
Definition most_of (l : list Q) : Q := fold_right more 0%Q l.

Definition numbered_stages (G : graph) : list (nat * stage) := combine (seq 0 (length (stages G))) (stages G).

(** The slowest replica of all nodes. *)
Definition slowest (N : network) (G : graph) (rows : list row) : Q :=
  most_of (flat_map (fun here =>
    map (fun x => if 0 <? on here (fst x) then replica_s N G here (fst x) (snd x) else 0%Q) (numbered_stages G)) rows).

(** Stages on the longest path of links that are no exchanges; more than there are where they go round. *)
Fixpoint depth_of (G : graph) (fuel : nat) (layer : list nat) : Z :=
  match layer, fuel with
  | [], _ => 0
  | _, O => 1
  | _, S fuel =>
      1 + depth_of G fuel
            (nodup Nat.eq_dec (map target (filter (fun l => negb (exchange l) && existsb (Nat.eqb (source l)) layer) (links G))))
  end.

Definition depth (G : graph) : Z := depth_of G (length (stages G)) (seq 0 (length (stages G))).

(** What a flush of the pipeline adds to iterations. *)
Definition flush (G : graph) : Q :=
  if 1 <=? microbatches G then microbatches G + depth G - 1 # Z.to_pos (microbatches G) else 1%Q.

(** Ticks of so many iterations of which the slowest replica takes so long: a product of doubles, rounded up. *)
Definition iterations_ticks (G : graph) (work slow : Q) : Z :=
  ticks_up (to_double (work * to_double (slow * flush G)) * 1048576).

(** Ticks at a speed, a double. *)
Definition at_speed (ticks : Z) (speed : Q) : Z :=
  if Qeq_bool speed 1 then ticks else ticks_up (to_double (inject_Z ticks * / speed)).

(** Nodes of a mapping have some replicas each, no more than the largest node has GPUs, and together all. *)
Definition maps_all (N : network) (G : graph) (rows : list row) : bool :=
  forallb (fun here => Nat.eqb (length here) (length (stages G)) && forallb (fun n => 0 <=? n) here
                       && (1 <=? sum (fun n => n) here) && (sum (fun n => n) here <=? largest N)) rows
  && forallb (fun x => sum (fun here => on here (fst x)) rows =? replicas (snd x)) (numbered_stages G)
  && negb (match rows with [] => true | _ => false end).

(** ** What a mapping takes at least *)

Definition sound_graph (G : graph) : Prop :=
  (1 <= length (stages G))%nat /\ 0 <= microbatches G /\
  (forall st, In st (stages G) -> 1 <= replicas st /\ (0 <= compute st)%Q /\ (0 <= parameters st)%Q) /\
  (forall l, In l (links G) -> (source l < length (stages G))%nat /\ (target l < length (stages G))%nat /\ (0 <= sent l)%Q).

Definition sound_network (N : network) : Prop := (0 < intra N)%Q /\ (0 < nic N)%Q /\ 1 <= largest N.

Definition check_graph (G : graph) : bool :=
  (1 <=? length (stages G))%nat && (0 <=? microbatches G)
  && forallb (fun st => (1 <=? replicas st) && Qle_bool 0 (compute st) && Qle_bool 0 (parameters st)) (stages G)
  && forallb (fun l => (source l <? length (stages G))%nat && (target l <? length (stages G))%nat
                       && Qle_bool 0 (sent l)) (links G).

Definition check_network (N : network) : bool :=
  negb (Qle_bool (intra N) 0) && negb (Qle_bool (nic N) 0) && (1 <=? largest N).

Definition all_traffic (G : graph) (s : nat) : Q := sumQ snd (traffic G s).

(** Wherever its replicas are: all traffic at the greatest bandwidth. *)
Definition unhindered (N : network) (G : graph) : Q :=
  let best := fewer (near_byte N) (far_byte N) in
  most_of (map (fun x => (compute (snd x) + ring (snd x) * (if replicas (snd x) <=? largest N then best else far_byte N)
                          + 2 * all_traffic G (fst x) * best)%Q) (numbered_stages G)).

(** On two nodes or more: a stage is on several, or two that exchange are apart. *)
Definition away_byte (N : network) : Q := if each_gpu N then (inject_Z (largest N) * far_byte N)%Q else far_byte N.

Definition near_s (N : network) (G : graph) (s : nat) (st : stage) : Q :=
  (compute st + 2 * all_traffic G s * fewer (near_byte N) (away_byte N))%Q.

Definition dearer (N : network) : Q := (2 * more (away_byte N - near_byte N) 0)%Q.

Definition between (G : graph) (s t : nat) : Q :=
  sumQ (fun peer => if Nat.eqb (fst peer) t then snd peer else 0%Q) (traffic G s).

Definition apart_s (N : network) (G : graph) (s t : nat) (st : stage) : Q := (near_s N G s st + between G s t * dearer N)%Q.

Definition cases (N : network) (G : graph) : list Q :=
  flat_map (fun x =>
    (if 1 <? replicas (snd x) then [(near_s N G (fst x) (snd x) + ring (snd x) * far_byte N)%Q] else [])
    ++ flat_map (fun peer => match nth_error (stages G) (fst peer) with
                             | Some other => [more (apart_s N G (fst x) (fst peer) (snd x))
                                                   (apart_s N G (fst peer) (fst x) other)]
                             | None => []
                             end) (traffic G (fst x))) (numbered_stages G).

(** Stages that those so far exchange with, directly or through others. *)
Fixpoint reach (G : graph) (fuel : nat) (those : list nat) : list nat :=
  match fuel with
  | O => those
  | S fuel =>
      let next := nodup Nat.eq_dec (those ++ flat_map (fun s => map fst (traffic G s)) those) in
      if (length next <=? length those)%nat then those else reach G fuel next
  end.

Definition connected (G : graph) : bool :=
  let all := reach G (length (stages G)) [0%nat] in
  forallb (fun s => existsb (Nat.eqb s) all) (seq 0 (length (stages G))).

Definition spread (N : network) (G : graph) : Q :=
  if connected G
  then match cases N G with
       | first :: rest => more (unhindered N G) (fold_right fewer first rest)
       | [] => unhindered N G
       end
  else unhindered N G.

(** *** Of fractions *)

Lemma more_left x y : (x <= more x y)%Q.
Proof. unfold more. destruct (Qle_bool x y) eqn:E; [now apply Qle_bool_iff|apply Qle_refl]. Qed.

Lemma more_right x y : (y <= more x y)%Q.
Proof.
  unfold more. destruct (Qle_bool x y) eqn:E; [apply Qle_refl|].
  destruct (Qlt_le_dec y x) as [H|H]; [now apply Qlt_le_weak|]. apply Qle_bool_iff in H. congruence.
Qed.

Lemma more_least x y z : (x <= z)%Q -> (y <= z)%Q -> (more x y <= z)%Q.
Proof. unfold more. now destruct (Qle_bool x y). Qed.

Lemma fewer_left x y : (fewer x y <= x)%Q.
Proof.
  unfold fewer. destruct (Qle_bool x y) eqn:E; [apply Qle_refl|].
  destruct (Qlt_le_dec y x) as [H|H]; [now apply Qlt_le_weak|]. apply Qle_bool_iff in H. congruence.
Qed.

Lemma fewer_right x y : (fewer x y <= y)%Q.
Proof. unfold fewer. destruct (Qle_bool x y) eqn:E; [now apply Qle_bool_iff|apply Qle_refl]. Qed.

Lemma in_most_of x l : In x l -> (x <= most_of l)%Q.
Proof.
  induction l as [|y l IH]; cbn; [intros []|]. intros [->|H]; [apply more_left|].
  eapply Qle_trans; [now apply IH|apply more_right].
Qed.

Lemma most_of_least l z : (0 <= z)%Q -> (forall x, In x l -> (x <= z)%Q) -> (most_of l <= z)%Q.
Proof.
  intros Hz. induction l as [|y l IH]; cbn; intros H; [exact Hz|]. apply more_least; [apply H; now left|].
  apply IH. intros; apply H; now right.
Qed.

Lemma most_of_positive l : (0 <= most_of l)%Q.
Proof. induction l as [|x l IH]; cbn; [apply Qle_refl|]. eapply Qle_trans; [exact IH|apply more_right]. Qed.

Lemma fewest_of first rest x : In x (first :: rest) -> (fold_right fewer first rest <= x)%Q.
Proof.
  intros H. induction rest as [|y l IH]; cbn in *.
  - destruct H as [->|[]]. apply Qle_refl.
  - destruct H as [->|[->|H]].
    + eapply Qle_trans; [apply fewer_right|]. apply IH. now left.
    + apply fewer_left.
    + eapply Qle_trans; [apply fewer_right|]. apply IH. now right.
Qed.

Lemma sumQ_scale {A} (c : Q) (f : A -> Q) l : (sumQ (fun x => c * f x) l == c * sumQ f l)%Q.
Proof. induction l as [|x l IH]; cbn; [ring|]. rewrite IH. ring. Qed.

Lemma sumQ_positive {A} (f : A -> Q) l : (forall x, In x l -> (0 <= f x)%Q) -> (0 <= sumQ f l)%Q.
Proof.
  induction l as [|x l IH]; cbn; intros H; [apply Qle_refl|].
  assert (0 <= f x)%Q by (apply H; now left). assert (0 <= sumQ f l)%Q by (apply IH; intros; apply H; now right). lra.
Qed.

(** *** One replica *)

Section Mapping.
  Variables (N : network) (G : graph) (rows : list row).
  Hypothesis HN : sound_network N.
  Hypothesis HG : sound_graph G.
  Hypothesis Hmaps : maps_all N G rows = true.

  Lemma in_stages s st : In (s, st) (numbered_stages G) <-> nth_error (stages G) s = Some st.
  Proof.
    unfold numbered_stages.
    assert (H : forall (l : list stage) b, In (s, st) (combine (seq b (length l)) l) <->
                               (b <= s)%nat /\ nth_error l (s - b) = Some st).
    { induction l as [|x l IH]; intros b; cbn.
      - split; [tauto|]. intros [_ H]. destruct (s - b)%nat; discriminate.
      - rewrite IH. split.
        + intros [H|[Hb H]].
          * inversion H; subst. split; [lia|]. now rewrite Nat.sub_diag.
          * split; [lia|]. replace (s - b)%nat with (S (s - S b)) by lia. exact H.
        + intros [Hb H]. destruct (Nat.eq_dec b s) as [->|Hne].
          * rewrite Nat.sub_diag in H. cbn in H. left. congruence.
          * right. split; [lia|]. replace (s - b)%nat with (S (s - S b)) in H by lia. exact H. }
    rewrite H, Nat.sub_0_r. split; [tauto|]. intros; split; [lia|assumption].
  Qed.

  Lemma stage_of s : (s < length (stages G))%nat -> exists st, nth_error (stages G) s = Some st.
  Proof. intros H. destruct (nth_error (stages G) s) eqn:E; [eauto|]. apply nth_error_None in E. lia. Qed.

  Lemma replicas_positive s st : nth_error (stages G) s = Some st ->
    1 <= replicas st /\ (0 <= compute st)%Q /\ (0 <= parameters st)%Q.
  Proof. intros H. apply HG. eapply nth_error_In. exact H. Qed.

  Lemma row_of here : In here rows -> length here = length (stages G) /\ (forall n, In n here -> 0 <= n) /\
    1 <= sum (fun n => n) here <= largest N.
  Proof.
    intros H. unfold maps_all in Hmaps. rewrite !andb_true_iff, !forallb_forall in Hmaps. destruct Hmaps as ((Hr & _) & _).
    specialize (Hr here H). rewrite !andb_true_iff, !Z.leb_le, forallb_forall, Nat.eqb_eq in Hr.
    destruct Hr as (((H1 & H2) & H3) & H4). repeat split; try assumption. intros n Hn. apply Z.leb_le. now apply H2.
  Qed.

  Lemma on_positive here s : In here rows -> 0 <= on here s.
  Proof.
    intros H. destruct (row_of here H) as (_ & Hn & _). unfold on.
    destruct (nth_in_or_default s here 0) as [Hin|E]; [now apply Hn|rewrite E; lia].
  Qed.

  Lemma on_at_most_row here s : In here rows -> on here s <= sum (fun n => n) here.
  Proof.
    intros H. destruct (row_of here H) as (_ & Hn & _). unfold on. clear H. revert s.
    induction here as [|n l IH]; intros s; cbn [sum].
    - destruct s; cbn; lia.
    - assert (0 <= n) by (apply Hn; now left).
      assert (Hl : forall m, In m l -> 0 <= m) by (intros; apply Hn; now right).
      assert (0 <= sum (fun n => n) l) by now apply sum_nonneg.
      destruct s as [|s]; cbn [nth]; [lia|]. specialize (IH Hl s). lia.
  Qed.

  Lemma together s st : nth_error (stages G) s = Some st -> sum (fun here => on here s) rows = replicas st.
  Proof.
    intros H. apply in_stages in H. unfold maps_all in Hmaps. rewrite !andb_true_iff, !forallb_forall in Hmaps.
    destruct Hmaps as ((_ & Hs) & _). specialize (Hs _ H). now apply Z.eqb_eq in Hs.
  Qed.

  Lemma sum_of_two (f : row -> Z) l a b : (forall x, In x l -> 0 <= f x) -> In a l -> In b l -> a <> b ->
    f a + f b <= sum f l.
  Proof.
    induction l as [|x l IH]; intros Hf Ha Hb Hne; [destruct Ha|]. cbn [sum].
    assert (Hx : 0 <= f x) by (apply Hf; now left).
    assert (Hone : forall y, In y l -> f y <= sum f l).
    { intros y Hy. apply in_split in Hy. destruct Hy as (l1 & l2 & ->). rewrite sum_app. cbn [sum].
      assert (0 <= sum f l1) by (apply sum_nonneg; intros; apply Hf; right; apply in_app_iff; now left).
      assert (0 <= sum f l2) by (apply sum_nonneg; intros; apply Hf; right; apply in_app_iff; right; now right). lia. }
    destruct Ha as [->|Ha], Hb as [->|Hb].
    - congruence.
    - specialize (Hone b Hb). lia.
    - specialize (Hone a Ha). lia.
    - specialize (IH ltac:(intros; apply Hf; now right) Ha Hb Hne). lia.
  Qed.

  Lemma on_at_most here s st : In here rows -> nth_error (stages G) s = Some st -> on here s <= replicas st.
  Proof.
    intros H Hs. rewrite <- (together s st Hs). apply in_split in H. destruct H as (l1 & l2 & E).
    assert (Hpos : forall x, In x rows -> 0 <= on x s) by (intros; now apply on_positive).
    rewrite E in *. rewrite sum_app. cbn [sum].
    assert (0 <= sum (fun here => on here s) l1) by (apply sum_nonneg; intros; apply Hpos; apply in_app_iff; now left).
    assert (0 <= sum (fun here => on here s) l2) by (apply sum_nonneg; intros; apply Hpos; apply in_app_iff; right; now right).
    lia.
  Qed.

  Lemma replicas_are s st : nth_error (stages G) s = Some st -> replicas_of G s = replicas st.
  Proof. unfold replicas_of. now intros ->. Qed.

  Lemma traffic_facts s peer : In peer (traffic G s) -> (fst peer < length (stages G))%nat /\ (0 <= snd peer)%Q.
  Proof.
    unfold traffic. intros H. apply in_flat_map in H. destruct H as (l & Hl & H).
    destruct HG as (_ & _ & _ & Hlinks). destruct (Hlinks l Hl) as (Hs & Ht & Hq).
    apply in_app_iff in H. destruct H as [H|H].
    - destruct (Nat.eqb (source l) s); [|destruct H]. destruct H as [<-|[]]. cbn. now split.
    - destruct (Nat.eqb (target l) s); [|destruct H]. destruct H as [<-|[]]. cbn [fst snd]. split; [exact Hs|].
      apply Qmult_le_0_compat; [exact Hq|]. destruct (stage_of _ Hs) as (st & Hst).
      rewrite (replicas_are _ _ Hst). destruct (replicas_positive _ _ Hst) as (Hr & _). unfold Qle. cbn [Qnum Qden]. lia.
  Qed.

  Lemma traffic_back s t : In s (map fst (traffic G t)) -> In t (map fst (traffic G s)).
  Proof.
    intros H. apply in_map_iff in H. destruct H as (peer & <- & H). unfold traffic in H. apply in_flat_map in H.
    destruct H as (l & Hl & H). apply in_app_iff in H.
    assert (Hin : forall x, In x ((if Nat.eqb (source l) (fst peer) then [(target l, sent l)] else [])
                 ++ (if Nat.eqb (target l) (fst peer)
                     then [(source l, (sent l * (replicas_of G (source l) # Z.to_pos (replicas_of G (target l))))%Q)] else []))
                 -> In (fst x) (map fst (traffic G (fst peer)))).
    { intros x Hx. apply in_map. unfold traffic. apply in_flat_map. exists l. now split. }
    destruct H as [H|H].
    - destruct (Nat.eqb_spec (source l) t) as [E|]; [|destruct H]. destruct H as [<-|[]]. cbn [fst] in *.
      rewrite Nat.eqb_refl in Hin. subst t. exact (Hin _ (in_or_app _ _ _ (or_intror (in_eq _ _)))).
    - destruct (Nat.eqb_spec (target l) t) as [E|]; [|destruct H]. destruct H as [<-|[]]. cbn [fst] in *.
      rewrite Nat.eqb_refl in Hin. subst t. exact (Hin _ (in_or_app _ _ _ (or_introl (in_eq _ _)))).
  Qed.

  Lemma part_between here t : In here rows -> (t < length (stages G))%nat -> (0 <= part_on G here t <= 1)%Q.
  Proof.
    intros H Ht. destruct (stage_of t Ht) as (st & Hst). unfold part_on. rewrite (replicas_are _ _ Hst).
    destruct (replicas_positive _ _ Hst) as (Hr & _). pose proof (on_at_most here t st H Hst).
    pose proof (on_positive here t H). unfold Qle. cbn [Qnum Qden]. rewrite Z2Pos.id by lia. lia.
  Qed.

  Lemma bytes_positive : (0 < near_byte N)%Q /\ (0 < far_byte N)%Q.
  Proof. destruct HN as (H1 & H2 & _). unfold near_byte, far_byte. split; now apply Qinv_lt_0_compat. Qed.

  Lemma ring_positive s st : nth_error (stages G) s = Some st -> (0 <= ring st)%Q.
  Proof.
    intros H. destruct (replicas_positive _ _ H) as (Hr & _ & Hp). unfold ring. apply Qmult_le_0_compat; [|exact Hp].
    unfold Qle. cbn [Qnum Qden]. lia.
  Qed.

  Lemma away_at_most here : (away_byte N <= inject_Z (users N G here) * far_byte N)%Q /\
                            (far_byte N <= inject_Z (users N G here) * far_byte N)%Q.
  Proof.
    destruct bytes_positive as [_ Hf]. destruct HN as (_ & _ & Hl).
    assert (H : forall n, 1 <= n -> (far_byte N <= inject_Z n * far_byte N)%Q).
    { intros n Hn. rewrite <- (Qmult_1_l (far_byte N)) at 1. apply Qmult_le_compat_r; [|now apply Qlt_le_weak].
      change 1%Q with (inject_Z 1). now rewrite <- Zle_Qle. }
    unfold away_byte, users. destruct (each_gpu N).
    - split; [apply Qle_refl|now apply H].
    - split; apply H; lia.
  Qed.

  (** What all traffic of a replica takes at least, where a byte takes so long within the node and beyond it. *)
  Lemma traffic_at_least here s c : In here rows -> (c <= near_byte N)%Q ->
    (c <= inject_Z (users N G here) * far_byte N)%Q ->
    (2 * all_traffic G s * c
     <= sumQ (fun peer => 2 * snd peer * (part_on G here (fst peer) * near_byte N
                + (1 - part_on G here (fst peer)) * (inject_Z (users N G here) * far_byte N))) (traffic G s))%Q.
  Proof.
    intros Hin Hnear Hfar. unfold all_traffic.
    setoid_replace (2 * sumQ snd (traffic G s) * c)%Q with (sumQ (fun peer => (2 * c) * snd peer) (traffic G s))%Q
      by (rewrite sumQ_scale; ring).
    apply sumQ_le. intros peer Hpeer. destruct (traffic_facts s peer Hpeer) as [Ht Hq].
    pose proof (part_between here (fst peer) Hin Ht) as [H0 H1].
    set (x := part_on G here (fst peer)) in *. set (far := (inject_Z (users N G here) * far_byte N)%Q) in *.
    assert (H : (c <= x * near_byte N + (1 - x) * far)%Q).
    { setoid_replace c with (x * c + (1 - x) * c)%Q at 1 by ring. apply Qplus_le_compat.
      - rewrite !(Qmult_comm x). now apply Qmult_le_compat_r.
      - rewrite !(Qmult_comm (1 - x)). apply Qmult_le_compat_r; [exact Hfar|lra]. }
    setoid_replace (2 * c * snd peer)%Q with (c * (2 * snd peer))%Q by ring.
    rewrite (Qmult_comm (2 * snd peer)). apply Qmult_le_compat_r; [exact H|]. lra.
  Qed.

  Lemma in_slowest here s st : In here rows -> nth_error (stages G) s = Some st -> 0 < on here s ->
    (replica_s N G here s st <= slowest N G rows)%Q.
  Proof.
    intros Hin Hs Hon. unfold slowest. apply in_most_of. apply in_flat_map. exists here. split; [exact Hin|].
    apply in_map_iff. exists (s, st). cbn [fst snd]. apply Z.ltb_lt in Hon. rewrite Hon. split; [reflexivity|].
    now apply in_stages.
  Qed.

  Lemma stage_is_somewhere s st : nth_error (stages G) s = Some st -> exists here, In here rows /\ 0 < on here s.
  Proof.
    intros H. pose proof (together s st H) as Hsum. destruct (replicas_positive s st H) as (Hr & _).
    destruct (existsb (fun here => 0 <? on here s) rows) eqn:E.
    - apply existsb_exists in E. destruct E as (here & Hin & Hon). exists here. split; [exact Hin|]. now apply Z.ltb_lt.
    - exfalso. assert (Hz : sum (fun here => on here s) rows <= 0); [|lia].
      transitivity (sum (fun _ : row => 0) rows); [|rewrite sum_const; lia].
      apply sum_le. intros x Hx. destruct (Z.ltb_spec 0 (on x s)) as [Hp|]; [|assumption]. exfalso.
      apply Z.ltb_lt in Hp.
      assert (existsb (fun here => 0 <? on here s) rows = true) by (apply existsb_exists; eauto). congruence.
  Qed.

  Theorem unhindered_at_least : (unhindered N G <= slowest N G rows)%Q.
  Proof.
    unfold unhindered. apply most_of_least; [apply most_of_positive|]. intros x Hx. apply in_map_iff in Hx.
    destruct Hx as ([s st] & <- & Hs). apply in_stages in Hs. cbn [fst snd].
    destruct (stage_is_somewhere s st Hs) as (here & Hin & Hon).
    eapply Qle_trans; [|now apply (in_slowest here s st)]. unfold replica_s.
    set (best := fewer (near_byte N) (far_byte N)).
    pose proof (away_at_most here) as [_ Hfar].
    assert (H1 : (best <= near_byte N)%Q) by apply fewer_left. assert (H2 : (best <= far_byte N)%Q) by apply fewer_right.
    pose proof (traffic_at_least here s best Hin H1 (Qle_trans _ _ _ H2 Hfar)) as Htraffic.
    apply Qplus_le_compat; [|exact Htraffic]. apply Qplus_le_compat; [apply Qle_refl|].
    rewrite !(Qmult_comm (ring st)). apply Qmult_le_compat_r; [|now apply (ring_positive s)].
    destruct (Z.eqb_spec (on here s) (replicas st)) as [E|E].
    - destruct (Z.leb_spec (replicas st) (largest N)); [exact H1|]. exfalso.
      pose proof (on_at_most_row here s Hin). destruct (row_of here Hin) as (_ & _ & Hr). lia.
    - destruct (replicas st <=? largest N); [exact H2|apply Qle_refl].
  Qed.

  (** A stage that is on several nodes. *)
  Lemma split_at_least here s st : In here rows -> nth_error (stages G) s = Some st -> 0 < on here s < replicas st ->
    (near_s N G s st + ring st * far_byte N <= slowest N G rows)%Q.
  Proof.
    intros Hin Hs Hon. eapply Qle_trans; [|apply (in_slowest here s st Hin Hs); lia]. unfold replica_s, near_s.
    assert (on here s =? replicas st = false) as -> by (apply Z.eqb_neq; lia).
    pose proof (away_at_most here) as [Haway _].
    pose proof (traffic_at_least here s (fewer (near_byte N) (away_byte N)) Hin (fewer_left _ _)
                  (Qle_trans _ _ _ (fewer_right _ _) Haway)). lra.
  Qed.

  (** A stage of whose peer nothing is on its node. *)
  Lemma apart_at_least here s t st : In here rows -> nth_error (stages G) s = Some st -> 0 < on here s -> on here t = 0 ->
    (apart_s N G s t st <= slowest N G rows)%Q.
  Proof.
    intros Hin Hs Hon Ht. eapply Qle_trans; [|now apply (in_slowest here s st)]. unfold replica_s, apart_s, near_s, all_traffic, between.
    pose proof (away_at_most here) as [Haway _]. destruct bytes_positive as [Hn Hf].
    set (c := fewer (near_byte N) (away_byte N)). set (far := (inject_Z (users N G here) * far_byte N)%Q) in *.
    assert (H1 : (c <= near_byte N)%Q) by apply fewer_left. assert (H2 : (c <= away_byte N)%Q) by apply fewer_right.
    assert (Hd : (2 * c + dearer N <= 2 * away_byte N)%Q).
    { unfold dearer, c, fewer, more. destruct (Qle_bool (near_byte N) (away_byte N)) eqn:E1, (Qle_bool (away_byte N - near_byte N) 0) eqn:E2;
        try (apply Qle_bool_iff in E1); try (apply Qle_bool_iff in E2); try lra.
      assert (~ (near_byte N <= away_byte N)%Q) by (intros H; apply Qle_bool_iff in H; congruence).
      assert (~ (away_byte N - near_byte N <= 0)%Q) by (intros H'; apply Qle_bool_iff in H'; congruence). lra. }
    assert (Hring : (0 <= ring st * (if on here s =? replicas st then near_byte N else far_byte N))%Q).
    { apply Qmult_le_0_compat; [now apply (ring_positive s)|]. destruct (_ =? _); lra. }
    assert (Hsum : (2 * sumQ snd (traffic G s) * c + sumQ (fun peer => if Nat.eqb (fst peer) t then snd peer else 0) (traffic G s) * dearer N
       <= sumQ (fun peer => 2 * snd peer * (part_on G here (fst peer) * near_byte N + (1 - part_on G here (fst peer)) * far)) (traffic G s))%Q).
    { setoid_replace (2 * sumQ snd (traffic G s) * c + sumQ (fun peer => if Nat.eqb (fst peer) t then snd peer else 0) (traffic G s) * dearer N)%Q
        with (sumQ (fun peer => 2 * c * snd peer + dearer N * (if Nat.eqb (fst peer) t then snd peer else 0)) (traffic G s))%Q
        by (rewrite sumQ_add, !sumQ_scale; ring).
      apply sumQ_le. intros peer Hpeer. destruct (traffic_facts s peer Hpeer) as [Hlt Hq].
      destruct (Nat.eqb_spec (fst peer) t) as [E|E].
      - assert (Hzero : (part_on G here (fst peer) == 0)%Q) by (unfold part_on; rewrite E, Ht; reflexivity).
        rewrite Hzero.
        setoid_replace (2 * c * snd peer + dearer N * snd peer)%Q with ((2 * c + dearer N) * snd peer)%Q by ring.
        setoid_replace (2 * snd peer * (0 * near_byte N + (1 - 0) * far))%Q with ((2 * far) * snd peer)%Q by ring.
        apply Qmult_le_compat_r; [|exact Hq]. lra.
      - pose proof (part_between here (fst peer) Hin Hlt) as [H3 H4]. set (x := part_on G here (fst peer)) in *.
        assert (H : (c <= x * near_byte N + (1 - x) * far)%Q).
        { setoid_replace c with (x * c + (1 - x) * c)%Q at 1 by ring. apply Qplus_le_compat.
          - rewrite !(Qmult_comm x). now apply Qmult_le_compat_r.
          - rewrite !(Qmult_comm (1 - x)). apply Qmult_le_compat_r; lra. }
        setoid_replace (2 * c * snd peer + dearer N * 0)%Q with (c * (2 * snd peer))%Q by ring.
        rewrite (Qmult_comm (2 * snd peer)). apply Qmult_le_compat_r; [exact H|]. lra. }
    fold far. lra.
  Qed.

  Lemma reach_closed (P : nat -> Prop) fuel : forall those,
    (forall s, P s -> forall peer, In peer (traffic G s) -> P (fst peer)) -> (forall s, In s those -> P s) ->
    forall s, In s (reach G fuel those) -> P s.
  Proof.
    induction fuel as [|fuel IH]; intros those Hstep Hthose s Hs; cbn [reach] in Hs; [now apply Hthose|].
    destruct (_ <=? _)%nat; [now apply Hthose|]. revert Hs. apply IH; [exact Hstep|].
    intros x Hx. apply nodup_In, in_app_iff in Hx. destruct Hx as [Hx|Hx]; [now apply Hthose|].
    apply in_flat_map in Hx. destruct Hx as (y & Hy & Hx). apply in_map_iff in Hx. destruct Hx as (peer & <- & Hpeer).
    apply (Hstep y); [now apply Hthose|exact Hpeer].
  Qed.

  Lemma some_case : connected G = true -> (2 <= length rows)%nat ->
    exists x, In x (cases N G) /\ (x <= slowest N G rows)%Q.
  Proof.
    intros Hconnected Hrows.
    (* a stage on several nodes *)
    destruct (existsb (fun here => existsb (fun x => (0 <? on here (fst x)) && (on here (fst x) <? replicas (snd x))) (numbered_stages G)) rows) eqn:Esplit.
    { apply existsb_exists in Esplit. destruct Esplit as (here & Hin & H). apply existsb_exists in H.
      destruct H as ([s st] & Hs & H). cbn [fst snd] in H. apply andb_prop in H. destruct H as [H1 H2].
      apply Z.ltb_lt in H1, H2. exists (near_s N G s st + ring st * far_byte N)%Q. split.
      - unfold cases. apply in_flat_map. exists (s, st). split; [exact Hs|]. cbn [fst snd]. apply in_app_iff. left.
        assert (1 <? replicas st = true) as -> by (apply Z.ltb_lt; lia). now left.
      - apply in_stages in Hs. now apply (split_at_least here). }
    assert (Hwhole : forall here s st, In here rows -> nth_error (stages G) s = Some st ->
              0 < on here s -> on here s = replicas st).
    { intros here s st Hin Hs Hon. pose proof (on_at_most here s st Hin Hs).
      destruct (Z.eq_dec (on here s) (replicas st)); [assumption|]. exfalso.
      assert (Htrue : existsb (fun here => existsb (fun x => (0 <? on here (fst x)) && (on here (fst x) <? replicas (snd x))) (numbered_stages G)) rows = true).
      { apply existsb_exists. exists here. split; [exact Hin|]. apply existsb_exists. exists (s, st).
        split; [now apply in_stages|]. cbn [fst snd]. rewrite andb_true_iff, !Z.ltb_lt. lia. }
      congruence. }
    destruct HG as (Hn & _). destruct (stage_of 0 ltac:(lia)) as (st0 & Hst0).
    destruct (stage_is_somewhere 0 st0 Hst0) as (home & Hhome & Hon0).
    (* whoever is on the node of the first stage exchanges with somebody who is not *)
    destruct (existsb (fun x => (0 <? on home (fst x)) && existsb (fun peer => on home (fst peer) =? 0) (traffic G (fst x))) (numbered_stages G)) eqn:Eapart.
    - apply existsb_exists in Eapart. destruct Eapart as ([s st] & Hs & H). cbn [fst snd] in H.
      apply andb_prop in H. destruct H as [Hon H]. apply Z.ltb_lt in Hon. apply existsb_exists in H.
      destruct H as (peer & Hpeer & Hzero). apply Z.eqb_eq in Hzero. apply in_stages in Hs.
      destruct (traffic_facts s peer Hpeer) as [Hlt _]. destruct (stage_of _ Hlt) as (other & Hother).
      exists (more (apart_s N G s (fst peer) st) (apart_s N G (fst peer) s other)). split.
      + unfold cases. apply in_flat_map. exists (s, st). split; [now apply in_stages|]. cbn [fst snd].
        apply in_app_iff. right. apply in_flat_map. exists peer. split; [exact Hpeer|]. rewrite Hother. now left.
      + apply more_least; [now apply (apart_at_least home)|].
        destruct (stage_is_somewhere _ other Hother) as (there & Hthere & Hont).
        apply (apart_at_least there); try assumption.
        assert (Hne : home <> there) by (intros ->; lia).
        pose proof (sum_of_two (fun x => on x s) rows home there (fun x Hx => on_positive x s Hx) Hhome Hthere Hne) as Htwo.
        rewrite (together s st Hs) in Htwo. rewrite (Hwhole home s st Hhome Hs Hon) in Htwo.
        pose proof (on_positive there s Hthere). lia.
    - exfalso.
      assert (Hall : forall s, (s < length (stages G))%nat -> 0 < on home s).
      { intros s Hlt. unfold connected in Hconnected. rewrite forallb_forall in Hconnected.
        specialize (Hconnected s ltac:(apply in_seq; lia)). apply existsb_exists in Hconnected.
        destruct Hconnected as (s' & Hin & E). apply Nat.eqb_eq in E. subst s'.
        revert s Hin Hlt. assert (Hgen : forall s, In s (reach G (length (stages G)) [0%nat]) -> (s < length (stages G))%nat /\ 0 < on home s).
        { apply reach_closed with (P := fun s => (s < length (stages G))%nat /\ 0 < on home s).
          - intros s [Hlt Hon] peer Hpeer. destruct (traffic_facts s peer Hpeer) as [Hlt' _]. split; [exact Hlt'|].
            destruct (Z.eq_dec (on home (fst peer)) 0) as [Hz|Hnz]; [|pose proof (on_positive home (fst peer) Hhome); lia].
            exfalso. destruct (stage_of s Hlt) as (st & Hst).
            assert (Htrue : existsb (fun x => (0 <? on home (fst x)) && existsb (fun peer => on home (fst peer) =? 0) (traffic G (fst x))) (numbered_stages G) = true).
            { apply existsb_exists. exists (s, st). split; [now apply in_stages|]. cbn [fst]. apply andb_true_intro.
              split; [now apply Z.ltb_lt|]. apply existsb_exists. exists peer. split; [exact Hpeer|]. now apply Z.eqb_eq. }
            congruence.
          - intros s [<-|[]]. split; [lia|exact Hon0]. }
        intros s Hin _. now apply Hgen. }
      assert (Hother : exists other, In other rows /\ other <> home).
      { (* of two equal nodes the first stage would have twice its replicas *)
        destruct (existsb (fun x => negb (if list_eq_dec Z.eq_dec x home then true else false)) rows) eqn:E.
        - apply existsb_exists in E. destruct E as (x & Hx & H). exists x. split; [exact Hx|].
          destruct (list_eq_dec Z.eq_dec x home); [discriminate|assumption].
        - exfalso. assert (Hsame : forall x, In x rows -> x = home).
          { intros x Hx. destruct (list_eq_dec Z.eq_dec x home) as [|Hne]; [assumption|]. exfalso.
            assert (existsb (fun x => negb (if list_eq_dec Z.eq_dec x home then true else false)) rows = true).
            { apply existsb_exists. exists x. split; [exact Hx|]. destruct (list_eq_dec Z.eq_dec x home); [contradiction|reflexivity]. }
            congruence. }
          pose proof (together 0 st0 Hst0) as Hsum.
          rewrite (sum_ext _ (fun _ => on home 0)) in Hsum by (intros x Hx; now rewrite (Hsame x Hx)).
          rewrite sum_const, (Hwhole home 0%nat st0 Hhome Hst0 Hon0) in Hsum.
          destruct (replicas_positive 0 st0 Hst0) as (Hr & _). nia. }
      destruct Hother as (other & Hin & Hne).
      destruct (row_of other Hin) as (Hlen & Hnonneg & Hsum & _).
      assert (Hz : forall s, on other s = 0).
      { intros s. destruct (Nat.lt_ge_cases s (length (stages G))) as [Hlt|Hge].
        - destruct (stage_of s Hlt) as (st & Hst).
          pose proof (sum_of_two (fun x => on x s) rows home other (fun x Hx => on_positive x s Hx) Hhome Hin (not_eq_sym Hne)) as Htwo.
          rewrite (together s st Hst), (Hwhole home s st Hhome Hst (Hall s Hlt)) in Htwo.
          pose proof (on_positive other s Hin). lia.
        - unfold on. apply nth_overflow. lia. }
      assert (Hzero : sum (fun n => n) other = 0).
      { clear - Hz. revert Hz. unfold on. induction other as [|n l IH]; intros Hz; cbn [sum]; [reflexivity|].
        pose proof (Hz 0%nat) as H0. cbn in H0. rewrite IH; [lia|]. intros s. exact (Hz (S s)). }
      lia.
  Qed.

  Theorem spread_at_least : (2 <= length rows)%nat -> (spread N G <= slowest N G rows)%Q.
  Proof.
    intros Hrows. unfold spread. destruct (connected G) eqn:Hc; [|exact unhindered_at_least].
    destruct (some_case Hc Hrows) as (x & Hx & Hle). destruct (cases N G) as [|first rest]; [destruct Hx|].
    apply more_least; [exact unhindered_at_least|]. eapply Qle_trans; [exact (fewest_of _ _ _ Hx)|exact Hle].
  Qed.

  (** All on one node is one mapping. *)
  Lemma one_node here : rows = [here] -> here = map replicas (stages G).
  Proof.
    intros E. destruct (row_of here ltac:(rewrite E; now left)) as (Hlen & _).
    assert (Hs : forall s st, nth_error (stages G) s = Some st -> on here s = replicas st).
    { intros s st Hst. pose proof (together s st Hst) as H. rewrite E in H. cbn [sum] in H. lia. }
    clear - Hlen Hs. revert here Hlen Hs. induction (stages G) as [|st l IH]; intros here Hlen Hs.
    - destruct here; [reflexivity|discriminate].
    - destruct here as [|n here]; [discriminate|]. cbn [map]. f_equal.
      + exact (Hs 0%nat st eq_refl).
      + apply IH; [cbn in Hlen; lia|]. intros s x Hx. exact (Hs (S s) x Hx).
  Qed.
End Mapping.

(** *** Ticks *)

Lemma depth_positive G : (1 <= length (stages G))%nat -> 1 <= depth G.
Proof.
  intros H. unfold depth. destruct (length (stages G)) as [|n] eqn:E; [lia|]. cbn [seq depth_of].
  assert (Hpos : forall fuel layer, 0 <= depth_of G fuel layer).
  { induction fuel as [|fuel IH]; intros layer; destruct layer; cbn [depth_of]; try lia.
    match goal with |- 0 <= 1 + depth_of G fuel ?x => specialize (IH x) end. lia. }
  match goal with |- 1 <= 1 + depth_of G n ?x => specialize (Hpos n x) end. lia.
Qed.

Lemma flush_positive G : sound_graph G -> (0 <= flush G)%Q.
Proof.
  intros (Hn & Hq & _). unfold flush. pose proof (depth_positive G Hn).
  destruct (Z.leb_spec 1 (microbatches G)); [|discriminate]. unfold Qle. cbn [Qnum Qden]. lia.
Qed.

Lemma iterations_monotone G work a b : sound_graph G -> (0 <= work)%Q -> (a <= b)%Q ->
  iterations_ticks G work a <= iterations_ticks G work b.
Proof.
  intros HG Hwork H. unfold iterations_ticks. apply ticks_up_monotone. apply Qmult_le_compat_r; [|discriminate].
  apply to_double_monotone. rewrite !(Qmult_comm work). apply Qmult_le_compat_r; [|exact Hwork].
  apply to_double_monotone. apply Qmult_le_compat_r; [exact H|now apply flush_positive].
Qed.

Lemma at_speed_monotone a b speed : (0 < speed)%Q -> a <= b -> at_speed a speed <= at_speed b speed.
Proof.
  intros Hs H. unfold at_speed. destruct (Qeq_bool speed 1); [exact H|]. apply ticks_up_monotone, to_double_monotone.
  apply Qmult_le_compat_r; [now rewrite <- Zle_Qle|]. now apply Qlt_le_weak, Qinv_lt_0_compat.
Qed.

Lemma iterations_positive G work slow : 1 <= iterations_ticks G work slow.
Proof. unfold iterations_ticks, ticks_up. lia. Qed.

Lemma at_speed_positive ticks speed : 1 <= ticks -> 1 <= at_speed ticks speed.
Proof. intros H. unfold at_speed, ticks_up. destruct (Qeq_bool speed 1); lia. Qed.

Lemma check_graph_sound G : check_graph G = true -> sound_graph G.
Proof.
  unfold check_graph, sound_graph. rewrite !andb_true_iff, !forallb_forall, Nat.leb_le, Z.leb_le.
  intros (((H1 & H2) & H3) & H4). repeat split; try assumption.
  - specialize (H3 _ H). rewrite !andb_true_iff, Z.leb_le in H3. tauto.
  - specialize (H3 _ H). rewrite !andb_true_iff, !Qle_bool_iff in H3. tauto.
  - specialize (H3 _ H). rewrite !andb_true_iff, !Qle_bool_iff in H3. tauto.
  - specialize (H4 _ H). rewrite !andb_true_iff, !Nat.ltb_lt in H4. tauto.
  - specialize (H4 _ H). rewrite !andb_true_iff, !Nat.ltb_lt in H4. tauto.
  - specialize (H4 _ H). rewrite !andb_true_iff, !Qle_bool_iff in H4. tauto.
Qed.

Lemma check_network_sound N : check_network N = true -> sound_network N.
Proof.
  unfold check_network, sound_network. rewrite !andb_true_iff, !negb_true_iff, Z.leb_le. intros ((H1 & H2) & H3).
  assert (H : forall x, Qle_bool x 0 = false -> (0 < x)%Q).
  { intros x E. apply Qnot_le_lt. intros Hx. apply Qle_bool_iff in Hx. congruence. }
  repeat split; [now apply H|now apply H|exact H3].
Qed.
