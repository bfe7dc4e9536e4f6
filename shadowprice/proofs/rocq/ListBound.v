(** What schedules of jobs that begin once cost at least: no less than all lists of the jobs that count. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation Sorting.Mergesort Orders.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Fluid Checker Starts Claim Lists Begins.
Import ListNotations.
Open Scope Z_scope.

Module Ascending <: TotalLeBool.
  Definition t : Type := Z.
  Definition leb (x y : t) : bool := x <=? y.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End Ascending.
Module SortTicks := Sort Ascending.

(** Costs are whole in units of 1 / scale, which all weights are multiples of, and prices of 2^-20 of one. *)
Definition scale_of (of_last : bool) (I : instance) : positive :=
  if of_last then 1%positive
  else (1048576 * Z.to_pos (fold_right (fun kj all => Z.lcm (Zpos (Qden (weight (snd kj)))) all) 1%Z (counted I)))%positive.

Definition item_of (I : instance) (of_last : bool) (kj : numbered_job) : item :=
  let w := weight (snd kj) in
  Item (arrival (snd kj)) (gang (snd kj)) (length_in_full I (snd kj))
    (if of_last then 0 else Qnum w * (Zpos (scale_of of_last I) / Zpos (Qden w))).

Lemma lasts_item I of_last kj : lasts (item_of I of_last kj) = length_in_full I (snd kj).
Proof. reflexivity. Qed.

Definition whole_weight (I : instance) (of_last : bool) (kj : numbered_job) : bool :=
  of_last || (weighs (item_of I of_last kj) * Zpos (Qden (weight (snd kj))) =? Qnum (weight (snd kj)) * Zpos (scale_of of_last I)).

Definition numbers (I : instance) : list nat := seq 0 (length (counted I)).

(** Whether no list costs less than so much; none if there are too many. *)
Definition lists_cost (I : instance) (of_last : bool) (grid prices : list Z) (least : Q) : option bool :=
  let items := map (item_of I of_last) (counted I) in
  let most := fold_right (fun x most => Z.max (weighs x) most) 0 items / 1048576 in
  let prices := map (fun p => p * most) prices in
  let plans := match grid with
               | [] => []
               | _ => map (fun x => plan grid prices x (SortTicks.sort (knots grid x))) items
               end in
  let target := - (- (Qnum least * Zpos (scale_of of_last I)) / Zpos (Qden least)) in
  none_is_less items (capacity I) of_last grid prices target plans (S (length items)) (Z.to_nat 20000)
    [(numbers I, State 0 0 [])].

Definition check_lists (I : instance) (of_last : bool) (grid prices : list Z) (least : Q) : bool :=
  (once I || lost I) && match until I with None => true | Some _ => false end
  && forallb (whole_weight I of_last) (counted I)
  && (match grid with [] => true | _ => increasingb grid end) && forallb (fun p => 0 <=? p) prices
  && match lists_cost I of_last grid prices least with Some answer => answer | None => false end.

Lemma once_at_least t (l : list Z) : In t l -> 1 <= sum (fun x => if x =? t then 1 else 0) l.
Proof.
  intros H. destruct (in_split _ _ H) as (l1 & l2 & ->). rewrite sum_app. cbn [sum]. rewrite Z.eqb_refl.
  assert (Hpos : forall k : list Z, 0 <= sum (fun x => if x =? t then 1 else 0) k).
  { intros k. apply sum_nonneg. intros x _. destruct (x =? t); lia. }
  pose proof (Hpos l1). pose proof (Hpos l2). lia.
Qed.

Section Bound.
  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hstart : 0 <= least_start I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hclass : begins_in_full I s.

  (** Jobs that count, with a start each. *)
  Definition starts_at (kj : numbered_job) (begin : Z) : Prop :=
    arrival (snd kj) <= begin /\ begin + length_in_full I (snd kj) <= completion s (fst kj) /\
    forall t, begin <= t < begin + length_in_full I (snd kj) -> In t (held_ticks s (fst kj)).

  Lemma starts_exist : once I = true \/ lost I = true -> until I = None ->
    exists pairs, map fst pairs = counted I /\ forall p, In p pairs -> starts_at (fst p) (snd p).
  Proof.
    intros Hrule Huntil.
    assert (H : forall l, incl l (counted I) -> exists pairs, map fst pairs = l /\ forall p, In p pairs -> starts_at (fst p) (snd p)).
    { induction l as [|[k j] l IH]; intros Hincl; [exists []; split; [reflexivity|intros p []]|].
      destruct IH as (pairs & Hpairs & Hall); [intros x Hx; apply Hincl; now right|].
      assert (Hin := Hincl (k, j) (or_introl eq_refl)). apply in_counted in Hin. destruct Hin as [Hk Hcounts].
      assert (Hdone : finished I j (runs_of k s) = true) by (destruct Hs as (_ & _ & _ & Hdone); now apply Hdone).
      destruct (held_in_one_go I s Hsound Hs Hclass Hrule k j Hk Hcounts Hdone) as (begin & H1 & H2 & H3).
      exists (((k, j), begin) :: pairs). split; [cbn [map fst]; now rewrite Hpairs|].
      intros p [<-|Hp]; [|now apply Hall]. repeat split; assumption. }
    apply H. intros x Hx. exact Hx.
  Qed.

  Variable of_last : bool.
  Variable pairs : list (numbered_job * Z).
  Hypothesis Hpairs : map fst pairs = counted I.
  Hypothesis Hall : forall p, In p pairs -> starts_at (fst p) (snd p).

  Let items := map (item_of I of_last) (counted I).
  Definition placed_list : list placed := combine (numbers I) (map snd pairs).

  Lemma pairs_length : length pairs = length (counted I).
  Proof. rewrite <- Hpairs. now rewrite map_length. Qed.

  Lemma placed_numbers : map fst placed_list = numbers I.
  Proof.
    unfold placed_list, numbers. assert (H : length (map snd pairs) = length (counted I)) by (rewrite map_length; apply pairs_length).
    revert H. clear. generalize (map snd pairs). generalize 0%nat. induction (counted I) as [|kj l IH]; intros b [|x r] H; cbn in H |- *; try discriminate; [reflexivity|].
    injection H as H. f_equal. now apply IH.
  Qed.

  Lemma sum_placed (F : item -> Z -> Z) :
    sum (fun x => F (item_at items (fst x)) (snd x)) placed_list = sum (fun p => F (item_of I of_last (fst p)) (snd p)) pairs.
  Proof.
    unfold placed_list, numbers, items, item_at. rewrite <- Hpairs, map_length.
    assert (H : forall (pre : list item) (l : list (numbered_job * Z)),
      sum (fun x => F (nth (fst x) (pre ++ map (item_of I of_last) (map fst l)) nothing) (snd x))
        (combine (seq (length pre) (length l)) (map snd l))
      = sum (fun p => F (item_of I of_last (fst p)) (snd p)) l).
    { intros pre l. revert pre. induction l as [|p l IH]; intros pre; cbn [map length seq combine sum fst snd]; [reflexivity|].
      f_equal.
      - rewrite app_nth2 by lia. rewrite Nat.sub_diag. reflexivity.
      - specialize (IH (pre ++ [item_of I of_last (fst p)])). rewrite app_length in IH. cbn [length] in IH.
        rewrite Nat.add_1_r in IH. rewrite <- IH. apply sum_ext. intros x _. now rewrite <- app_assoc. }
    exact (H [] pairs).
  Qed.

  Lemma in_placed x : In x placed_list ->
    exists p, In p pairs /\ item_at items (fst x) = item_of I of_last (fst p) /\ snd x = snd p.
  Proof.
    unfold placed_list, numbers, items, item_at. rewrite <- Hpairs, map_length.
    assert (H : forall (l : list (numbered_job * Z)) (pre : list item),
      In x (combine (seq (length pre) (length l)) (map snd l)) ->
      exists p, In p l /\ nth (fst x) (pre ++ map (item_of I of_last) (map fst l)) nothing = item_of I of_last (fst p) /\ snd x = snd p).
    { induction l as [|p l IH]; intros pre Hx; cbn [map length seq combine] in Hx; [destruct Hx|].
      destruct Hx as [<-|Hx].
      - exists p. split; [now left|]. cbn [fst snd map]. rewrite app_nth2 by lia. rewrite Nat.sub_diag. split; reflexivity.
      - specialize (IH (pre ++ [item_of I of_last (fst p)])). rewrite app_length in IH. cbn [length] in IH.
        rewrite Nat.add_1_r in IH. destruct (IH Hx) as (q & Hq & H1 & H2). exists q. split; [now right|].
        rewrite <- app_assoc in H1. split; assumption. }
    intros Hx. exact (H pairs [] Hx).
  Qed.

  Lemma used_is t : used_at items t placed_list
    = sum (fun p => if (snd p <=? t) && (t <? snd p + length_in_full I (snd (fst p))) then gang (snd (fst p)) else 0) pairs.
  Proof.
    unfold used_at, running, end_at.
    exact (sum_placed (fun x start => if (start <=? t) && (t <? start + lasts x) then width x else 0)).
  Qed.

  Lemma used_at_most t : used_at items t placed_list <= capacity I.
  Proof.
    rewrite used_is. set (one := fun x => if x =? t then 1 else 0).
    assert (Hone : forall x, 0 <= one x) by (intros x; unfold one; destruct (x =? t); lia).
    assert (Hnd : NoDup (counted I)) by (apply nodup_of_fst; unfold counted; apply nodup_filter_fst, in_numbered_nodup).
    pose proof (gangs_rentable I s Hsound Hs (counted I) one [t] Hnd (incl_refl _)) as H.
    assert (Hsingle : NoDup [t]) by (constructor; [intros []|constructor]). specialize (H Hsingle Hone).
    assert (H' := H ltac:(intros x Hx; left; unfold one in Hx; destruct (Z.eqb_spec x t); [congruence|lia])). clear H.
    cbn [sum] in H'. unfold one at 2 in H'. rewrite Z.eqb_refl in H'.
    etransitivity; [|etransitivity; [exact H'|lia]]. rewrite <- Hpairs, sum_map. apply sum_le. intros p Hp.
    destruct (Hall p Hp) as (_ & _ & Hheld). cbn beta.
    assert (Hg : 0 <= gang (snd (fst p))).
    { assert (Hin : In (fst p) (counted I)) by (rewrite <- Hpairs; now apply in_map). destruct (fst p) as [k j].
      apply in_counted in Hin. destruct (sound_in _ _ _ Hsound (proj1 Hin)) as (_ & Hg & _). cbn [snd]. lia. }
    assert (Hsum : 0 <= sum one (held_ticks s (fst (fst p)))) by (apply sum_nonneg; intros; apply Hone).
    destruct (_ && _) eqn:E; [|apply Z.mul_nonneg_nonneg; assumption].
    rewrite andb_true_iff, Z.leb_le, Z.ltb_lt in E. specialize (Hheld t E).
    assert (1 <= sum one (held_ticks s (fst (fst p)))); [|rewrite <- (Z.mul_1_r (gang _)) at 1; now apply Z.mul_le_mono_nonneg_l].
    exact (once_at_least t _ Hheld).
  Qed.

  Lemma counted_sound p : In p pairs -> sound_job (snd (fst p)) /\ 1 <= length_in_full I (snd (fst p)).
  Proof.
    intros Hp. assert (Hin : In (fst p) (counted I)) by (rewrite <- Hpairs; now apply in_map). destruct (fst p) as [k j].
    apply in_counted in Hin. pose proof (sound_in _ _ _ Hsound (proj1 Hin)) as Hj. cbn [snd]. split; [exact Hj|].
    pose proof (shortest_positive j Hj). unfold length_in_full. lia.
  Qed.

  Lemma placed_fits : fits items (capacity I) (State 0 0 []) placed_list.
  Proof.
    split.
    - intros x Hx. destruct (in_placed x Hx) as (p & Hp & -> & ->). destruct (Hall p Hp) as (Hready & _).
      destruct (counted_sound p Hp) as [(Ha & _) _]. cbn [now ready item_of]. lia.
    - intros t x _ _. cbn [holds]. unfold held_at. cbn [sum]. pose proof (used_at_most t). lia.
  Qed.

  (** What they cost as lists, in units of 1 / scale. *)
  Lemma placed_cost : of_last = false -> (forall kj, In kj (counted I) -> whole_weight I of_last kj = true) -> until I = None ->
    (total_of items of_last 0 placed_list # scale_of of_last I <= cost Completion I s)%Q.
  Proof.
    intros Hlast Hwhole Huntil. unfold total_of. rewrite Hlast, Z.add_0_l. rewrite <- Hlast.
    pose proof (sum_placed (fun x start => weighs x * (start + lasts x))) as Hsum. cbn beta in Hsum. unfold end_at.
    rewrite Hsum. clear Hsum. cbn [cost]. rewrite <- Hpairs.
    rewrite <- (sumQ_same_denominator (fun p => weighs (item_of I of_last (fst p)) * (snd p + lasts (item_of I of_last (fst p))))).
    assert (Hmap : forall (f : numbered_job -> Q) (l : list (numbered_job * Z)), sumQ f (map fst l) = sumQ (fun p => f (fst p)) l).
    { intros f. induction l as [|p l IH]; cbn; [reflexivity|]. now rewrite IH. }
    rewrite Hmap. apply sumQ_le. intros p Hp. destruct (Hall p Hp) as (_ & Hend & _).
    assert (Hin : In (fst p) (counted I)) by (rewrite <- Hpairs; now apply in_map).
    specialize (Hwhole (fst p) Hin). unfold whole_weight in Hwhole. rewrite Hlast in Hwhole. cbn [orb] in Hwhole.
    rewrite <- Hlast in Hwhole. apply Z.eqb_eq in Hwhole.
    destruct (counted_sound p Hp) as [(_ & _ & Hw & _) _].
    unfold end_of, ending. rewrite Huntil. fold (completion s (fst (fst p))). rewrite lasts_item.
    set (C := completion s (fst (fst p))) in *. set (E := snd p + length_in_full I (snd (fst p))) in *.
    set (W := weighs (item_of I of_last (fst p))) in *. unfold Qle, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos.mul_1_r.
    set (S' := Zpos (scale_of of_last I)) in *. set (D := Zpos (Qden (weight (snd (fst p))))) in *.
    set (N := Qnum (weight (snd (fst p)))) in *.
    replace (W * E * D) with (W * D * E) by ring. rewrite Hwhole.
    replace (N * C * S') with (N * S' * C) by ring. apply Z.mul_le_mono_nonneg_l; [|exact Hend].
    apply Z.mul_nonneg_nonneg; [exact Hw|unfold S'; lia].
  Qed.

  Lemma placed_last : of_last = true -> total_of items of_last 0 placed_list <= last_completion I s.
  Proof.
    intros Hlast. unfold total_of. rewrite Hlast.
    assert (H : forall l, incl l placed_list -> fold_right (fun x most => Z.max (end_at items x) most) 0 l <= last_completion I s).
    { induction l as [|x l IH]; intros Hincl; cbn [fold_right].
      - unfold last_completion. clear. induction (counted I); cbn; lia.
      - specialize (IH (fun y Hy => Hincl y (or_intror Hy))).
        destruct (in_placed x (Hincl x (or_introl eq_refl))) as (p & Hp & Hitem & Hsnd).
        assert (end_at items x <= last_completion I s); [|lia]. unfold end_at. rewrite Hitem, Hsnd, lasts_item.
        destruct (Hall p Hp) as (_ & Hend & _). etransitivity; [exact Hend|].
        assert (Hin : In (fst p) (counted I)) by (rewrite <- Hpairs; now apply in_map). destruct (fst p) as [k j].
        apply in_counted in Hin. cbn [fst]. now apply (completion_last I s k j). }
    apply H. apply incl_refl.
  Qed.
End Bound.

Lemma item_at_sound I of_last k : sound I -> 0 <= least_start I ->
  0 <= width (item_at (map (item_of I of_last) (counted I)) k) /\
  0 <= lasts (item_at (map (item_of I of_last) (counted I)) k) /\
  0 <= weighs (item_at (map (item_of I of_last) (counted I)) k).
Proof.
  intros Hsound Hstart. unfold item_at.
  destruct (nth_in_or_default k (map (item_of I of_last) (counted I)) nothing) as [Hin| ->]; [|cbn; lia].
  apply in_map_iff in Hin. destruct Hin as ((n, j) & <- & Hin). apply in_counted in Hin.
  pose proof (sound_in _ _ _ Hsound (proj1 Hin)) as Hj. pose proof (shortest_positive j Hj).
  destruct Hj as (_ & Hg & Hw & _). unfold item_of, length_in_full. cbn [width lasts weighs snd]. repeat split; try lia.
  destruct of_last; [lia|]. apply Z.mul_nonneg_nonneg; [exact Hw|]. apply Z.div_pos; lia.
Qed.

Theorem lists_bound I s of_last grid prices least :
  sound I -> 0 <= least_start I -> feasible I s -> begins_in_full I s ->
  check_lists I of_last grid prices least = true ->
  (if of_last then (least <= inject_Z (last_completion I s))%Q else (least <= cost Completion I s)%Q).
Proof.
  intros Hsound Hstart Hs Hclass Hcheck. unfold check_lists in Hcheck. rewrite !andb_true_iff, !forallb_forall in Hcheck.
  destruct Hcheck as (((((Hrule & Huntil) & Hwhole) & Hgrid) & Hprices) & Hlists).
  assert (Hlimit : until I = None) by (destruct (until I); [discriminate|reflexivity]).
  apply orb_prop in Hrule. destruct (starts_exist I s Hsound Hs Hclass Hrule Hlimit) as (pairs & Hpairs & Hall).
  destruct (lists_cost I of_last grid prices least) as [answer|] eqn:Hcost; [|discriminate]. rewrite Hlists in Hcost. clear Hlists answer.
  unfold lists_cost in Hcost. cbn zeta in Hcost. set (items := map (item_of I of_last) (counted I)) in *.
  set (most := fold_right _ 0 items / 1048576) in *. set (scaled := map (fun p => p * most) prices) in *.
  set (target := - (- (Qnum least * Zpos (scale_of of_last I)) / Zpos (Qden least))) in *.
  assert (Hitems := fun k => item_at_sound I of_last k Hsound Hstart). fold items in Hitems.
  assert (Hmost : 0 <= most).
  { unfold most. apply Z.div_pos; [|lia]. clear. generalize items. intros l. induction l as [|x l IH]; cbn [fold_right]; lia. }
  assert (Hsafe : safe items (capacity I) of_last target (numbers I, State 0 0 [])).
  { refine (none_is_less_safe items (capacity I) of_last grid scaled target _ Hitems _ _ _ _ _ _ _ Hcost _ _).
    - destruct grid as [|a g]; [exact Logic.I|]. now apply increasingb_sound.
    - intros p Hp. unfold scaled in Hp. apply in_map_iff in Hp. destruct Hp as (q & <- & Hq).
      specialize (Hprices q Hq). apply Z.leb_le in Hprices. now apply Z.mul_nonneg_nonneg.
    - intros Hne k Hk. destruct grid as [|a g] eqn:E; [congruence|]. rewrite <- E in *.
      exists (SortTicks.sort (knots grid (item_at items k))). split; [symmetry; apply SortTicks.Permuted_sort|].
      rewrite (nth_indep _ [] (plan grid scaled nothing (SortTicks.sort (knots grid nothing)))) by (rewrite map_length; exact Hk).
      rewrite (map_nth (fun x => plan grid scaled x (SortTicks.sort (knots grid x)))). reflexivity.
    - intros node [<-|[]] k Hk. cbn [fst] in Hk. apply in_seq in Hk. unfold items. rewrite map_length. split; [exact (proj2 Hk)|].
      unfold item_at. destruct (nth_in_or_default k (map (item_of I of_last) (counted I)) nothing) as [Hin|Hno].
      + apply in_map_iff in Hin. destruct Hin as ((n, j) & <- & Hin). apply in_counted in Hin.
        pose proof (shortest_positive j (sound_in _ _ _ Hsound (proj1 Hin))) as Hp.
        rewrite lasts_item. unfold length_in_full. cbn [snd]. lia.
      + exfalso. assert (Hlt : (k < length (map (item_of I of_last) (counted I)))%nat) by (rewrite map_length; exact (proj2 Hk)).
        pose proof (nth_In _ nothing Hlt) as Hin. rewrite Hno in Hin. apply in_map_iff in Hin.
        destruct Hin as ((n, j) & Heq & Hin). apply in_counted in Hin.
        destruct (sound_in _ _ _ Hsound (proj1 Hin)) as (_ & Hg & _). apply (f_equal width) in Heq. cbn in Heq. lia.
    - now left. }
  pose proof (Hsafe (placed_list I pairs)) as Hleast. cbn [fst snd so_far] in Hleast.
  rewrite (placed_numbers I pairs Hpairs) in Hleast. specialize (Hleast (Permutation_refl _)).
  specialize (Hleast (placed_fits I s Hsound Hstart Hs of_last pairs Hpairs Hall)). fold items in Hleast.
  assert (Htarget : Qnum least * Zpos (scale_of of_last I) <= target * Zpos (Qden least)).
  { unfold target. pose proof (Z.mul_div_le (- (Qnum least * Zpos (scale_of of_last I))) (Zpos (Qden least)) ltac:(lia)). nia. }
  set (total := total_of items of_last 0 (placed_list I pairs)) in *.
  assert (Htotal : (least <= total # scale_of of_last I)%Q).
  { unfold Qle. cbn [Qnum Qden]. assert (target * Zpos (Qden least) <= total * Zpos (Qden least)); [|lia].
    apply Z.mul_le_mono_nonneg_r; lia. }
  destruct of_last eqn:Hlast.
  - eapply Qle_trans; [exact Htotal|]. unfold Qle. cbn [Qnum Qden inject_Z scale_of].
    pose proof (placed_last I s true pairs Hpairs Hall eq_refl) as H. fold items in H. fold total in H. lia.
  - eapply Qle_trans; [exact Htotal|]. apply (placed_cost I s Hsound Hstart false pairs Hpairs Hall eq_refl); assumption.
Qed.
