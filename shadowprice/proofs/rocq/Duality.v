(** Weak duality: any prices of GPUs bound what every schedule costs (LB-lp); and work per GPU bounds when
    the last job completes (LB-span). *)

From Coq Require Import List ZArith QArith Lia Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice.
Import ListNotations.
Open Scope Z_scope.

(** ** GPUs held at a tick, over all nodes *)

Lemma one_of_range (k n : nat) v : (k < n)%nat ->
  sum (fun i => if Nat.eqb k i then v else 0) (seq 0 n) = v.
Proof.
  intros Hk.
  assert (H : forall m b, sum (fun i => if Nat.eqb k i then v else 0) (seq b m)
                     = if (b <=? k)%nat && (k <? b + m)%nat then v else 0).
  { induction m as [|m IH]; intros b; cbn [seq sum].
    - destruct (b <=? k)%nat eqn:E1, (k <? b + 0)%nat eqn:E2; try reflexivity.
      apply Nat.leb_le in E1. apply Nat.ltb_lt in E2. lia.
    - rewrite IH. destruct (Nat.eqb_spec k b) as [->|Hne].
      + assert ((S b <=? b)%nat = false) as -> by (apply Nat.leb_gt; lia).
        assert ((b <=? b)%nat = true) as -> by (apply Nat.leb_le; lia).
        assert ((b <? b + S m)%nat = true) as -> by (apply Nat.ltb_lt; lia). cbn. lia.
      + replace (S b + m)%nat with (b + S m)%nat by lia.
        destruct (Nat.leb_spec (S b) k), (Nat.leb_spec b k); try lia; cbn; lia. }
  rewrite H. destruct (Nat.leb_spec 0 k), (Nat.ltb_spec k (0 + n)); try lia; reflexivity.
Qed.

Definition gang_of (I : instance) (r : run) : Z := sum snd (pieces r).

Lemma all_held I s t :
  Forall (run_fits I) s ->
  (forall k n, nth_error (nodes I) k = Some n -> held s k t <= gpus n) ->
  sum (fun r => if active t r then gang_of I r else 0) s <= capacity I.
