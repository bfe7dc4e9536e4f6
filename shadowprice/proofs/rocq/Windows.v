(** Prices of each job's own: what jobs pay that complete within windows, and trees of windows (LB-config, LB-windows).

    Moments may lie within ticks, of which each has [fine] parts. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Span Fluid Claim ListBound Worth.
Import ListNotations.
Open Scope Z_scope.

(** ** Cells up to a moment, and from it on *)

Fixpoint split_cells (n : Z) (cells : list (Z * Z)) : list (Z * Z) * list (Z * Z) :=
  match cells with
  | [] => ([], [])
  | (len, price) :: rest =>
      if n <=? 0 then ([], cells)
      else if len <=? n
      then let '(first, later) := split_cells (n - len) rest in ((len, price) :: first, later)
      else ([(n, price)], (len - n, price) :: rest)
  end.

Definition fine_cell (cell : Z * Z) : Prop := 0 <= fst cell /\ 0 <= snd cell.

Lemma split_cells_is cells : forall n now first later,
  (forall cell, In cell cells -> fine_cell cell) -> 0 <= n <= sum fst cells -> split_cells n cells = (first, later) ->
  sum fst first = n /\ (forall cell, In cell first -> fine_cell cell) /\ (forall cell, In cell later -> fine_cell cell) /\
  (forall t, now <= t < now + n -> cell_price first now t = cell_price cells now t) /\
  (forall t, now + n <= t -> cell_price later (now + n) t = cell_price cells now t).
Proof.
  induction cells as [|[len price] rest IH]; intros n now first later Hfine Hn H; cbn [split_cells] in H.
  - injection H as <- <-. cbn [sum] in *. split; [lia|]. split; [intros cell []|]. split; [intros cell []|].
    split; intros; reflexivity.
  - assert (Hrest : forall cell, In cell rest -> fine_cell cell) by (intros cell Hc; apply Hfine; now right).
    assert (Hfirst : fine_cell (len, price)) by (apply Hfine; now left). destruct Hfirst as [Hlen Hprice]. cbn [fst snd] in *.
    cbn [sum fst] in Hn. destruct (Z.leb_spec n 0) as [Hz|Hz].
    { injection H as <- <-. assert (n = 0) as -> by lia. rewrite Z.add_0_r. cbn [sum]. split; [reflexivity|].
      split; [intros cell []|]. split; [exact Hfine|]. split; [intros; lia|reflexivity]. }
    destruct (Z.leb_spec len n) as [Hle|Hgt].
    + destruct (split_cells (n - len) rest) as [f l] eqn:E. injection H as <- <-.
      destruct (IH (n - len) (now + len) f l Hrest ltac:(lia) E) as (H1 & H2 & H3 & H4 & H5).
      cbn [sum fst]. split; [lia|]. split; [intros cell [<-|Hc]; [now split|now apply H2]|]. split; [exact H3|]. split.
      * intros t Ht. cbn [cell_price]. destruct (Z.ltb_spec t (now + len)); [reflexivity|]. apply H4. lia.
      * intros t Ht. cbn [cell_price]. destruct (Z.ltb_spec t (now + len)); [lia|].
        replace (now + n) with (now + len + (n - len)) by lia. apply H5. lia.
    + injection H as <- <-. cbn [sum fst]. split; [lia|]. split; [intros cell [<-|[]]; split; cbn; lia|].
      split; [intros cell [<-|Hc]; [split; cbn; lia|now apply Hrest]|]. split.
      * intros t Ht. cbn [cell_price]. destruct (Z.ltb_spec t (now + n)), (Z.ltb_spec t (now + len)); try lia.
      * intros t Ht. cbn [cell_price]. replace (now + n + (len - n)) with (now + len) by lia. reflexivity.
Qed.

(** Offers of cells, the cheapest first. *)
Definition offers_of (rent : Z) (cells : list (Z * Z)) : list (Z * Z) :=
  fold_right (fun cell => insert (rent * snd cell, fst cell)) [] cells.

Lemma offers_of_sum rent f cells : sum f (offers_of rent cells) = sum (fun cell => f (rent * snd cell, fst cell)) cells.
Proof. induction cells as [|cell l IH]; cbn [offers_of fold_right sum]; [reflexivity|]. rewrite insert_sum. fold (offers_of rent l). lia. Qed.

(** What ticks in some cells cost, against any threshold. *)
Lemma offers_of_bound rent cells : 0 <= rent -> forall now l,
  (forall cell, In cell cells -> fine_cell cell) -> NoDup l -> (forall t, In t l -> now <= t < now + sum fst cells) ->
  (forall theta, theta * Z.of_nat (length l) - sum (PlanPrice.given theta) (offers_of rent cells)
                 <= rent * sum (cell_price cells now) l) /\
  Z.of_nat (length l) <= sum snd (offers_of rent cells).
Proof.
  intros Hrent. induction cells as [|[len price] rest IH]; intros now l Hfine Hnd Hin.
  - destruct l as [|t l]; [cbn; split; [intros; lia|lia]|]. specialize (Hin t (or_introl eq_refl)). cbn in Hin. lia.
  - destruct (Hfine (len, price) (or_introl eq_refl)) as [Hlen Hprice]. cbn [fst snd] in *.
    set (here := filter (fun t => t <? now + len) l). set (later := filter (fun t => negb (t <? now + len)) l).
    assert (Hcount : Z.of_nat (length l) = Z.of_nat (length here) + Z.of_nat (length later)).
    { pose proof (sum_split (fun _ : Z => 1) (fun t => t <? now + len) l) as H. rewrite !sum_const in H.
      fold here in H. fold later in H. lia. }
    assert (Hsum : sum (cell_price ((len, price) :: rest) now) l
                   = price * Z.of_nat (length here) + sum (cell_price rest (now + len)) later).
    { rewrite (sum_split _ (fun t => t <? now + len)). fold here. fold later. f_equal.
      - rewrite <- sum_const. apply sum_ext. intros t Ht. apply filter_In in Ht. cbn [cell_price]. destruct Ht as [_ ->]. reflexivity.
      - apply sum_ext. intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht]. cbn [cell_price].
        destruct (t <? now + len); [discriminate|reflexivity]. }
    assert (Hhere : Z.of_nat (length here) <= len).
    { etransitivity; [apply (distinct_in_range here now (now + len))|lia].
      - now apply NoDup_filter.
      - intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb]. apply Z.ltb_lt in Hb. specialize (Hin t Ht). lia. }
    destruct (IH (now + len) later (fun cell H => Hfine cell (or_intror H))) as [H1 H2].
    + now apply NoDup_filter.
    + intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb]. apply negb_true_iff, Z.ltb_ge in Hb.
      specialize (Hin t Ht). cbn [sum fst] in Hin. lia.
    + cbn [offers_of fold_right] in *. fold (offers_of rent rest) in *. cbn [fst snd]. split.
      * intros theta. rewrite insert_sum. specialize (H1 theta). rewrite Hsum, Hcount. unfold PlanPrice.given at 1. cbn [fst snd].
        assert (theta * Z.of_nat (length here) - Z.max 0 (theta - rent * price) * len <= rent * price * Z.of_nat (length here)) by nia.
        lia.
      * rewrite insert_sum. cbn [snd]. lia.
