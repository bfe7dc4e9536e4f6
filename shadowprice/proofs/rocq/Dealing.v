(** Work that is done in parts of ticks, dealt to scenarios: in each a job holds whole ticks, as long as it takes. *)

From Coq Require Import List ZArith Lia Bool.
From Shadowprice Require Import Sums Duality.
Import ListNotations.
Open Scope Z_scope.

Section Dealing.
  (** [n] units are a tick; [x] of them are done in each, from [a] on. *)
  Variables (n : nat) (x : Z -> Z) (a : Z).
  Hypothesis Hn : (1 <= n)%nat.
  Hypothesis Hx : forall t, 0 <= x t <= Z.of_nat n.

  Definition so_far (t : Z) : Z := sum x (ticks a t).

  (** Of the first so many units, those of a scenario. *)
  Definition deal (w : nat) (units : Z) : Z := (units + Z.of_nat n - 1 - Z.of_nat w) / Z.of_nat n.

  Definition mine_at (w : nat) (t : Z) : bool := deal w (so_far t) <? deal w (so_far (t + 1)).

  Definition held_in (w : nat) (c : Z) : list Z := filter (mine_at w) (ticks a c).

  Lemma so_far_positive t : 0 <= so_far t.
  Proof. apply sum_nonneg. intros; apply Hx. Qed.

  Lemma next_tick t : a <= t -> ticks a (t + 1) = ticks a t ++ [t].
  Proof.
    intros H. rewrite (ticks_app a t (t + 1)) by lia. f_equal. unfold ticks.
    replace (Z.to_nat (t + 1 - t)) with 1%nat by lia. cbn. f_equal. lia.
  Qed.

  Lemma so_far_next t : a <= t -> so_far (t + 1) = so_far t + x t.
  Proof. intros H. unfold so_far. rewrite next_tick, sum_app by exact H. cbn. lia. Qed.

  Lemma deal_next w t : a <= t -> (w < n)%nat ->
    deal w (so_far (t + 1)) = deal w (so_far t) + if mine_at w t then 1 else 0.
  Proof.
    intros H Hw. unfold mine_at. rewrite (so_far_next t H). set (s := so_far t). pose proof (Hx t) as Hxt.
    assert (Hle : deal w s <= deal w (s + x t)) by (apply Z.div_le_mono; lia).
    assert (Hone : deal w (s + x t) <= deal w s + 1).
    { unfold deal. replace (deal w s + 1) with ((s + Z.of_nat n - 1 - Z.of_nat w) / Z.of_nat n + 1) by reflexivity.
      rewrite <- Z.div_add by lia. apply Z.div_le_mono; lia. }
    destruct (Z.ltb_spec (deal w s) (deal w (s + x t))); lia.
  Qed.

  Lemma deal_none w : (w < n)%nat -> deal w 0 = 0.
  Proof. intros H. unfold deal. apply Z.div_small. lia. Qed.

  Lemma held_length w m : (w < n)%nat -> Z.of_nat (length (held_in w (a + Z.of_nat m))) = deal w (so_far (a + Z.of_nat m)).
  Proof.
    intros Hw. induction m as [|m IH].
    - unfold held_in, so_far, ticks. replace (Z.to_nat (a + Z.of_nat 0 - a)) with 0%nat by lia. cbn. symmetry. now apply deal_none.
    - replace (a + Z.of_nat (S m)) with (a + Z.of_nat m + 1) by lia. set (t := a + Z.of_nat m) in *.
      unfold held_in. rewrite next_tick, filter_app, app_length by lia. fold (held_in w t).
      rewrite (deal_next w t) by (assumption || lia). cbn [filter]. destruct (mine_at w t); cbn [length]; lia.
  Qed.

  (** Who has so many ticks' units by [c], has as many ticks in each scenario. *)
  Lemma held_enough w c p : (w < n)%nat -> 0 <= p -> a <= c -> Z.of_nat n * p <= so_far c ->
    p <= Z.of_nat (length (held_in w c)).
  Proof.
    intros Hw Hp Hc H. replace c with (a + Z.of_nat (Z.to_nat (c - a))) by lia. rewrite held_length by exact Hw.
    replace (a + Z.of_nat (Z.to_nat (c - a))) with c by lia. unfold deal. apply Z.div_le_lower_bound; lia.
  Qed.

  Lemma held_distinct w c : NoDup (held_in w c).
  Proof. apply NoDup_filter, nodup_ticks. Qed.

  Lemma held_within w c t : In t (held_in w c) -> a <= t < c.
  Proof. intros H. apply filter_In in H. now apply in_ticks. Qed.

  Lemma some_of_range (r m b : nat) : (b <= r)%nat ->
    sum (fun w => if (w <? r)%nat then 1 else 0) (seq b m) = Z.min (Z.of_nat m) (Z.of_nat r - Z.of_nat b).
  Proof.
    revert b. induction m as [|m IH]; intros b Hb; cbn [seq sum]; [lia|].
    destruct (Nat.ltb_spec b r).
    - rewrite IH by lia. lia.
    - assert (E : sum (fun w => if (w <? r)%nat then 1 else 0) (seq (S b) m) = 0); [|lia].
      transitivity (sum (fun _ : nat => 0) (seq (S b) m)); [|rewrite sum_const; lia].
      apply sum_ext. intros w Hw. apply in_seq in Hw. destruct (Nat.ltb_spec w r); lia.
  Qed.

  Lemma all_dealt units : 0 <= units -> sum (fun w => deal w units) (seq 0 n) = units.
  Proof.
    intros Hu. set (N := Z.of_nat n). assert (HN : 0 < N) by (unfold N; lia).
    pose proof (Z.div_mod units N ltac:(lia)) as Hdiv. pose proof (Z.mod_pos_bound units N HN) as Hmod.
    set (q := units / N) in *. set (r := units mod N) in *.
    rewrite (sum_ext _ (fun w => q + if (w <? Z.to_nat r)%nat then 1 else 0)).
    - rewrite sum_add, sum_const, seq_length, some_of_range by lia. fold N. lia.
    - intros w Hw. apply in_seq in Hw. unfold deal. fold N.
      replace (units + N - 1 - Z.of_nat w) with (r + N - 1 - Z.of_nat w + q * N) by lia. rewrite Z.div_add by lia.
      destruct (Nat.ltb_spec w (Z.to_nat r)).
      + assert (E : (r + N - 1 - Z.of_nat w) / N = 1); [|lia].
        symmetry. apply Z.div_unique with (r - 1 - Z.of_nat w); lia.
      + rewrite Z.div_small by lia. lia.
  Qed.

  (** Over all scenarios ticks are held as often as there are units done in them. *)
  Lemma held_on_average (f : Z -> Z) c :
    sum (fun w => sum f (held_in w c)) (seq 0 n) = sum (fun t => x t * f t) (ticks a c).
  Proof.
    unfold held_in. rewrite (sum_ext _ (fun w => sum (fun t => if mine_at w t then f t else 0) (ticks a c)))
      by (intros w _; apply sum_filter).
    rewrite sum_swap. apply sum_ext. intros t Ht. apply in_ticks in Ht.
    rewrite (sum_ext _ (fun w => f t * (deal w (so_far (t + 1)) - deal w (so_far t)))).
    - rewrite sum_scale.
      assert (E : sum (fun w => deal w (so_far (t + 1)) - deal w (so_far t)) (seq 0 n) = x t).
      { set (big := sum (fun w => deal w (so_far (t + 1)) - deal w (so_far t)) (seq 0 n)).
        assert (H : big + sum (fun w => deal w (so_far t)) (seq 0 n) = sum (fun w => deal w (so_far (t + 1))) (seq 0 n)).
        { unfold big. rewrite <- sum_add. apply sum_ext. intros; lia. }
        rewrite (all_dealt _ (so_far_positive t)), (all_dealt _ (so_far_positive (t + 1))) in H.
        pose proof (so_far_next t (proj1 Ht)). lia. }
      rewrite E. lia.
    - intros w Hw. apply in_seq in Hw. rewrite (deal_next w t) by lia. destruct (mine_at w t); lia.
  Qed.
End Dealing.
