(** The most that jobs which fit together are worth in each cell of a grid, at a price of each job's own. *)

From Coq Require Import List ZArith Lia Bool.
From Shadowprice Require Import Sums JobPrice Duality.
Import ListNotations.
Open Scope Z_scope.

(** ** Most worth, by room *)

Fixpoint larger (a b : list Z) : list Z :=
  match a, b with
  | x :: a, y :: b => Z.max x y :: larger a b
  | _, _ => []
  end.

(** Things (size, worth) of which those that fit in 0, 1, ... [room] are worth so much together. *)
Fixpoint most_worth (room : nat) (things : list (Z * Z)) : list Z :=
  match things with
  | [] => repeat 0 (S room)
  | (size, worth) :: rest =>
      let without := most_worth room rest in
      larger without (repeat 0 (Z.to_nat size) ++ map (Z.add worth) without)
  end.

Lemma larger_length a : forall b, (length a <= length b)%nat -> length (larger a b) = length a.
Proof.
  induction a as [|x a IH]; intros [|y b] H; cbn in *; try lia. f_equal. apply IH. lia.
Qed.

Lemma larger_nth a : forall b r, (r < length a)%nat -> (r < length b)%nat ->
  nth r (larger a b) 0 = Z.max (nth r a 0) (nth r b 0).
Proof.
  induction a as [|x a IH]; intros [|y b] r Ha Hb; cbn [length] in *; try lia.
  destruct r as [|r]; cbn [larger nth]; [reflexivity|]. apply IH; lia.
Qed.

Lemma most_worth_length room things : length (most_worth room things) = S room.
Proof.
  induction things as [|[size worth] rest IH]; cbn [most_worth]; [apply repeat_length|].
  rewrite larger_length; rewrite IH; [reflexivity|]. rewrite app_length, map_length, IH. lia.
Qed.

Lemma most_worth_of {A} (thing : A -> Z * Z) (chosen : A -> bool) room (l : list A) : forall r,
  (forall x, In x l -> chosen x = true -> 0 <= fst (thing x)) ->
  0 <= r <= Z.of_nat room -> sum (fun x => if chosen x then fst (thing x) else 0) l <= r ->
  sum (fun x => if chosen x then snd (thing x) else 0) l <= nth (Z.to_nat r) (most_worth room (map thing l)) 0.
Proof.
  induction l as [|x l IH]; intros r Hsize Hr Hsum; cbn [map most_worth sum] in *.
  - change (0 :: repeat 0 room) with (repeat 0 (S room)). rewrite nth_repeat. lia.
  - assert (Hsize' : forall y, In y l -> chosen y = true -> 0 <= fst (thing y)) by (intros y Hy; apply Hsize; now right).
    assert (Hrest : 0 <= sum (fun x => if chosen x then fst (thing x) else 0) l).
    { apply sum_nonneg. intros y Hy. destruct (chosen y) eqn:E; [now apply Hsize'|lia]. }
    assert (Hfirst := Hsize x (or_introl eq_refl)).
    destruct (thing x) as [size worth]. cbn [fst snd] in *. set (without := most_worth room (map thing l)) in *.
    assert (Hlength : length without = S room) by apply most_worth_length.
    rewrite larger_nth by (rewrite ?app_length, ?repeat_length, ?map_length, ?Hlength; lia).
    destruct (chosen x).
    + specialize (Hfirst eq_refl). specialize (IH (r - size) Hsize' ltac:(lia) ltac:(lia)).
      rewrite app_nth2 by (rewrite repeat_length; lia). rewrite repeat_length.
      replace (Z.to_nat r - Z.to_nat size)%nat with (Z.to_nat (r - size)) by lia.
      rewrite (nth_indep (map (Z.add worth) without) 0 (worth + 0)) by (rewrite map_length, Hlength; lia). rewrite map_nth. fold without in IH. lia.
    + specialize (IH r Hsize' Hr ltac:(lia)). fold without in IH. lia.
Qed.

(** ** Cell by cell *)

Section Cells.
  Context {A : Type}.
  (** Sizes of jobs, and between what moments they may run. *)
  Variables (size from : A -> Z) (to_ : A -> option Z) (room : nat).

  Definition may_run (a b : Z) (x : A) : bool :=
    (from x <? b) && match to_ x with Some until => a <? until | None => true end.

  (** Jobs with their prices in the cells that are left. *)
  Definition worth_in (a b : Z) (jobs : list (A * list Z)) : Z :=
    nth room (most_worth room (map (fun x => (size (fst x), hd 0 (snd x)))
      (filter (fun x => may_run a b (fst x) && negb (hd 0 (snd x) =? 0)) jobs))) 0.

  Fixpoint all_worth (grid : list Z) (jobs : list (A * list Z)) : Z :=
    match grid with
    | a :: ((b :: _) as later) => worth_in a b jobs * (b - a) + all_worth later (map (fun x => (fst x, tl (snd x))) jobs)
    | _ => 0
    end.

  (** Who holds GPUs at a moment. *)
  Variable holds : A -> Z -> bool.
  Variable known : A -> Prop.
  Hypothesis Hsize : forall x t, known x -> holds x t = true -> 0 <= size x.
  Hypothesis Hmay : forall x t, known x -> holds x t = true ->
    from x <= t /\ match to_ x with Some until => t < until | None => True end.

  Lemma all_worth_bound grid : forall jobs,
    increasing grid -> grid <> [] -> (forall x, In x jobs -> known (fst x)) ->
    (forall t, sum (fun x => if holds (fst x) t then size (fst x) else 0) jobs <= Z.of_nat room) ->
    sum (fun t => sum (fun x => if holds (fst x) t then price_of grid (snd x) t else 0) jobs) (ticks (hd 0 grid) (last grid 0))
    <= all_worth grid jobs.
  Proof.
    induction grid as [|a grid IH]; intros jobs Hinc Hne Hknown Hroom; [congruence|]. destruct grid as [|b later].
    - cbn [hd last all_worth]. unfold ticks. rewrite Z.sub_diag. cbn. lia.
    - destruct Hinc as [Hab Hinc]. pose proof (increasing_last _ _ Hinc) as Hlast. cbn [hd].
      change (last (a :: b :: later) 0) with (last (b :: later) 0).
      rewrite (ticks_app a b) by lia. rewrite sum_app.
      change (all_worth (a :: b :: later) jobs)
        with (worth_in a b jobs * (b - a) + all_worth (b :: later) (map (fun x => (fst x, tl (snd x))) jobs)).
      apply Z.add_le_mono.
      + rewrite <- (Z.max_r 0 (b - a)) by lia. rewrite <- length_ticks, <- sum_const. apply sum_le.
        intros t Ht. apply in_ticks in Ht. unfold worth_in.
        set (runs := fun x : A * list Z => may_run a b (fst x) && negb (hd 0 (snd x) =? 0)).
        pose proof (most_worth_of (fun x => (size (fst x), hd 0 (snd x))) (fun x => holds (fst x) t) room
                      (filter runs jobs) (Z.of_nat room)) as Hworth. rewrite Nat2Z.id in Hworth.
        etransitivity; [|apply Hworth; [|lia|]].
        * cbn [snd]. rewrite sum_filter. apply sum_le. intros x Hx. unfold runs.
          destruct (holds (fst x) t) eqn:E; [|destruct (_ && _); lia].
          assert (Hprice : price_of (a :: b :: later) (snd x) t = hd 0 (snd x)).
          { destruct (snd x) as [|p ps]; [reflexivity|]. cbn [price_of hd]. destruct (Z.ltb_spec t b); [reflexivity|lia]. }
          rewrite Hprice. destruct (Z.eqb_spec (hd 0 (snd x)) 0) as [Hz|Hz]; [rewrite Hz; destruct (_ && _); lia|].
          destruct (Hmay (fst x) t (Hknown x Hx) E) as [Hfrom Hto]. unfold may_run. destruct (Z.ltb_spec (from (fst x)) b); [|lia]. cbn [negb andb].
          destruct (to_ (fst x)) as [until|]; [|cbn; lia]. destruct (Z.ltb_spec a until); [cbn; lia|lia].
        * intros x Hin Hx. apply filter_In in Hin. cbn [fst]. apply (Hsize (fst x) t); [now apply Hknown|exact Hx].
        * cbn [fst]. etransitivity; [|apply (Hroom t)]. rewrite sum_filter. apply sum_le. intros x Hx.
          destruct (holds (fst x) t) eqn:E; [|destruct (runs x); lia]. pose proof (Hsize (fst x) t (Hknown x Hx) E). destruct (runs x); lia.
      + etransitivity; [|apply IH; [exact Hinc|discriminate| |]].
        * cbn [hd]. apply sum_le. intros t Ht. apply in_ticks in Ht. rewrite sum_map. apply sum_le. intros x _. cbn [fst snd].
          destruct (holds (fst x) t); [|lia]. destruct (snd x) as [|p ps]; [destruct later; cbn; lia|].
          cbn [tl price_of]. destruct (Z.ltb_spec t b); [lia|]. apply Z.le_refl.
        * intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & Hy). cbn [fst]. now apply Hknown.
        * intros t. rewrite sum_map. cbn [fst]. apply Hroom.
  Qed.
End Cells.