Qed.

Lemma cells_from_long r p grid : 0 <= p -> forall prices, increasing grid ->
  p <= sum fst (cells_from r p grid prices).
Proof.
  intros Hp. induction grid as [|a grid IH]; intros prices Hinc; [cbn; lia|].
  destruct grid as [|b later]; [destruct prices; cbn; lia|]. destruct prices as [|price more]; [cbn; lia|].
  destruct Hinc as [Hab Hinc]. specialize (IH more Hinc).
  change (cells_from r p (a :: b :: later) (price :: more))
    with (if b <=? r then cells_from r p (b :: later) more
          else (b - Z.max a r, price) :: cells_from r p (b :: later) more).
  destruct (Z.leb_spec b r); [exact IH|]. cbn [sum fst]. lia.
Qed.

(** ** A job that completes within a window *)

(** A job, between what moments it completes, and prices of its time. *)
Record entry := Entry { whose : numbered_job; early : Z; late : option Z; at_prices : list Z }.

(** Least of what the job's end and its time cost; none if it cannot end within the window. Prices are in units
    of [unit]; costs in units of 1 / (denominators of weight and unit x fine). *)
Definition least_end (fine : Z) (unit : Q) (grid : list Z) (e : entry) : option Z :=
  let j := snd (whose e) in
  let p := fine * shortest j in
  let r := fine * arrival j in
  let delay := Qnum (weight j) * Zpos (Qden unit) in
  let rent := Qnum unit * Zpos (Qden (weight j)) in
  let gap := Z.max 0 (early e - r) in
  let '(first, later) := split_cells gap (cells_from r (p + gap) grid (at_prices e)) in
  let now := r + gap in
  match late e with
  | None => cheapest p delay rent true ((0, 0) :: later) now (offers_of rent first) None None
  | Some until =>
      if until <? now then None
      else if until - now <=? sum fst later
      then cheapest p delay rent false ((0, 0) :: fst (split_cells (until - now) later)) now (offers_of rent first) None None
      else cheapest p delay rent true ((0, 0) :: later) now (offers_of rent first) None None
  end.

(** The most that jobs which fit together are worth, over all time. *)
Definition leaf_worth (I : instance) (fine : Z) (grid : list Z) (es : list entry) : Z :=
  all_worth (fun e => gang (snd (whose e))) (fun e => fine * arrival (snd (whose e))) late (Z.to_nat (capacity I)) grid
    (map (fun e => (e, at_prices e)) es).

