(** Prices of GPUs and of nodes, of which gangs that fit on one use no more than all of it (LB-node). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Fluid Checker Starts Claim Lists Priced.
Import ListNotations.
Open Scope Z_scope.

(** A row is of nodes of a type and a size: what a gang of some size uses of one that it is on alone of all nodes, and what
    each GPU uses of a gang that is on several; and the price of a node, which is 2^20. *)
Record node_row := NodeRow { row_type : nat; row_size : Z; row_gangs : list (Z * Z); row_gpu : Z; row_price : Z }.

Definition whole_node : Z := 1048576.

Definition on_row (q : node_row) (n : node) : bool := Nat.eqb (gpu_type n) (row_type q) && (gpus n =? row_size q).

(** What some GPUs of a node are used as: by a gang that is there as a whole, or by one of several nodes. *)
Definition row_use (q : node_row) (as_whole : bool) (g : Z) : Z :=
  if as_whole then match find (fun gw => fst gw =? g) (row_gangs q) with Some gw => snd gw | None => 0 end
  else g * row_gpu q.

(** *** Gangs that fit on a node use no more than all of it *)

Definition weights (q : node_row) : list (Z * Z) := (1, row_gpu q) :: row_gangs q.

(** The most that is used by so many GPUs or fewer, from the most to none. *)
Fixpoint fullest (ws : list (Z * Z)) (room : nat) : list Z :=
  match room with
  | O => [0]
  | S room =>
      let less := fullest ws room in
      fold_right (fun gw most => if (1 <=? fst gw) && (fst gw <=? Z.of_nat (S room))
                                 then Z.max most (nth (Z.to_nat (fst gw - 1)) less 0 + snd gw) else most)
        (hd 0 less) ws :: less
  end.

Definition check_row (q : node_row) : bool :=
  let table := rev (fullest (weights q) (Z.to_nat (row_size q))) in
  (0 <=? row_gpu q) && (0 <=? row_price q) && (0 <=? row_size q)
  && forallb (fun gw => (1 <=? fst gw) && (0 <=? snd gw)) (row_gangs q)
  && (0 <=? nth 0 table 0) && (nth (Z.to_nat (row_size q)) table 0 <=? whole_node)
  && forallb (fun r => forallb (fun gw => (Z.of_nat r <? fst gw)
                                          || (nth (r - Z.to_nat (fst gw)) table 0 + snd gw <=? nth r table 0)) (weights q))
       (seq 0 (S (Z.to_nat (row_size q)))).

Section Row.
  Variable q : node_row.
  Hypothesis Hcheck : check_row q = true.

  Let table := rev (fullest (weights q) (Z.to_nat (row_size q))).
  Let most (r : Z) : Z := nth (Z.to_nat r) table 0.

  Lemma row_facts : 0 <= row_gpu q /\ 0 <= row_price q /\ 0 <= row_size q /\
    (forall gw, In gw (row_gangs q) -> 1 <= fst gw /\ 0 <= snd gw) /\ 0 <= most 0 /\ most (row_size q) <= whole_node /\
    forall r g w, In (g, w) (weights q) -> 1 <= g -> 0 <= r -> r + g <= row_size q -> most r + w <= most (r + g).
  Proof.
    unfold check_row in Hcheck. fold table in Hcheck. rewrite !andb_true_iff, !Z.leb_le, !forallb_forall in Hcheck.
    destruct Hcheck as ((((((H1 & H2) & H3) & H4) & H5) & H6) & H7). repeat split; try assumption.
    - specialize (H4 gw H). rewrite andb_true_iff, !Z.leb_le in H4. apply H4.
    - specialize (H4 gw H). rewrite andb_true_iff, !Z.leb_le in H4. apply H4.
    - intros r g w Hin Hg Hr Hle. specialize (H7 (Z.to_nat (r + g))). rewrite forallb_forall in H7.
      assert (Hseq : In (Z.to_nat (r + g)) (seq 0 (S (Z.to_nat (row_size q))))) by (apply in_seq; lia).
      specialize (H7 Hseq (g, w) Hin). cbn [fst snd] in H7. apply orb_prop in H7. destruct H7 as [H7|H7].
      + apply Z.ltb_lt in H7. lia.
      + apply Z.leb_le in H7. unfold most. replace (Z.to_nat r) with (Z.to_nat (r + g) - Z.to_nat g)%nat by lia. exact H7.
  Qed.

  Lemma most_of_gpus n : forall r, 0 <= r -> r + Z.of_nat n <= row_size q -> most r + Z.of_nat n * row_gpu q <= most (r + Z.of_nat n).
  Proof.
    destruct row_facts as (_ & _ & _ & _ & _ & _ & Hmore).
    induction n as [|n IH]; intros r Hr Hle; [change (Z.of_nat 0) with 0; rewrite Z.mul_0_l, !Z.add_0_r; apply Z.le_refl|].
    specialize (IH r Hr ltac:(lia)). specialize (Hmore (r + Z.of_nat n) 1 (row_gpu q) (or_introl eq_refl) ltac:(lia) ltac:(lia) ltac:(lia)).
    replace (r + Z.of_nat (S n)) with (r + Z.of_nat n + 1) by lia. lia.
  Qed.

  (** Gangs, and GPUs of gangs, that are on a node together. *)
  Lemma uses_at_most (l : list (bool * Z)) : (forall x, In x l -> 1 <= snd x) -> sum snd l <= row_size q ->
    sum (fun x => row_use q (fst x) (snd x)) l <= whole_node.
  Proof.
    intros Hl Hsum. destruct row_facts as (Hgpu & _ & Hsize & Hgangs & Hzero & Hfull & Hmore).
    assert (Hmost : forall l, (forall x, In x l -> 1 <= snd x) -> sum snd l <= row_size q ->
              sum (fun x => row_use q (fst x) (snd x)) l <= most (sum snd l)).
    { clear l Hl Hsum. induction l as [|[as_whole g] l IH]; intros Hl Hsum; cbn [sum fst snd] in *; [exact Hzero|].
      assert (Hg : 1 <= g) by (apply (Hl (as_whole, g)); now left).
      assert (Hrest : 0 <= sum snd l) by (apply sum_nonneg; intros x Hx; specialize (Hl x (or_intror Hx)); lia).
      specialize (IH (fun x Hx => Hl x (or_intror Hx)) ltac:(lia)).
      assert (Hspread : most (sum snd l) + g * row_gpu q <= most (g + sum snd l)).
      { pose proof (most_of_gpus (Z.to_nat g) (sum snd l) Hrest ltac:(lia)) as H. rewrite Z2Nat.id in H by lia.
        rewrite (Z.add_comm g). exact H. }
      unfold row_use at 1. destruct as_whole; [|lia].
      destruct (find _ _) as [gw|] eqn:E.
      - apply find_some in E. destruct E as [Hin E]. apply Z.eqb_eq in E.
        specialize (Hmore (sum snd l) (fst gw) (snd gw)). rewrite <- surjective_pairing in Hmore.
        specialize (Hmore (or_intror Hin) (proj1 (Hgangs gw Hin)) Hrest). rewrite E in Hmore. specialize (Hmore ltac:(lia)).
        rewrite (Z.add_comm g). lia.
      - assert (0 <= g * row_gpu q) by (apply Z.mul_nonneg_nonneg; lia). lia. }
    specialize (Hmost l Hl Hsum). pose proof (most_of_gpus (Z.to_nat (row_size q - sum snd l)) (sum snd l)) as H.
    assert (Hrest : 0 <= sum snd l) by (apply sum_nonneg; intros x Hx; specialize (Hl x Hx); lia).
    specialize (H Hrest ltac:(lia)). rewrite Z2Nat.id in H by lia. replace (sum snd l + (row_size q - sum snd l)) with (row_size q) in H by lia.
    assert (0 <= (row_size q - sum snd l) * row_gpu q) by (apply Z.mul_nonneg_nonneg; lia). lia.
  Qed.
End Row.

(** ** Prices of runs *)

Definition as_whole (r : run) : bool := match pieces r with [_] => true | _ => false end.

Definition node_price (types : list Z) (rows : list node_row) (whole_gang : bool) (n : node) (g : Z) : Z :=
  g * nth (gpu_type n) types 0 + sum (fun q => if on_row q n then row_price q * row_use q whole_gang g else 0) rows.

Definition piece_price (I : instance) types rows (whole_gang : bool) (piece : nat * Z) : Z :=
  match nth_error (nodes I) (fst piece) with Some n => node_price types rows whole_gang n (snd piece) | None => 0 end.

Definition gang_price (I : instance) types rows (r : run) : Z :=
  sum (piece_price I types rows (as_whole r)) (pieces r).

Definition price_of_node (types : list Z) (rows : list node_row) (n : node) : Z :=
  gpus n * nth (gpu_type n) types 0 + sum (fun q => if on_row q n then row_price q * whole_node else 0) rows.

Definition price_of_nodes (I : instance) types rows : Z := sum (price_of_node types rows) (nodes I).

(** Of each job whether its gang fits on a node, and then the conditions that it is under on several, if they differ. *)
Definition several : Type := list (bool * list nat).

(** Of the class: a gang that fits on a node is on several under these conditions, or never. *)
Definition spread_rightly (I : instance) (table : several) (never : bool) (s : schedule) : Prop :=
  forall k j r, nth_error (jobs I) k = Some j -> In r (runs_of k s) -> as_whole r = false -> fst (nth k table (false, [])) = true ->
    never = false /\ (snd (nth k table (false, [])) = [] \/ In (condition r) (snd (nth k table (false, [])))).

Definition check_spread (I : instance) (table : several) (never : bool) (s : schedule) : bool :=
  forallb (fun r =>
    let row := nth (of_job r) table (false, []) in
    as_whole r || negb (fst row)
    || (negb never && match snd row with [] => true | _ => existsb (Nat.eqb (condition r)) (snd row) end)) s.

Lemma check_spread_sound I table never s : check_spread I table never s = true -> spread_rightly I table never s.
Proof.
  unfold check_spread. rewrite forallb_forall. intros H k j r _ Hr Hwhole Hfits. apply in_runs_of in Hr. destruct Hr as [Hr <-].
  specialize (H r Hr). cbn zeta in H. rewrite Hwhole, Hfits in H. cbn [negb orb] in H. apply andb_prop in H. destruct H as [H1 H2].
  split; [now apply negb_true_iff|]. destruct (snd (nth (of_job r) table (false, []))) as [|c l]; [now left|right].
  apply existsb_exists in H2. destruct H2 as (x & Hx & E). apply Nat.eqb_eq in E. now subst.
Qed.

(** What all of a job costs on a node, and on several. *)
Definition costs_of (I : instance) types rows (table : several) (never : bool) (own : Z) (kj : numbered_job) : list Z :=
  let row := nth (fst kj) table (false, []) in
  let g := gang (snd kj) in
  flat_map (fun n =>
    flat_map (fun entry =>
      if Nat.eqb (fst (fst entry)) (gpu_type n)
      then (if g <=? gpus n then [snd entry * (node_price types rows true n g + own)] else [])
           ++ (if (2 <=? g) && (negb (fst row)
                   || (negb never && match snd row with [] => true | _ => existsb (Nat.eqb (snd (fst entry))) (snd row) end))
               then [snd entry * (node_price types rows false n g + own)] else [])
      else []) (times (snd kj))) (nodes I).

Definition least_on_nodes (I : instance) types rows (table : several) (never : bool) (own : Z) (kj : numbered_job) : Z :=
  match costs_of I types rows table never own kj with
  | [] => 0
  | cost :: rest => fold_right Z.min cost rest
  end.

Section Nodes.
  Variables (I : instance) (s : schedule) (types : list Z) (rows : list node_row) (table : several) (never : bool).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hclass : spread_rightly I table never s.
  Hypothesis Htypes : forall x, In x types -> 0 <= x.
  Hypothesis Hrows : forall q, In q rows -> check_row q = true.
  Hypothesis Hwidest : widest I = 1.

  Lemma type_positive ty : 0 <= nth ty types 0.
  Proof. destruct (nth_in_or_default ty types 0) as [H| ->]; [now apply Htypes|lia]. Qed.

  Lemma row_use_positive q whole_gang g : In q rows -> 0 <= g -> 0 <= row_use q whole_gang g.
  Proof.
    intros Hq Hg. destruct (row_facts q (Hrows q Hq)) as (H1 & _ & _ & H4 & _). unfold row_use. destruct whole_gang.
    - destruct (find _ _) as [gw|] eqn:E; [|lia]. apply find_some in E. now apply H4.
    - now apply Z.mul_nonneg_nonneg.
  Qed.

  Lemma node_price_positive whole_gang n g : 0 <= g -> 0 <= node_price types rows whole_gang n g.
  Proof.
    intros Hg. unfold node_price. pose proof (type_positive (gpu_type n)).
    assert (0 <= sum (fun q => if on_row q n then row_price q * row_use q whole_gang g else 0) rows); [|nia].
    apply sum_nonneg. intros q Hq. destruct (on_row q n); [|lia]. pose proof (row_use_positive q whole_gang g Hq Hg).
    destruct (row_facts q (Hrows q Hq)) as (_ & Hp & _). now apply Z.mul_nonneg_nonneg.
  Qed.

  Lemma gang_price_positive r : In r s -> 0 <= gang_price I types rows r.
  Proof.
    intros Hr. destruct Hs as (Hfits & _). rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hpieces).
    unfold gang_price. apply sum_nonneg. intros piece Hin. destruct (Hpieces piece Hin) as [Hone _]. unfold piece_price.
    destruct (nth_error _ _); [|lia]. apply node_price_positive. lia.
  Qed.

  (** On every node. *)
  Lemma on_a_node k n t : nth_error (nodes I) k = Some n ->
    sum (fun r => if active t r then sum (fun piece => if Nat.eqb (fst piece) k
                                                       then node_price types rows (as_whole r) n (snd piece) else 0) (pieces r) else 0) s
    <= price_of_node types rows n.
  Proof.
    intros Hk. destruct Hs as (Hfits & _ & Hheld & _). specialize (Hheld k n Hk t). rewrite Forall_forall in Hfits.
    (* who is there *)
    set (there := flat_map (fun r => if active t r
                                     then map (fun piece => (as_whole r, snd piece)) (filter (fun piece => Nat.eqb (fst piece) k) (pieces r))
                                     else []) s).
    assert (Hsum : forall (f : bool -> Z -> Z),
      sum (fun r => if active t r then sum (fun piece => if Nat.eqb (fst piece) k then f (as_whole r) (snd piece) else 0) (pieces r) else 0) s
      = sum (fun x => f (fst x) (snd x)) there).
    { intros f. unfold there. rewrite sum_flat_map. apply sum_ext. intros r _. destruct (active t r); [|reflexivity].
      rewrite sum_map, sum_filter. reflexivity. }
    rewrite (Hsum (fun w g => node_price types rows w n g)).
    unfold held in Hheld. rewrite (Hsum (fun _ g => g)) in Hheld.
    assert (Hthere : forall x, In x there -> 1 <= snd x).
    { intros x Hx. unfold there in Hx. apply in_flat_map in Hx. destruct Hx as (r & Hr & Hx). destruct (active t r); [|destruct Hx].
      apply in_map_iff in Hx. destruct Hx as (piece & <- & Hp). apply filter_In in Hp. cbn [snd].
      destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hpieces). now apply (Hpieces piece). }
    unfold node_price, price_of_node. rewrite sum_add. apply Z.add_le_mono.
    - rewrite (sum_ext _ (fun x => nth (gpu_type n) types 0 * snd x)) by (intros; ring). rewrite sum_scale, Z.mul_comm.
      apply Z.mul_le_mono_nonneg_r; [apply type_positive|exact Hheld].
    - rewrite sum_swap. apply sum_le. intros q Hq. destruct (on_row q n) eqn:E; [|rewrite sum_const; lia].
      rewrite sum_scale. destruct (row_facts q (Hrows q Hq)) as (_ & Hp & _). apply Z.mul_le_mono_nonneg_l; [exact Hp|].
      apply uses_at_most; [now apply Hrows|exact Hthere|]. unfold on_row in E. apply andb_prop in E. destruct E as [_ E].
      apply Z.eqb_eq in E. rewrite <- E. exact Hheld.
  Qed.

  Lemma all_nodes_enough t : sum (fun r => if active t r then gang_price I types rows r else 0) s <= price_of_nodes I types rows.
  Proof.
    assert (Hfits : Forall (run_fits I) s) by apply Hs. rewrite Forall_forall in Hfits.
    transitivity (sum (fun k => sum (fun r => if active t r then sum (fun piece => if Nat.eqb (fst piece) k
                                   then piece_price I types rows (as_whole r) piece else 0) (pieces r) else 0) s) (seq 0 (length (nodes I)))).
    - rewrite sum_swap. apply sum_le. intros r Hr. destruct (active t r); [|rewrite sum_const; lia].
      rewrite sum_swap. unfold gang_price. apply sum_le. intros piece Hp.
      destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hpieces). destruct (Hpieces piece Hp) as (_ & n & _ & Hn & _).
      rewrite one_of_range; [lia|]. apply nth_error_Some. congruence.
    - unfold price_of_nodes.
      assert (H : forall (l : list node) b, (forall i n, nth_error l i = Some n -> nth_error (nodes I) (b + i) = Some n) ->
        sum (fun k => sum (fun r => if active t r then sum (fun piece => if Nat.eqb (fst piece) k
               then piece_price I types rows (as_whole r) piece else 0) (pieces r) else 0) s) (seq b (length l))
        <= sum (price_of_node types rows) l).
      { induction l as [|n l IH]; intros b Hl; cbn [length seq sum]; [lia|].
        assert (Hb : nth_error (nodes I) b = Some n) by (rewrite <- (Nat.add_0_r b); now apply Hl).
        apply Z.add_le_mono.
        - etransitivity; [|apply (on_a_node b n t Hb)]. apply Z.eq_le_incl, sum_ext. intros r _. destruct (active t r); [|reflexivity].
          apply sum_ext. intros piece _. destruct (Nat.eqb_spec (fst piece) b) as [E|]; [|reflexivity]. unfold piece_price. rewrite E, Hb. reflexivity.
        - apply IH. intros i n' Hi. replace (S b + i)%nat with (b + S i)%nat by lia. now apply Hl. }
      apply (H (nodes I) 0%nat). intros i n Hi. exact Hi.
  Qed.

  Lemma least_on_nodes_below own kj cost : In cost (costs_of I types rows table never own kj) ->
    least_on_nodes I types rows table never own kj <= cost.
  Proof.
    intros Hin. unfold least_on_nodes. destruct (costs_of _ _ _ _ _ _ _) as [|first rest]; [destruct Hin|]. now apply fold_min_below.
  Qed.

  Lemma time_entry ty c j t : time_on ty c j = Some t -> exists entry, In entry (times j) /\ snd entry = t /\ fst (fst entry) = ty /\ snd (fst entry) = c.
  Proof.
    intros H. unfold time_on in H. destruct (find _ _) as [entry|] eqn:E; [|discriminate]. cbn in H. injection H as <-.
    apply find_some in E. destruct E as [Hin E]. apply andb_prop in E. destruct E as [E1 E2]. apply Nat.eqb_eq in E1, E2. now exists entry.
  Qed.

  Lemma pace_at_least j r piece n t : In piece (pieces r) -> nth_error (nodes I) (fst piece) = Some n ->
    time_on (gpu_type n) (condition r) j = Some t -> t <= pace I j r.
  Proof.
    unfold pace. induction (pieces r) as [|p l IH]; intros Hin Hn Ht; [destruct Hin|]. cbn [fold_right]. destruct Hin as [->|Hin].
    - rewrite Hn, Ht. lia.
    - specialize (IH Hin Hn Ht). destruct (nth_error (nodes I) (fst p)) as [n'|]; [|exact IH].
      destruct (time_on (gpu_type n') (condition r) j); lia.
  Qed.

  Lemma gang_price_at_least own k j r : 0 <= own -> nth_error (jobs I) k = Some j -> In r (runs_of k s) ->
    least_on_nodes I types rows table never own (k, j) <= (gang_price I types rows r + own) * pace I j r.
  Proof.
    intros Hown Hk Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & _ & Hgang & Hne & Hpieces).
    rewrite Hwidest in Hgang. pose proof (sound_in _ _ _ Hsound Hk) as Hj. assert (Hg : 1 <= gang j) by apply Hj.
    assert (Hsum : sum snd (pieces r) = gang j) by lia. set (L := least_on_nodes I types rows table never own (k, j)) in *.
    destruct (as_whole r) eqn:Hwhole.
    - unfold as_whole in Hwhole. destruct (pieces r) as [|piece [|other rest]] eqn:E; try discriminate. clear Hwhole.
      destruct (Hpieces piece (or_introl eq_refl)) as (_ & n & t & Hn & Htime). cbn [sum] in Hsum.
      assert (Hsize : gang j <= gpus n).
      { destruct Hs as (Hfits & _ & Hheld & _). specialize (Hheld _ n Hn (start r)). unfold held in Hheld.
        rewrite Forall_forall in Hfits. etransitivity; [|exact Hheld]. apply in_runs_of in Hr. destruct Hr as [Hr _].
        destruct (in_split _ _ Hr) as (s1 & s2 & Heq). rewrite Heq, sum_app. cbn [sum].
        assert (Hpos : forall l, incl l s -> 0 <= sum (fun x => if active (start r) x
                  then sum (fun p => if Nat.eqb (fst p) (fst piece) then snd p else 0) (pieces x) else 0) l).
        { intros l Hl. apply sum_nonneg. intros x Hx. destruct (active (start r) x); [|lia]. apply sum_nonneg. intros p Hp.
          destruct (Hfits x (Hl x Hx)) as (j' & _ & _ & _ & _ & _ & Hps). destruct (Hps p Hp) as [Hone _]. destruct (Nat.eqb _ _); lia. }
        pose proof (Hpos s1 ltac:(intros x Hx; rewrite Heq; apply in_app_iff; now left)).
        pose proof (Hpos s2 ltac:(intros x Hx; rewrite Heq; apply in_app_iff; right; now right)).
        assert (Hactive : active (start r) r = true).
        { unfold active. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
        rewrite Hactive, E. cbn [sum]. rewrite Nat.eqb_refl. lia. }
      assert (Hpace : pace I j r = Z.max t 0) by (unfold pace; rewrite E; cbn [fold_right]; now rewrite Hn, Htime).
      destruct (time_entry _ _ _ _ Htime) as (entry & Hin & Hsnd & Hty & _).
      assert (Hpositive : 1 <= t) by (rewrite <- Hsnd; destruct Hj as (_ & _ & _ & _ & Hpos & _); now apply Hpos).
      assert (Hprice : gang_price I types rows r = node_price types rows true n (gang j)).
      { unfold gang_price, as_whole. rewrite E. cbn [sum]. unfold piece_price. rewrite Hn. replace (snd piece) with (gang j) by lia. lia. }
      rewrite Hpace, Hprice, Z.max_l by lia. rewrite Z.mul_comm. apply least_on_nodes_below. unfold costs_of. cbn zeta. cbn [snd].
      apply in_flat_map. exists n. split; [eapply nth_error_In; exact Hn|]. apply in_flat_map. exists entry. split; [exact Hin|].
      rewrite Hty, Nat.eqb_refl. apply in_app_iff. left. destruct (Z.leb_spec (gang j) (gpus n)); [|lia]. rewrite Hsnd. now left.
    - assert (Hseveral : 2 <= gang j).
      { unfold as_whole in Hwhole. rewrite <- Hsum. destruct (pieces r) as [|p1 [|p2 rest]]; try congruence; try discriminate. cbn [sum].
        destruct (Hpieces p1 (or_introl eq_refl)) as [H1 _]. destruct (Hpieces p2 (or_intror (or_introl eq_refl))) as [H2 _].
        assert (0 <= sum snd rest).
        { apply sum_nonneg. intros p Hp. destruct (Hpieces p (or_intror (or_intror Hp))) as [H _]. lia. }
        lia. }
      assert (Hpace : 0 <= pace I j r).
      { pose proof (shortest_positive j Hj). assert (shortest j <= pace I j r); [|lia]. apply pace_shortest; [|exact Hne].
        intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Htime). eauto. }
      assert (Hunit : forall n g, node_price types rows false n g = g * node_price types rows false n 1).
      { intros n g. unfold node_price, row_use. rewrite Z.mul_add_distr_l, <- sum_scale. f_equal; [ring|]. apply sum_ext. intros q _.
        destruct (on_row q n); ring. }
      assert (Hpiece : forall piece, In piece (pieces r) ->
        snd piece * L <= pace I j r * (gang j * piece_price I types rows false piece + own * snd piece)).
      { intros piece Hin. destruct (Hpieces piece Hin) as (Hone & n & t & Hn & Htime).
        pose proof (pace_at_least j r piece n t Hin Hn Htime) as Hslow.
        destruct (time_entry _ _ _ _ Htime) as (entry & Hentry & Hsnd & Hty & Hcond).
        assert (Hbelow : L <= t * (node_price types rows false n (gang j) + own)).
        { apply least_on_nodes_below. unfold costs_of. cbn zeta. cbn [fst snd].
          apply in_flat_map. exists n. split; [eapply nth_error_In; exact Hn|]. apply in_flat_map. exists entry. split; [exact Hentry|].
          rewrite Hty, Nat.eqb_refl. apply in_app_iff. right. destruct (Z.leb_spec 2 (gang j)); [|lia]. cbn [andb].
          destruct (fst (nth k table (false, []))) eqn:Hfits; [|cbn [negb orb]; rewrite Hsnd; now left].
          destruct (Hclass k j r Hk Hr Hwhole Hfits) as [-> Hc]. cbn [negb orb andb].
          destruct Hc as [-> |Hc]; [rewrite Hsnd; now left|].
          destruct (snd (nth k table (false, []))) as [|c0 cs]; [destruct Hc|].
          assert (existsb (Nat.eqb (snd (fst entry))) (c0 :: cs) = true) as ->.
          { apply existsb_exists. exists (condition r). split; [exact Hc|]. rewrite Hcond. apply Nat.eqb_refl. }
          rewrite Hsnd. now left. }
        pose proof (node_price_positive false n (gang j) ltac:(lia)) as Hpos.
        transitivity (snd piece * (pace I j r * (node_price types rows false n (gang j) + own))).
        - apply Z.mul_le_mono_nonneg_l; [lia|]. etransitivity; [exact Hbelow|]. apply Z.mul_le_mono_nonneg_r; lia.
        - apply Z.eq_le_incl. unfold piece_price. rewrite Hn, (Hunit n (gang j)), (Hunit n (snd piece)). ring. }
      assert (Hall : sum (fun piece => snd piece * L) (pieces r)
                     <= sum (fun piece => pace I j r * (gang j * piece_price I types rows false piece + own * snd piece)) (pieces r))
        by now apply sum_le.
      rewrite (sum_ext _ (fun piece => L * snd piece)) in Hall by (intros; ring).
      rewrite !sum_scale, sum_add, !sum_scale in Hall. change (sum (fun x : nat * Z => snd x) (pieces r)) with (sum snd (pieces r)) in Hall.
      rewrite Hsum in Hall.
      assert (Hprice : gang_price I types rows r = sum (piece_price I types rows false) (pieces r)) by (unfold gang_price; now rewrite Hwhole).
      rewrite <- Hprice in Hall. apply (Z.mul_le_mono_pos_r _ _ (gang j)); [lia|].
      etransitivity; [exact Hall|]. apply Z.eq_le_incl. ring.
  Qed.
End Nodes.

(** ** Values *)

Definition check_nodes (I : instance) (types : list Z) (rows : list node_row) : bool :=
  forallb (fun x => 0 <=? x) types && forallb check_row rows && (widest I =? 1).

Definition fluid_on_nodes (I : instance) types rows (table : several) (never : bool) : option Q :=
  let least := least_on_nodes I types rows table never 0 in
  if check_nodes I types rows && forallb (fun kj => 1 <=? least kj) (counted I)
  then machine_of I least (price_of_nodes I types rows) (counted I)
  else None.

Definition span_on_nodes (I : instance) types rows (table : several) (never : bool) (own : list Z) : option Q :=
  if check_nodes I types rows
  then span_value I (fun kj => least_on_nodes I types rows table never (nth (fst kj) own 0) kj) (price_of_nodes I types rows) own
  else None.

Lemma check_nodes_sound I types rows : check_nodes I types rows = true ->
  (forall x, In x types -> 0 <= x) /\ (forall q, In q rows -> check_row q = true) /\ widest I = 1.
Proof.
  unfold check_nodes. rewrite !andb_true_iff, !forallb_forall, Z.eqb_eq. intros ((H1 & H2) & H3). repeat split; try assumption.
  intros x Hx. apply Z.leb_le. now apply H1.
Qed.

Lemma fluid_on_nodes_sound I s types rows table never value : sound I -> feasible I s -> spread_rightly I table never s ->
  fluid_on_nodes I types rows table never = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs Hclass. unfold fluid_on_nodes. cbn zeta. destruct (_ && _) eqn:Hcheck; [|discriminate].
  apply andb_prop in Hcheck. destruct Hcheck as [Hcheck Hpositive]. apply check_nodes_sound in Hcheck.
  destruct Hcheck as (Htypes & Hrows & Hwidest). rewrite forallb_forall in Hpositive.
  apply (machine_of_sound I s _ (price_of_nodes I types rows) (counted I) value Hsound Hs (incl_refl _)).
  intros l limit Hm Hperm Horder.
  apply (priced_at_most I s Hsound Hs (gang_price I types rows) (price_of_nodes I types rows)); try assumption.
  - intros r Hr. now apply (gang_price_positive I s).
  - intros t. now apply (all_nodes_enough I s types rows).
  - intros k j r Hk _ Hr. rewrite <- (Z.add_0_r (gang_price I types rows r)).
    apply (gang_price_at_least I s types rows table never Hsound Hs Hclass Htypes Hrows Hwidest); [lia|exact Hk|exact Hr].
  - intros [k j] Hin. assert (Hpos := Hpositive _ Hin). apply Z.leb_le in Hpos. apply in_counted in Hin. cbn [fst snd]. tauto.
  - apply counted_distinct.
Qed.

Lemma span_on_nodes_sound I s types rows table never own value : sound I -> feasible I s -> spread_rightly I table never s ->
  span_on_nodes I types rows table never own = Some value -> (value <= inject_Z (last_completion I s))%Q.
Proof.
  intros Hsound Hs Hclass. unfold span_on_nodes. destruct (check_nodes I types rows) eqn:Hcheck; [|discriminate].
  apply check_nodes_sound in Hcheck. destruct Hcheck as (Htypes & Hrows & Hwidest).
  apply (span_value_sound I s (gang_price I types rows)); try assumption.
  - intros r Hr. now apply (gang_price_positive I s).
  - intros t. now apply (all_nodes_enough I s types rows).
  - intros Hown k j r Hk Hr.
    now apply (gang_price_at_least I s types rows table never Hsound Hs Hclass Htypes Hrows Hwidest).
Qed.
