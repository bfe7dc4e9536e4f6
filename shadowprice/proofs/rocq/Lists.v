(** Jobs that begin once, each after the one before (LB-list): no list of them costs less than so much, if all lists are
    gone through but those that cost as much already, and those that another of the same jobs makes needless.

    Whoever begins first of the jobs that are left can as well begin as early as he fits; all others can go on as they
    did (derived). *)

From Coq Require Import List ZArith Lia Bool Permutation Sorting.Mergesort Orders.
From Shadowprice Require Import Sums JobPrice Duality.
Import ListNotations.
Open Scope Z_scope.

(** A job in so far as lists are concerned. *)
Record item := Item { ready : Z; width : Z; lasts : Z; weighs : Z }.

(** What jobs that are begun cost, the last of their starts, and (end, width) of who holds GPUs then. *)
Record state := State { so_far : Z; now : Z; holds : list (Z * Z) }.

(** ** GPUs that are held after a moment *)

Definition held_at (t : Z) (h : list (Z * Z)) : Z := sum (fun e => if t <? fst e then snd e else 0) h.

(** Between some moment and the last end before it, or where it all began, nothing changes. *)
Lemma last_change (h : list (Z * Z)) a t : a <= t ->
  exists c, (c = a \/ In c (map fst h)) /\ a <= c <= t /\ forall e, In e h -> ~ c < fst e <= t.
Proof.
  intros Ha. induction h as [|e h (c & Hin & Hc & Hnone)].
  - exists a. split; [now left|]. split; [lia|]. intros e [].
  - destruct (Z_lt_ge_dec c (fst e)) as [Hlt|Hge].
    + destruct (Z_le_gt_dec (fst e) t) as [Hle|Hgt].
      * exists (fst e). split; [right; now left|]. split; [lia|].
        intros x [<-|Hx]; [lia|]. specialize (Hnone x Hx). lia.
      * exists c. split; [destruct Hin; [now left|right; now right]|]. split; [exact Hc|].
        intros x [<-|Hx]; [lia|]. now apply Hnone.
    + exists c. split; [destruct Hin; [now left|right; now right]|]. split; [exact Hc|].
      intros x [<-|Hx]; [lia|]. now apply Hnone.
Qed.

Lemma held_unchanged (h : list (Z * Z)) c t : c <= t -> (forall e, In e h -> ~ c < fst e <= t) -> held_at c h = held_at t h.
Proof.
  intros Hc H. apply sum_ext. intros e He. specialize (H e He).
  destruct (Z.ltb_spec c (fst e)), (Z.ltb_spec t (fst e)); lia.
Qed.

Lemma held_less (h : list (Z * Z)) a b : (forall e, In e h -> 0 <= snd e) -> a <= b -> held_at b h <= held_at a h.
Proof.
  intros Hh Hab. apply sum_le. intros e He. specialize (Hh e He).
  destruct (Z.ltb_spec a (fst e)), (Z.ltb_spec b (fst e)); lia.
Qed.

(** ** Price of a GPU up to a moment *)

Fixpoint paid_to (grid prices : list Z) (t : Z) : Z :=
  match grid, prices with
  | a :: ((b :: _) as later), price :: more => price * Z.max 0 (Z.min t b - a) + paid_to later more t
  | _, _ => 0
  end.

Lemma paid_to_none grid : forall prices t, increasing grid -> t <= hd 0 grid -> paid_to grid prices t = 0.
Proof.
  induction grid as [|a grid IH]; intros prices t Hinc Ht; [reflexivity|].
  destruct grid as [|b later]; [destruct prices; reflexivity|]. destruct prices as [|price more]; [reflexivity|].
  destruct Hinc as [Hab Hinc]. cbn [hd] in Ht.
  change (paid_to (a :: b :: later) (price :: more) t)
    with (price * Z.max 0 (Z.min t b - a) + paid_to (b :: later) more t).
  rewrite IH by (try assumption; cbn [hd]; lia). nia.
Qed.

Lemma paid_to_next grid : forall prices t, increasing grid -> hd 0 grid <= t ->
  paid_to grid prices (t + 1) = paid_to grid prices t + price_of grid prices t.
Proof.
  induction grid as [|a grid IH]; intros prices t Hinc Ht; [reflexivity|].
  destruct grid as [|b later]; [destruct prices; reflexivity|]. destruct prices as [|price more]; [reflexivity|].
  destruct Hinc as [Hab Hinc]. cbn [hd] in Ht.
  change (paid_to (a :: b :: later) (price :: more) (t + 1))
    with (price * Z.max 0 (Z.min (t + 1) b - a) + paid_to (b :: later) more (t + 1)).
  change (paid_to (a :: b :: later) (price :: more) t)
    with (price * Z.max 0 (Z.min t b - a) + paid_to (b :: later) more t).
  change (price_of (a :: b :: later) (price :: more) t)
    with (if t <? b then price else price_of (b :: later) more t).
  destruct (Z.ltb_spec t b) as [H|H].
  - rewrite !paid_to_none by (try assumption; cbn [hd]; lia).
    replace (Z.max 0 (Z.min (t + 1) b - a)) with (Z.max 0 (Z.min t b - a) + 1) by lia. ring.
  - rewrite IH by (try assumption; cbn [hd]; lia).
    replace (Z.min (t + 1) b) with (Z.min t b) by lia. ring.
Qed.

Lemma sum_of_paid grid prices n : forall a, increasing grid -> hd 0 grid <= a ->
  sum (price_of grid prices) (ticks a (a + Z.of_nat n)) = paid_to grid prices (a + Z.of_nat n) - paid_to grid prices a.
Proof.
  induction n as [|n IH]; intros a Hinc Ha.
  - rewrite Z.add_0_r. unfold ticks. rewrite Z.sub_diag. cbn [Z.to_nat seq map sum]. lia.
  - rewrite (ticks_app a (a + 1)) by lia. rewrite sum_app.
    replace (a + Z.of_nat (S n)) with (a + 1 + Z.of_nat n) by lia. rewrite IH by (try assumption; lia).
    assert (Hone : ticks a (a + 1) = [a]).
    { unfold ticks. replace (Z.to_nat (a + 1 - a)) with 1%nat by lia. cbn. f_equal. lia. }
    rewrite Hone. cbn [sum]. pose proof (paid_to_next grid prices a Hinc Ha). lia.
Qed.

Lemma paid_between grid prices a b : increasing grid -> hd 0 grid <= a -> a <= b ->
  sum (price_of grid prices) (ticks a b) = paid_to grid prices b - paid_to grid prices a.
Proof.
  intros Hinc Ha Hab. replace b with (a + Z.of_nat (Z.to_nat (b - a))) by lia. now apply sum_of_paid.
Qed.

Lemma price_changes grid : forall prices t, ~ In t grid -> price_of grid prices t = price_of grid prices (t - 1).
Proof.
  induction grid as [|a grid IH]; intros prices t Ht; [reflexivity|].
  destruct grid as [|b later]; [destruct prices; reflexivity|]. destruct prices as [|price more]; [reflexivity|].
  change (price_of (a :: b :: later) (price :: more)) with (fun t => if t <? b then price else price_of (b :: later) more t).
  cbn beta. assert (Hb : t <> b) by (intros ->; apply Ht; right; now left).
  rewrite IH by (intros H; apply Ht; now right).
  destruct (Z.ltb_spec t b), (Z.ltb_spec (t - 1) b); try lia; reflexivity.
