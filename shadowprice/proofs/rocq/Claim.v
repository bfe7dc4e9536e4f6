(** The claim of a certificate, checked: the schedule is one, and no schedule costs less than 1 / ratio of it. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Utility Fluid BusyTime Checker Starts.
Import ListNotations.
Open Scope Z_scope.

(** ** Sums of fractions, evaluated pairwise: denominators are all different *)

Definition whole (x : Q) : Q := x.

Fixpoint pairs (l : list Q) : list Q :=
  match l with
  | x :: y :: rest => addQ x y :: pairs rest
  | _ => l
  end.

Lemma pairs_sum : forall n l, (length l <= n)%nat -> (sumQ whole (pairs l) == sumQ whole l)%Q.
Proof.
  induction n as [|n IH]; intros l Hl.
  - destruct l; [reflexivity|cbn in Hl; lia].
  - destruct l as [|x [|y l]]; [reflexivity|reflexivity|]. cbn [pairs sumQ]. unfold whole at 1 3 4.
    rewrite addQ_is, IH by (cbn in Hl; lia). ring.
Qed.

Fixpoint total (fuel : nat) (l : list Q) : Q :=
  match l with
  | [] => 0%Q
  | [x] => x
  | _ => match fuel with O => sumQ whole l | S fuel => total fuel (pairs l) end
  end.

Lemma total_is fuel : forall l, (total fuel l == sumQ whole l)%Q.
Proof.
  induction fuel as [|fuel IH]; intros l; destruct l as [|x [|y l]]; cbn [total];
    try reflexivity; try (cbn; unfold whole; ring).
  rewrite IH. now apply (pairs_sum (length (x :: y :: l))).
Qed.

Definition sum_fractions {A} (f : A -> Q) (l : list A) : Q := total 64 (map f l).

Lemma sum_fractions_is {A} (f : A -> Q) l : (sum_fractions f l == sumQ f l)%Q.
Proof.
  unfold sum_fractions. rewrite total_is.
  induction l as [|x l IH]; cbn; [reflexivity|]. now rewrite IH.
Qed.

(** ** Bounds *)

Inductive multipliers := IntervalPrices (grid prices : list Z) | PlanPrices (grid prices : list Z) | Alone
  | Area (one_by_one : bool) | OneMachine | BusyTimes | WideGangs.

Fixpoint increasingb (grid : list Z) : bool :=
  match grid with
  | a :: ((b :: _) as later) => (a <? b) && increasingb later
  | _ => true
  end.

Lemma increasingb_sound grid : increasingb grid = true -> increasing grid.
Proof.
  induction grid as [|a [|b later] IH]; intros H; [exact Logic.I|exact Logic.I|].
  cbn [increasingb] in H. apply andb_prop in H. destruct H as [Hab H].
  split; [now apply Z.ltb_lt|now apply IH].
Qed.

Definition counted_jobs (I : instance) : list job := filter (counts I) (jobs I).

Definition check_prices (I : instance) (grid prices : list Z) : bool :=
  negb (match grid with [] => true | _ => false end)
  && increasingb grid && Nat.eqb (length grid) (S (length prices))
  && forallb (fun x => 0 <=? x) prices
  && forallb (fun j => hd 0 grid <=? arrival j) (counted_jobs I).

(** The cost of the last tick of work if the cheapest are taken: no threshold gives more. Nothing
    below relies on that. *)
Fixpoint last_taken (left cost : Z) (offers : list (Z * Z)) : Z :=
  match offers with
  | [] => cost
  | (price, room) :: rest =>
      if room <=? 0 then last_taken left cost rest
      else if left <=? room then price else last_taken (left - room) price rest
  end.

Definition threshold_of (unit : positive) (grid prices : list Z) (j : job) : Z :=
  let p := shortest j in
  let w := Qnum (weight j) * Zpos unit in
  let rent := p * gang j * Zpos (Qden (weight j)) in
  last_taken p 0 (SortOffers.sort (offers (arrival j) p w rent grid prices)).

(** Prices are in units of 2^-20, of a GPU. *)
Definition price_unit (I : instance) : positive := 1048576 * per_gpu I.

Definition prices_value (I : instance) (grid prices : list Z) : Q :=
  (sum_fractions (fun j => capped I j (least_busy (price_unit I) grid prices (threshold_of (price_unit I) grid prices) j))
     (counted_jobs I)
   - paid I 1 (price_unit I) grid prices)%Q.

Lemma sumQ_counted I (f : job -> Q) : sumQ (fun kj => f (snd kj)) (counted I) = sumQ f (counted_jobs I).
Proof.
  unfold counted, counted_jobs, numbered. generalize 0%nat.
  induction (jobs I) as [|j l IH]; intros b; cbn; [reflexivity|].
  destruct (counts I j); cbn; now rewrite IH.
Qed.

Lemma check_prices_sound I grid prices : check_prices I grid prices = true ->
  grid <> [] /\ increasing grid /\ length grid = S (length prices) /\
  (forall x, In x prices -> 0 <= x) /\
  (forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> hd 0 grid <= arrival j).
Proof.
  unfold check_prices. rewrite !andb_true_iff. intros ((((H1 & H2) & H3) & H4) & H5). repeat split.
  - intros ->. discriminate.
  - now apply increasingb_sound.
  - now apply Nat.eqb_eq.
  - intros x Hx. rewrite forallb_forall in H4. apply Z.leb_le. now apply H4.
  - intros k j Hk Hcounts. rewrite forallb_forall in H5. apply Z.leb_le. apply H5.
    apply filter_In. split; [|assumption]. eapply nth_error_In. eassumption.
Qed.

Lemma prices_value_sound I grid prices s :
  sound I -> feasible I s -> check_prices I grid prices = true ->
  (prices_value I grid prices <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs Hcheck. apply check_prices_sound in Hcheck.
  destruct Hcheck as (H1 & H2 & H3 & H4 & H5).
  unfold prices_value. rewrite sum_fractions_is.
  rewrite <- (sumQ_counted I (fun j => capped I j (least_busy (price_unit I) grid prices (threshold_of (price_unit I) grid prices) j))).
  apply weak_duality; try assumption.
  intros s' k j Hs' Hk Hcounts Hdone. now apply least_busy_job with (I := I).
Qed.

(** Prices of plans are in units of 2^-20 of the largest weight, and are 0 before the grid begins. *)
Definition largest_weight (I : instance) : Q :=
  fold_right (fun j most => if Qle_bool (weight j) most then most else weight j) 0%Q (counted_jobs I).

Definition from_zero (grid prices : list Z) : list Z * list Z :=
  match grid, prices with
  | a :: _, price :: _ => if 0 <? a then (0 :: grid, 0 :: prices) else (grid, prices)
  | _, _ => (grid, prices)
  end.

(** None where all weights are 0. *)
Definition plans_value (I : instance) (grid prices : list Z) : option Q :=
  let '(grid, prices) := from_zero grid prices in
  match Qnum (largest_weight I) with
  | Zpos over =>
      let under := (Qden (largest_weight I) * price_unit I)%positive in
      if check_prices I grid prices
      then Some (sum_fractions (fun j => capped I j (least_plan over under grid prices j)) (counted_jobs I)
                 - paid I over under grid prices)%Q
      else None
  | _ => None
  end.

Lemma plans_value_sound I grid prices s value :
  sound I -> feasible I s -> plans_value I grid prices = Some value ->
  (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold plans_value. destruct (from_zero grid prices) as [grid' prices'].
  destruct (Qnum (largest_weight I)) as [|over|]; try discriminate.
  destruct (check_prices I grid' prices') eqn:Hcheck; [|discriminate]. intros [= <-].
  apply check_prices_sound in Hcheck. destruct Hcheck as (H1 & H2 & _ & H4 & H5).
  set (under := (Qden (largest_weight I) * price_unit I)%positive).
  rewrite sum_fractions_is, <- (sumQ_counted I (fun j => capped I j (least_plan over under grid' prices' j))).
  apply weak_duality; try assumption.
  intros s' k j Hs' Hk Hcounts Hdone. now apply least_plan_job with (I := I).
Qed.

(** Every job as if it were alone. *)
Definition alone_value (I : instance) : Q :=
  sum_fractions (fun j => capped I j (weight j * inject_Z (arrival j + shortest j))%Q) (counted_jobs I).

Lemma alone_value_sound I s : sound I -> feasible I s -> (alone_value I <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold alone_value. set (f := fun j => capped I j (weight j * inject_Z (arrival j + shortest j))%Q).
  rewrite sum_fractions_is, <- (sumQ_counted I f).
  cbn [cost]. apply sumQ_le. intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hin Hcounts].
  cbn [snd]. unfold f. rewrite <- (Qplus_0_r (weight j * inject_Z (end_of I s (k, j)))).
  apply capped_least; try assumption; [apply Qle_refl|]. intros Hdone. rewrite Qplus_0_r.
  destruct (sound_in _ _ _ Hsound Hin) as (_ & _ & Hweight & _).
  rewrite !(Qmult_comm (weight j)). apply Qmult_le_compat_r.
  - rewrite <- Zle_Qle. exact (completion_alone I s k j Hsound Hs Hin Hdone).
  - unfold Qle. cbn. lia.
Qed.

(** Jobs of equal weight on one machine that does [m] in a tick, of whose work each has an amount. *)
Definition machine_of (I : instance) (amount : numbered_job -> Z) (m : Z) (those : list numbered_job) : option Q :=
  let l := rev (SortJobs.sort those) in
  let w := match those with kj :: _ => weight (snd kj) | [] => 0%Q end in
  if numbered_in_order l && (1 <=? m) && forallb (fun kj => Qeq_bool (weight (snd kj)) w) those
     && match until I with Some limit => 0 <=? limit | None => true end
  then
    let ends := machine_ends amount m l in
    let total := match until I with
                 | Some limit => sum (fun e => Z.min e (limit * m)) ends
                 | None => sum same ends
                 end in
    Some (w * (total # Z.to_pos m))%Q
  else None.

(** On one of speed [m], of which whoever runs holds a share. *)
Definition fluid_of (I : instance) (share_of : job -> Z) (m : Z) (those : list numbered_job) : option Q :=
  machine_of I (fun kj => share_of (snd kj) * shortest (snd kj)) m those.

Lemma at_most_largest (l : list Z) : exists most, 0 <= most /\ forall x, In x l -> x <= most.
Proof.
  induction l as [|x l (most & H0 & Hl)]; [exists 0; split; [lia|intros x []]|].
  exists (Z.max x most). split; [lia|]. intros y [->|Hy]; [lia|]. specialize (Hl y Hy). lia.
Qed.

(** Weighted ends of some jobs. *)
Definition cost_of (I : instance) (s : schedule) (those : list numbered_job) : Q :=
  sumQ (fun kj => (weight (snd kj) * inject_Z (end_of I s kj))%Q) those.

Lemma machine_of_sound I s amount m those value :
  sound I -> feasible I s -> incl those (counted I) ->
  (forall l limit, 1 <= m -> Permutation l those -> numbered_in_order l = true -> 0 <= limit ->
     sum (fun e => Z.min e (limit * m)) (machine_ends amount m l) <= m * sum (waits I s limit) those) ->
  machine_of I amount m those = Some value -> (value <= cost_of I s those)%Q.
Proof.
  intros Hsound Hs Hincl Hmachine. unfold machine_of. set (l := rev (SortJobs.sort those)).
  set (w := match those with kj :: _ => weight (snd kj) | [] => 0%Q end).
  destruct (_ && _ && _ && _) eqn:Hcheck; [|discriminate]. intros [= <-].
  rewrite !andb_true_iff in Hcheck. destruct Hcheck as (((Horder & Hm) & Hequal) & Hlimit).
  apply Z.leb_le in Hm. rewrite forallb_forall in Hequal.
  assert (Hperm : Permutation l those).
  { unfold l. etransitivity; [symmetry; apply Permutation_rev|]. symmetry. apply SortJobs.Permuted_sort. }
  assert (Hknown : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\ counts I (snd kj) = true).
  { intros [k j] Hin. now apply in_counted, Hincl. }
  assert (Hw : forall kj, In kj those -> (weight (snd kj) == w)%Q) by (intros kj Hin; now apply Qeq_bool_iff, Hequal).
  assert (Hw0 : (0 <= w)%Q).
  { unfold w. destruct those as [|kj rest] eqn:E; [apply Qle_refl|].
    destruct (sound_in _ _ _ Hsound (proj1 (Hknown kj (or_introl eq_refl)))) as (_ & _ & H & _).
    unfold Qle. cbn in *. lia. }
  set (total := match until I with
                | Some limit => sum (fun e => Z.min e (limit * m)) (machine_ends amount m l)
                | None => sum same (machine_ends amount m l)
                end).
  assert (Htotal : total <= m * sum (end_of I s) those).
  { unfold total. destruct (until I) as [limit|] eqn:Huntil.
    - apply Z.leb_le in Hlimit.
      eapply Z.le_trans; [exact (Hmachine l limit Hm Hperm Horder Hlimit)|].
      apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_le. intros kj _. unfold waits, end_of, ending. rewrite Huntil.
      unfold completion. lia.
    - destruct (at_most_largest (machine_ends amount m l)) as (m1 & H1 & Hends).
      destruct (at_most_largest (map (fun kj => completion s (fst kj)) those)) as (m2 & H2 & Hcompletions).
      set (limit := Z.max m1 m2).
      pose proof (Hmachine l limit Hm Hperm Horder ltac:(unfold limit; lia)) as H.
      rewrite (sum_ext _ same) in H.
      2: { intros e He. specialize (Hends e He). unfold same. assert (e <= limit * m) by (unfold limit; nia). lia. }
      eapply Z.le_trans; [exact H|]. apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_le. intros kj Hin.
      unfold waits, end_of, ending. rewrite Huntil.
      specialize (Hcompletions (completion s (fst kj)) (in_map (fun kj => completion s (fst kj)) _ _ Hin)).
      destruct (Hknown kj Hin) as [Hk Hcounts]. destruct Hs as (_ & _ & _ & Hdone).
      rewrite (Hdone _ _ Hk Hcounts Huntil). unfold completion in *. unfold limit. lia. }
  assert (Hcost : (cost_of I s those == w * inject_Z (sum (end_of I s) those))%Q).
  { unfold cost_of. clear - Hw. clearbody w. induction those as [|kj rest IH]; cbn [sumQ sum]; [ring|].
    rewrite IH by (intros x Hx; apply Hw; now right). rewrite (Hw kj (or_introl eq_refl)), inject_Z_plus. ring. }
  rewrite Hcost. change (w * (total # Z.to_pos m) <= w * inject_Z (sum (end_of I s) those))%Q.
  clearbody total w. rewrite (Qmult_comm w (total # _)), (Qmult_comm w (inject_Z _)).
  apply Qmult_le_compat_r; [|exact Hw0].
  unfold Qle. cbn [Qnum Qden inject_Z]. rewrite Z2Pos.id by lia. lia.
Qed.

Lemma fluid_of_sound I s share_of m those value :
  sound I -> feasible I s -> incl those (counted I) -> NoDup (map fst those) ->
  (forall kj, In kj those -> 1 <= share_of (snd kj)) -> rentable s share_of m those ->
  fluid_of I share_of m those = Some value -> (value <= cost_of I s those)%Q.
Proof.
  intros Hsound Hs Hincl Hdistinct Hshare Hrent. apply (machine_of_sound I s _ m those value Hsound Hs Hincl).
  intros l limit Hm Hperm Horder. apply (fluid_at_most I s Hsound Hs share_of m those Hm); try assumption.
  intros [k j] Hin. split; [now apply in_counted, Hincl|now apply Hshare].
Qed.

(** Mean busy times on such a machine. *)
Definition busy_of (I : instance) (share_of : job -> Z) (m : Z) (those : list numbered_job) : option Q :=
  let l := map snd (SortHeaviest.sort (map (fun kj => (density share_of kj, kj)) those)) in
  if falling share_of l && (1 <=? m) && match until I with None => true | Some _ => false end
  then Some (sum_fractions (fun kj => (weight (snd kj) * (shortest (snd kj) # 2))%Q) l
             + sum_fractions (fun x => x) (levels share_of m [] l) * (1 # (2 * Z.to_pos m)))%Q
  else None.

Lemma sumQ_perm {A} (f : A -> Q) l k : Permutation l k -> (sumQ f l == sumQ f k)%Q.
Proof.
  induction 1 as [|x l k _ IH|x y l|l k n _ IH1 _ IH2]; cbn [sumQ]; [reflexivity|now rewrite IH|ring|now rewrite IH1].
Qed.

Lemma busy_of_sound I s share_of m those value :
  sound I -> feasible I s -> incl those (counted I) -> NoDup (map fst those) ->
  (forall kj, In kj those -> 1 <= share_of (snd kj)) -> rentable s share_of m those ->
  busy_of I share_of m those = Some value -> (value <= cost_of I s those)%Q.
Proof.
  intros Hsound Hs Hincl Hdistinct Hshare Hrent. unfold busy_of.
  set (l := map snd (SortHeaviest.sort (map (fun kj => (density share_of kj, kj)) those))).
  destruct (_ && _ && _) eqn:Hcheck; [|discriminate]. intros [= <-].
  rewrite !andb_true_iff in Hcheck. destruct Hcheck as ((Hfall & Hm) & Huntil). apply Z.leb_le in Hm.
  assert (Hlimit : until I = None) by (destruct (until I); [discriminate|reflexivity]).
  assert (Hperm : Permutation l those).
  { unfold l. rewrite <- (SortHeaviest.Permuted_sort (map (fun kj => (density share_of kj, kj)) those)).
    rewrite map_map. cbn [snd]. rewrite map_id. reflexivity. }
  assert (Hthose : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\
            finished I (snd kj) (runs_of (fst kj) s) = true /\ 0 <= share_of (snd kj)).
  { intros [k j] Hin. pose proof (Hshare _ Hin). apply Hincl, in_counted in Hin. cbn [fst snd] in *.
    destruct Hs as (_ & _ & _ & Hdone). repeat split; [apply Hin|now apply Hdone|lia]. }
  rewrite !sum_fractions_is.
  assert (Hnd : NoDup l).
  { eapply Permutation_NoDup; [symmetry; exact Hperm|]. now apply nodup_of_fst. }
  eapply Qle_trans; [apply (busy_at_most I s share_of m Hsound Hs Hm those Hthose Hrent Hshare l Hnd); [|exact Hfall]|].
  - intros x Hx. eapply Permutation_in; [exact Hperm|exact Hx].
  - rewrite (sumQ_perm _ _ _ Hperm). unfold cost_of. apply Qle_lteq. right. apply sumQ_ext.
    intros kj _. unfold end_of, ending. rewrite Hlimit. reflexivity.
Qed.

Definition largest_of (x y : option Q) : option Q :=
  match x, y with
  | Some a, Some b => if Qle_bool a b then Some b else Some a
  | Some a, None => Some a
  | None, y => y
  end.

Definition holds_below (found : option Q) (most : Q) : Prop :=
  match found with Some value => (value <= most)%Q | None => True end.

Lemma largest_of_below x y most : holds_below x most -> holds_below y most -> holds_below (largest_of x y) most.
Proof.
  destruct x as [a|], y as [b|]; cbn; try tauto. intros Ha Hb. destruct (Qle_bool a b); assumption.
Qed.

Lemma counted_distinct I : NoDup (map fst (counted I)).
Proof. unfold counted. apply nodup_filter_fst. apply in_numbered_nodup. Qed.

Lemma gang_at_least_one I kj : sound I -> In kj (counted I) -> 1 <= gang (snd kj).
Proof.
  intros Hsound Hin. destruct kj as [k j]. apply in_counted in Hin.
  destruct (sound_in _ _ _ Hsound (proj1 Hin)) as (_ & H & _). exact H.
Qed.

Definition fluid_value (I : instance) : option Q := fluid_of I gang (capacity I) (counted I).
Definition busy_value (I : instance) : option Q := busy_of I gang (capacity I) (counted I).

Lemma fluid_value_sound I s value :
  sound I -> feasible I s -> fluid_value I = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. apply (fluid_of_sound I s gang (capacity I) (counted I)); try assumption.
  - intros x Hx. exact Hx.
  - apply counted_distinct.
  - intros kj. now apply gang_at_least_one.
  - now apply gangs_rentable.
Qed.

Lemma busy_value_sound I s value :
  sound I -> feasible I s -> busy_value I = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. apply (busy_of_sound I s gang (capacity I) (counted I)); try assumption.
  - intros x Hx. exact Hx.
  - apply counted_distinct.
  - intros kj. now apply gang_at_least_one.
  - now apply gangs_rentable.
Qed.

(** Gangs of which at most [q] fit on [q] machines, others as if alone. *)
Definition wide_of (I : instance) (q : Z) : option Q :=
  let wide := filter (too_wide I q) (counted I) in
  let others := filter (fun kj => negb (too_wide I q kj)) (counted I) in
  match wide with
  | [] => None
  | _ =>
      option_map
        (fun found => (sum_fractions (fun kj => (weight (snd kj) * inject_Z (arrival (snd kj) + shortest (snd kj)))%Q) others
                       + found)%Q)
        (largest_of (busy_of I (fun _ => 1) q wide) (fluid_of I (fun _ => 1) q wide))
  end.

Definition wide_value (I : instance) : option Q :=
  if (0 <=? capacity I) && match until I with None => true | Some _ => false end
  then fold_right (fun q found => largest_of (wide_of I q) found) None [1; 2; 3; 4; 5; 6; 7; 8]
  else None.

Lemma sumQ_split {A} (f : A -> Q) (test : A -> bool) l :
  (sumQ f l == sumQ f (filter (fun x => negb (test x)) l) + sumQ f (filter test l))%Q.
Proof.
  induction l as [|x l IH]; cbn [sumQ filter]; [ring|]. rewrite IH. destruct (test x); cbn [negb sumQ]; ring.
Qed.

Lemma wide_of_sound I s q :
  sound I -> feasible I s -> until I = None -> 0 <= capacity I -> 0 <= q ->
  holds_below (wide_of I q) (cost Completion I s).
Proof.
  intros Hsound Hs Hlimit Hcap Hq. unfold wide_of. set (wide := filter (too_wide I q) (counted I)).
  set (others := filter (fun kj => negb (too_wide I q kj)) (counted I)).
  destruct wide as [|first rest] eqn:E; [exact Logic.I|]. rewrite <- E in *. clear first rest E.
  assert (Hincl : incl wide (counted I)) by (intros kj Hin; now apply filter_In in Hin).
  assert (Hdistinct : NoDup (map fst wide)) by (apply nodup_filter_fst, counted_distinct).
  assert (Hrent : rentable s (fun _ => 1) q wide) by now apply wide_rentable.
  assert (Hfound : holds_below (largest_of (busy_of I (fun _ => 1) q wide) (fluid_of I (fun _ => 1) q wide)) (cost_of I s wide)).
  { apply largest_of_below.
    - destruct (busy_of _ _ _ _) as [value|] eqn:Hv; [|exact Logic.I].
      apply (busy_of_sound I s (fun _ => 1) q wide value); try assumption. intros; lia.
    - destruct (fluid_of _ _ _ _) as [value|] eqn:Hv; [|exact Logic.I].
      apply (fluid_of_sound I s (fun _ => 1) q wide value); try assumption. intros; lia. }
  destruct (largest_of _ _) as [found|]; [|exact Logic.I]. cbn [option_map holds_below] in *.
  cbn [cost]. rewrite (sumQ_split _ (too_wide I q)). fold wide others. fold (cost_of I s wide).
  apply Qplus_le_compat; [|exact Hfound]. rewrite sum_fractions_is. apply sumQ_le. intros [k j] Hin.
  apply filter_In in Hin. destruct Hin as [Hin _]. apply in_counted in Hin. cbn [fst snd].
  destruct (sound_in _ _ _ Hsound (proj1 Hin)) as (_ & _ & Hw & _).
  rewrite !(Qmult_comm (weight j)). apply Qmult_le_compat_r; [|unfold Qle; cbn; lia].
  rewrite <- Zle_Qle. unfold end_of, ending. rewrite Hlimit. cbn [fst snd].
  destruct Hs as (Hfits & Hs'). apply (completion_alone I s k j Hsound); [now split|apply Hin|].
  destruct Hs' as (_ & _ & Hdone). apply Hdone; [apply Hin|apply Hin|exact Hlimit].
Qed.

Lemma wide_value_sound I s value :
  sound I -> feasible I s -> wide_value I = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs. unfold wide_value. destruct (_ && _) eqn:Hcheck; [|discriminate].
  apply andb_prop in Hcheck. destruct Hcheck as [Hcap Huntil]. apply Z.leb_le in Hcap.
  assert (Hlimit : until I = None) by (destruct (until I); [discriminate|reflexivity]).
  assert (H : holds_below (fold_right (fun q found => largest_of (wide_of I q) found) None [1; 2; 3; 4; 5; 6; 7; 8])
                (cost Completion I s)).
  { cbn [fold_right]. repeat (apply largest_of_below; [apply wide_of_sound; (assumption || lia)|]). exact Logic.I. }
  intros E. rewrite E in H. exact H.
Qed.

(** Jobs from the last that arrives: work of those so far, gangs beyond half of the GPUs one by one. *)
Fixpoint area_value (I : instance) (one_by_one : bool) (l : list numbered_job) (r area lone best : Z) : Z :=
  match l with
  | [] => best
  | kj :: rest =>
      let r := Z.min r (arrival (snd kj)) in
      let area := area + area_of kj in
      let lone := lone + (if one_by_one then alone I kj else 0) in
      let span := Z.max (- (- area / capacity I)) lone in
      area_value I one_by_one rest r area lone
        (Z.max best (Z.max (r + span) (arrival (snd kj) + shortest (snd kj))))
  end.

Lemma area_value_sound I s one_by_one : sound I -> feasible I s -> until I = None -> 0 < capacity I ->
  forall rest some r area lone best,
  Permutation (some ++ rest) (counted I) ->
  (forall kj, In kj some -> r <= arrival (snd kj)) ->
  area = sum area_of some -> lone <= sum (alone I) some ->
  best <= last_completion I s ->
  area_value I one_by_one rest r area lone best <= last_completion I s.
Proof.
  intros Hsound Hs Hlimit Hcap. induction rest as [|kj rest IH]; intros some r area lone best Hperm Hr Harea Hlone Hbest;
    cbn [area_value]; [assumption|].
  set (r' := Z.min r (arrival (snd kj))).
  assert (Hperm' : Permutation ((kj :: some) ++ rest) (counted I)).
  { etransitivity; [|exact Hperm]. cbn. apply Permutation_middle. }
  assert (Hr' : forall x, In x (kj :: some) -> r' <= arrival (snd x)).
  { intros x [<-|Hx]; [unfold r'; lia|]. specialize (Hr x Hx). unfold r'. lia. }
  pose proof (area_bound I s (kj :: some) rest r' Hsound Hs Hlimit Hperm' Hr') as H1.
  pose proof (alone_bound I s (kj :: some) rest r' Hsound Hs Hlimit Hperm' Hr') as H2.
  pose proof (single_bound I s (kj :: some) rest Hsound Hs Hlimit Hperm' kj (or_introl eq_refl)) as H3.
  pose proof (shortest_positive (snd kj)) as Hp.
  assert (Hk : sound_job (snd kj)).
  { eapply sound_in; [eassumption|]. apply (in_some I (kj :: some) rest Hperm'). now left. }
  specialize (Hp Hk).
  assert (Huntil : r' <= last_completion I s) by (unfold r'; lia).
  assert (Halone : 0 <= alone I kj) by (unfold alone; destruct (wide I kj); lia).
  cbn [sum] in H1, H2. apply (IH (kj :: some)); try assumption.
  - cbn [sum]. lia.
  - cbn [sum]. assert (0 <= alone I kj) by (unfold alone; destruct (wide I kj); lia). destruct one_by_one; lia.
  - assert (- (- (area + area_of kj) / capacity I) <= last_completion I s - r').
    { apply Z.opp_le_mono. rewrite Z.opp_involutive. apply Z.div_le_lower_bound; nia. }
    destruct one_by_one; lia.
Qed.

(** ** Certificates *)

Record certificate := Certificate {
  of_instance : instance;
  of_schedule : schedule;
  of_objective : objective;
  by_multipliers : multipliers;
  claimed_cost : Q;
  claimed_bound : Q;
  claimed_ratio : Q
}.

Definition arrivals (I : instance) : Q :=
  sum_fractions (fun j => (weight j * inject_Z (arrival j))%Q) (counted_jobs I).

(** Jobs that count, with their runs. *)
Definition mine (I : instance) (all : list (job * list run)) : list (job * list run) :=
  filter (fun jr => counts I (fst jr)) all.

Definition completions (I : instance) (all : list (job * list run)) : Q :=
  sum_fractions (fun jr => (weight (fst jr) * inject_Z (ending I (fst jr) (snd jr)))%Q) (mine I all).

Definition latest_of_all (I : instance) (all : list (job * list run)) : Z :=
  fold_right (fun jr last => Z.max (latest (snd jr)) last) 0 (mine I all).

(** Cost of jobs with these runs, and bound; none where the bound is none of the objective. Bounds are
    of jobs that take a start longer. *)
Definition cost_and_bound (c : certificate) (all : list (job * list run)) : option (Q * Q) :=
  let I := of_instance c in
  let B := with_starts I in
  match of_objective c, by_multipliers c with
  | Completion, IntervalPrices grid prices =>
      if check_prices B grid prices
      then Some (completions I all, prices_value B grid prices) else None
  | Flow, IntervalPrices grid prices =>
      if check_prices B grid prices
      then Some ((completions I all - arrivals I)%Q, (prices_value B grid prices - arrivals I)%Q)
      else None
  | Completion, PlanPrices grid prices =>
      option_map (pair (completions I all)) (plans_value B grid prices)
  | Flow, PlanPrices grid prices =>
      option_map (fun value => ((completions I all - arrivals I)%Q, (value - arrivals I)%Q))
        (plans_value B grid prices)
  | Completion, Alone => Some (completions I all, alone_value B)
  | Flow, Alone => Some ((completions I all - arrivals I)%Q, (alone_value B - arrivals I)%Q)
  | Completion, OneMachine => option_map (pair (completions I all)) (fluid_value B)
  | Flow, OneMachine =>
      option_map (fun value => ((completions I all - arrivals I)%Q, (value - arrivals I)%Q)) (fluid_value B)
  | Completion, BusyTimes => option_map (pair (completions I all)) (busy_value B)
  | Flow, BusyTimes =>
      option_map (fun value => ((completions I all - arrivals I)%Q, (value - arrivals I)%Q)) (busy_value B)
  | Completion, WideGangs => option_map (pair (completions I all)) (wide_value B)
  | Flow, WideGangs =>
      option_map (fun value => ((completions I all - arrivals I)%Q, (value - arrivals I)%Q)) (wide_value B)
  | Makespan, Area one_by_one =>
      if (0 <? capacity B) && match until I with None => true | Some _ => false end
      then Some (inject_Z (latest_of_all I all - first_arrival I),
                 inject_Z (area_value B one_by_one (SortJobs.sort (counted B)) (first_arrival I + 2 ^ 200) 0 0 0
                           - first_arrival I))
      else None
  | _, _ => None
  end.

(** The instance makes sense, and the sorted runs are a schedule of it. *)
Definition check_runs (I : instance) (s : schedule) : bool :=
  check_instance I && check_charges (charged I)
  && ((0 <=? least_start I) && (least_start I <=? start_charge (charged I))) && check_schedule I s.

Definition check (c : certificate) : bool :=
  let s := SortRuns.sort (of_schedule c) in
  check_runs (of_instance c) s
  && match cost_and_bound c (by_job 0 (jobs (of_instance c)) s) with
     | Some (cost, bound) =>
         Qeq_bool cost (claimed_cost c) && Qle_bool (claimed_bound c) bound
         && Qle_bool 1 (claimed_ratio c)
         && Qle_bool (claimed_cost c) (claimed_ratio c * claimed_bound c)
     | None => false
     end.

(** ** What an answer of yes means *)

Lemma flow_is I s : (cost Flow I s == cost Completion I s - arrivals I)%Q.
Proof.
  unfold arrivals. rewrite sum_fractions_is. cbn [cost].
  rewrite <- (sumQ_counted I (fun j => (weight j * inject_Z (arrival j))%Q)).
  induction (counted I) as [|kj l IH]; cbn [sumQ]; [ring|]. rewrite IH.
  unfold Zminus. rewrite inject_Z_plus, inject_Z_opp. ring.
Qed.

Lemma mine_is I s : mine I (each I s) = map (fun kj => (snd kj, runs_of (fst kj) s)) (counted I).
Proof.
  unfold mine, each, counted. induction (numbered I) as [|kj l IH]; cbn [map filter]; [reflexivity|].
  cbn [fst]. destruct (counts I (snd kj)); cbn [map]; now rewrite IH.
Qed.

Lemma sumQ_map {A B} (f : B -> Q) (h : A -> B) l : sumQ f (map h l) = sumQ (fun x => f (h x)) l.
Proof. induction l as [|x l IH]; cbn; [reflexivity|]. now rewrite IH. Qed.

Lemma completions_is I s : (completions I (each I s) == cost Completion I s)%Q.
Proof. unfold completions. rewrite sum_fractions_is, mine_is, sumQ_map. cbn [fst snd cost]. reflexivity. Qed.

Lemma latest_of_all_is I s : latest_of_all I (each I s) = last_completion I s.
Proof.
  unfold latest_of_all, last_completion. rewrite mine_is.
  induction (counted I) as [|kj l IH]; cbn [map fold_right]; [reflexivity|]. now rewrite IH.
Qed.

Lemma cost_and_bound_sound c s cost_s bound :
  sound (of_instance c) -> 0 <= least_start (of_instance c) ->
  cost_and_bound c (each (of_instance c) s) = Some (cost_s, bound) ->
  (cost_s == cost (of_objective c) (of_instance c) s)%Q /\
  forall other, feasible (of_instance c) other -> starts_are_paid (of_instance c) other ->
    (bound <= cost (of_objective c) (of_instance c) other)%Q.
Proof.
  intros Hsound Hstart. set (I := of_instance c) in *.
  assert (HB := sound_with_starts I Hsound Hstart).
  assert (Hlong : forall other, feasible I other -> starts_are_paid I other ->
            feasible (with_starts I) (map all_progress other))
    by (intros; now apply feasible_with_starts).
  assert (Hcompletions : forall value,
    (forall s', feasible (with_starts I) s' -> (value <= cost Completion (with_starts I) s')%Q) ->
    forall other, feasible I other -> starts_are_paid I other -> (value <= cost Completion I other)%Q).
  { intros value Hvalue other Hother Hpaid.
    eapply Qle_trans; [|now apply completions_with_starts]. now apply Hvalue, Hlong. }
  assert (Hflow : forall value,
    (forall s', feasible (with_starts I) s' -> (value <= cost Completion (with_starts I) s')%Q) ->
    forall other, feasible I other -> starts_are_paid I other -> (value - arrivals I <= cost Flow I other)%Q).
  { intros value Hvalue other Hother Hpaid. rewrite flow_is. apply Qplus_le_compat; [|apply Qle_refl].
    now apply Hcompletions. }
  unfold cost_and_bound. fold I.
  destruct (of_objective c), (by_multipliers c) as [grid prices|grid prices| |one_by_one| | |]; try discriminate.
  - destruct (check_prices _ _ _) eqn:Hcheck; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply prices_value_sound.
  - destruct (plans_value _ _ _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply (plans_value_sound _ grid prices).
  - intros [= <- <-]. split; [apply completions_is|].
    apply Hcompletions. intros. now apply alone_value_sound.
  - destruct (fluid_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply fluid_value_sound.
  - destruct (busy_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply busy_value_sound.
  - destruct (wide_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [apply completions_is|]. apply Hcompletions. intros. now apply wide_value_sound.
  - destruct (check_prices _ _ _) eqn:Hcheck; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply prices_value_sound.
  - destruct (plans_value _ _ _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply (plans_value_sound _ grid prices).
  - intros [= <- <-]. split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply alone_value_sound.
  - destruct (fluid_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply fluid_value_sound.
  - destruct (busy_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply busy_value_sound.
  - destruct (wide_value _) as [value|] eqn:Hvalue; [|discriminate]. intros [= <- <-].
    split; [rewrite flow_is, completions_is; reflexivity|].
    apply Hflow. intros. now apply wide_value_sound.
  - destruct ((0 <? capacity (with_starts I)) && _) eqn:Hcap; [|discriminate].
    apply andb_prop in Hcap. destruct Hcap as [Hcap Hlimit]. apply Z.ltb_lt in Hcap.
    assert (Huntil : until (with_starts I) = None) by (cbn; destruct (until I); [discriminate|reflexivity]).
    intros [= <- <-].
    split; [cbn [cost]; now rewrite latest_of_all_is|].
    intros other Hother Hpaid. cbn [cost]. rewrite <- Zle_Qle.
    apply Z.sub_le_mono_r. rewrite <- last_with_starts.
    apply (area_value_sound _ _ one_by_one HB (Hlong other Hother Hpaid) Huntil Hcap _ []); try reflexivity.
    + cbn. symmetry. apply SortJobs.Permuted_sort.
    + intros kj [].
    + unfold last_completion. induction (counted (with_starts I)); cbn; lia.
Qed.

Lemma check_runs_sound I runs :
  check_runs I (SortRuns.sort runs) = true ->
  sound I /\ 0 <= least_start I /\ feasible I (SortRuns.sort runs) /\ obeys I (SortRuns.sort runs) /\
  starts_are_paid I (SortRuns.sort runs) /\
  by_job 0 (jobs I) (SortRuns.sort runs) = each I (SortRuns.sort runs).
Proof.
  unfold check_runs. rewrite !andb_true_iff, !Z.leb_le. intros (((Hinstance & Hcharged) & (Hstart & Hleast)) & Hschedule).
  apply check_instance_sound in Hinstance.
  assert (Hjobs := Hschedule). unfold check_schedule in Hjobs. rewrite !andb_true_iff in Hjobs.
  destruct Hjobs as ((((Hjobs & _) & _) & _) & _). apply by_job_is in Hjobs.
  apply check_schedule_sound in Hschedule. destruct Hschedule as [Hfeasible Hobeys].
  split; [exact Hinstance|]. split; [exact Hstart|]. split; [exact Hfeasible|]. split; [exact Hobeys|].
  split; [now apply starts_paid|exact Hjobs].
Qed.

(** Where the checker says yes, the runs of the file are a schedule of its instance that obeys its rules, its cost is
    as claimed, no schedule of the instance that may preempt, in which no node gives more than it has and every
    job that is complete has paid a start, costs less than the bound claimed, and so the schedule costs at most the
    ratio claimed times any other. It is one of these schedules itself. *)
Theorem check_sound c : check c = true ->
  let I := of_instance c in
  exists s, Permutation s (of_schedule c) /\
    feasible I s /\ obeys I s /\ starts_are_paid I s /\
    (cost (of_objective c) I s == claimed_cost c)%Q /\
    forall other, feasible I other -> starts_are_paid I other ->
      (claimed_bound c <= cost (of_objective c) I other)%Q /\
      (cost (of_objective c) I s <= claimed_ratio c * cost (of_objective c) I other)%Q.
Proof.
  unfold check. cbn zeta. rewrite !andb_true_iff. intros (Hruns & Hclaim).
  apply check_runs_sound in Hruns. destruct Hruns as (Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hall).
  exists (SortRuns.sort (of_schedule c)). rewrite Hall in Hclaim.
  destruct (cost_and_bound c _) as [[cost_s bound]|] eqn:Hvalue; [|discriminate].
  rewrite !andb_true_iff in Hclaim. destruct Hclaim as (((H1 & H2) & H3) & H4).
  apply Qeq_bool_iff in H1. apply Qle_bool_iff in H2, H3, H4.
  destruct (cost_and_bound_sound c _ _ _ Hsound Hstart Hvalue) as [Hcost Hbound].
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hobeys|]. split; [exact Hpaid|].
  split; [rewrite <- Hcost; exact H1|].
  intros other Hother Hpays. split.
  - eapply Qle_trans; [exact H2|]. now apply Hbound.
  - rewrite <- Hcost, H1. eapply Qle_trans; [exact H4|].
    rewrite !(Qmult_comm (claimed_ratio c)). apply Qmult_le_compat_r.
    + eapply Qle_trans; [exact H2|]. now apply Hbound.
    + eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_sound.

(** ** Total utility, of which none has more than so much *)

(** [rows]: a price of a GPU in each round, in units of [unit], for each type; or, not [by_type], one row for all. *)
Record utility_certificate := UtilityCertificate {
  utility_instance : instance;
  utility_schedule : schedule;
  round_length : Z;
  by_type : bool;
  rows : list (list Z);
  unit : Q;
  claimed_earned : Q;
  claimed_most : Q;
  claimed_multiple : Q
}.

Definition rounds_in (rows : list (list Z)) : nat := length (hd [] rows).

Definition check_rows (rows : list (list Z)) : bool :=
  forallb (fun row => Nat.eqb (length row) (rounds_in rows) && forallb (fun x => 0 <=? x) row) rows.

Lemma check_rows_sound rows : check_rows rows = true ->
  forall row, In row rows -> length row = rounds_in rows /\ forall x, In x row -> 0 <= x.
Proof.
  unfold check_rows. rewrite forallb_forall. intros H row Hin. specialize (H row Hin).
  apply andb_prop in H. destruct H as [H1 H2]. split; [now apply Nat.eqb_eq|].
  intros x Hx. rewrite forallb_forall in H2. apply Z.leb_le. now apply H2.
Qed.

(** The instance, with its starts where one row of prices is of all GPUs, and a row for each type. *)
Definition priced (c : utility_certificate) : instance * list (list Z) :=
  let I := utility_instance c in
  if by_type c then (I, rows c)
  else (with_starts I, repeat (hd [] (rows c)) (S (fold_right (fun n most => Nat.max (gpu_type n) most) 0%nat (nodes I)))).

(** What a unit of prices is worth, for a tick of a unit of GPUs. *)
Definition each_tick (c : utility_certificate) : Q :=
  Qnum (unit c) # (Qden (unit c) * Z.to_pos (round_length c) * per_gpu (utility_instance c)).

Definition most_earned (c : utility_certificate) : Q :=
  let '(B, rows) := priced c in
  let number := rounds_in rows in
  (sum_fractions (payoff B (round_length c) rows number (each_tick c)) (counted_jobs B)
   + inject_Z (round_length c * all_rents B rows) * each_tick c)%Q.

Definition all_earned (I : instance) (round : Z) (all : list (job * list run)) : Q :=
  sum_fractions (fun jr => if finished I (fst jr) (snd jr)
                           then utility I round (fst jr) ((latest (snd jr) - 1) / round) else 0%Q) (mine I all).

Definition check_utility (c : utility_certificate) : bool :=
  let I := utility_instance c in
  let s := SortRuns.sort (utility_schedule c) in
  check_runs I s && (1 <=? round_length c) && (0 <=? Qnum (unit c)) && check_rows (snd (priced c))
  && Qle_bool (claimed_earned c) (all_earned I (round_length c) (by_job 0 (jobs I) s))
  && Qle_bool (most_earned c) (claimed_most c)
  && Qle_bool 1 (claimed_multiple c)
  && Qle_bool (claimed_most c) (claimed_multiple c * claimed_earned c).

(** Where the checker says yes, the runs of the file are a schedule of its instance that obeys its rules, it earns what
    is claimed, no schedule of the instance earns more than the most claimed, and so none earns more than that multiple
    of what this one does. *)
Theorem check_utility_sound c : check_utility c = true ->
  let I := utility_instance c in
  exists s, Permutation s (utility_schedule c) /\
    feasible I s /\ obeys I s /\ starts_are_paid I s /\
    (claimed_earned c <= earned I (round_length c) s)%Q /\
    forall other, feasible I other -> starts_are_paid I other ->
      (earned I (round_length c) other <= claimed_most c)%Q /\
      (earned I (round_length c) other <= claimed_multiple c * earned I (round_length c) s)%Q.
Proof.
  unfold check_utility. cbn zeta. rewrite !andb_true_iff.
  intros (((((((Hruns & Hround) & Hunit) & Hrows) & H1) & H2) & H3) & H4).
  apply check_runs_sound in Hruns. destruct Hruns as (Hsound & Hstart & Hfeasible & Hobeys & Hpaid & Hall).
  exists (SortRuns.sort (utility_schedule c)). rewrite Hall in H1.
  apply Qle_bool_iff in H1, H2, H3, H4. apply Z.leb_le in Hround, Hunit.
  set (I := utility_instance c) in *. set (round := round_length c) in *. set (s := SortRuns.sort (utility_schedule c)) in *.
  assert (Hearned : (claimed_earned c <= earned I round s)%Q).
  { eapply Qle_trans; [exact H1|]. unfold all_earned. rewrite sum_fractions_is, mine_is, sumQ_map. apply Qle_refl. }
  assert (Heach : (0 <= each_tick c)%Q) by (unfold each_tick, Qle; cbn; lia).
  assert (Hbound : forall B other,
    B = fst (priced c) -> sound B -> feasible B other -> (earned B round other <= most_earned c)%Q).
  { intros B other HB HsoundB Hother. unfold most_earned. destruct (priced c) as [B' rows']. cbn [fst snd] in *. subst B'.
    fold round. rewrite sum_fractions_is.
    rewrite <- (sumQ_counted B (payoff B round rows' (rounds_in rows') (each_tick c))).
    apply utility_at_most; try assumption. now apply check_rows_sound. }
  assert (Hmost : forall other, feasible I other -> starts_are_paid I other ->
            (earned I round other <= claimed_most c)%Q).
  { intros other Hother Hpays. eapply Qle_trans; [|exact H2].
    assert (HB : fst (priced c) = I \/ fst (priced c) = with_starts I).
    { unfold priced. fold I. destruct (by_type c); [now left|now right]. }
    destruct HB as [HB|HB].
    - now apply (Hbound I).
    - eapply Qle_trans; [apply earned_with_starts; eassumption|].
      apply (Hbound (with_starts I)); [now symmetry|now apply sound_with_starts|now apply feasible_with_starts]. }
  split; [symmetry; apply SortRuns.Permuted_sort|].
  split; [exact Hfeasible|]. split; [exact Hobeys|]. split; [exact Hpaid|]. split; [exact Hearned|].
  intros other Hother Hpays. split; [now apply Hmost|].
  eapply Qle_trans; [now apply Hmost|]. eapply Qle_trans; [exact H4|].
  rewrite !(Qmult_comm (claimed_multiple c)). apply Qmult_le_compat_r; [exact Hearned|].
  eapply Qle_trans; [|exact H3]. discriminate.
Qed.

Print Assumptions check_utility_sound.