Proof.
  intros Hfits Hheld.
  assert (Hnodes : sum (fun r => if active t r then gang_of I r else 0) s
                   = sum (fun k => held s k t) (seq 0 (length (nodes I)))).
  { unfold held. rewrite sum_swap. apply sum_ext. intros r Hr.
    destruct (active t r).
    - rewrite sum_swap. unfold gang_of. apply sum_ext. intros piece Hin.
      rewrite Forall_forall in Hfits. destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hp).
      destruct (Hp piece Hin) as (_ & n & _ & Hn & _).
      symmetry. apply one_of_range. apply nth_error_Some. congruence.
    - rewrite sum_const. lia. }
  rewrite Hnodes. unfold capacity.
  clear Hnodes Hfits.
  assert (H : forall (l : list node) b,
            (forall k n, nth_error l k = Some n -> held s (b + k) t <= gpus n) ->
            sum (fun k => held s k t) (seq b (length l)) <= sum gpus l).
  { induction l as [|n l IH]; intros b Hl; cbn [length seq sum]; [lia|].
    pose proof (Hl 0%nat n eq_refl) as H0. rewrite Nat.add_0_r in H0.
    assert (sum (fun k => held s k t) (seq (S b) (length l)) <= sum gpus l).
    { apply IH. intros k n' Hk. replace (S b + k)%nat with (b + S k)%nat by lia. now apply Hl. }
    lia. }
  apply (H (nodes I) 0%nat). exact Hheld.
Qed.

(** ** Rent: what is paid for GPUs that are held, and what all GPUs together can earn *)

Lemma sum_included (f : Z -> Z) l : forall k,
  NoDup l -> (forall t, 0 <= f t) -> (forall t, In t l -> f t <> 0 -> In t k) ->
  sum f l <= sum f k.
Proof.
  induction l as [|x l IH]; intros k Hnd Hf Hin.
  - cbn. apply sum_nonneg. auto.
  - inversion Hnd as [|? ? Hx Hl]; subst. cbn [sum].
    destruct (Z.eq_dec (f x) 0) as [Hz|Hz].
    + rewrite Hz. specialize (IH k Hl Hf (fun t Ht => Hin t (or_intror Ht))). lia.
    + destruct (in_split _ _ (Hin x (or_introl eq_refl) Hz)) as (k1 & k2 & ->).
      assert (sum f l <= sum f (k1 ++ k2)).
      { apply IH; [assumption|assumption|]. intros t Ht Hft.
        specialize (Hin t (or_intror Ht) Hft). apply in_app_iff in Hin. apply in_app_iff.
        destruct Hin as [Hin|[Hin|Hin]]; [now left| |now right]. subst. contradiction. }
      rewrite sum_app in *. cbn [sum]. lia.
Qed.

Lemma ticks_app a b c : a <= b <= c -> ticks a c = ticks a b ++ ticks b c.
Proof.
  intros H. unfold ticks.
  replace (Z.to_nat (c - a)) with (Z.to_nat (b - a) + Z.to_nat (c - b))%nat by lia.
  rewrite seq_app, map_app. f_equal. cbn [Nat.add].
  assert (Hshift : forall n m, map (fun k => a + Z.of_nat k) (seq (Z.to_nat (b - a) + m) n)
                          = map (fun k => b + Z.of_nat k) (seq m n)).
  { induction n as [|n IH]; intros m; cbn [seq map]; [reflexivity|].
    f_equal; [lia|]. rewrite <- Nat.add_succ_r. apply IH. }
  rewrite <- (Hshift _ 0%nat). now rewrite Nat.add_0_r.
Qed.

(** All GPUs together over all intervals, one GPU's worth. *)
Fixpoint all_earn (grid prices : list Z) : Z :=
  match grid, prices with
  | a :: ((b :: _) as later), price :: more => price * (b - a) + all_earn later more
  | _, _ => 0
  end.

Definition ends (grid : list Z) : Z * Z := (hd 0 grid, last grid 0).

Lemma increasing_last a grid : increasing (a :: grid) -> a <= last (a :: grid) 0.
Proof.
  revert a. induction grid as [|b grid IH]; intros a; [cbn; lia|].
  intros [Hab H]. specialize (IH b H).
  change (last (a :: b :: grid) 0) with (last (b :: grid) 0). lia.
Qed.

Lemma sum_of_prices : forall grid prices,
  increasing grid -> grid <> [] ->
  sum (price_of grid prices) (ticks (hd 0 grid) (last grid 0)) = all_earn grid prices.
Proof.
  induction grid as [|a grid IH]; intros prices Hinc Hne; [congruence|].
  destruct grid as [|b later].
  - unfold ticks. cbn. rewrite Z.sub_diag. destruct prices; reflexivity.
  - destruct Hinc as [Hab Hinc]. pose proof (increasing_last _ _ Hinc) as Hlast.
    change (last (a :: b :: later) 0) with (last (b :: later) 0). cbn [hd].
    rewrite (ticks_app a b) by lia. rewrite sum_app.
    destruct prices as [|price more].
    + cbn [price_of all_earn]. rewrite !sum_const. lia.
    + change (all_earn (a :: b :: later) (price :: more))
        with (price * (b - a) + all_earn (b :: later) more).
      rewrite <- (IH more Hinc) by congruence. cbn [hd]. f_equal.
      * rewrite <- (Z.max_r 0 (b - a)) by lia. rewrite <- length_ticks, <- sum_const.
        apply sum_ext. intros t Ht. apply in_ticks in Ht. cbn [price_of].
        assert (t <? b = true) as -> by (apply Z.ltb_lt; lia). reflexivity.
      * apply sum_ext. intros t Ht. apply in_ticks in Ht. cbn [price_of].
        assert (t <? b = false) as -> by (apply Z.ltb_ge; lia). reflexivity.
Qed.

Lemma price_nonneg grid : forall prices t,
  (forall x, In x prices -> 0 <= x) -> 0 <= price_of grid prices t.
Proof.
  induction grid as [|a grid IH]; intros prices t Hprices; [cbn; lia|].
  destruct grid as [|b later]; [cbn; destruct prices; lia|].
  destruct prices as [|x prices]; [cbn; lia|]. cbn [price_of].
  destruct (t <? b); [apply Hprices; now left|].
  apply IH. intros y Hy. apply Hprices. now right.
Qed.

Lemma price_after grid : forall prices t,
  increasing grid -> last grid 0 <= t -> price_of grid prices t = 0.
Proof.
  induction grid as [|a grid IH]; intros prices t Hinc Ht; [reflexivity|].
  destruct grid as [|b later]; [destruct prices; reflexivity|].
  destruct prices as [|x prices]; [reflexivity|]. destruct Hinc as [_ Hinc].
  change (last (a :: b :: later) 0) with (last (b :: later) 0) in Ht.
  pose proof (increasing_last _ _ Hinc). cbn [price_of].
  assert (t <? b = false) as -> by (apply Z.ltb_ge; lia). now apply IH.
Qed.

Lemma gang_numbered I k v : forall j, nth_error (jobs I) k = Some j ->
  sum (fun kj => if Nat.eqb k (fst kj) then gang (snd kj) * v else 0) (numbered I) = gang j * v.
Proof.
  intros j. unfold numbered.
  assert (H : forall (l : list job) b, (b <= k)%nat -> nth_error l (k - b) = Some j ->
            sum (fun kj => if Nat.eqb k (fst kj) then gang (snd kj) * v else 0)
                (combine (seq b (length l)) l) = gang j * v).
  { induction l as [|x l IH]; intros b Hb Hk; cbn [length seq combine sum fst snd].
    - destruct (k - b)%nat; discriminate.
    - destruct (Nat.eqb_spec k b) as [->|Hne].
      + rewrite Nat.sub_diag in Hk. cbn in Hk. injection Hk as ->.
        assert (Hzero : forall (l : list job) c, (b < c)%nat ->
                  sum (fun kj => if Nat.eqb b (fst kj) then gang (snd kj) * v else 0)
                      (combine (seq c (length l)) l) = 0).
        { clear. induction l as [|x l IH]; intros c Hc; cbn [length seq combine sum fst snd]; [lia|].
          destruct (Nat.eqb_spec b c); [lia|]. rewrite IH by lia. lia. }
        rewrite Hzero by lia. lia.
      + rewrite IH; [lia|lia|]. replace (k - b)%nat with (S (k - S b)) in Hk by lia. exact Hk. }
  intros Hk. apply H; [lia|]. now rewrite Nat.sub_0_r.
Qed.

(** What jobs pay for a function of time is no more than all GPUs can earn. *)
Lemma rent_at_most I s (f : Z -> Z) all :
  feasible I s -> NoDup all -> (forall t, 0 <= f t) -> (forall t, f t <> 0 -> 
    (exists r, In r s /\ active t r = true) -> In t all) ->
  sum (fun kj => gang (snd kj) * sum f (held_ticks s (fst kj))) (numbered I)
  <= capacity I * sum f all.
Proof.
  intros (Hfits & _ & Hheld & _) Hnd Hf Hin.
  transitivity (sum (fun r => gang_of I r * sum f (ticks (start r) (stop r))) s).
  { unfold held_ticks, runs_of.
    assert (H : forall kj, gang (snd kj) * sum f (flat_map (fun r => ticks (start r) (stop r))
                   (filter (fun r => Nat.eqb (of_job r) (fst kj)) s))
                 = sum (fun r => if Nat.eqb (of_job r) (fst kj)
                                 then gang (snd kj) * sum f (ticks (start r) (stop r)) else 0) s).
    { intros kj. rewrite sum_flat_map, sum_filter, <- sum_scale. apply sum_ext.
      intros r _. destruct (Nat.eqb (of_job r) (fst kj)); lia. }
    rewrite (sum_ext _ _ (numbered I) (fun kj _ => H kj)). rewrite sum_swap.
    apply sum_le. intros r Hr. rewrite Forall_forall in Hfits.
    destruct (Hfits r Hr) as (j & Hj & _ & _ & Hgang & _). unfold gang_of.
    rewrite (gang_numbered I (of_job r) _ j Hj).
    assert (0 <= sum f (ticks (start r) (stop r))) by (apply sum_nonneg; auto). nia. }
  transitivity (sum (fun r => sum (fun t => if active t r then gang_of I r * f t else 0) all) s).
  { apply sum_le. intros r Hr.
    assert (Hg : 0 <= gang_of I r).
    { unfold gang_of. apply sum_nonneg. intros piece Hp. rewrite Forall_forall in Hfits.
      destruct (Hfits r Hr) as (j & _ & _ & _ & _ & _ & Hpieces).
      destruct (Hpieces piece Hp) as [H1 _]. lia. }
    assert (Hle : sum f (ticks (start r) (stop r)) <= sum (fun t => if active t r then f t else 0) all).
    { rewrite <- sum_filter. apply sum_included; [apply nodup_ticks|assumption|].
      intros t Ht Hft. apply in_ticks in Ht.
      assert (Hact : active t r = true).
      { unfold active. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
      apply filter_In. split; [|assumption]. apply Hin; [assumption|]. now exists r. }
    rewrite (sum_ext (fun t => if active t r then gang_of I r * f t else 0)
                     (fun t => gang_of I r * (if active t r then f t else 0)))
      by (intros t _; destruct (active t r); lia).
    rewrite sum_scale. nia. }
  rewrite sum_swap, <- sum_scale. apply sum_le. intros t _.
  rewrite (sum_ext _ (fun r => f t * (if active t r then gang_of I r else 0)))
    by (intros r _; destruct (active t r); lia).
  rewrite sum_scale.
  pose proof (all_held I s t Hfits (fun k n Hk => Hheld k n Hk t)) as Hall.
  specialize (Hf t). nia.
Qed.

(** ** The bound by prices *)

Section Weak.
  (** Prices are in units of [over] / [under]. *)
  Variables (I : instance) (over under : positive) (grid prices : list Z).
  (** What a job pays at least in weighted completion and rent, whatever ticks it holds. *)
  Variable least : job -> Q.

  Hypothesis Hsound : sound I.
  Hypothesis Hne : grid <> [].
  Hypothesis Hinc : increasing grid.
  Hypothesis Hprices : forall x, In x prices -> 0 <= x.
  Hypothesis Hbegin : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> hd 0 grid <= arrival j.

  Definition rent_of (s : schedule) (k : nat) (j : job) : Z :=
    gang j * sum (price_of grid prices) (held_ticks s k).

  Hypothesis Hleast : forall s k j, feasible I s -> nth_error (jobs I) k = Some j ->
    counts I j = true -> finished I j (runs_of k s) = true ->
    (least j <= weight j * inject_Z (completion s k) + ((Zpos over * rent_of s k j) # under))%Q.

  Definition paid : Q := (Zpos over * (capacity I * all_earn grid prices)) # under.

  Lemma rent_nonneg s k j : 0 <= gang j -> 0 <= rent_of s k j.
  Proof.
    intros Hg. unfold rent_of. apply Z.mul_nonneg_nonneg; [assumption|].
    apply sum_nonneg. intros t _. now apply price_nonneg.
  Qed.

  Theorem weak_duality s : feasible I s ->
    (sumQ (fun kj => capped I (snd kj) (least (snd kj))) (counted I) - paid <= cost Completion I s)%Q.
  Proof.
    intros Hs.
    assert (H1 : (sumQ (fun kj => capped I (snd kj) (least (snd kj))) (counted I)
                  <= sumQ (fun kj => weight (snd kj) * inject_Z (end_of I s kj)
                       + ((Zpos over * rent_of s (fst kj) (snd kj)) # under)) (counted I))%Q).
    { apply sumQ_le. intros [k j] Hin. apply in_counted in Hin. destruct Hin as [Hk Hcounts]. cbn [fst snd].
      apply capped_least; try assumption; [|intros Hdone; now apply Hleast].
      destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _).
      pose proof (rent_nonneg s k j ltac:(lia)) as Hrent. unfold Qle. cbn [Qnum Qden].
      rewrite Z.mul_0_l, Z.mul_1_r. apply Z.mul_nonneg_nonneg; lia. }
    rewrite sumQ_add, sumQ_same_denominator, sum_scale in H1.
    set (rented := sum (fun kj => rent_of s (fst kj) (snd kj)) (counted I)) in *.
    assert (H2 : rented <= capacity I * all_earn grid prices).
    { set (f := fun t => if t <? hd 0 grid then 0 else price_of grid prices t).
      assert (Hf : forall t, 0 <= f t) by (intros t; unfold f; destruct (t <? hd 0 grid); [lia|now apply price_nonneg]).
      transitivity (sum (fun kj => gang (snd kj) * sum f (held_ticks s (fst kj))) (numbered I)).
      { unfold rented, counted. rewrite sum_filter. apply sum_le. intros [k j] Hin. cbn [fst snd].
        apply in_numbered in Hin. destruct (sound_in _ _ _ Hsound Hin) as (_ & Hg & _).
        assert (0 <= sum f (held_ticks s k)) by (apply sum_nonneg; auto).
        destruct (counts I j) eqn:Hcounts; [|nia]. unfold rent_of.
        apply Z.eq_le_incl. f_equal. apply sum_ext. intros t Ht. unfold f.
        destruct (held_ticks_bounds I s k j Hs Hin t Ht) as [Harr _]. specialize (Hbegin k j Hin Hcounts).
        destruct (Z.ltb_spec t (hd 0 grid)); [lia|reflexivity]. }
      rewrite <- (sum_of_prices grid prices Hinc Hne).
      rewrite (sum_ext (price_of grid prices) f).
      2: { intros t Ht. apply in_ticks in Ht. unfold f. destruct (Z.ltb_spec t (hd 0 grid)); [lia|reflexivity]. }
      apply rent_at_most; try assumption; [apply nodup_ticks|].
      intros t Ht _. apply in_ticks. unfold f in Ht. destruct (Z.ltb_spec t (hd 0 grid)); [congruence|].
      split; [assumption|].
      destruct (Z_lt_ge_dec t (last grid 0)); [assumption|].
      exfalso. apply Ht. apply price_after; [assumption|lia]. }
    unfold paid. cbn [cost].
    assert (H3 : (((Zpos over * rented) # under)
                  <= (Zpos over * (capacity I * all_earn grid prices)) # under)%Q).
    { unfold Qle. cbn [Qnum Qden]. apply Z.mul_le_mono_nonneg_r; [lia|].
      apply Z.mul_le_mono_nonneg_l; lia. }
    apply Qle_minus_iff in H1. apply Qle_minus_iff in H3. apply Qle_minus_iff.
    match goal with |- (0 <= ?x)%Q =>
      match type of H1 with (0 <= ?y)%Q => match type of H3 with (0 <= ?z)%Q =>
        setoid_replace x with (y + z)%Q by ring end end end.
    rewrite <- (Qplus_0_l 0). now apply Qplus_le_compat.
  Qed.
End Weak.

(** ** What a job pays at least: as in the interval LP *)

Section Intervals.
  (** [unit]: how many of the units of prices make 1. *)
  Variables (I : instance) (unit : positive) (grid prices : list Z).
  (** A threshold for each job, in units of 1 / (unit x denominator of its weight x its shortest time). *)
  Variable threshold : job -> Z.

  Hypothesis Hsound : sound I.
  Hypothesis Hne : grid <> [].
  Hypothesis Hinc : increasing grid.
  Hypothesis Hlength : length grid = S (length prices).
  Hypothesis Hprices : forall x, In x prices -> 0 <= x.
  Hypothesis Hbegin : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> hd 0 grid <= arrival j.

  Definition least_busy (j : job) : Q :=
    let p := shortest j in
    let w := Qnum (weight j) * Zpos unit in
    let rent := p * gang j * Zpos (Qden (weight j)) in
    (price_at_threshold (arrival j) p w rent (threshold j) grid prices + w * p * p)
    # (2 * Z.to_pos p * Qden (weight j) * unit).

  Lemma least_busy_job s k j : feasible I s -> nth_error (jobs I) k = Some j ->
    counts I j = true -> finished I j (runs_of k s) = true ->
    (least_busy j <= weight j * inject_Z (completion s k)
                     + ((1 * rent_of grid prices s k j) # unit))%Q.
  Proof.
    intros Hs Hk Hcounts Hdone. pose proof (sound_in _ _ _ Hsound Hk) as Hj.
    pose proof (shortest_positive j Hj) as Hp. destruct Hj as (_ & Hg & Hw & _).
    assert (Hprice := job_price (arrival j) (shortest j) (Qnum (weight j) * Zpos unit)
                        (shortest j * gang j * Zpos (Qden (weight j))) (threshold j)
                        Hp ltac:(nia) ltac:(nia) grid prices (hd 0 grid) (held_ticks s k)
                        (completion s k) Hne).
    assert (Hprice' := Hprice ltac:(intros b later ->; reflexivity) (Hbegin k j Hk Hcounts) Hinc Hlength Hprices
                         ltac:(apply nodup_held_ticks; apply Hs)
                         (held_ticks_bounds I s k j Hs Hk)
                         (held_ticks_enough I s k j Hsound Hs Hk Hdone)).
    clear Hprice. unfold least_busy, rent_of, Qle, Qplus, Qmult, inject_Z. cbn [Qnum Qden].
    set (num := price_at_threshold _ _ _ _ _ _ _ + _) in *.
    set (R := sum (price_of grid prices) (held_ticks s k)) in *.
    set (C := completion s k) in *. set (p := shortest j) in *.
    rewrite !Pos2Z.inj_mul, Z2Pos.id by lia. rewrite ?Z.mul_1_r, ?Z.mul_1_l.
    set (wn := Qnum (weight j)) in *. set (wd := Zpos (Qden (weight j))) in *.
    set (U := Zpos unit) in *. set (g := gang j) in *.
    assert (0 <= wd * U) by (unfold wd, U; lia).
    replace ((wn * C * U + g * R * wd) * (2 * p * wd * U))
      with ((2 * (wn * U) * p * C + 2 * (p * g * wd) * R) * (wd * U)) by ring.
    apply Z.mul_le_mono_nonneg_r; lia.
  Qed.
End Intervals.

(** ** What a job pays at least: its cheapest plan (LB-plan) *)

(** Cells from an arrival on; when the last is over, what is left of a job costs nothing. *)
Fixpoint cells_from (r p : Z) (grid prices : list Z) : list (Z * Z) :=
  match grid, prices with
  | a :: ((b :: _) as later), price :: more =>
      if b <=? r then cells_from r p later more
      else (b - Z.max a r, price) :: cells_from r p later more
  | _, _ => [(p, 0)]
  end.

Lemma cells_of_grid r p : 0 <= p -> forall grid prices a,
  (forall b later, grid = b :: later -> b = a) -> grid <> [] -> increasing grid ->
  (forall x, In x prices -> 0 <= x) ->
  (forall cell, In cell (cells_from r p grid prices) -> 0 <= fst cell /\ 0 <= snd cell) /\
  forall t, Z.max a r <= t ->
    cell_price (cells_from r p grid prices) (Z.max a r) t = price_of grid prices t.
Proof.
  intros Hp. induction grid as [|a0 grid IH]; intros prices a Hhead Hne Hinc Hprices; [congruence|].
  assert (a0 = a) by (eapply Hhead; reflexivity). subst a0.
  assert (Hlast : (forall cell, In cell [(p, 0)] -> 0 <= fst cell /\ 0 <= snd cell) /\
                  forall t, cell_price [(p, 0)] (Z.max a r) t = 0).
  { split; [intros cell [<-|[]]; cbn; lia|]. intros t. cbn. destruct (t <? _); reflexivity. }
  destruct grid as [|b later].
  - cbn [cells_from price_of]. split; [apply Hlast|]. intros t _. destruct prices; apply Hlast.
  - destruct prices as [|price more].
    { cbn [cells_from price_of]. split; [apply Hlast|]. intros t _. apply Hlast. }
    destruct Hinc as [Hab Hinc].
    assert (Hmore : forall x, In x more -> 0 <= x) by (intros x Hx; apply Hprices; now right).
    assert (Hnext := IH more b ltac:(intros b' later' [= -> _]; reflexivity) ltac:(congruence) Hinc Hmore).
    destruct Hnext as [Hcells Hprice].
    change (cells_from r p (a :: b :: later) (price :: more))
      with (if b <=? r then cells_from r p (b :: later) more
            else (b - Z.max a r, price) :: cells_from r p (b :: later) more).
    change (price_of (a :: b :: later) (price :: more))
      with (fun t => if t <? b then price else price_of (b :: later) more t).
    destruct (Z.leb_spec b r) as [Hbr|Hbr].
    + split; [exact Hcells|]. intros t Ht.
      replace (Z.max a r) with (Z.max b r) in * by lia. rewrite Hprice by assumption.
      assert (t <? b = false) as -> by (apply Z.ltb_ge; lia). reflexivity.
    + split.
      * intros cell [<-|Hin]; [|now apply Hcells]. cbn. split; [lia|]. apply Hprices. now left.
      * intros t Ht. cbn [cell_price].
        replace (Z.max a r + (b - Z.max a r)) with b by lia.
        destruct (Z.ltb_spec t b); [reflexivity|].
        rewrite (Z.max_l b r) in Hprice by lia. now apply Hprice.
Qed.

Section Plans.
  Variables (I : instance) (over under : positive) (grid prices : list Z).

  Hypothesis Hsound : sound I.
  Hypothesis Hne : grid <> [].
  Hypothesis Hinc : increasing grid.
  Hypothesis Hprices : forall x, In x prices -> 0 <= x.
  Hypothesis Hbegin : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> hd 0 grid <= arrival j.

  Definition least_plan (j : job) : Q :=
    let p := shortest j in
    let delay := Qnum (weight j) * Zpos under in
    let rent := Zpos (Qden (weight j)) * Zpos over * gang j in
    match cheapest p delay rent true (cells_from (arrival j) p grid prices) (arrival j) [] None None with
    | Some value => value # (Qden (weight j) * under)
    | None => 0%Q
    end.

  Lemma least_plan_job s k j : feasible I s -> nth_error (jobs I) k = Some j ->
    counts I j = true -> finished I j (runs_of k s) = true ->
    (least_plan j <= weight j * inject_Z (completion s k)
                     + ((Zpos over * rent_of grid prices s k j) # under))%Q.
  Proof.
    intros Hs Hk Hcounts Hdone. pose proof (sound_in _ _ _ Hsound Hk) as Hj.
    pose proof (shortest_positive j Hj) as Hp. destruct Hj as (Ha & Hg & Hw & _).
    pose proof (held_ticks_enough I s k j Hsound Hs Hk Hdone) as Henough.
    pose proof (held_ticks_bounds I s k j Hs Hk) as Hbounds.
    assert (Hnd : NoDup (held_ticks s k)) by (apply nodup_held_ticks; apply Hs).
    set (p := shortest j) in *. set (held := held_ticks s k) in *. set (c := completion s k) in *.
    set (n := Z.to_nat p).
    assert (Hsplit : held = firstn n held ++ skipn n held) by (symmetry; apply firstn_skipn).
    assert (Hlen : length (firstn n held) = n) by (apply firstn_length_le; lia).
    assert (Hin : forall t, In t (firstn n held) -> In t held).
    { intros t Ht. rewrite Hsplit. apply in_app_iff. now left. }
    assert (Hnd' : NoDup (firstn n held)).
    { rewrite Hsplit in Hnd. now apply nodup_app_left in Hnd. }
    assert (Hc : arrival j < c).
    { destruct (firstn n held) as [|t l] eqn:E; [cbn in Hlen; lia|].
      specialize (Hbounds t (Hin t (or_introl eq_refl))). lia. }
    set (delay := Qnum (weight j) * Zpos under). set (wd := Zpos (Qden (weight j))).
    set (rent := wd * Zpos over * gang j).
    assert (Hdelay : 0 <= delay) by (unfold delay; apply Z.mul_nonneg_nonneg; lia).
    assert (Hrent : 0 <= rent) by (unfold rent, wd; repeat apply Z.mul_nonneg_nonneg; lia).
    destruct (cells_of_grid (arrival j) p ltac:(lia) grid prices (hd 0 grid)
                ltac:(intros b later ->; reflexivity) Hne Hinc Hprices) as [Hcells Hprice].
    rewrite Z.max_r in Hprice by (eapply Hbegin; eassumption).
    assert (Hbound := cheapest_bound p delay rent true Hdelay Hrent c
              (cells_from (arrival j) p grid prices) (arrival j) [] None None (firstn n held) 0 0
              (fun cell H => proj1 (Hcells cell H)) ltac:(intros offer [])
              (fun cell H => proj2 (Hcells cell H))
              ltac:(cbn; split; [intros; lia|lia]) ltac:(lia) (or_introl eq_refl) Hnd'
              (fun t Ht => Hbounds t (Hin t Ht)) (Z.lt_le_incl _ _ Hc) ltac:(lia) Ha).
    unfold least_plan. fold p delay wd. fold rent.
    destruct (cheapest p delay rent true _ _ _ _ _) as [value|]; [|destruct Hbound].
    unfold at_most in Hbound.
    assert (Hsame : sum (cell_price (cells_from (arrival j) p grid prices) (arrival j)) (firstn n held)
                    = sum (price_of grid prices) (firstn n held)).
    { apply sum_ext. intros t Ht. apply Hprice. specialize (Hbounds t (Hin t Ht)). lia. }
    rewrite Hsame in Hbound.
    assert (Hmore : sum (price_of grid prices) (firstn n held) <= sum (price_of grid prices) held).
    { rewrite Hsplit at 2. rewrite sum_app.
      assert (0 <= sum (price_of grid prices) (skipn n held))
        by (apply sum_nonneg; intros; now apply price_nonneg). lia. }
    assert (Hall : value <= delay * c + rent * sum (price_of grid prices) held).
    { assert (rent * sum (price_of grid prices) (firstn n held)
              <= rent * sum (price_of grid prices) held)
        by (apply Z.mul_le_mono_nonneg_l; assumption). lia. }
    unfold rent_of, Qle, Qplus, Qmult, inject_Z. cbn [Qnum Qden]. fold held.
    rewrite !Pos2Z.inj_mul, ?Z.mul_1_r. fold wd.
    set (R := sum (price_of grid prices) held) in *. set (U := Zpos under) in *.
    assert (0 <= wd * U) by (unfold wd, U; lia).
    replace ((Qnum (weight j) * c * U + Zpos over * (gang j * R) * wd) * (wd * U))
      with ((delay * c + rent * R) * (wd * U)) by (unfold delay, rent; fold U; ring).
    apply Z.mul_le_mono_nonneg_r; assumption.
  Qed.
End Plans.