Qed.

(** ** Cheapest start of a job at prices of GPUs *)

Section Start.
  Variables (grid prices : list Z) (x : item).

  (** What a job costs that starts at a moment, with the price of its GPUs. *)
  Definition cost_from (start : Z) : Z :=
    let finish := start + lasts x in
    weighs x * finish + width x * (paid_to grid prices finish - paid_to grid prices start).

  (** Starts at which the slope of the cost may change. *)
  Definition knots : list Z := grid ++ map (fun t => t - lasts x) grid.

  Hypothesis Hinc : increasing grid.
  Hypothesis Hweight : 0 <= weighs x.
  Hypothesis Hlasts : 0 <= lasts x.

  Definition slope (t : Z) : Z := weighs x + width x * (price_of grid prices (t + lasts x) - price_of grid prices t).

  Lemma slope_is t : hd 0 grid <= t -> cost_from (t + 1) = cost_from t + slope t.
  Proof.
    intros Ht. unfold cost_from, slope. cbn zeta.
    replace (t + 1 + lasts x) with (t + lasts x + 1) by lia.
    rewrite !paid_to_next by (try assumption; lia). ring.
  Qed.

  Lemma slope_changes t : ~ In t knots -> slope t = slope (t - 1).
  Proof.
    intros Ht. unfold knots in Ht. rewrite in_app_iff in Ht. unfold slope.
    rewrite (price_changes grid prices t) by tauto.
    rewrite (price_changes grid prices (t + lasts x)).
    - replace (t + lasts x - 1) with (t - 1 + lasts x) by lia. reflexivity.
    - intros H. apply Ht. right. apply in_map_iff. exists (t + lasts x). split; [lia|exact H].
  Qed.

  Lemma slope_after t : last grid 0 <= t -> slope t = weighs x.
  Proof. intros Ht. unfold slope. rewrite !price_after by (try assumption; lia). ring. Qed.

  Lemma cheaper_before s0 n : hd 0 grid <= s0 -> 0 <= slope (s0 + Z.of_nat n) ->
    exists c, (c = s0 \/ (In c knots /\ s0 < c)) /\ cost_from c <= cost_from (s0 + Z.of_nat n).
  Proof.
    intros Hs. induction n as [|n IH]; intros Hslope.
    - exists s0. split; [now left|]. rewrite Z.add_0_r. lia.
    - set (t := s0 + Z.of_nat (S n)) in *. destruct (in_dec Z.eq_dec t knots) as [Hin|Hout].
      + exists t. split; [right; split; [exact Hin|unfold t; lia]|lia].
      + rewrite (slope_changes t Hout) in Hslope. replace (t - 1) with (s0 + Z.of_nat n) in Hslope by (unfold t; lia).
        destruct (IH Hslope) as (c & Hc & Hle). exists c. split; [exact Hc|].
        pose proof (slope_is (s0 + Z.of_nat n) ltac:(lia)) as Hnext.
        replace (s0 + Z.of_nat n + 1) with t in Hnext by (unfold t; lia). lia.
  Qed.

  Lemma cheaper_after s0 n : forall t, hd 0 grid <= s0 -> s0 <= t -> last grid 0 - t <= Z.of_nat n -> slope t < 0 ->
    exists c, (c = s0 \/ (In c knots /\ s0 < c)) /\ cost_from c <= cost_from t.
  Proof.
    induction n as [|n IH]; intros t Hs Ht Hn Hslope.
    - rewrite slope_after in Hslope by lia. lia.
    - pose proof (slope_is t ltac:(lia)) as Hnext. destruct (in_dec Z.eq_dec (t + 1) knots) as [Hin|Hout].
      + exists (t + 1). split; [right; split; [exact Hin|lia]|lia].
      + pose proof (slope_changes (t + 1) Hout) as Hsame. replace (t + 1 - 1) with t in Hsame by lia.
        destruct (IH (t + 1) Hs ltac:(lia) ltac:(lia) ltac:(lia)) as (c & Hc & Hle).
        exists c. split; [exact Hc|lia].
  Qed.

  Lemma cheapest_is_a_knot s0 t : hd 0 grid <= s0 -> s0 <= t ->
    exists c, (c = s0 \/ (In c knots /\ s0 < c)) /\ cost_from c <= cost_from t.
  Proof.
    intros Hs Ht. destruct (Z_lt_ge_dec (slope t) 0) as [Hneg|Hpos].
    - apply (cheaper_after s0 (Z.to_nat (last grid 0 - t))); lia.
    - replace t with (s0 + Z.of_nat (Z.to_nat (t - s0))) in * by lia. apply cheaper_before; lia.
  Qed.

  (** Knots, and the least cost from each of them on in this order. *)
  Definition plan (order : list Z) : list (Z * Z) :=
    fold_right (fun t later => (t, match later with
                                   | [] => cost_from t
                                   | (_, least) :: _ => Z.min (cost_from t) least
                                   end) :: later) [] order.

  Definition cheapest_start (planned : list (Z * Z)) (start : Z) : Z :=
    match find (fun entry => start <? fst entry) planned with
    | Some entry => Z.min (cost_from start) (snd entry)
    | None => cost_from start
    end.

  Lemma plan_least order : forall t, In t order ->
    match plan order with [] => False | (_, least) :: _ => least <= cost_from t end.
  Proof.
    induction order as [|a order IH]; intros t Ht; [destruct Ht|]. cbn [plan fold_right]. fold (plan order).
    destruct Ht as [->|Ht].
    - destruct (plan order) as [|[a' least] rest]; lia.
    - specialize (IH t Ht). destruct (plan order) as [|[a' least] rest]; [destruct IH|lia].
  Qed.

  Lemma cheapest_start_least order start t : In t order -> start < t ->
    cheapest_start (plan order) start <= cost_from t.
  Proof.
    unfold cheapest_start. induction order as [|a order IH]; intros Hin Ht; [destruct Hin|].
    pose proof (plan_least (a :: order)) as Hall. cbn [plan fold_right find fst] in *. fold (plan order) in *.
    destruct (Z.ltb_spec start a) as [Ha|Ha].
    - specialize (Hall t Hin). cbn [snd]. lia.
    - destruct Hin as [->|Hin]; [lia|]. now apply IH.
  Qed.

  Lemma cheapest_start_now planned start : cheapest_start planned start <= cost_from start.
  Proof. unfold cheapest_start. destruct (find _ _); lia. Qed.

  Lemma cheapest_start_at_most order start t : Permutation order knots -> hd 0 grid <= start -> start <= t ->
    cheapest_start (plan order) start <= cost_from t.
  Proof.
    intros Horder Hs Ht. destruct (cheapest_is_a_knot start t Hs Ht) as (c & Hc & Hle).
    etransitivity; [|exact Hle]. destruct Hc as [->|[Hin Hlt]]; [apply cheapest_start_now|].
    apply cheapest_start_least; [|exact Hlt]. eapply Permutation_in; [symmetry; exact Horder|exact Hin].
  Qed.
End Start.

(** ** All lists *)

(** Elements, each with the others. *)
Fixpoint picks {A} (l : list A) : list (A * list A) :=
  match l with
  | [] => []
  | x :: rest => (x, rest) :: map (fun p => (fst p, x :: snd p)) (picks rest)
  end.

Lemma in_picks {A} (l1 l2 : list A) x : In (x, l1 ++ l2) (picks (l1 ++ x :: l2)).
Proof.
  induction l1 as [|y l1 IH]; cbn [picks app]; [now left|]. right. apply in_map_iff.
  exists (x, l1 ++ l2). split; [reflexivity|exact IH].
Qed.

(** A job that is placed: its number, and its start. *)
Definition placed : Type := nat * Z.

Lemma first_placed (l : list placed) : l <> [] ->
  exists l1 x l2, l = l1 ++ x :: l2 /\ forall y, In y l -> snd x <= snd y.
Proof.
  induction l as [|x l IH]; [congruence|]. intros _. destruct l as [|y l].
  - exists [], x, []. split; [reflexivity|]. intros z [<-|[]]. lia.
  - destruct IH as (l1 & z & l2 & Heq & Hz); [congruence|].
    destruct (Z_le_gt_dec (snd x) (snd z)) as [Hle|Hgt].
    + exists [], x, (y :: l). split; [reflexivity|]. intros u [<-|Hu]; [lia|]. specialize (Hz u Hu). lia.
    + exists (x :: l1), z, l2. rewrite Heq. split; [reflexivity|].
      intros u [<-|Hu]; [lia|]. rewrite <- Heq in Hu. now apply Hz.
Qed.

Module LeastCost <: TotalLeBool.
  (** Jobs that are left, and the state. *)
  Definition t : Type := list nat * state.
  Fixpoint before (a b : list nat) : bool :=
    match a, b with
    | [], _ => true
    | _, [] => false
    | x :: a, y :: b => Nat.ltb x y || (Nat.eqb x y && before a b)
    end.
  Fixpoint same (a b : list nat) : bool :=
    match a, b with
    | [], [] => true
    | x :: a, y :: b => Nat.eqb x y && same a b
    | _, _ => false
    end.
  Definition leb (x y : t) : bool :=
    if same (fst x) (fst y) then so_far (snd x) <=? so_far (snd y) else before (fst x) (fst y).
  Lemma same_is a : forall b, same a b = true -> a = b.
  Proof.
    induction a as [|x a IH]; intros [|y b] H; cbn in H; try discriminate; [reflexivity|].
    apply andb_prop in H. destruct H as [H1 H2]. apply Nat.eqb_eq in H1. subst. f_equal. now apply IH.
  Qed.
  Lemma same_refl a : same a a = true.
  Proof. induction a as [|x a IH]; cbn; [reflexivity|]. now rewrite Nat.eqb_refl. Qed.
  Lemma before_total a : forall b, before a b = true \/ before b a = true.
  Proof.
    induction a as [|x a IH]; intros [|y b]; cbn [before]; try tauto.
    destruct (Nat.ltb_spec x y); [now left|]. destruct (Nat.ltb_spec y x); [now right|].
    assert (x = y) as -> by lia. rewrite !Nat.eqb_refl. cbn. apply IH.
  Qed.
  Theorem leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof.
    intros x y. unfold leb. destruct (same (fst x) (fst y)) eqn:E.
    - apply same_is in E. rewrite E, same_refl, !Z.leb_le. lia.
    - destruct (same (fst y) (fst x)) eqn:E'; [apply same_is in E'; rewrite E', same_refl in E; discriminate|].
      apply before_total.
  Qed.
End LeastCost.
Module SortNodes := Sort LeastCost.

Section Search.
  (** Jobs by number, GPUs, whether the last end is the cost, prices, and what no list is to be cheaper than. *)
  Variables (items : list item) (m : Z) (of_last : bool) (grid prices : list Z) (least : Z).
  (** Of each job the cheapest starts from each knot on; none are of use without prices. *)
  Variable plans : list (list (Z * Z)).

  Definition nothing : item := Item 0 0 0 0.
  Definition item_at (k : nat) : item := nth k items nothing.
  Definition end_at (x : placed) : Z := snd x + lasts (item_at (fst x)).
  Definition running (t : Z) (x : placed) : bool := (snd x <=? t) && (t <? end_at x).
  Definition used_at (t : Z) (l : list placed) : Z :=
    sum (fun x => if running t x then width (item_at (fst x)) else 0) l.

  Definition total_of (c : Z) (l : list placed) : Z :=
    if of_last then fold_right (fun x most => Z.max (end_at x) most) c l
    else c + sum (fun x => weighs (item_at (fst x)) * end_at x) l.

  (** Jobs are placed after a state. *)
  Definition fits (st : state) (l : list placed) : Prop :=
    (forall x, In x l -> now st <= snd x /\ ready (item_at (fst x)) <= snd x) /\
    forall t x, In x l -> running t x = true -> used_at t l + held_at t (holds st) <= m.

  (** However jobs that are left are placed, it costs no less. *)
  Definition safe (node : list nat * state) : Prop :=
    forall l, Permutation (map fst l) (fst node) -> fits (snd node) l -> least <= total_of (so_far (snd node)) l.

  (** *** One more job *)

  (** The earliest start of a job: at once, or when somebody ends. *)
  Definition first_start (k : nat) (st : state) : option Z :=
    let from := Z.max (now st) (ready (item_at k)) in
    let free t := held_at t (holds st) + width (item_at k) <=? m in
    if free from then Some from
    else match filter free (filter (fun t => from <? t) (map fst (holds st))) with
         | [] => None
         | t :: rest => Some (fold_right Z.min t rest)
         end.

  Definition after (k : nat) (start : Z) (st : state) : state :=
    let finish := start + lasts (item_at k) in
    State (if of_last then Z.max (so_far st) finish else so_far st + weighs (item_at k) * finish) start
      ((finish, width (item_at k)) :: filter (fun e => start <? fst e) (holds st)).

  Hypothesis Hitems : forall k, 0 <= width (item_at k) /\ 0 <= lasts (item_at k) /\ 0 <= weighs (item_at k).

  Lemma used_positive t l : 0 <= used_at t l.
  Proof. apply sum_nonneg. intros x _. destruct (Hitems (fst x)). destruct (running t x); lia. Qed.

  Lemma fold_min_below t rest : forall u, In u (t :: rest) -> fold_right Z.min t rest <= u.
  Proof.
    assert (Hbase : fold_right Z.min t rest <= t) by (induction rest; cbn [fold_right]; lia).
    intros u [<-|Hu]; [exact Hbase|]. clear Hbase. induction rest as [|x rest IH]; [destruct Hu|].
    cbn [fold_right]. destruct Hu as [->|Hu]; [lia|]. specialize (IH Hu). lia.
  Qed.

  Lemma starts_no_sooner st l x : fits st l -> In x l -> 1 <= lasts (item_at (fst x)) ->
    exists s, first_start (fst x) st = Some s /\ s <= snd x.
  Proof.
    intros [Hstart Hfit] Hin Hlong. destruct (Hstart x Hin) as [Hnow Hready].
    set (from := Z.max (now st) (ready (item_at (fst x)))).
    destruct (last_change (holds st) from (snd x) ltac:(unfold from; lia)) as (c & Hc & Hbetween & Hnone).
    assert (Hrun : running (snd x) x = true).
    { unfold running, end_at. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
    specialize (Hfit (snd x) x Hin Hrun).
    assert (Hmine : width (item_at (fst x)) <= used_at (snd x) l).
    { unfold used_at. destruct (in_split _ _ Hin) as (l1 & l2 & ->). rewrite sum_app. cbn [sum]. rewrite Hrun.
      pose proof (used_positive (snd x) l1). pose proof (used_positive (snd x) l2). unfold used_at in *. lia. }
    assert (Hfree : held_at c (holds st) + width (item_at (fst x)) <= m).
    { rewrite (held_unchanged _ c (snd x)) by (try assumption; lia). lia. }
    unfold first_start. fold from.
    destruct (Z.leb_spec (held_at from (holds st) + width (item_at (fst x))) m) as [Hat|Hnot].
    - exists from. split; [reflexivity|]. lia.
    - destruct Hc as [->|Hc]; [lia|].
      assert (Hlist : In c (filter (fun t => held_at t (holds st) + width (item_at (fst x)) <=? m)
                              (filter (fun t => from <? t) (map fst (holds st))))).
      { apply filter_In. split; [|now apply Z.leb_le]. apply filter_In. split; [exact Hc|].
        apply Z.ltb_lt. destruct (Z.eq_dec c from) as [->|]; lia. }
      destruct (filter _ (filter _ _)) as [|t rest]; [destruct Hlist|].
      exists (fold_right Z.min t rest). split; [reflexivity|].
      pose proof (fold_min_below t rest c Hlist). lia.
  Qed.

  Lemma held_after start t h : start <= t -> held_at t (filter (fun e : Z * Z => start <? fst e) h) = held_at t h.
  Proof.
    intros Ht. unfold held_at. rewrite sum_filter. apply sum_ext. intros e _.
    destruct (Z.ltb_spec start (fst e)), (Z.ltb_spec t (fst e)); lia.
  Qed.

  (** The job that begins first may begin as early as it fits. *)
  Lemma next_job st l : fits st l -> l <> [] -> (forall x, In x l -> 1 <= lasts (item_at (fst x))) ->
    exists l1 x l2 s, l = l1 ++ x :: l2 /\ first_start (fst x) st = Some s /\
      fits (after (fst x) s st) (l1 ++ l2) /\
      total_of (so_far (after (fst x) s st)) (l1 ++ l2) <= total_of (so_far st) l.
  Proof.
    intros Hfits Hne Hlong. destruct (first_placed l Hne) as (l1 & x & l2 & Heq & Hfirst).
    assert (Hin : In x l) by (rewrite Heq; apply in_app_iff; right; now left).
    destruct (starts_no_sooner st l x Hfits Hin (Hlong x Hin)) as (s & Hs & Hle).
    exists l1, x, l2, s. split; [exact Heq|]. split; [exact Hs|].
    assert (Hrest : forall y, In y (l1 ++ l2) -> In y l).
    { intros y Hy. rewrite Heq. apply in_app_iff in Hy. apply in_app_iff. cbn [In]. tauto. }
    assert (Hperm : Permutation l (x :: l1 ++ l2)) by (rewrite Heq; symmetry; apply Permutation_middle).
    destruct Hfits as [Hstart Hfit]. destruct (Hitems (fst x)) as (Hw & Hl & Hweight). split; [split|].
    - intros y Hy. cbn [now after]. destruct (Hstart y (Hrest y Hy)) as [_ Hready]. split; [|exact Hready].
      specialize (Hfirst y (Hrest y Hy)). lia.
    - intros t y Hy Hrun. specialize (Hfit t y (Hrest y Hy) Hrun). specialize (Hfirst y (Hrest y Hy)).
      assert (Ht : snd x <= t) by (unfold running in Hrun; apply andb_prop in Hrun; destruct Hrun as [Hrun _]; apply Z.leb_le in Hrun; lia).
      unfold used_at in *. rewrite (sum_perm _ _ _ Hperm) in Hfit. cbn [sum] in Hfit.
      cbn [holds after]. unfold held_at at 1. cbn [sum fst snd]. fold (held_at t (filter (fun e => s <? fst e) (holds st))).
      rewrite held_after by lia. unfold running at 1 in Hfit. unfold end_at in Hfit.
      destruct (Z.leb_spec (snd x) t); [|lia]. cbn [andb] in Hfit.
      destruct (Z.ltb_spec t (s + lasts (item_at (fst x)))), (Z.ltb_spec t (snd x + lasts (item_at (fst x)))); lia.
    - assert (Hend : s + lasts (item_at (fst x)) <= end_at x) by (unfold end_at; lia).
      unfold total_of. cbn [so_far after]. destruct of_last.
      + assert (H : forall (la : list placed) a b, a <= b -> fold_right (fun x most => Z.max (end_at x) most) a la
                   <= fold_right (fun x most => Z.max (end_at x) most) b la).
        { induction la as [|u la IH]; intros a b Hab; cbn [fold_right]; [lia|]. specialize (IH a b Hab). lia. }
        assert (Hmid : forall (la : list placed) a, fold_right (fun x most => Z.max (end_at x) most) (Z.max a (end_at x)) (la ++ l2)
                  <= fold_right (fun x most => Z.max (end_at x) most) a (la ++ x :: l2)).
        { induction la as [|u la IH]; intros a; cbn [fold_right app].
          - clear. induction l2 as [|u l2 IH]; cbn [fold_right]; lia.
          - specialize (IH a). lia. }
        rewrite Heq. etransitivity; [|apply Hmid]. apply H. lia.
      + rewrite (sum_perm _ _ _ Hperm). cbn [sum].
        rewrite <- Z.add_assoc. apply Z.add_le_mono_l, Z.add_le_mono_r, Z.mul_le_mono_nonneg_l; lia.
  Qed.

  (** *** States that make others needless *)

  Definition allows (a b : state) : bool :=
    (now a <=? now b) && (so_far a <=? so_far b)
    && forallb (fun e => 0 <=? snd e) (holds a)
    && forallb (fun t => (t <? now b) || (held_at t (holds a) <=? held_at t (holds b))) (now b :: map fst (holds b)).

  Lemma allows_safe a b left : allows a b = true -> safe (left, a) -> safe (left, b).
  Proof.
    unfold allows, safe. cbn [fst snd]. rewrite !andb_true_iff, !Z.leb_le, !forallb_forall.
    intros (((Hnow & Hcost) & Hpos) & Hheld) Hsafe l Hperm [Hstart Hfit].
    assert (Hpos' : forall e, In e (holds a) -> 0 <= snd e) by (intros e He; apply Z.leb_le; now apply Hpos).
    assert (Hfits : fits a l).
    { split.
      - intros x Hx. destruct (Hstart x Hx). split; [lia|assumption].
      - intros t x Hx Hrun. specialize (Hfit t x Hx Hrun). destruct (Hstart x Hx) as [Hx' _].
        assert (Ht : now b <= t) by (unfold running in Hrun; apply andb_prop in Hrun; destruct Hrun as [Hrun _]; apply Z.leb_le in Hrun; lia).
        destruct (last_change (holds b) (now b) t Ht) as (c & Hc & Hbetween & Hnone).
        assert (Hin : In c (now b :: map fst (holds b))) by (destruct Hc as [->|Hc]; [now left|now right]).
        specialize (Hheld c Hin). apply orb_prop in Hheld. destruct Hheld as [H|H]; [apply Z.ltb_lt in H; lia|].
        apply Z.leb_le in H. rewrite (held_unchanged (holds b) c t) in H by (try assumption; lia).
        pose proof (held_less (holds a) c t Hpos' ltac:(lia)). lia. }
    specialize (Hsafe l Hperm Hfits). etransitivity; [exact Hsafe|]. unfold total_of. destruct of_last; [|lia].
    clear - Hcost. induction l as [|u l IH]; cbn [fold_right]; lia.
  Qed.

  (** Nodes of a layer, sorted; those of the same jobs that came before. *)
  Fixpoint needful (recent l : list (list nat * state)) : list (list nat * state) :=
    match l with
    | [] => []
    | node :: rest =>
        let mine := match recent with
                    | other :: _ => if LeastCost.same (fst other) (fst node) then recent else []
                    | [] => []
                    end in
        if existsb (fun other => LeastCost.same (fst other) (fst node) && allows (snd other) (snd node)) mine
        then needful mine rest
        else node :: needful (node :: mine) rest
    end.

  Lemma needful_safe l : forall recent, (forall node, In node recent -> safe node) ->
    (forall node, In node (needful recent l) -> safe node) -> forall node, In node l -> safe node.
  Proof.
    induction l as [|n l IH]; intros recent Hrecent Hneed node Hin; [destruct Hin|]. cbn [needful] in Hneed.
    set (mine := match recent with
                 | other :: _ => if LeastCost.same (fst other) (fst n) then recent else []
                 | [] => [] end) in *.
    assert (Hmine : forall x, In x mine -> safe x).
    { intros x Hx. apply Hrecent. unfold mine in Hx. destruct recent as [|o recent]; [destruct Hx|].
      destruct (LeastCost.same _ _); [exact Hx|destruct Hx]. }
    destruct (existsb _ mine) eqn:E.
    - assert (Hn : safe n).
      { apply existsb_exists in E. destruct E as (o & Ho & H). apply andb_prop in H. destruct H as [H1 H2].
        apply LeastCost.same_is in H1. destruct o as [left a], n as [left' b]. cbn [fst snd] in *. subst.
        apply (allows_safe a b left' H2). now apply Hmine. }
      destruct Hin as [<-|Hin]; [exact Hn|]. now apply (IH mine).
    - assert (Hn : safe n) by (apply Hneed; now left).
      destruct Hin as [<-|Hin]; [exact Hn|]. apply (IH (n :: mine)); try assumption.
      + intros x [<-|Hx]; [exact Hn|now apply Hmine].
      + intros x Hx. apply Hneed. now right.
  Qed.

  (** *** What jobs cost at least that are left *)

  Definition earliest (st : state) (k : nat) : Z := Z.max (now st) (ready (item_at k)).

  Definition alone_at_least (st : state) (left : list nat) : Z :=
    if of_last then fold_right (fun k most => Z.max (earliest st k + lasts (item_at k)) most) (so_far st) left
    else so_far st + sum (fun k => weighs (item_at k) * (earliest st k + lasts (item_at k))) left.

  (** Whether GPUs that are held have a price at all. *)
  Definition priced (st : state) : bool :=
    (hd 0 grid <=? now st) && (held_at (now st) (holds st) <=? m)
    && forallb (fun e => (0 <=? snd e) && (now st <? fst e)) (holds st).

  Definition priced_at_least (st : state) (left : list nat) : Z :=
    so_far st
    + sum (fun k => cheapest_start grid prices (item_at k) (nth k plans []) (earliest st k)) left
    - (m * (paid_to grid prices (last grid 0) - paid_to grid prices (now st))
       - sum (fun e => snd e * (paid_to grid prices (fst e) - paid_to grid prices (now st))) (holds st)).

  (** Work over GPUs. *)
  Definition area_at_least (st : state) (left : list nat) : Z :=
    now st + - (- (sum (fun k => width (item_at k) * lasts (item_at k)) left
                   + sum (fun e => snd e * (fst e - now st)) (holds st)) / m).

  Definition at_least (st : state) (left : list nat) : Z :=
    let alone := alone_at_least st left in
    if negb (priced st) then alone
    else if of_last then
      if (1 <=? m) && forallb (fun e => fst e <=? so_far st) (holds st)
      then Z.max alone (area_at_least st left) else alone
    else match grid with [] => alone | _ => Z.max alone (priced_at_least st left) end.

  Hypothesis Hgrid : increasing grid.
  Hypothesis Hprices : forall p, In p prices -> 0 <= p.
  Hypothesis Hplans : grid <> [] -> forall k, (k < length items)%nat ->
    exists order, Permutation order (knots grid (item_at k)) /\ nth k plans [] = plan grid prices (item_at k) order.

  Lemma sum_left {A} (f : nat -> Z) (l : list (nat * A)) left :
    Permutation (map fst l) left -> sum f left = sum (fun x => f (fst x)) l.
  Proof. intros H. now rewrite <- (sum_perm _ _ _ H), sum_map. Qed.

  Lemma alone_least st left l : Permutation (map fst l) left -> fits st l ->
    alone_at_least st left <= total_of (so_far st) l.
  Proof.
    intros Hperm [Hstart _].
    assert (Hend : forall x, In x l -> earliest st (fst x) + lasts (item_at (fst x)) <= end_at x).
    { intros x Hx. destruct (Hstart x Hx). unfold earliest, end_at. lia. }
    unfold alone_at_least, total_of. destruct of_last.
    - assert (Hmost : forall c (xs : list nat),
                fold_right (fun k most => Z.max (earliest st k + lasts (item_at k)) most) c xs <= Z.max c
                (fold_right (fun k most => Z.max (earliest st k + lasts (item_at k)) most) c xs)) by lia.
      assert (Hone : forall xs bound, so_far st <= bound ->
                (forall k, In k xs -> earliest st k + lasts (item_at k) <= bound) ->
                fold_right (fun k most => Z.max (earliest st k + lasts (item_at k)) most) (so_far st) xs <= bound).
      { clear. induction xs as [|k xs IH]; intros bound Hb H; cbn [fold_right]; [exact Hb|].
        specialize (IH bound Hb (fun x Hx => H x (or_intror Hx))). specialize (H k (or_introl eq_refl)). lia. }
      apply Hone.
      + clear. induction l as [|u l IH]; cbn [fold_right]; lia.
      + intros k Hk. assert (Hk' : In k (map fst l)) by (eapply Permutation_in; [symmetry; exact Hperm|exact Hk]).
        apply in_map_iff in Hk'. destruct Hk' as (x & <- & Hx). specialize (Hend x Hx).
        etransitivity; [exact Hend|]. clear - Hx. induction l as [|u l IH]; [destruct Hx|]. cbn [fold_right].
        destruct Hx as [->|Hx]; [lia|]. specialize (IH Hx). lia.
    - rewrite (sum_left _ l left Hperm). apply Z.add_le_mono_l. apply sum_le. intros x Hx.
      destruct (Hitems (fst x)) as (_ & _ & Hw). apply Z.mul_le_mono_nonneg_l; [exact Hw|now apply Hend].
  Qed.

  (** What is paid for a function of time, from a moment on, is no more than all GPUs can earn. *)
  Lemma rent_of_lists st l (f : Z -> Z) until :
    fits st l -> held_at (now st) (holds st) <= m -> (forall e, In e (holds st) -> 0 <= snd e) ->
    (forall t, 0 <= f t) -> (forall t, f t <> 0 -> t < until) ->
    sum (fun x => width (item_at (fst x)) * sum f (ticks (snd x) (end_at x))) l
    + sum (fun e => snd e * sum f (ticks (now st) (fst e))) (holds st)
    <= m * sum f (ticks (now st) until).
  Proof.
    intros [Hstart Hfit] Hnow Hpos Hf Huntil. set (all := ticks (now st) until).
    assert (H1 : sum (fun x => width (item_at (fst x)) * sum f (ticks (snd x) (end_at x))) l
                 <= sum (fun x => sum (fun t => if running t x then width (item_at (fst x)) * f t else 0) all) l).
    { apply sum_le. intros x Hx. destruct (Hitems (fst x)) as (Hw & _). destruct (Hstart x Hx) as [Hx' _].
      rewrite (sum_ext (fun t => if running t x then width (item_at (fst x)) * f t else 0)
                       (fun t => width (item_at (fst x)) * (if running t x then f t else 0)))
        by (intros t _; destruct (running t x); lia).
      rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [exact Hw|]. rewrite <- sum_filter.
      apply sum_included; [apply nodup_ticks|exact Hf|]. intros t Ht Hft. apply in_ticks in Ht.
      apply filter_In. split; [apply in_ticks; split; [lia|now apply Huntil]|].
      unfold running. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
    assert (H2 : sum (fun e => snd e * sum f (ticks (now st) (fst e))) (holds st)
                 <= sum (fun e => sum (fun t => if t <? fst e then snd e * f t else 0) all) (holds st)).
    { apply sum_le. intros e He. specialize (Hpos e He).
      rewrite (sum_ext (fun t => if t <? fst e then snd e * f t else 0)
                       (fun t => snd e * (if t <? fst e then f t else 0)))
        by (intros t _; destruct (t <? fst e); lia).
      rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [exact Hpos|]. rewrite <- sum_filter.
      apply sum_included; [apply nodup_ticks|exact Hf|]. intros t Ht Hft. apply in_ticks in Ht.
      apply filter_In. split; [apply in_ticks; split; [lia|now apply Huntil]|apply Z.ltb_lt; lia]. }
    rewrite sum_swap in H1. rewrite sum_swap in H2.
    assert (H3 : sum (fun t => sum (fun x => if running t x then width (item_at (fst x)) * f t else 0) l) all
                 + sum (fun t => sum (fun e => if t <? fst e then snd e * f t else 0) (holds st)) all
                 <= m * sum f all).
    { rewrite <- sum_add, <- sum_scale. apply sum_le. intros t Ht. apply in_ticks in Ht.
      rewrite (sum_ext (fun x => if running t x then width (item_at (fst x)) * f t else 0)
                       (fun x => f t * (if running t x then width (item_at (fst x)) else 0)))
        by (intros x _; destruct (running t x); lia).
      rewrite (sum_ext (fun e => if t <? fst e then snd e * f t else 0)
                       (fun e => f t * (if t <? fst e then snd e else 0)))
        by (intros e _; destruct (t <? fst e); lia).
      rewrite !sum_scale. fold (used_at t l). fold (held_at t (holds st)).
      assert (used_at t l + held_at t (holds st) <= m).
      { destruct (existsb (running t) l) eqn:E.
        - apply existsb_exists in E. destruct E as (x & Hx & Hrun). now apply (Hfit t x).
        - assert (used_at t l = 0) as ->.
          { transitivity (sum (fun _ : placed => 0) l); [|rewrite sum_const; lia]. apply sum_ext. intros x Hx.
            destruct (running t x) eqn:Hrun; [|reflexivity]. exfalso.
            assert (existsb (running t) l = true) by (apply existsb_exists; now exists x). congruence. }
          pose proof (held_less (holds st) (now st) t Hpos ltac:(lia)). lia. }
      specialize (Hf t). nia. }
    lia.
  Qed.

  Lemma priced_least st left l : Permutation (map fst l) left -> fits st l -> priced st = true -> grid <> [] ->
    (forall k, In k left -> (k < length items)%nat) -> of_last = false ->
    priced_at_least st left <= total_of (so_far st) l.
  Proof.
    intros Hperm Hfits Hpriced Hne Hknown Htotal. unfold priced in Hpriced.
    rewrite !andb_true_iff, !Z.leb_le, forallb_forall in Hpriced. destruct Hpriced as ((Hhd & Hheld) & Hholds).
    assert (Hpos : forall e, In e (holds st) -> 0 <= snd e /\ now st < fst e).
    { intros e He. specialize (Hholds e He). rewrite andb_true_iff, Z.leb_le, Z.ltb_lt in Hholds. exact Hholds. }
    set (until := Z.max (now st) (last grid 0)).
    pose proof (rent_of_lists st l (price_of grid prices) until Hfits Hheld (fun e He => proj1 (Hpos e He))) as Hrent.
    specialize (Hrent (fun t => price_nonneg grid prices t Hprices)).
    assert (Hafter : forall t, price_of grid prices t <> 0 -> t < until).
    { intros t Ht. destruct (Z_lt_ge_dec t until) as [|H]; [assumption|]. exfalso. apply Ht.
      apply price_after; [exact Hgrid|unfold until in H; lia]. }
    specialize (Hrent Hafter).
    assert (Hall : sum (price_of grid prices) (ticks (now st) until)
                   = paid_to grid prices (last grid 0) - paid_to grid prices (now st)).
    { unfold until. destruct (Z_le_gt_dec (now st) (last grid 0)) as [H|H].
      - rewrite Z.max_r by lia. now apply paid_between.
      - rewrite Z.max_l by lia.
        assert (Hlast : hd 0 grid <= last grid 0).
        { destruct grid as [|a g]; [congruence|]. apply (increasing_last a g). exact Hgrid. }
        pose proof (paid_between grid prices (last grid 0) (now st) Hgrid Hlast ltac:(lia)) as Hzero.
        assert (Hnone : sum (price_of grid prices) (ticks (last grid 0) (now st)) = 0).
        { transitivity (sum (fun _ : Z => 0) (ticks (last grid 0) (now st))); [|rewrite sum_const; lia].
          apply sum_ext. intros t Ht. apply in_ticks in Ht. apply price_after; [exact Hgrid|lia]. }
        unfold ticks at 1. rewrite Z.sub_diag. cbn [Z.to_nat seq map sum]. lia. }
    rewrite Hall in Hrent.
    assert (Hh : sum (fun e => snd e * sum (price_of grid prices) (ticks (now st) (fst e))) (holds st)
                 = sum (fun e => snd e * (paid_to grid prices (fst e) - paid_to grid prices (now st))) (holds st)).
    { apply sum_ext. intros e He. destruct (Hpos e He). rewrite paid_between by (try assumption; lia). reflexivity. }
    rewrite Hh in Hrent. unfold priced_at_least, total_of. rewrite Htotal, (sum_left _ l left Hperm).
    assert (Hjobs : sum (fun x => cheapest_start grid prices (item_at (fst x)) (nth (fst x) plans []) (earliest st (fst x))) l
                    <= sum (fun x => weighs (item_at (fst x)) * end_at x
                              + width (item_at (fst x)) * sum (price_of grid prices) (ticks (snd x) (end_at x))) l).
    { apply sum_le. intros x Hx. destruct Hfits as [Hstart _]. destruct (Hstart x Hx) as [H1 H2].
      destruct (Hitems (fst x)) as (Hw & Hl & Hweight).
      assert (Hk : (fst x < length items)%nat).
      { apply Hknown. eapply Permutation_in; [exact Hperm|]. now apply in_map. }
      destruct (Hplans Hne (fst x) Hk) as (order & Horder & ->).
      rewrite paid_between by (try assumption; unfold end_at; lia).
      apply (cheapest_start_at_most grid prices (item_at (fst x)) Hgrid Hweight Hl order (earliest st (fst x)) (snd x) Horder).
      - unfold earliest. lia.
      - unfold earliest. lia. }
    rewrite sum_add in Hjobs. lia.
  Qed.

  Lemma area_least st left l : Permutation (map fst l) left -> fits st l -> priced st = true -> 1 <= m ->
    forallb (fun e => fst e <=? so_far st) (holds st) = true -> of_last = true ->
    area_at_least st left <= Z.max (now st) (total_of (so_far st) l).
  Proof.
    intros Hperm Hfits Hpriced Hm Hover Hlast. unfold priced in Hpriced.
    rewrite !andb_true_iff, !Z.leb_le, forallb_forall in Hpriced. destruct Hpriced as ((_ & Hheld) & Hholds).
    rewrite forallb_forall in Hover.
    assert (Hpos : forall e, In e (holds st) -> 0 <= snd e /\ now st < fst e).
    { intros e He. specialize (Hholds e He). rewrite andb_true_iff, Z.leb_le, Z.ltb_lt in Hholds. exact Hholds. }
    set (until := Z.max (now st) (total_of (so_far st) l)).
    set (f := fun t => if t <? until then 1 else 0).
    assert (Hsum : forall a b, a <= b -> b <= until -> sum f (ticks a b) = b - a).
    { intros a b Ha Hb. transitivity (sum (fun _ : Z => 1) (ticks a b)).
      - apply sum_ext. intros t Ht. apply in_ticks in Ht. unfold f. destruct (Z.ltb_spec t until); lia.
      - rewrite sum_const, length_ticks. lia. }
    pose proof (rent_of_lists st l f until Hfits Hheld (fun e He => proj1 (Hpos e He))) as Hrent.
    assert (Hrent' := Hrent ltac:(intros t; unfold f; destruct (t <? until); lia)
                            ltac:(intros t Ht; unfold f in Ht; destruct (Z.ltb_spec t until); [assumption|lia])).
    clear Hrent. rewrite Hsum in Hrent' by (unfold until; lia).
    assert (Hcost : forall x, In x l -> end_at x <= total_of (so_far st) l).
    { intros x Hx. unfold total_of. rewrite Hlast. clear - Hx. induction l as [|u l IH]; [destruct Hx|]. cbn [fold_right].
      destruct Hx as [->|Hx]; [lia|]. specialize (IH Hx). lia. }
    assert (Hcost' : so_far st <= total_of (so_far st) l).
    { unfold total_of. rewrite Hlast. clear. induction l as [|u l IH]; cbn [fold_right]; lia. }
    rewrite (sum_ext (fun x => width (item_at (fst x)) * sum f (ticks (snd x) (end_at x)))
               (fun x => width (item_at (fst x)) * lasts (item_at (fst x)))) in Hrent'.
    2: { intros x Hx. specialize (Hcost x Hx). destruct (Hitems (fst x)) as (_ & Hl & _).
         rewrite Hsum by (unfold end_at in *; unfold until; lia). unfold end_at. f_equal. lia. }
    rewrite (sum_ext (fun e => snd e * sum f (ticks (now st) (fst e))) (fun e => snd e * (fst e - now st))) in Hrent'.
    2: { intros e He. destruct (Hpos e He). specialize (Hover e He). apply Z.leb_le in Hover.
         rewrite Hsum by (unfold until; lia). reflexivity. }
    unfold area_at_least. rewrite (sum_left (fun k => width (item_at k) * lasts (item_at k)) l left Hperm).
    set (work := sum _ l + sum _ (holds st)) in *.
    assert (- (- work / m) <= until - now st); [|lia].
    apply Z.opp_le_mono. rewrite Z.opp_involutive. apply Z.div_le_lower_bound; nia.
  Qed.

  Lemma least_of_all st left l : Permutation (map fst l) left -> fits st l ->
    (forall k, In k left -> (k < length items)%nat) -> now st <= so_far st \/ left <> [] \/ of_last = false ->
    at_least st left <= total_of (so_far st) l.
  Proof.
    intros Hperm Hfits Hknown Hcase. unfold at_least.
    pose proof (alone_least st left l Hperm Hfits) as Halone.
    destruct (priced st) eqn:Hpriced; cbn [negb]; [|exact Halone]. destruct of_last eqn:Hlast.
    - destruct (_ && _) eqn:Hm; [|exact Halone]. apply andb_prop in Hm. destruct Hm as [Hm Hover]. apply Z.leb_le in Hm.
      pose proof (area_least st left l Hperm Hfits Hpriced Hm Hover Hlast) as Harea.
      assert (now st <= total_of (so_far st) l); [|lia].
      assert (Hsofar : so_far st <= total_of (so_far st) l).
      { unfold total_of. rewrite Hlast. clear. induction l as [|u l IH]; cbn [fold_right]; lia. }
      destruct Hcase as [H|[H|H]]; [lia| |congruence].
      destruct l as [|x l]; [apply Permutation_nil in Hperm; congruence|].
      destruct Hfits as [Hstart _]. destruct (Hstart x (or_introl eq_refl)). destruct (Hitems (fst x)) as (_ & Hl & _).
      unfold total_of. rewrite Hlast. cbn [fold_right]. unfold end_at. lia.
    - destruct grid as [|a g] eqn:Hg; [exact Halone|]. rewrite <- Hg in *.
      assert (Hne : grid <> []) by (rewrite Hg; discriminate).
      pose proof (priced_least st left l Hperm Hfits Hpriced Hne Hknown Hlast). lia.
  Qed.

  (** *** Layer by layer *)

  Definition following (node : list nat * state) : list (list nat * state) :=
    flat_map (fun p => match first_start (fst p) (snd node) with
                       | Some start =>
                           let then_ := after (fst p) start (snd node) in
                           if least <=? at_least then_ (snd p) then [] else [(snd p, then_)]
                       | None => []
                       end) (picks (fst node)).

  (** None where there are too many nodes to go through. *)
  Fixpoint none_is_less (fuel : nat) (most : nat) (layer : list (list nat * state)) : option bool :=
    match layer with
    | [] => Some true
    | _ =>
        if existsb (fun node => match fst node with [] => true | _ => false end) layer then Some false
        else match fuel with
             | O => None
             | S fuel =>
                 let next := flat_map following layer in
                 if Nat.ltb most (length next) then None
                 else none_is_less fuel most (needful [] (SortNodes.sort next))
             end
    end.

  Definition known (node : list nat * state) : Prop :=
    forall k, In k (fst node) -> (k < length items)%nat /\ 1 <= lasts (item_at k).

  Lemma in_picks_of {A} (l : list A) x rest : In (x, rest) (picks l) -> Permutation l (x :: rest).
  Proof.
    revert x rest. induction l as [|y l IH]; intros x rest H; [destruct H|]. cbn [picks] in H.
    destruct H as [H|H].
    - injection H as <- <-. reflexivity.
    - apply in_map_iff in H. destruct H as ((u, r) & E & H). cbn [fst snd] in E. injection E as <- <-.
      apply IH in H. rewrite H. apply perm_swap.
  Qed.

  Lemma following_known node : known node -> forall x, In x (following node) -> known x.
  Proof.
    intros Hnode x Hx k Hk. apply in_flat_map in Hx. destruct Hx as ((j, rest) & Hp & Hx). cbn [fst snd] in Hx.
    apply Hnode. apply in_picks_of in Hp. eapply Permutation_in; [symmetry; exact Hp|]. right.
    destruct (first_start j (snd node)); [|destruct Hx]. cbn zeta in Hx.
    destruct (least <=? _); [destruct Hx|]. destruct Hx as [<-|[]]. exact Hk.
  Qed.

  Lemma following_safe node : fst node <> [] -> known node ->
    (forall x, In x (following node) -> safe x) -> safe node.
  Proof.
    intros Hleft Hknown Hfollow l Hperm Hfits.
    assert (Hne : l <> []).
    { intros ->. apply Permutation_nil in Hperm. congruence. }
    assert (Hin : forall x, In x l -> In (fst x) (fst node)).
    { intros x Hx. eapply Permutation_in; [exact Hperm|]. now apply in_map. }
    destruct (next_job (snd node) l Hfits Hne (fun x Hx => proj2 (Hknown _ (Hin x Hx)))) as (l1 & x & l2 & s & Heq & Hs & Hfits' & Hcost).
    etransitivity; [|exact Hcost].
    assert (Hx : In (fst x) (fst node)) by (apply Hin; rewrite Heq; apply in_app_iff; right; now left).
    destruct (in_split _ _ Hx) as (a & b & Hsplit).
    assert (Hrest : Permutation (map fst (l1 ++ l2)) (a ++ b)).
    { rewrite Heq, Hsplit, map_app in Hperm. cbn [map] in Hperm. rewrite map_app.
      apply (Permutation_app_inv _ _ _ _ _ Hperm). }
    destruct (Z.leb_spec least (at_least (after (fst x) s (snd node)) (a ++ b))) as [Hle|Hlt].
    - etransitivity; [exact Hle|]. apply least_of_all; try assumption.
      + intros k Hk. apply Hknown. rewrite Hsplit. apply in_app_iff in Hk. apply in_app_iff. cbn [In]. tauto.
      + destruct of_last eqn:Hlast; [left|right; now right]. unfold after. rewrite Hlast. cbn [now so_far].
        destruct (Hitems (fst x)) as (_ & Hl & _). lia.
    - apply (Hfollow (a ++ b, after (fst x) s (snd node))); [|exact Hrest|exact Hfits'].
      unfold following. apply in_flat_map. exists (fst x, a ++ b). split; [rewrite Hsplit; apply in_picks|].
      cbn [fst snd]. rewrite Hs. cbn zeta. destruct (Z.leb_spec least (at_least (after (fst x) s (snd node)) (a ++ b))); [lia|now left].
  Qed.

  Lemma none_is_less_safe fuel most : forall layer, (forall node, In node layer -> known node) ->
    none_is_less fuel most layer = Some true -> forall node, In node layer -> safe node.
  Proof.
    induction fuel as [|fuel IH]; intros layer Hknown H node Hin.
    - destruct layer; [destruct Hin|]. cbn [none_is_less] in H. destruct (existsb _ _); discriminate.
    - destruct layer as [|first layer']; [destruct Hin|]. set (layer := first :: layer') in *.
      cbn [none_is_less] in H. fold layer in H. change (match layer with [] => Some true | _ :: _ => ?x end) with x in H.
      unfold layer at 1 in H. cbv beta iota in H. fold layer in H.
      destruct (existsb _ layer) eqn:Hempty; [discriminate|].
      destruct (Nat.ltb most _); [discriminate|].
      apply following_safe; [|now apply Hknown|].
      + intros E. assert (Htrue : existsb (fun node => match fst node with [] => true | _ => false end) layer = true).
        { apply existsb_exists. exists node. split; [exact Hin|]. now rewrite E. }
        congruence.
      + assert (Hnext : forall x, In x (SortNodes.sort (flat_map following layer)) -> known x).
        { intros x Hx. assert (Hx' : In x (flat_map following layer)).
          { eapply Permutation_in; [symmetry; apply SortNodes.Permuted_sort|exact Hx]. }
          apply in_flat_map in Hx'. destruct Hx' as (n & Hn & Hx'). now apply (following_known n (Hknown n Hn)). }
        assert (Hsub : forall l recent x, In x (needful recent l) -> In x l).
        { clear. induction l as [|n l IH]; intros recent x Hx; [destruct Hx|]. cbn [needful] in Hx.
          destruct (existsb _ _); [right; now apply IH in Hx|]. destruct Hx as [->|Hx]; [now left|right; now apply IH in Hx]. }
        assert (Hsafe : forall x, In x (SortNodes.sort (flat_map following layer)) -> safe x).
        { apply (needful_safe _ []); [intros x []|]. intros x Hx.
          refine (IH _ _ H x Hx). intros y Hy. apply Hnext. now apply Hsub in Hy. }
        intros x Hx. apply Hsafe. eapply Permutation_in; [apply SortNodes.Permuted_sort|].
        apply in_flat_map. now exists node.
  Qed.
End Search.
