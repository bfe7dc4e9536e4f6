(** What a job costs at least when GPUs have prices that are constant in cells: the job's part of LB-plan.

    A job that completes at C pays for C, and rent for its p ticks before C. For any threshold theta

        rent >= theta p - sum over cells before C of max(0, theta - price) x length,

    and in the cell that C is in, a tick pays its price and a tick's worth of C as well, since it puts C off. So for
    each cell there is a bound of all completions in it, exact at the best threshold (derived). *)

From Coq Require Import List ZArith Lia.
From Shadowprice Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Section Plan.
  (** Ticks [p] of the job, what a tick of completion costs, and what a tick at price 1 costs; and whether the job may
      complete after all cells. *)
  Variables (p delay rent : Z) (later_too : bool).

  (** An offer: cost of a tick, and how many ticks there are. *)
  Fixpoint insert (offer : Z * Z) (l : list (Z * Z)) : list (Z * Z) :=
    match l with
    | [] => [offer]
    | first :: rest => if fst offer <=? fst first then offer :: l else first :: insert offer rest
    end.

  (** Cost of the last of p ticks if the cheapest are taken; none if there are fewer. *)
  Fixpoint dearest (left : Z) (l : list (Z * Z)) : option Z :=
    match l with
    | [] => None
    | (cost, length) :: rest => if left <=? length then Some cost else dearest (left - length) rest
    end.

  Definition given (theta : Z) (offer : Z * Z) : Z := Z.max 0 (theta - fst offer) * snd offer.

  Definition least_of (best : option Z) (value : Z) : option Z :=
    match best with Some b => Some (Z.min b value) | None => Some value end.

  Definition lower (limit found : option Z) : option Z :=
    match limit, found with
    | Some l, Some f => Some (Z.min l f)
    | Some l, None => Some l
    | None, found => found
    end.

  (** [cells]: length and price of each from [now] on. [before]: offers of earlier cells, without those at
      [limit] or above, which no later threshold exceeds. [best]: least cost of completions so far. *)
  Fixpoint cheapest (cells : list (Z * Z)) (now : Z) (before : list (Z * Z)) (limit best : option Z)
    : option Z :=
    match cells with
    | [] => if later_too then least_of best (delay * now) else best
    | (length, price) :: rest =>
        if match best with Some b => b <=? delay * now | None => false end then best
        else
          let within := insert (rent * price + delay, length) before in
          let after := insert (rent * price, length) before in
          match lower limit (dearest p within) with
          | None =>
              if sum snd within <? p then cheapest rest (now + length) after None best
              else least_of best 0
          | Some theta =>
              let value := delay * now + theta * p - sum (given theta) within in
              cheapest rest (now + length) (filter (fun offer => fst offer <? theta) after)
                (Some theta) (least_of best value)
          end
    end.

  Lemma insert_sum f offer l : sum f (insert offer l) = f offer + sum f l.
  Proof.
    induction l as [|first rest IH]; cbn [insert sum]; [lia|].
    destruct (fst offer <=? fst first); cbn [sum]; lia.
  Qed.

  Lemma insert_in x offer l : In x (insert offer l) -> x = offer \/ In x l.
  Proof.
    induction l as [|first rest IH]; cbn [insert].
    - intros [<-|[]]. now left.
    - destruct (fst offer <=? fst first).
      + intros [<-|H]; [now left|now right].
      + intros [<-|H]; [right; now left|]. destruct (IH H) as [->|H']; [now left|right; now right].
  Qed.

  (** Price of a tick, cell by cell. *)
  Fixpoint cell_price (cells : list (Z * Z)) (now t : Z) : Z :=
    match cells with
    | [] => 0
    | (length, price) :: rest => if t <? now + length then price else cell_price rest (now + length) t
    end.

  Hypothesis Hdelay : 0 <= delay.
  Hypothesis Hrent : 0 <= rent.

  Definition at_most (found : option Z) (cost : Z) : Prop :=
    match found with Some v => v <= cost | None => False end.

  Lemma least_of_at_most best value cost :
    value <= cost \/ (exists b, best = Some b /\ b <= cost) -> at_most (least_of best value) cost.
  Proof. destruct best; cbn; intros [H|(b & E & H)]; try lia; try discriminate. injection E as ->. lia. Qed.

  (** More cells make no earlier completion dearer. *)
  Lemma cheapest_best : forall cells now before limit b,
    at_most (cheapest cells now before limit (Some b)) b.
  Proof.
    induction cells as [|[length price] rest IH]; intros now before limit b; cbn [cheapest].
    - destruct later_too; cbn; lia.
    - destruct (b <=? delay * now); [cbn; lia|].
      destruct (lower limit _) as [theta|].
      + cbn [least_of].
        match goal with |- at_most (cheapest ?c ?n ?l ?m (Some ?x)) _ => pose proof (IH n l m x) as H;
          destruct (cheapest c n l m (Some x)); cbn in *; lia end.
      + destruct (sum snd _ <? p); [apply IH|cbn; lia].
  Qed.

  (** The ticks [l] of a job that completes at [c]; so far it has had [had], for a rent of [paid]. *)
  Lemma cheapest_bound c : forall cells now before limit best l had paid,
    (forall cell, In cell cells -> 0 <= fst cell) ->
    (forall offer, In offer before -> 0 <= snd offer) ->
    (forall cell, In cell cells -> 0 <= snd cell) ->
    (match limit with
     | Some most => forall theta, theta <= most -> theta * had - sum (given theta) before <= paid
     | None => (forall theta, theta * had - sum (given theta) before <= paid)
               /\ had <= sum snd before
     end) ->
    0 <= paid -> later_too = true \/ (cells <> [] /\ c <= now + sum fst cells) ->
    NoDup l -> (forall t, In t l -> now <= t < c) -> now <= c ->
    had + Z.of_nat (length l) = p -> 0 <= now ->
    at_most (cheapest cells now before limit best)
            (delay * c + paid + rent * sum (cell_price cells now) l).
  Proof.
    induction cells as [|[len price] rest IH];
      intros now before limit best l had paid Hlen Hbefore Hprice Hlimit Hpaid Hlate Hnd Hin Hc Hp Hstart.
    - cbn [cheapest]. destruct Hlate as [->|[Hnone _]]; [|congruence]. apply least_of_at_most. left.
      assert (sum (cell_price [] now) l = 0) by (cbn; rewrite sum_const; lia). nia.
    - cbn [cheapest].
      assert (Hrented : 0 <= sum (cell_price ((len, price) :: rest) now) l).
      { apply sum_nonneg. intros t _.
        assert (H : forall cells n, (forall cell, In cell cells -> 0 <= snd cell) -> 0 <= cell_price cells n t).
        { clear. induction cells as [|[a b] cells IH]; intros n H; cbn; [lia|].
          destruct (t <? n + a); [apply (H (a, b)); now left|apply IH; intros; apply H; now right]. }
        now apply H. }
      assert (Hnow : delay * now <= delay * c) by nia.
      assert (Hlater : now + len < c -> later_too = true \/ (rest <> [] /\ c <= now + len + sum fst rest)).
      { intros Hcout. destruct Hlate as [H|[_ H]]; [now left|right]. cbn [sum fst] in H. split; [|lia].
        intros ->. cbn [sum] in H. lia. }
      destruct (match best with Some b => b <=? delay * now | None => false end) eqn:Hstop.
      { destruct best as [b|]; [|discriminate]. apply Z.leb_le in Hstop. unfold at_most.
        assert (0 <= rent * sum (cell_price ((len, price) :: rest) now) l)
          by (apply Z.mul_nonneg_nonneg; assumption). lia. }
      set (within := insert (rent * price + delay, len) before).
      set (after := insert (rent * price, len) before).
      assert (Hl : 0 <= len) by (apply (Hlen (len, price)); now left).
      assert (Hpr : 0 <= price) by (apply (Hprice (len, price)); now left).
      assert (Hafter : forall offer, In offer after -> 0 <= snd offer).
      { intros offer Ho. apply insert_in in Ho. destruct Ho as [->|Ho]; [exact Hl|now apply Hbefore]. }
      (* the job's ticks in this cell, and later ones *)
      set (here := filter (fun t => t <? now + len) l).
      set (later := filter (fun t => negb (t <? now + len)) l).
      set (y := Z.of_nat (length here)).
      assert (Hcount : Z.of_nat (length l) = y + Z.of_nat (length later)).
      { pose proof (sum_split (fun _ : Z => 1) (fun t => t <? now + len) l) as H.
        rewrite !sum_const in H. fold here in H. fold later in H. unfold y. lia. }
      assert (Hsum : sum (cell_price ((len, price) :: rest) now) l
                     = price * y + sum (cell_price rest (now + len)) later).
      { rewrite (sum_split _ (fun t => t <? now + len)). fold here. fold later. f_equal.
        - unfold y. rewrite <- sum_const. apply sum_ext. intros t Ht. apply filter_In in Ht.
          cbn [cell_price]. destruct Ht as [_ ->]. reflexivity.
        - apply sum_ext. intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht].
          cbn [cell_price]. destruct (t <? now + len); [discriminate|reflexivity]. }
      assert (Hhere : y <= Z.max 0 (Z.min (now + len) c - now)).
      { apply distinct_in_range; [now apply NoDup_filter|]. intros t Ht. apply filter_In in Ht.
        destruct Ht as [Ht Hb]. apply Z.ltb_lt in Hb. specialize (Hin t Ht). lia. }
      assert (Hy0 : 0 <= y) by (unfold y; lia).
      assert (Hnd' : NoDup later) by now apply NoDup_filter.
      assert (Hin' : forall t, In t later -> now + len <= t < c).
      { intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb].
        apply Bool.negb_true_iff, Z.ltb_ge in Hb. specialize (Hin t Ht). lia. }
      assert (Hcell : forall theta cost, theta * y - given theta (cost, len) <= cost * y).
      { intros theta cost. unfold given. cbn [fst snd]. nia. }
      (* completion in this cell *)
      assert (Hvalue : forall theta, c <= now + len ->
                theta * had - sum (given theta) before <= paid ->
                delay * now + theta * p - sum (given theta) within
                <= delay * c + paid + rent * sum (cell_price ((len, price) :: rest) now) l).
      { intros theta Hcin Htheta. unfold within. rewrite insert_sum.
        assert (Hnone : length later = 0%nat).
        { destruct later as [|t later']; [reflexivity|].
          specialize (Hin' t (or_introl eq_refl)). lia. }
        rewrite Hnone in Hcount. destruct later; [|discriminate]. cbn [sum] in Hsum.
        rewrite Hsum. specialize (Hcell theta (rent * price + delay)).
        assert (y <= c - now) by lia.
        assert (delay * (now + y) <= delay * c) by (apply Z.mul_le_mono_nonneg_l; lia).
        assert (p = had + y) as -> by lia. nia. }
      destruct (lower limit (dearest p within)) as [theta|] eqn:Hlower.
      + assert (Htheta : theta * had - sum (given theta) before <= paid).
        { destruct limit as [most|].
          - apply Hlimit. cbn in Hlower. destruct (dearest p within); injection Hlower as <-; lia.
          - apply Hlimit. }
        destruct (Z_le_gt_dec c (now + len)) as [Hcin|Hcout].
        * specialize (Hvalue theta Hcin Htheta).
          set (value := delay * now + theta * p - sum (given theta) within) in *.
          assert (Hb : exists b, least_of best value = Some b /\ b <= value).
          { destruct best; cbn; eexists; split; try reflexivity; lia. }
          destruct Hb as (b & -> & Hb).
          match goal with |- at_most (cheapest ?cs ?n ?l ?m (Some b)) _ =>
            pose proof (cheapest_best cs n l m b) as H;
            destruct (cheapest cs n l m (Some b)); cbn in *; lia end.
        * rewrite Hsum. replace (delay * c + paid + rent * (price * y + sum (cell_price rest (now + len)) later))
            with (delay * c + (paid + rent * price * y) + rent * sum (cell_price rest (now + len)) later) by ring.
          apply (IH (now + len) _ (Some theta) _ later (had + y)); try assumption.
          -- intros cell H. apply Hlen. now right.
          -- intros offer H. apply filter_In in H. now apply Hafter.
          -- intros cell H. apply Hprice. now right.
          -- intros theta' Hle.
             assert (Hsame : sum (given theta') (filter (fun offer => fst offer <? theta) after)
                             = sum (given theta') after).
             { rewrite sum_filter. apply sum_ext. intros offer _.
               destruct (Z.ltb_spec (fst offer) theta); [reflexivity|]. unfold given. nia. }
             rewrite Hsame. unfold after. rewrite insert_sum.
             specialize (Hcell theta' (rent * price)).
             assert (theta' * had - sum (given theta') before <= paid).
             { destruct limit as [most|]; [|apply Hlimit]. apply Hlimit.
               cbn in Hlower. destruct (dearest p within); injection Hlower as <-; lia. }
             nia.
          -- nia.
          -- apply Hlater. lia.
          -- lia.
          -- lia.
          -- lia.
      + destruct limit as [most|]; [cbn in Hlower; destruct (dearest p within); discriminate|].
        destruct Hlimit as [Hall Hroom].
        destruct (Z.ltb_spec (sum snd within) p) as [Hfew|Henough].
        * destruct (Z_le_gt_dec c (now + len)) as [Hcin|Hcout].
          { exfalso. unfold within in Hfew. rewrite insert_sum in Hfew. cbn [snd] in Hfew.
            assert (length later = 0%nat).
            { destruct later as [|t later']; [reflexivity|].
              specialize (Hin' t (or_introl eq_refl)). lia. }
            lia. }
          rewrite Hsum. replace (delay * c + paid + rent * (price * y + sum (cell_price rest (now + len)) later))
            with (delay * c + (paid + rent * price * y) + rent * sum (cell_price rest (now + len)) later) by ring.
          apply (IH (now + len) after None best later (had + y)); try assumption.
          -- intros cell H. apply Hlen. now right.
          -- intros cell H. apply Hprice. now right.
          -- split.
             ++ intros theta. unfold after. rewrite insert_sum.
                specialize (Hcell theta (rent * price)). specialize (Hall theta). nia.
             ++ unfold after. rewrite insert_sum. cbn [snd]. lia.
          -- nia.
          -- apply Hlater. lia.
          -- lia.
          -- lia.
          -- lia.
        * apply least_of_at_most. left.
          assert (0 <= delay * c) by (apply Z.mul_nonneg_nonneg; lia).
          assert (0 <= rent * sum (cell_price ((len, price) :: rest) now) l)
            by (apply Z.mul_nonneg_nonneg; assumption). lia.
  Qed.
End Plan.