Fixpoint least_ends (fine : Z) (unit : Q) (grid : list Z) (es : list entry) : option (list Q) :=
  match es with
  | [] => Some []
  | e :: rest =>
      match least_end fine unit grid e, least_ends fine unit grid rest with
      | Some value, Some values => Some ((value # (Qden (weight (snd (whose e))) * Qden unit * Z.to_pos fine)) :: values)
      | _, _ => None
      end
  end.

(** Least cost of jobs within their windows; none if nothing can be done within them. *)
Definition leaf_value (I : instance) (fine : Z) (unit : Q) (grid : list Z) (es : list entry) : option Q :=
  option_map (fun values => total 64 values - (Qnum unit * leaf_worth I fine grid es # (Qden unit * Z.to_pos fine)))%Q
    (least_ends fine unit grid es).

(** Jobs, and between what moments they complete. *)
Definition window : Type := numbered_job * (Z * option Z).

(** A tree of windows: one job completes up to a moment, or from it on; or prices, a row a job. *)
Inductive tree := Cut (which : nat) (moment : Z) (up_to from_then : tree) | Leaf (grid : list Z) (rows : list (list Z)).

Fixpoint change {A} (k : nat) (f : A -> A) (l : list A) : list A :=
  match l, k with
  | [], _ => []
  | x :: rest, O => f x :: rest
  | x :: rest, S k => x :: change k f rest
  end.

Definition until_moment (moment : Z) (w : window) : window :=
  (fst w, (fst (snd w), Some (match snd (snd w) with Some until => Z.min until moment | None => moment end))).

Definition from_moment (moment : Z) (w : window) : window := (fst w, (Z.max (fst (snd w)) moment, snd (snd w))).

Fixpoint entries_of (ws : list window) (rows : list (list Z)) : list entry :=
  match ws, rows with
  | w :: ws, row :: rows => Entry (fst w) (fst (snd w)) (snd (snd w)) row :: entries_of ws rows
  | _, _ => []
  end.

Definition check_leaf (grid : list Z) (rows : list (list Z)) (number : nat) : bool :=
  negb (match grid with [] => true | _ => false end) && increasingb grid && (hd 0 grid <=? 0)
  && Nat.eqb (length rows) number && forallb (forallb (fun p => 0 <=? p)) rows.

Definition least_of_two (x y : option Q) : option Q :=
  match x, y with
  | Some a, Some b => if Qle_bool a b then Some a else Some b
  | Some a, None => Some a
  | None, y => y
  end.

(** None if some prices make no sense; else none inside if nothing can be done. *)
Fixpoint tree_value (I : instance) (fine : Z) (unit : Q) (t : tree) (ws : list window) : option (option Q) :=
  match t with
  | Cut k moment up_to from_then =>
      match tree_value I fine unit up_to (change k (until_moment moment) ws),
            tree_value I fine unit from_then (change k (from_moment moment) ws) with
      | Some a, Some b => Some (least_of_two a b)
      | _, _ => None
      end
  | Leaf grid rows =>
      if check_leaf grid rows (length ws) then Some (leaf_value I fine unit grid (entries_of ws rows)) else None
  end.

Section Fine.
  Variables (I : instance) (s : schedule) (fine : Z).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hfine : 1 <= fine.

  (** Parts of ticks in which a job holds its gang. *)
  Definition parts_held (k : nat) : list Z := flat_map (fun t => ticks (fine * t) (fine * (t + 1))) (held_ticks s k).

  Lemma in_parts k u : In u (parts_held k) <-> In (u / fine) (held_ticks s k).
  Proof.
    unfold parts_held. rewrite in_flat_map. split.
    - intros (t & Ht & Hu). apply in_ticks in Hu.
      assert (u / fine = t) as ->; [|exact Ht]. symmetry. apply (Z.div_unique u fine t (u - fine * t)); lia.
    - intros H. exists (u / fine). split; [exact H|]. apply in_ticks.
      pose proof (Z.div_mod u fine ltac:(lia)). pose proof (Z.mod_pos_bound u fine ltac:(lia)). lia.
  Qed.

  Lemma parts_bounds k j : nth_error (jobs I) k = Some j ->
    forall u, In u (parts_held k) -> fine * arrival j <= u < fine * completion s k.
  Proof.
    intros Hk u Hu. apply in_parts in Hu. pose proof (held_ticks_bounds I s k j Hs Hk _ Hu).
    pose proof (Z.div_mod u fine ltac:(lia)). pose proof (Z.mod_pos_bound u fine ltac:(lia)). nia.
  Qed.

  Lemma nodup_parts k : NoDup (parts_held k).
  Proof.
    assert (H : NoDup (held_ticks s k)) by (apply nodup_held_ticks; apply Hs). unfold parts_held.
    induction H as [|t l Ht _ IH]; cbn [flat_map]; [constructor|]. apply nodup_app; [apply nodup_ticks|exact IH|].
    intros u Hu Hin. apply in_ticks in Hu. apply in_flat_map in Hin. destruct Hin as (t' & Ht' & Hu').
    apply in_ticks in Hu'. assert (t = t') as -> by nia. contradiction.
  Qed.

  Lemma parts_length k : Z.of_nat (length (parts_held k)) = fine * Z.of_nat (length (held_ticks s k)).
  Proof.
    unfold parts_held. rewrite length_flat_map, <- (Z.mul_comm (Z.of_nat _)).
    rewrite (Z.mul_comm _ fine), <- sum_const. apply sum_ext. intros t _. rewrite length_ticks. lia.
  Qed.

  Variables (unit : Q) (grid : list Z).
  Hypothesis Hunit : 0 <= Qnum unit.
  Hypothesis Hgrid : increasing grid.
  Hypothesis Hne : grid <> [].
  Hypothesis Hhd : hd 0 grid <= 0.

  (** A job of which all that an entry says is true. *)
  Definition in_window (e : entry) : Prop :=
    nth_error (jobs I) (fst (whose e)) = Some (snd (whose e)) /\ counts I (snd (whose e)) = true /\
    finished I (snd (whose e)) (runs_of (fst (whose e)) s) = true /\
    early e <= fine * completion s (fst (whose e)) /\
    match late e with Some until => fine * completion s (fst (whose e)) <= until | None => True end /\
    forall p, In p (at_prices e) -> 0 <= p.

  Definition rented (e : entry) : Z := sum (price_of grid (at_prices e)) (parts_held (fst (whose e))).

  Lemma least_end_job e : in_window e ->
    at_most (least_end fine unit grid e)
      (Qnum (weight (snd (whose e))) * Zpos (Qden unit) * (fine * completion s (fst (whose e)))
       + Qnum unit * Zpos (Qden (weight (snd (whose e)))) * rented e).
  Proof.
    destruct e as [[k j] before_ after_ prices]. unfold in_window, rented, least_end. cbn [whose fst snd early late at_prices].
    intros (Hk & Hcounts & Hdone & Hearly & Hlate & Hprices).
    pose proof (sound_in _ _ _ Hsound Hk) as Hj. pose proof (shortest_positive j Hj) as Hp0. destruct Hj as (Ha & Hg & Hw & _).
    pose proof (held_ticks_enough I s k j Hsound Hs Hk Hdone) as Henough.
    pose proof (parts_bounds k j Hk) as Hbounds. pose proof (nodup_parts k) as Hnd. pose proof (parts_length k) as Hlength.
    pose proof (completion_alone I s k j Hsound Hs Hk Hdone) as Halone.
    set (p := fine * shortest j). set (r := fine * arrival j). set (c := fine * completion s k) in *.
    set (delay := Qnum (weight j) * Zpos (Qden unit)). set (rent := Qnum unit * Zpos (Qden (weight j))).
    set (gap := Z.max 0 (before_ - r)). set (now := r + gap).
    assert (Hp : 0 <= p) by (unfold p; nia). assert (Hr : 0 <= r) by (unfold r; nia).
    assert (Hdelay : 0 <= delay) by (unfold delay; apply Z.mul_nonneg_nonneg; lia).
    assert (Hrent : 0 <= rent) by (unfold rent; apply Z.mul_nonneg_nonneg; lia).
    assert (Hrc : r + p <= c) by (unfold r, p, c; nia).
    assert (Hnow : now <= c) by (unfold now, gap; lia).
    (* as many parts as the job needs *)
    set (held := parts_held k) in *. set (n := Z.to_nat p).
    assert (Hlen : length (firstn n held) = n).
    { apply firstn_length_le. assert (p <= Z.of_nat (length held)) by (rewrite Hlength; unfold p; apply Z.mul_le_mono_nonneg_l; lia). lia. }
    assert (Hsplit : held = firstn n held ++ skipn n held) by (symmetry; apply firstn_skipn).
    assert (Hin : forall t, In t (firstn n held) -> In t held) by (intros t Ht; rewrite Hsplit; apply in_app_iff; now left).
    assert (Hnd' : NoDup (firstn n held)) by (rewrite Hsplit in Hnd; now apply nodup_app_left in Hnd).
    assert (Hmore : sum (price_of grid prices) (firstn n held) <= sum (price_of grid prices) held).
    { rewrite Hsplit at 2. rewrite sum_app.
      assert (0 <= sum (price_of grid prices) (skipn n held)) by (apply sum_nonneg; intros; now apply price_nonneg). lia. }
    set (mine := firstn n held) in *. assert (Hmine : forall t, In t mine -> r <= t < c) by (intros t Ht; apply Hbounds, Hin, Ht).
    (* cells *)
    destruct (cells_of_grid r (p + gap) ltac:(unfold gap; lia) grid prices (hd 0 grid)
                ltac:(intros b later ->; reflexivity) Hne Hgrid Hprices) as [Hcells Hprice].
    rewrite Z.max_r in Hprice by lia.
    pose proof (cells_from_long r (p + gap) grid ltac:(unfold gap; lia) prices Hgrid) as Hlong.
    set (cells := cells_from r (p + gap) grid prices) in *.
    destruct (split_cells gap cells) as [first later] eqn:Efirst.
    destruct (split_cells_is cells gap r first later Hcells ltac:(unfold gap in *; lia) Efirst) as (Hsum & Hfirst & Hlater & Hpfirst & Hplater).
    fold now in Hplater.
    (* parts before the window, and within *)
    set (past := filter (fun t => t <? now) mine). set (within := filter (fun t => negb (t <? now)) mine).
    assert (Hpast : forall t, In t past -> r <= t < r + gap).
    { intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb]. apply Z.ltb_lt in Hb. specialize (Hmine t Ht). unfold now in Hb. lia. }
    assert (Hwithin : forall t, In t within -> now <= t < c).
    { intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb]. apply negb_true_iff, Z.ltb_ge in Hb. specialize (Hmine t Ht). lia. }
    assert (Hcount : Z.of_nat (length past) + Z.of_nat (length within) = p).
    { pose proof (sum_split (fun _ : Z => 1) (fun t => t <? now) mine) as H. rewrite !sum_const in H. fold past within in H. lia. }
    assert (Hrented : sum (cell_price first r) past + sum (cell_price later now) within = sum (price_of grid prices) mine).
    { rewrite (sum_split _ (fun t => t <? now) mine). fold past within. f_equal; apply sum_ext.
      - intros t Ht. rewrite Hpfirst by now apply Hpast. apply Hprice. specialize (Hpast t Ht). lia.
      - intros t Ht. rewrite Hplater by (specialize (Hwithin t Ht); lia). apply Hprice. specialize (Hwithin t Ht). unfold now, gap in Hwithin. lia. }
    destruct (offers_of_bound rent first Hrent r past Hfirst (NoDup_filter _ Hnd') ltac:(rewrite Hsum; exact Hpast)) as [Htheta Hroom].
    set (paid := rent * sum (cell_price first r) past).
    assert (Hpaid : 0 <= paid).
    { unfold paid. apply Z.mul_nonneg_nonneg; [exact Hrent|]. apply sum_nonneg. intros t Ht. rewrite Hpfirst by now apply Hpast.
      rewrite Hprice by (specialize (Hpast t Ht); lia). now apply price_nonneg. }
    assert (Hoffers : forall offer, In offer (offers_of rent first) -> 0 <= snd offer).
    { clear - Hfirst. induction first as [|cell l IH]; intros offer Ho; [destruct Ho|]. cbn [offers_of fold_right] in Ho.
      apply insert_in in Ho. destruct Ho as [->|Ho]; [apply (Hfirst cell); now left|]. apply IH; [|exact Ho]. intros x Hx. apply Hfirst. now right. }
    (* whatever cells there are from now on that have these prices *)
    assert (Hall : forall open rest, (forall cell, In cell rest -> fine_cell cell) ->
      open = true \/ c <= now + sum fst rest ->
      (forall t, In t within -> cell_price rest now t = cell_price later now t) ->
      at_most (cheapest p delay rent open ((0, 0) :: rest) now (offers_of rent first) None None)
        (delay * c + rent * sum (price_of grid prices) held)).
    { intros open rest Hrest Hopen Hsame.
      pose proof (cheapest_bound p delay rent open Hdelay Hrent c ((0, 0) :: rest) now (offers_of rent first) None None
                    within (Z.of_nat (length past)) paid) as H.
      assert (H' := H ltac:(intros cell [<-|Hc]; [cbn; lia|apply (Hrest cell Hc)]) Hoffers
                      ltac:(intros cell [<-|Hc]; [cbn; lia|apply (Hrest cell Hc)])
                      (conj Htheta Hroom) Hpaid
                      ltac:(destruct Hopen as [Ho|Ho]; [now left|right; split; [discriminate|cbn [sum fst]; lia]])
                      (NoDup_filter _ Hnd') Hwithin Hnow ltac:(lia) ltac:(unfold now, gap; lia)).
      clear H. destruct (cheapest _ _ _ _ _ _ _ _ _) as [value|]; [|exact H']. cbn [at_most] in *.
      assert (Hzero : sum (cell_price ((0, 0) :: rest) now) within = sum (cell_price later now) within).
      { apply sum_ext. intros t Ht. cbn [cell_price]. rewrite Z.add_0_r. specialize (Hwithin t Ht).
        destruct (Z.ltb_spec t now); [lia|]. now apply Hsame. }
      rewrite Hzero in H'. unfold paid in H'.
      assert (Hdear : rent * sum (price_of grid prices) mine <= rent * sum (price_of grid prices) held) by (apply Z.mul_le_mono_nonneg_l; assumption).
      rewrite <- Hrented, Z.mul_add_distr_l in Hdear. lia. }
    destruct after_ as [until|].
    - destruct (Z.ltb_spec until now); [lia|]. destruct (Z.leb_spec (until - now) (sum fst later)) as [Hshort|Hbeyond].
      + destruct (split_cells (until - now) later) as [some others] eqn:Esome. cbn [fst].
        destruct (split_cells_is later (until - now) now some others Hlater ltac:(lia) Esome) as (Hsum' & Hsome & _ & Hpsome & _).
        apply Hall; [exact Hsome|right; lia|]. intros t Ht. apply Hpsome. specialize (Hwithin t Ht). lia.
      + apply Hall; [exact Hlater|now left|reflexivity].
    - apply Hall; [exact Hlater|now left|reflexivity].
  Qed.

  (** *** Rent *)

  Definition holds_part (e : entry) (u : Z) : bool :=
    if in_dec Z.eq_dec (u / fine) (held_ticks s (fst (whose e))) then true else false.

  Lemma holds_part_is e u : holds_part e u = true <-> In u (parts_held (fst (whose e))).
  Proof.
    unfold holds_part. rewrite in_parts. destruct (in_dec _ _ _); split; intros H; try assumption; try reflexivity;
      try discriminate; contradiction.
  Qed.

  Lemma counted_window e : in_window e -> In (whose e) (counted I).
  Proof. intros (Hk & Hcounts & _). destruct (whose e) as [k j]. now apply in_counted. Qed.

  Lemma fits_at es u : (forall e, In e es -> in_window e) -> NoDup (map whose es) ->
    sum (fun e => if holds_part e u then gang (snd (whose e)) else 0) es <= capacity I.
  Proof.
    intros Hes Hnd. set (one := fun x => if x =? u / fine then 1 else 0).
    assert (Hone : forall x, 0 <= one x) by (intros x; unfold one; destruct (x =? u / fine); lia).
    assert (Hincl : incl (map whose es) (counted I)).
    { intros kj Hin. apply in_map_iff in Hin. destruct Hin as (e & <- & He). now apply counted_window, Hes. }
    assert (Hsingle : NoDup [u / fine]) by (constructor; [intros []|constructor]).
    pose proof (gangs_rentable I s Hsound Hs (map whose es) one [u / fine] Hnd Hincl Hsingle Hone) as H.
    assert (H' := H ltac:(intros x Hx; left; unfold one in Hx; destruct (Z.eqb_spec x (u / fine)); [congruence|lia])). clear H.
    cbn [sum] in H'. unfold one at 2 in H'. rewrite Z.eqb_refl in H'.
    etransitivity; [|etransitivity; [exact H'|lia]]. rewrite sum_map. apply sum_le. intros e He.
    destruct (Hes e He) as (Hk & _). destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _).
    assert (Hsum : 0 <= sum one (held_ticks s (fst (whose e)))) by (apply sum_nonneg; intros; apply Hone).
    unfold holds_part. destruct (in_dec _ _ _) as [Hin|_]; [|apply Z.mul_nonneg_nonneg; lia].
    rewrite <- (Z.mul_1_r (gang _)) at 1. apply Z.mul_le_mono_nonneg_l; [lia|]. exact (once_at_least (u / fine) _ Hin).
  Qed.

  Lemma rent_at_most_worth es : (forall e, In e es -> in_window e) -> NoDup (map whose es) ->
    sum rented es <= leaf_worth I fine grid es.
  Proof.
    intros Hes Hnd. set (all := ticks (hd 0 grid) (last grid 0)).
    transitivity (sum (fun u => sum (fun e => if holds_part e u then price_of grid (at_prices e) u else 0) es) all).
    - rewrite sum_swap. apply sum_le. intros e He. destruct (Hes e He) as (Hk & _ & _ & _ & _ & Hprices).
      unfold rented. rewrite <- sum_filter. apply sum_included; [apply nodup_parts|intros; now apply price_nonneg|].
      intros u Hu Hprice. apply filter_In. split; [|now apply holds_part_is]. apply in_ticks.
      pose proof (parts_bounds _ _ Hk u Hu). destruct (sound_in _ _ _ Hsound Hk) as (Ha & _).
      assert (0 <= fine * arrival (snd (whose e))) by nia. split; [lia|].
      destruct (Z_lt_ge_dec u (last grid 0)) as [|Hlate]; [assumption|]. exfalso. apply Hprice. apply price_after; [exact Hgrid|lia].
    - unfold leaf_worth. etransitivity; [|apply (all_worth_bound _ _ _ _ holds_part in_window)].
      + apply Z.eq_le_incl, sum_ext. intros u _. rewrite sum_map. reflexivity.
      + intros e u (Hk & _) _. destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _). lia.
      + intros e u (Hk & _ & _ & _ & Hlate & _) Hu. apply holds_part_is in Hu. pose proof (parts_bounds _ _ Hk u Hu).
        split; [lia|]. destruct (late e); [lia|exact Logic.I].
      + exact Hgrid.
      + exact Hne.
      + intros x Hx. apply in_map_iff in Hx. destruct Hx as (e & <- & He). now apply Hes.
      + intros u. rewrite sum_map. cbn [fst]. pose proof (fits_at es u Hes Hnd). lia.
  Qed.

  Hypothesis Hlimit : until I = None.

  Lemma least_ends_sound es : (forall e, In e es -> in_window e) ->
    match least_ends fine unit grid es with
    | Some values => (sumQ whole values <= cost_of I s (map whose es) + (Qnum unit * sum rented es # (Qden unit * Z.to_pos fine)))%Q
    | None => False
    end.
  Proof.
    induction es as [|e es IH]; intros Hes; cbn [least_ends].
    - cbn. unfold Qle. cbn. lia.
    - specialize (IH (fun x Hx => Hes x (or_intror Hx))). assert (He := Hes e (or_introl eq_refl)).
      pose proof (least_end_job e He) as H. destruct (least_end fine unit grid e) as [value|]; [|exact H]. cbn [at_most] in H.
      destruct (least_ends fine unit grid es) as [values|]; [|exact IH]. unfold cost_of in *. cbn [map sumQ sum].
      unfold whole at 1. set (D := Qden (weight (snd (whose e)))) in *. set (F := Z.to_pos fine) in *.
      assert (HF : Zpos F = fine) by (unfold F; apply Z2Pos.id; lia).
      assert (H1 : ((value # (D * Qden unit * F)) <= weight (snd (whose e)) * inject_Z (end_of I s (whose e))
                     + (Qnum unit * rented e # (Qden unit * F)))%Q).
      { unfold end_of, ending. rewrite Hlimit. fold (completion s (fst (whose e))).
        set (C := completion s (fst (whose e))) in *. unfold Qle, Qplus, Qmult, inject_Z. cbn [Qnum Qden]. fold D.
        rewrite !Pos2Z.inj_mul, HF, ?Z.mul_1_r. set (d := Zpos D) in *. set (u := Zpos (Qden unit)) in *.
        set (N := Qnum (weight (snd (whose e)))) in *. set (R := rented e) in *. set (U := Qnum unit) in *.
        replace ((N * C * (u * fine) + U * R * d) * (d * u * fine)) with ((N * u * (fine * C) + U * d * R) * (d * (u * fine))) by ring.
        apply Z.mul_le_mono_nonneg_r; [|exact H]. unfold d, u. apply Z.mul_nonneg_nonneg; lia. }
      rewrite Z.mul_add_distr_l.
      assert (Hsum : ((Qnum unit * rented e + Qnum unit * sum rented es # (Qden unit * F))
                      == (Qnum unit * rented e # (Qden unit * F)) + (Qnum unit * sum rented es # (Qden unit * F)))%Q).
      { unfold Qeq, Qplus. cbn [Qnum Qden]. rewrite !Pos2Z.inj_mul. ring. }
      rewrite Hsum. eapply Qle_trans; [apply Qplus_le_compat; [exact H1|exact IH]|]. apply Qle_lteq. right. ring.
  Qed.

  Lemma leaf_sound es : (forall e, In e es -> in_window e) -> NoDup (map whose es) ->
    match leaf_value I fine unit grid es with
    | Some value => (value <= cost_of I s (map whose es))%Q
    | None => False
    end.
  Proof.
    intros Hes Hnd. pose proof (least_ends_sound es Hes) as H. unfold leaf_value.
    destruct (least_ends fine unit grid es) as [values|]; [|exact H]. cbn [option_map]. rewrite total_is.
    pose proof (rent_at_most_worth es Hes Hnd) as Hrent.
    assert (H' : ((Qnum unit * sum rented es # (Qden unit * Z.to_pos fine)) <= (Qnum unit * leaf_worth I fine grid es # (Qden unit * Z.to_pos fine)))%Q).
    { unfold Qle. cbn [Qnum Qden]. apply Z.mul_le_mono_nonneg_r; [lia|]. now apply Z.mul_le_mono_nonneg_l. }
    set (paid := (_ # _)%Q) in H' at 1. set (worth := (Qnum unit * leaf_worth I fine grid es # _)%Q) in *. fold paid in H.
    apply Qle_minus_iff in H. apply Qle_minus_iff in H'. apply Qle_minus_iff.
    setoid_replace (cost_of I s (map whose es) + - (sumQ whole values - worth))%Q
      with ((cost_of I s (map whose es) + paid + - sumQ whole values) + (worth + - paid))%Q by ring.
    rewrite <- (Qplus_0_l 0). now apply Qplus_le_compat.
  Qed.
End Fine.

(** ** Trees *)

Section Tree.
  Variables (I : instance) (s : schedule) (fine : Z) (unit : Q).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hfine : 1 <= fine.
  Hypothesis Hunit : 0 <= Qnum unit.
  Hypothesis Hlimit : until I = None.

  Definition completes_within (w : window) : Prop :=
    In (fst w) (counted I) /\ fst (snd w) <= fine * completion s (fst (fst w)) /\
    match snd (snd w) with Some until => fine * completion s (fst (fst w)) <= until | None => True end.

  Lemma change_all {A} (P : A -> Prop) (f : A -> A) l : forall k, (forall x, In x l -> P x) ->
    (forall x, nth_error l k = Some x -> P (f x)) -> forall x, In x (change k f l) -> P x.
  Proof.
    induction l as [|y l IH]; intros k Hl Hk x Hx; [destruct k; destruct Hx|]. destruct k as [|k]; cbn [change] in Hx.
    - destruct Hx as [<-|Hx]; [now apply Hk|apply Hl; now right].
    - destruct Hx as [<-|Hx]; [apply Hl; now left|]. apply (IH k); [intros z Hz; apply Hl; now right|exact Hk|exact Hx].
  Qed.

  Lemma change_fst (f : window -> window) l : (forall w, fst (f w) = fst w) -> forall k, map fst (change k f l) = map fst l.
  Proof.
    intros Hf. induction l as [|y l IH]; intros k; [now destruct k|]. destruct k as [|k]; cbn [change map]; [now rewrite Hf|now rewrite IH].
  Qed.

  Lemma entries_whose ws : forall rows, length rows = length ws -> map whose (entries_of ws rows) = map fst ws.
  Proof.
    induction ws as [|w ws IH]; intros [|row rows] H; try discriminate; [reflexivity|]. cbn [entries_of map whose].
    f_equal. apply IH. now injection H.
  Qed.

  Lemma entries_in ws : forall rows e, In e (entries_of ws rows) ->
    exists w row, In w ws /\ In row rows /\ e = Entry (fst w) (fst (snd w)) (snd (snd w)) row.
  Proof.
    induction ws as [|w ws IH]; intros [|row rows] e He; try destruct He.
    - exists w, row. repeat split; [now left|now left|congruence].
    - destruct (IH rows e H) as (w' & row' & H1 & H2 & H3). exists w', row'. repeat split; [now right|now right|exact H3].
  Qed.

  Theorem tree_sound t : forall ws, (forall w, In w ws -> completes_within w) -> NoDup (map fst ws) ->
    match tree_value I fine unit t ws with
    | Some (Some value) => (value <= cost_of I s (map fst ws))%Q
    | Some None => False
    | None => True
    end.
  Proof.
    induction t as [k moment up_to IHu from_then IHf|grid rows]; intros ws Hws Hnd; cbn [tree_value].
    - pose proof (change_fst (until_moment moment) ws (fun _ => eq_refl) k) as Efst1.
      pose proof (change_fst (from_moment moment) ws (fun _ => eq_refl) k) as Efst2.
      specialize (IHu (change k (until_moment moment) ws)). specialize (IHf (change k (from_moment moment) ws)).
      rewrite Efst1 in IHu. rewrite Efst2 in IHf.
      assert (H : (forall w, In w (change k (until_moment moment) ws) -> completes_within w) \/
                  (forall w, In w (change k (from_moment moment) ws) -> completes_within w)).
      { destruct (nth_error ws k) as [w|] eqn:E.
        - assert (Hw := Hws w (nth_error_In _ _ E)). destruct Hw as (Hin & Hearly & Hlate).
          destruct (Z_le_gt_dec (fine * completion s (fst (fst w))) moment) as [Hle|Hgt]; [left|right];
            apply (change_all completes_within); try exact Hws; intros x Hx; rewrite E in Hx; injection Hx as <-;
            (split; [exact Hin|]); cbn [until_moment from_moment fst snd].
          + split; [exact Hearly|]. destruct (snd (snd w)); lia.
          + split; [lia|exact Hlate].
        - left. apply (change_all completes_within); [exact Hws|]. intros x Hx. congruence. }
      destruct (tree_value I fine unit up_to _) as [[a|]|], (tree_value I fine unit from_then _) as [[b|]|]; try exact Logic.I;
        cbn [least_of_two]; destruct H as [H|H]; try (now destruct (IHu H Hnd)); try (now destruct (IHf H Hnd));
        try (exact (IHu H Hnd)); try (exact (IHf H Hnd)).
      + specialize (IHu H Hnd). destruct (Qle_bool a b) eqn:E; [exact IHu|].
        eapply Qle_trans; [|exact IHu]. destruct (Qlt_le_dec b a) as [Hlt|Hle]; [now apply Qlt_le_weak|]. apply Qle_bool_iff in Hle. congruence.
      + specialize (IHf H Hnd). destruct (Qle_bool a b) eqn:E; [|exact IHf]. eapply Qle_trans; [|exact IHf]. now apply Qle_bool_iff.
    - destruct (check_leaf grid rows (length ws)) eqn:Hcheck; [|exact Logic.I]. unfold check_leaf in Hcheck.
      rewrite !andb_true_iff, forallb_forall in Hcheck. destruct Hcheck as ((((Hne & Hinc) & Hhd) & Hlength) & Hrows).
      apply increasingb_sound in Hinc. apply Z.leb_le in Hhd. apply Nat.eqb_eq in Hlength.
      assert (Hes : forall e, In e (entries_of ws rows) -> in_window I s fine e).
      { intros e He. destruct (entries_in ws rows e He) as (w & row & Hw & Hrow & ->). destruct (Hws w Hw) as (Hin & Hearly & Hlate).
        unfold in_window. cbn [whose early late at_prices]. destruct (fst w) as [k j]. apply in_counted in Hin. destruct Hin as [Hk Hcounts].
        cbn [fst snd]. repeat split; try assumption.
        - destruct Hs as (_ & _ & _ & Hdone). now apply Hdone.
        - intros p Hp. specialize (Hrows row Hrow). rewrite forallb_forall in Hrows. apply Z.leb_le. now apply Hrows. }
      pose proof (leaf_sound I s fine Hsound Hs Hfine unit grid Hunit Hinc ltac:(intros ->; discriminate) Hhd Hlimit (entries_of ws rows) Hes) as H.
      rewrite (entries_whose ws rows Hlength) in H. specialize (H Hnd).
      destruct (leaf_value I fine unit grid (entries_of ws rows)); exact H.
  Qed.
End Tree.
