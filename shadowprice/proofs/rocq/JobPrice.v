(** What a job costs at least, whatever ticks it runs in, when GPUs have prices that are constant in
    intervals: the job's part of the interval LP's dual, evaluated at a threshold of one's own choice.

    With mean busy times (Goemans, Queyranne, Schulz, Skutella, Wang 2002) a job of p ticks that completes at C
    has C >= (mean of its ticks' middles) + p / 2. Within an interval that y of its ticks are in, the sum of
    their middles is at least begin y + y y / 2, which lies above begin y on the first half of the
    interval's ticks and above begin + most a tick on the second half (derived). *)

From Coq Require Import List ZArith Lia.
From Shadowprice Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Section Price.
  (** [a]rrival and ticks [p] of the job; weight times [w] of a tick, and [rent] of a tick for each unit of
      price: both in the same unit. [theta]: the threshold. *)
  Variables (r p w rent theta : Z).

  (** Ticks that are offered at a cost each: (cost, how many). *)
  Definition offers_in (a : Z) (room price : Z) : list (Z * Z) :=
    let begin := Z.max a r in
    let most := Z.min room p in
    if 0 <? most
    then [(w * begin + rent * price, most - most / 2);
          (w * (begin + most) + rent * price, most / 2)]
    else [].

  (** After the last interval GPUs cost nothing. *)
  Fixpoint offers (grid prices : list Z) : list (Z * Z) :=
    match grid, prices with
    | a :: ((b :: _) as later), price :: more =>
        offers_in a (b - Z.max a r) price ++ offers later more
    | a :: _, _ => offers_in a p 0
    | [], _ => []
    end.

  Definition gain (offer : Z * Z) : Z := Z.max 0 (theta - fst offer) * snd offer.

  (** Twice theta p less what the offers below theta give. *)
  Definition price_at_threshold (grid prices : list Z) : Z :=
    2 * theta * p - 2 * sum gain (offers grid prices).

  Fixpoint price_of (grid prices : list Z) (t : Z) : Z :=
    match grid, prices with
    | a :: ((b :: _) as later), price :: more => if t <? b then price else price_of later more t
    | _, _ => 0
    end.

  Fixpoint increasing (grid : list Z) : Prop :=
    match grid with
    | a :: ((b :: _) as later) => a < b /\ increasing later
    | _ => True
    end.

  Hypothesis Hp : 1 <= p.
  Hypothesis Hw : 0 <= w.
  Hypothesis Hrent : 0 <= rent.

  (** One interval: y ticks, no more than there is room for. *)
  Lemma interval begin most y twice price :
    0 <= y <= most -> 2 * begin * y + y * (y - 1) <= twice ->
    2 * theta * y
    - 2 * (Z.max 0 (theta - (w * begin + rent * price)) * (most - most / 2)
           + Z.max 0 (theta - (w * (begin + most) + rent * price)) * (most / 2))
    <= w * (twice + y) + 2 * rent * price * y.
  Proof.
    intros Hy Htwice.
    assert (Hhalf : 0 <= most - 2 * (most / 2) <= 1)
      by (pose proof (Z.div_mod most 2); pose proof (Z.mod_pos_bound most 2); lia).
    set (half := most / 2) in *.
    set (first := most - half) in *.
    set (c1 := w * begin + rent * price).
    set (c2 := w * (begin + most) + rent * price).
    assert (Hsplit : exists y1 y2, y = y1 + y2 /\ 0 <= y1 <= first /\ 0 <= y2 <= half /\
                                   2 * most * y2 <= y * y).
    { destruct (Z_le_gt_dec y first).
      - exists y, 0. unfold first in *. repeat split; nia.
      - exists first, (y - first). unfold first in *. repeat split; nia. }
    destruct Hsplit as (y1 & y2 & Hsum & H1 & H2 & Hsq).
    assert (G1 : theta * y1 - Z.max 0 (theta - c1) * first <= c1 * y1) by nia.
    assert (G2 : theta * y2 - Z.max 0 (theta - c2) * half <= c2 * y2) by nia.
    assert (Hc : 2 * (c1 * y1 + c2 * y2) = w * (2 * begin * y + 2 * most * y2) + 2 * rent * price * y).
    { unfold c1, c2. subst y. ring. }
    assert (w * (2 * begin * y + 2 * most * y2) <= w * (twice + y)).
    { apply Z.mul_le_mono_nonneg_l; nia. }
    replace (2 * theta * y) with (2 * (theta * y1) + 2 * (theta * y2)) by (subst y; ring).
    lia.
  Qed.

  Lemma offers_in_bound a room price l :
    NoDup l -> (forall t, In t l -> r <= t) -> (forall t, In t l -> a <= t) ->
    Z.of_nat (length l) <= Z.max 0 room -> Z.of_nat (length l) <= p ->
    2 * theta * Z.of_nat (length l) - 2 * sum gain (offers_in a room price)
    <= w * (2 * sum same l + Z.of_nat (length l)) + 2 * rent * price * Z.of_nat (length l).
  Proof.
    intros Hnd Hr Ha Hroom Hlen. unfold offers_in.
    set (begin := Z.max a r). set (most := Z.min room p).
    assert (Htwice : 2 * begin * Z.of_nat (length l)
                     + Z.of_nat (length l) * (Z.of_nat (length l) - 1) <= 2 * sum same l).
    { apply distinct_sum_from; [reflexivity|assumption|].
      intros t Ht. specialize (Hr t Ht). specialize (Ha t Ht). lia. }
    destruct (0 <? most) eqn:Hmost.
    - apply Z.ltb_lt in Hmost. cbn [sum]. unfold gain. cbn [fst snd].
      pose proof (interval begin most (Z.of_nat (length l)) (2 * sum same l) price) as H.
      rewrite Z.add_0_r. apply H; [lia|assumption].
    - apply Z.ltb_ge in Hmost. assert (Hzero : length l = 0%nat) by lia.
      destruct l; [|discriminate]. cbn. lia.
  Qed.

  Lemma offers_bound : forall grid prices l a,
    (forall b later, grid = b :: later -> b = a) -> grid <> [] ->
    increasing grid -> length grid = S (length prices) ->
    NoDup l -> (forall t, In t l -> r <= t) -> (forall t, In t l -> a <= t) ->
    Z.of_nat (length l) <= p ->
    2 * theta * Z.of_nat (length l) - 2 * sum gain (offers grid prices)
    <= w * (2 * sum same l + Z.of_nat (length l)) + 2 * rent * sum (price_of grid prices) l.
  Proof.
    induction grid as [|a0 grid IH]; intros prices l a Hhead Hne Hinc Hlength Hnd Hr Ha Hlen;
      [congruence|].
    assert (a0 = a) by (eapply Hhead; reflexivity). subst a0.
    destruct grid as [|b later].
    - destruct prices; [|discriminate]. cbn [offers price_of].
      pose proof (offers_in_bound a p 0 l Hnd Hr Ha) as H.
      assert (sum (fun _ : Z => 0) l = 0) by (rewrite sum_const; lia).
      assert (sum (price_of [a] []) l = 0) by (rewrite <- H0; apply sum_ext; reflexivity).
      change (offers [a] []) with (offers_in a p 0). lia.
    - destruct prices as [|price more]; [discriminate|].
      destruct Hinc as [Hab Hinc].
      change (offers (a :: b :: later) (price :: more))
        with (offers_in a (b - Z.max a r) price ++ offers (b :: later) more).
      rewrite sum_app.
      set (here := filter (fun t => t <? b) l).
      set (after := filter (fun t => negb (t <? b)) l).
      assert (Hsame : sum same l = sum same here + sum same after) by apply sum_split.
      assert (Hcount : Z.of_nat (length l) = Z.of_nat (length here) + Z.of_nat (length after)).
      { pose proof (sum_split (fun _ : Z => 1) (fun t => t <? b) l) as H.
        rewrite !sum_const in H. fold here in H. fold after in H. lia. }
      assert (Hprice : sum (price_of (a :: b :: later) (price :: more)) l
                       = price * Z.of_nat (length here) + sum (price_of (b :: later) more) after).
      { rewrite (sum_split _ (fun t => t <? b)). fold here. fold after. f_equal.
        - rewrite <- sum_const. apply sum_ext. intros t Ht. apply filter_In in Ht.
          cbn [price_of]. destruct Ht as [_ ->]. reflexivity.
        - apply sum_ext. intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht].
          cbn [price_of]. destruct (t <? b); [discriminate|reflexivity]. }
      assert (Hhere : 2 * theta * Z.of_nat (length here)
                      - 2 * sum gain (offers_in a (b - Z.max a r) price)
                      <= w * (2 * sum same here + Z.of_nat (length here))
                         + 2 * rent * price * Z.of_nat (length here)).
      { apply offers_in_bound.
        - now apply NoDup_filter.
        - intros t Ht. apply filter_In in Ht. now apply Hr.
        - intros t Ht. apply filter_In in Ht. now apply Ha.
        - apply distinct_in_range; [now apply NoDup_filter|].
          intros t Ht. apply filter_In in Ht. destruct Ht as [Ht Hb]. apply Z.ltb_lt in Hb.
          specialize (Hr t Ht). specialize (Ha t Ht). lia.
        - lia. }
      assert (Hafter : 2 * theta * Z.of_nat (length after) - 2 * sum gain (offers (b :: later) more)
                       <= w * (2 * sum same after + Z.of_nat (length after))
                          + 2 * rent * sum (price_of (b :: later) more) after).
      { apply (IH more after b).
        - intros b' later' [= -> _]. reflexivity.
        - congruence.
        - exact Hinc.
        - cbn in Hlength. cbn. lia.
        - now apply NoDup_filter.
        - intros t Ht. apply filter_In in Ht. now apply Hr.
        - intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht].
          apply Bool.negb_true_iff, Z.ltb_ge in Ht. assumption.
        - lia. }
      rewrite Hprice, Hsame, Hcount. nia.
  Qed.

  (** Twice what the job pays in time, and twice its rent, against the price at any threshold. *)
  Theorem job_price grid prices a held c :
    grid <> [] -> (forall b later, grid = b :: later -> b = a) -> a <= r ->
    increasing grid -> length grid = S (length prices) -> (forall x, In x prices -> 0 <= x) ->
    NoDup held -> (forall t, In t held -> r <= t < c) -> p <= Z.of_nat (length held) ->
    price_at_threshold grid prices + w * p * p
    <= 2 * w * p * c + 2 * rent * sum (price_of grid prices) held.
  Proof.
    intros Hne Hhead Har Hinc Hlength Hprices Hnd Hheld Henough.
    set (n := Z.to_nat p).
    assert (Hn : length (firstn n held) = n) by (apply firstn_length_le; lia).
    assert (Hsplit : held = firstn n held ++ skipn n held) by (symmetry; apply firstn_skipn).
    assert (Hin : forall t, In t (firstn n held) -> In t held).
    { intros t Ht. rewrite Hsplit. apply in_app_iff. now left. }
    assert (Hnd' : NoDup (firstn n held)).
    { rewrite Hsplit in Hnd. now apply nodup_app_left in Hnd. }
    assert (Hprice_nonneg : forall t, 0 <= price_of grid prices t).
    { intros t. clear - Hprices. revert prices Hprices.
      induction grid as [|g grid IH]; intros prices Hprices; [cbn; lia|].
      destruct grid as [|b later]; [cbn; destruct prices; lia|].
      destruct prices as [|x prices]; [cbn; lia|]. cbn [price_of].
      destruct (t <? b); [apply Hprices; now left|].
      apply IH. intros y Hy. apply Hprices. now right. }
    assert (Hrented : sum (price_of grid prices) (firstn n held)
                      <= sum (price_of grid prices) held).
    { rewrite Hsplit at 2. rewrite sum_app.
      assert (0 <= sum (price_of grid prices) (skipn n held)) by (apply sum_nonneg; auto). lia. }
    pose proof (offers_bound grid prices (firstn n held) a Hhead Hne Hinc Hlength Hnd') as Hoffers.
    rewrite Hn in Hoffers. replace (Z.of_nat n) with p in Hoffers by lia.
    assert (Hoffers' := Hoffers
      (fun t Ht => proj1 (Hheld t (Hin t Ht)))
      (fun t Ht => Z.le_trans _ _ _ Har (proj1 (Hheld t (Hin t Ht)))) (Z.le_refl p)).
    clear Hoffers.
    pose proof (distinct_sum_before c (firstn n held) Hnd'
                  (fun t Ht => proj2 (Hheld t (Hin t Ht)))) as Hbefore.
    rewrite Hn in Hbefore. replace (Z.of_nat n) with p in Hbefore by lia.
    unfold price_at_threshold.
    assert (w * (2 * sum same (firstn n held)) <= w * (2 * c * p - p * (p + 1)))
      by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (rent * sum (price_of grid prices) (firstn n held)
            <= rent * sum (price_of grid prices) held)
      by (apply Z.mul_le_mono_nonneg_l; lia).
    nia.
  Qed.
End Price.
