(** Bounds of work that is not done in whole gangs: of schedules that are, on average over some scenarios, schedules of an
    instance. In each scenario a job holds its gang at some ticks before it completes; over all of them, and on average,
    the jobs hold no more than there is. *)

From Coq Require Import List ZArith QArith Lia Lqa Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Span Utility Fluid Checker Claim.
Import ListNotations.
Open Scope Z_scope.

Lemma sumQ_all {A} (a : Q) (l : list A) : (sumQ (fun _ => a) l == inject_Z (Z.of_nat (length l)) * a)%Q.
Proof.
  induction l as [|x l IH]; cbn [sumQ length]; [ring|]. rewrite IH, Nat2Z.inj_succ. unfold Z.succ. rewrite inject_Z_plus. ring.
Qed.

Lemma sumQ_swap {A B} (f : A -> B -> Q) la lb :
  (sumQ (fun a => sumQ (f a) lb) la == sumQ (fun b => sumQ (fun a => f a b) la) lb)%Q.
Proof.
  induction la as [|a l IH]; cbn.
  - induction lb as [|b lb IHb]; cbn; [reflexivity|]. rewrite <- IHb. ring.
  - rewrite IH, sumQ_add. reflexivity.
Qed.

(** Until when a job counts that is complete at [c], or not at all. *)
Definition ends_at (I : instance) (done : bool) (c : Z) : Z :=
  match until I with Some limit => if done then Z.min limit c else limit | None => c end.

Lemma capped_at I j least (done : bool) c extra :
  (0 <= extra)%Q -> (until I = None -> done = true) ->
  (done = true -> (least <= weight j * inject_Z c + extra)%Q) ->
  (capped I j least <= weight j * inject_Z (ends_at I done c) + extra)%Q.
Proof.
  intros Hextra Hnone Hleast. unfold capped, ends_at. destruct (until I) as [limit|]; [|now apply Hleast, Hnone].
  assert (Hlimit : forall bound, (bound <= weight j * inject_Z limit)%Q -> (bound <= weight j * inject_Z limit + extra)%Q).
  { intros bound H. rewrite <- (Qplus_0_r bound). now apply Qplus_le_compat. }
  assert (Hcap : ((if Qle_bool least (weight j * inject_Z limit) then least else weight j * inject_Z limit) <= weight j * inject_Z limit)%Q).
  { destruct (Qle_bool least _) eqn:E; [now apply Qle_bool_iff|apply Qle_refl]. }
  destruct done; [|now apply Hlimit].
  destruct (Z.min_spec limit c) as [[_ ->]|[_ ->]]; [now apply Hlimit|].
  destruct (Qle_bool least (weight j * inject_Z limit)) eqn:E; [now apply Hleast|].
  eapply Qle_trans; [|now apply Hleast].
  destruct (Qlt_le_dec (weight j * inject_Z limit) least) as [H|H]; [now apply Qlt_le_weak|].
  apply Qle_bool_iff in H. congruence.
Qed.

Section Scenarios.
  Variables (I : instance) (n : nat) (held : nat -> nat -> list Z) (complete : nat -> Z) (done : nat -> bool).
  Hypothesis Hsound : sound I.
  Hypothesis Hn : (1 <= n)%nat.
  Hypothesis Hdistinct : forall k w, NoDup (held k w).
  Hypothesis Hbounds : forall k j w t, nth_error (jobs I) k = Some j -> In t (held k w) -> arrival j <= t < complete k.
  Hypothesis Henough : forall k j w, nth_error (jobs I) k = Some j -> (w < n)%nat -> done k = true ->
    shortest j <= Z.of_nat (length (held k w)).
  Hypothesis Hroom : forall (f : Z -> Z) all, NoDup all -> (forall t, 0 <= f t) -> (forall t, f t <> 0 -> In t all) ->
    sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) (numbered I)
    <= Z.of_nat n * capacity I * sum f all.
  Hypothesis Hall : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> until I = None -> done k = true.

  Definition cost_now (kj : nat * job) : Q :=
    (weight (snd kj) * inject_Z (ends_at I (done (fst kj)) (complete (fst kj))))%Q.

  Lemma job_of kj : In kj (counted I) -> nth_error (jobs I) (fst kj) = Some (snd kj) /\ counts I (snd kj) = true /\ sound_job (snd kj).
  Proof.
    destruct kj as [k j]. intros H. apply in_counted in H. destruct H as [H1 H2]. repeat split; try assumption;
      now apply (sound_in _ _ _ Hsound H1).
  Qed.

  Lemma alone_first k j : nth_error (jobs I) k = Some j -> done k = true -> arrival j + shortest j <= complete k.
  Proof.
    intros Hk Hdone. pose proof (Henough k j 0%nat Hk ltac:(lia) Hdone) as H.
    pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hp.
    pose proof (distinct_in_range (held k 0) (arrival j) (complete k) (Hdistinct k 0%nat) (fun t => Hbounds k j 0%nat t Hk)). lia.
  Qed.

  Lemma alone_on_average : (alone_value I <= sumQ cost_now (counted I))%Q.
  Proof.
    unfold alone_value. set (f := fun j => capped I j (weight j * inject_Z (arrival j + shortest j))%Q).
    rewrite sum_fractions_is, <- (sumQ_counted I f). apply sumQ_le. intros kj Hin.
    destruct (job_of kj Hin) as (Hk & Hc & (_ & _ & Hw & _)). unfold f, cost_now.
    rewrite <- (Qplus_0_r (weight (snd kj) * inject_Z (ends_at I _ _))). apply capped_at; [apply Qle_refl|now apply (Hall (fst kj) (snd kj))|].
    intros Hdone. rewrite Qplus_0_r, !(Qmult_comm (weight (snd kj))). apply Qmult_le_compat_r; [|unfold Qle; cbn; lia].
    rewrite <- Zle_Qle. now apply alone_first.
  Qed.

  (** *** Prices over time *)

  Section Prices.
    Variables (grid prices : list Z).
    Hypothesis Hcheck : check_prices I grid prices = true.

    Definition rent_in (w : nat) (kj : nat * job) : Z := gang (snd kj) * sum (price_of grid prices) (held (fst kj) w).

    Lemma all_rented : sum (fun w => sum (rent_in w) (counted I)) (seq 0 n) <= Z.of_nat n * (capacity I * all_earn grid prices).
    Proof.
      apply check_prices_sound in Hcheck. destruct Hcheck as (Hne & Hinc & Hlength & Hprices & Hbegin).
      set (f := fun t => if t <? hd 0 grid then 0 else price_of grid prices t).
      assert (Hf : forall t, 0 <= f t) by (intros t; unfold f; destruct (t <? hd 0 grid); [lia|now apply price_nonneg]).
      rewrite sum_swap.
      transitivity (sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) (numbered I)).
      { unfold counted. rewrite sum_filter. apply sum_le. intros [k j] Hin. cbn [snd fst].
        apply in_numbered in Hin. destruct (sound_in _ _ _ Hsound Hin) as (_ & Hg & _).
        assert (Hpos : 0 <= sum (fun w => sum f (held k w)) (seq 0 n)).
        { apply sum_nonneg. intros w _. apply sum_nonneg. auto. }
        destruct (counts I j) eqn:Hcounts; [|nia]. unfold rent_in. cbn [fst snd]. rewrite sum_scale.
        apply Z.eq_le_incl. f_equal. apply sum_ext. intros w _. apply sum_ext. intros t Ht. unfold f.
        pose proof (Hbounds k j w t Hin Ht). specialize (Hbegin k j Hin Hcounts).
        destruct (Z.ltb_spec t (hd 0 grid)); [lia|reflexivity]. }
      rewrite <- (sum_of_prices grid prices Hinc Hne).
      rewrite (sum_ext (price_of grid prices) f).
      2: { intros t Ht. apply in_ticks in Ht. unfold f. destruct (Z.ltb_spec t (hd 0 grid)); [lia|reflexivity]. }
      rewrite Z.mul_assoc. apply Hroom; [apply nodup_ticks|exact Hf|].
      intros t Ht. apply in_ticks. unfold f in Ht. destruct (Z.ltb_spec t (hd 0 grid)); [congruence|].
      split; [assumption|]. destruct (Z_lt_ge_dec t (last grid 0)); [assumption|].
      exfalso. apply Ht. apply price_after; [assumption|lia].
    Qed.

    Lemma busy_in unit theta k j w : nth_error (jobs I) k = Some j -> counts I j = true -> (w < n)%nat -> done k = true ->
      (least_busy unit grid prices theta j
       <= weight j * inject_Z (complete k) + (rent_in w (k, j) # unit))%Q.
    Proof.
      intros Hk Hcounts Hw Hdone. apply check_prices_sound in Hcheck. destruct Hcheck as (Hne & Hinc & Hlength & Hprices & Hbegin).
      pose proof (sound_in _ _ _ Hsound Hk) as Hj.
      pose proof (shortest_positive j Hj) as Hp. destruct Hj as (_ & Hg & Hwt & _).
      assert (Hprice := job_price (arrival j) (shortest j) (Qnum (weight j) * Zpos unit)
                          (shortest j * gang j * Zpos (Qden (weight j))) (theta j)
                          Hp ltac:(nia) ltac:(nia) grid prices (hd 0 grid) (held k w)
                          (complete k) Hne ltac:(intros b later ->; reflexivity) (Hbegin k j Hk Hcounts) Hinc Hlength Hprices
                          (Hdistinct k w) (fun t => Hbounds k j w t Hk) (Henough k j w Hk Hw Hdone)).
      unfold least_busy, rent_in, Qle, Qplus, Qmult, inject_Z. cbn [Qnum Qden fst snd].
      set (num := price_at_threshold _ _ _ _ _ _ _ + _) in *.
      set (R := sum (price_of grid prices) (held k w)) in *.
      set (C := complete k) in *. set (p := shortest j) in *.
      rewrite !Pos2Z.inj_mul, Z2Pos.id by lia. rewrite ?Z.mul_1_r, ?Z.mul_1_l.
      set (wn := Qnum (weight j)) in *. set (wd := Zpos (Qden (weight j))) in *.
      set (U := Zpos unit) in *. set (g := gang j) in *.
      assert (0 <= wd * U) by (unfold wd, U; lia).
      replace ((wn * C * U + g * R * wd) * (2 * p * wd * U))
        with ((2 * (wn * U) * p * C + 2 * (p * g * wd) * R) * (wd * U)) by ring.
      apply Z.mul_le_mono_nonneg_r; lia.
    Qed.

    Lemma prices_on_average : (prices_value I grid prices <= sumQ cost_now (counted I))%Q.
    Proof.
      unfold prices_value. set (unit := price_unit I). set (theta := threshold_of unit grid prices).
      set (f := fun j => capped I j (least_busy unit grid prices theta j)).
      rewrite sum_fractions_is, <- (sumQ_counted I f).
      assert (Hone : forall w, In w (seq 0 n) ->
        (sumQ (fun kj => f (snd kj)) (counted I) <= sumQ cost_now (counted I) + (sum (rent_in w) (counted I) # unit))%Q).
      { intros w Hw. rewrite <- sumQ_same_denominator, <- sumQ_add. apply sumQ_le. intros kj Hin.
        destruct (job_of kj Hin) as (Hk & Hc & (_ & Hg & _)). unfold f, cost_now. apply capped_at; [|now apply (Hall (fst kj) (snd kj))|].
        - unfold Qle. cbn [Qnum Qden]. rewrite Z.mul_1_r. unfold rent_in.
          apply Z.mul_nonneg_nonneg; [lia|]. apply sum_nonneg. intros t _. apply price_nonneg.
          apply check_prices_sound in Hcheck. apply Hcheck.
        - intros Hdone. destruct kj as [k j]. apply busy_in; try assumption. apply in_seq in Hw. lia. }
      assert (Hsum : (sumQ (fun _ : nat => sumQ (fun kj => f (snd kj)) (counted I)) (seq 0 n)
                      <= sumQ (fun w => sumQ cost_now (counted I) + (sum (rent_in w) (counted I) # unit)) (seq 0 n))%Q)
        by (apply sumQ_le; exact Hone).
      rewrite sumQ_add, !sumQ_all, sumQ_same_denominator, seq_length in Hsum.
      assert (Hrented : ((sum (fun w => sum (rent_in w) (counted I)) (seq 0 n) # unit)
                         <= inject_Z (Z.of_nat n) * paid I 1 unit grid prices)%Q).
      { unfold paid, Qle, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos.mul_1_l.
        apply Z.mul_le_mono_nonneg_r; [apply Pos2Z.is_nonneg|]. pose proof all_rented. lia. }
      set (all := sumQ (fun kj => f (snd kj)) (counted I)) in *. set (c := sumQ cost_now (counted I)) in *.
      set (r := (sum _ (seq 0 n) # unit)%Q) in *. set (p := paid I 1 unit grid prices) in *.
      assert (H : (inject_Z (Z.of_nat n) * all <= inject_Z (Z.of_nat n) * (c + p))%Q).
      { eapply Qle_trans; [exact Hsum|]. rewrite Qmult_plus_distr_r. apply Qplus_le_compat; [apply Qle_refl|exact Hrented]. }
      assert (Hpos : (0 < inject_Z (Z.of_nat n))%Q) by (unfold Qlt; cbn [Qnum Qden inject_Z]; lia).
      rewrite !(Qmult_comm (inject_Z (Z.of_nat n))) in H. apply (proj1 (Qmult_le_r _ _ _ Hpos)) in H.
      clear - H. clearbody all c p. lra.
    Qed.
  End Prices.

  (** *** One machine, the least work first *)

  Let of_number {A} (f : job -> A) (default : A) (k : nat) : A :=
    match nth_error (jobs I) k with Some j => f j | None => default end.
  Let before (t : Z) (k w : nat) : Z := sum (fun x => if x <? t then 1 else 0) (held k w).
  Let left_of (k : nat) (t : Z) : Z :=
    of_number (fun j => sum (fun w => Z.max 0 (gang j * (shortest j - before t k w))) (seq 0 n)) 0 k.
  Let release_of := of_number arrival 0.
  Let work_of := of_number (fun j => Z.of_nat n * (gang j * shortest j)) 0.
  Let known (k : nat) : Prop := exists j, In (k, j) (counted I).

  Lemma of_known k : known k -> exists j, In (k, j) (counted I) /\ nth_error (jobs I) k = Some j /\ sound_job j.
  Proof. intros (j & H). destruct (job_of _ H) as (H1 & _ & H2). exists j. split; [exact H|]. split; [exact H1|exact H2]. Qed.

  Lemma more_before t later k w : t <= later ->
    before later k w = before t k w + sum (fun x => if (t <=? x) && (x <? later) then 1 else 0) (held k w).
  Proof.
    intros Ht. unfold before. rewrite <- sum_add. apply sum_ext. intros x _.
    destruct (Z.ltb_spec x later), (Z.ltb_spec x t), (Z.leb_spec t x); cbn; lia.
  Qed.

  Lemma known_jobs some : NoDup some -> (forall k, In k some -> known k) ->
    exists pairs, map fst pairs = some /\ NoDup pairs /\ incl pairs (counted I).
  Proof.
    intros Hnd Hknown. assert (H : exists pairs, map fst pairs = some /\ incl pairs (counted I)).
    { clear Hnd. induction some as [|k some IH]; [exists []; split; [reflexivity|intros x []]|].
      destruct IH as (pairs & <- & Hincl); [intros; apply Hknown; now right|].
      destruct (Hknown k (or_introl eq_refl)) as (j & Hj). exists ((k, j) :: pairs). split; [reflexivity|].
      intros x [<-|Hx]; [exact Hj|now apply Hincl]. }
    destruct H as (pairs & Hpairs & Hincl). exists pairs. split; [exact Hpairs|]. split; [|exact Hincl].
    apply nodup_of_fst. now rewrite Hpairs.
  Qed.

  Lemma sum_of_some {A} (f : A -> Z) some : forall all, NoDup some -> incl some all -> (forall x, In x all -> 0 <= f x) ->
    sum f some <= sum f all.
  Proof.
    induction some as [|x some IH]; intros all Hnd Hincl Hf; cbn [sum]; [now apply sum_nonneg|].
    inversion Hnd as [|? ? Hx Hrest]; subst. destruct (in_split _ _ (Hincl x (or_introl eq_refl))) as (a & b & ->).
    rewrite sum_app. cbn [sum]. assert (H : sum f some <= sum f (a ++ b)).
    { apply IH; [exact Hrest| |].
      - intros y Hy. specialize (Hincl y (or_intror Hy)). apply in_app_iff in Hincl. apply in_app_iff.
        destruct Hincl as [H|[->|H]]; [now left|contradiction|now right].
      - intros y Hy. apply Hf. apply in_app_iff in Hy. apply in_app_iff. destruct Hy; [now left|right; now right]. }
    rewrite sum_app in H. lia.
  Qed.

  Lemma served_on_average some t later : NoDup some -> (forall k, In k some -> known k) -> t <= later ->
    sum (fun k => left_of k t) some <= sum (fun k => left_of k later) some + Z.of_nat n * capacity I * (later - t).
  Proof.
    intros Hnd Hknown Ht. destruct (known_jobs some Hnd Hknown) as (pairs & <- & Hpairs & Hincl).
    set (f := fun x => if (t <=? x) && (x <? later) then 1 else 0).
    assert (Hf : forall x, 0 <= f x) by (intros x; unfold f; destruct (_ && _); lia).
    rewrite !sum_map.
    assert (H1 : sum (fun kj => left_of (fst kj) t) pairs
                 <= sum (fun kj => left_of (fst kj) later + gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) pairs).
    { apply sum_le. intros [k j] Hk. destruct (job_of _ (Hincl _ Hk)) as (Hj & _ & (_ & Hg & _)). cbn [fst snd] in *.
      unfold left_of, of_number. rewrite Hj, <- sum_scale, <- sum_add. apply sum_le. intros w _.
      rewrite (more_before t later k w Ht). fold f.
      assert (0 <= sum f (held k w)) by (apply sum_nonneg; auto). nia. }
    rewrite sum_add in H1.
    assert (H2 := Hroom f (ticks t later) (nodup_ticks _ _) Hf
      ltac:(intros x Hx; apply in_ticks; unfold f in Hx; destruct (Z.leb_spec t x), (Z.ltb_spec x later); cbn in Hx; lia)).
    assert (H3 : sum f (ticks t later) = later - t).
    { transitivity (sum (fun _ : Z => 1) (ticks t later)).
      - apply sum_ext. intros x Hx. apply in_ticks in Hx. unfold f.
        destruct (Z.leb_spec t x), (Z.ltb_spec x later); cbn; lia.
      - rewrite sum_const, length_ticks. lia. }
    rewrite H3 in H2.
    assert (H4 : sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) pairs
                 <= sum (fun kj => gang (snd kj) * sum (fun w => sum f (held (fst kj) w)) (seq 0 n)) (numbered I)).
    { apply sum_of_some; [exact Hpairs| |].
      - intros x Hx. apply Hincl in Hx. unfold counted in Hx. now apply filter_In in Hx.
      - intros [k j] Hx. cbn [fst snd]. apply in_numbered in Hx. destruct (sound_in _ _ _ Hsound Hx) as (_ & Hg & _).
        apply Z.mul_nonneg_nonneg; [lia|]. apply sum_nonneg. intros w _. apply sum_nonneg. auto. }
    lia.
  Qed.

  Lemma all_left_first k t : known k -> t <= release_of k -> left_of k t = work_of k.
  Proof.
    intros Hk Ht. destruct (of_known k Hk) as (j & _ & Hj & Hsj). pose proof (shortest_positive j Hsj) as Hp.
    destruct Hsj as (_ & Hg & _). unfold release_of, left_of, work_of, of_number in *. rewrite Hj in *.
    rewrite (sum_ext _ (fun _ => gang j * shortest j)).
    - rewrite sum_const, seq_length. lia.
    - intros w _. assert (Hbefore : before t k w = 0).
      { unfold before. transitivity (sum (fun _ : Z => 0) (held k w)); [|rewrite sum_const; lia].
        apply sum_ext. intros x Hx. pose proof (Hbounds k j w x Hj Hx). destruct (Z.ltb_spec x t); lia. }
      rewrite Hbefore. nia.
  Qed.

  Lemma complete_none k j t : nth_error (jobs I) k = Some j -> done k = true -> complete k <= t -> left_of k t = 0.
  Proof.
    intros Hj Hdone Ht. unfold left_of, of_number. rewrite Hj.
    destruct (sound_in _ _ _ Hsound Hj) as (_ & Hg & _).
    transitivity (sum (fun _ : nat => 0) (seq 0 n)); [|rewrite sum_const; lia]. apply sum_ext. intros w Hw.
    apply in_seq in Hw. pose proof (Henough k j w Hj ltac:(lia) Hdone) as H.
    assert (Hbefore : before t k w = Z.of_nat (length (held k w))).
    { unfold before. rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros x Hx.
      pose proof (Hbounds k j w x Hj Hx). destruct (Z.ltb_spec x t); lia. }
    rewrite Hbefore. nia.
  Qed.

  (** A machine that is so many times as fast, with so many times the work, is the same at all times. *)
  Lemma insert_times c x l : 0 < c -> insert_work (c * x) (map (Z.mul c) l) = map (Z.mul c) (insert_work x l).
  Proof.
    intros Hc. induction l as [|y l IH]; cbn [map insert_work]; [reflexivity|].
    destruct (Z.leb_spec x y), (Z.leb_spec (c * x) (c * y)); try nia; cbn [map]; [reflexivity|now rewrite IH].
  Qed.

  Lemma consume_times c l : 0 < c -> forall room now,
    consume (c * room) (c * now) (map (Z.mul c) l)
    = (map (Z.mul c) (fst (consume room now l)), map (Z.mul c) (snd (consume room now l))).
  Proof.
    intros Hc. induction l as [|x l IH]; intros room now; cbn [map consume]; [reflexivity|].
    destruct (Z.leb_spec x room), (Z.leb_spec (c * x) (c * room)); try nia.
    - replace (c * room - c * x) with (c * (room - x)) by ring. replace (c * now + c * x) with (c * (now + x)) by ring.
      rewrite IH. destruct (consume (room - x) (now + x) l). reflexivity.
    - cbn [fst snd map]. do 2 f_equal. ring.
  Qed.

  Lemma machine_times c m : 0 < c -> forall l now queue,
    least_work_first (c * m) now (map (Z.mul c) queue) (map (fun x => (fst x, c * snd x)) l)
    = map (Z.mul c) (least_work_first m now queue l).
  Proof.
    intros Hc. induction l as [|[r a] l IH]; intros now queue; cbn [map least_work_first fst snd].
    - assert (Hs : sum same (map (Z.mul c) queue) = c * sum same queue).
      { rewrite sum_map, <- sum_scale. reflexivity. }
      rewrite Hs. replace (now * (c * m)) with (c * (now * m)) by ring. now rewrite consume_times.
    - replace (c * m * (r - now)) with (c * (m * (r - now))) by ring. replace (now * (c * m)) with (c * (now * m)) by ring.
      rewrite (consume_times c queue Hc). destruct (consume (m * (r - now)) (now * m) queue) as [ends rest]. cbn [fst snd].
      rewrite (insert_times c a rest Hc), IH, map_app. reflexivity.
  Qed.

  Lemma up_to_times c t l : 0 < c -> up_to (c * t) (map (Z.mul c) l) = up_to t l.
  Proof.
    intros Hc. unfold up_to. rewrite sum_map. apply sum_ext. intros e _.
    destruct (Z.leb_spec (c * e) (c * t)), (Z.leb_spec e t); nia.
  Qed.

  Section Fluid.
    Variable l : list (nat * job).
    Hypothesis Hperm : Permutation l (counted I).
    Hypothesis Horder : numbered_in_order l = true.
    Hypothesis Hm : 1 <= capacity I.

    Definition these_ends : list Z := fluid_ends gang (capacity I) l.

    Definition complete_at (t : Z) (kj : nat * job) : bool := done (fst kj) && (complete (fst kj) <=? t).

    Lemma in_counted_of kj : In kj l -> nth_error (jobs I) (fst kj) = Some (snd kj).
    Proof. intros H. apply job_of. eapply Permutation_in; [exact Hperm|exact H]. Qed.

    Lemma complete_on_average t : 0 <= t ->
      sum (fun kj => if complete_at t kj then 1 else 0) (counted I) <= up_to (t * capacity I) these_ends.
    Proof.
      intros Ht. set (some := map fst (filter (complete_at t) (counted I))).
      assert (Hcount : sum (fun kj => if complete_at t kj then 1 else 0) (counted I) = Z.of_nat (length some)).
      { unfold some. rewrite map_length, <- (Z.mul_1_l (Z.of_nat _)), <- sum_const, sum_filter. reflexivity. }
      rewrite Hcount. set (c := Z.of_nat n). assert (Hc : 0 < c) by (unfold c; lia).
      rewrite <- (up_to_times c _ _ Hc). unfold these_ends, fluid_ends, machine_ends.
      rewrite <- (machine_times c (capacity I) Hc). cbn [map]. rewrite map_map. cbn [fst snd].
      assert (Hends : map (fun kj => (arrival (snd kj), c * (gang (snd kj) * shortest (snd kj)))) l
                      = map (fun k => (release_of k, work_of k)) (map fst l)).
      { rewrite map_map. apply map_ext_in. intros kj H. unfold release_of, work_of, of_number.
        now rewrite (in_counted_of kj H). }
      rewrite Hends.
      assert (Hnd : NoDup (map fst l)).
      { eapply Permutation_NoDup; [symmetry; apply Permutation_map; exact Hperm|]. apply counted_distinct. }
      assert (Hknown : forall k, In k (map fst l) -> known k).
      { intros k H. apply in_map_iff in H. destruct H as (kj & <- & H). exists (snd kj).
        rewrite <- surjective_pairing. eapply Permutation_in; [exact Hperm|exact H]. }
      replace (c * (t * capacity I)) with (t * (c * capacity I)) by ring.
      rewrite <- (Z.add_0_l (up_to _ _)). change 0 with (Z.of_nat 0) at 1.
      apply (completed_at_most left_of release_of work_of (c * capacity I) known) with (arrived := []); try assumption.
      - nia.
      - intros k x _. unfold left_of, of_number. destruct (nth_error _ _); [|lia]. apply sum_nonneg. intros; lia.
      - intros k Hk. destruct (of_known k Hk) as (j & _ & Hj & Hsj). unfold work_of, of_number. rewrite Hj.
        pose proof (shortest_positive j Hsj). destruct Hsj as (_ & Hg & _). fold c. nia.
      - apply all_left_first.
      - intros others x y H1 H2 H3. exact (served_on_average others x y H1 H2 H3).
      - clear - Horder Hperm Hsound. assert (Hin := in_counted_of). unfold numbered_in_order in Horder. revert Horder. generalize 0.
        clear Hperm. induction l as [|kj rest IH]; intros now H; cbn [map in_order]; [exact Logic.I|].
        apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le in H1.
        assert (Hrel : release_of (fst kj) = arrival (snd kj)).
        { unfold release_of, of_number. now rewrite (Hin kj (or_introl eq_refl)). }
        rewrite Hrel. split; [exact H1|]. apply IH; [intros x Hx; apply Hin; now right|exact H2].
      - intros x [].
      - exact Logic.I.
      - reflexivity.
      - intros other _ Hincl. destruct other as [|x other]; [cbn; lia|]. destruct (Hincl x (or_introl eq_refl)).
      - unfold some. apply nodup_filter_fst. apply counted_distinct.
      - intros k H. cbn [app]. apply in_map_iff in H. destruct H as (kj & <- & H). apply filter_In in H.
        apply in_map. eapply Permutation_in; [symmetry; exact Hperm|]. apply H.
      - intros k H. apply in_map_iff in H. destruct H as (kj & <- & H). apply filter_In in H.
        destruct H as [H Hat]. unfold complete_at in Hat. apply andb_prop in Hat. destruct Hat as [Hf Hat].
        destruct (job_of kj H) as (Hk & _). apply (complete_none _ (snd kj)); [exact Hk|exact Hf|now apply Z.leb_le].
    Qed.

    Definition waits_for (limit : Z) (kj : nat * job) : Z :=
      if done (fst kj) then Z.min limit (complete (fst kj)) else limit.

    Lemma one_tick b : ticks (Z.of_nat b) (Z.of_nat (S b)) = [Z.of_nat b].
    Proof. unfold ticks. replace (Z.to_nat (Z.of_nat (S b) - Z.of_nat b)) with 1%nat by lia. cbn. f_equal. lia. Qed.

    Lemma waits_for_is b kj : In kj (counted I) ->
      sum (fun t => if complete_at t kj then 0 else 1) (ticks 0 (Z.of_nat b)) = waits_for (Z.of_nat b) kj.
    Proof.
      intros Hin. unfold waits_for, complete_at. destruct (job_of kj Hin) as (Hk & _ & Hsj).
      destruct (done (fst kj)) eqn:Hdone.
      - pose proof (alone_first _ _ Hk Hdone). pose proof (shortest_positive _ Hsj). destruct Hsj as (Ha & _).
        induction b as [|b IH]; [cbn; lia|].
        rewrite (ticks_app 0 (Z.of_nat b)) by lia. rewrite sum_app, IH, one_tick. cbn [sum andb].
        destruct (Z.leb_spec (complete (fst kj)) (Z.of_nat b)); lia.
      - cbn [andb]. rewrite sum_const, length_ticks. lia.
    Qed.

    Lemma fluid_limit limit : 0 <= limit ->
      sum (fun e => Z.min e (limit * capacity I)) these_ends <= capacity I * sum (waits_for limit) (counted I).
    Proof.
      intros Hlimit. set (b := Z.to_nat limit). replace limit with (Z.of_nat b) by lia. set (all := ticks 0 (Z.of_nat b)).
      set (m := capacity I) in *.
      assert (H1 : sum (fun e => Z.min e (Z.of_nat b * m)) these_ends
                   <= sum (fun e => m * sum (fun t => if e <=? t * m then 0 else 1) all) these_ends).
      { apply sum_le. intros e _. now apply late_is. }
      rewrite sum_scale, sum_swap in H1.
      assert (H2 : sum (waits_for (Z.of_nat b)) (counted I)
                   = sum (fun t => sum (fun kj => if complete_at t kj then 0 else 1) (counted I)) all).
      { rewrite sum_swap. apply sum_ext. intros kj Hin. symmetry. now apply waits_for_is. }
      rewrite H2. eapply Z.le_trans; [exact H1|]. apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_le.
      intros t Ht. apply in_ticks in Ht. pose proof (complete_on_average t ltac:(lia)) as Hcount. fold m in Hcount.
      assert (H3 : forall (l' : list (nat * job)), sum (fun kj => if complete_at t kj then 0 else 1) l'
                = Z.of_nat (length l') - sum (fun kj => if complete_at t kj then 1 else 0) l').
      { induction l' as [|kj l' IH]; cbn [sum length]; [lia|]. rewrite IH. destruct (complete_at t kj); lia. }
      assert (H4 : forall ends, sum (fun e => if e <=? t * m then 0 else 1) ends
                = Z.of_nat (length ends) - up_to (t * m) ends).
      { unfold up_to. induction ends as [|e ends IH]; cbn [sum length]; [lia|]. rewrite IH. destruct (e <=? t * m); lia. }
      rewrite H3, H4.
      assert (Hlength : (length these_ends <= length (counted I))%nat).
      { rewrite <- (Permutation_length Hperm). unfold these_ends, fluid_ends, machine_ends. eapply Nat.le_trans; [apply least_work_first_length|].
        rewrite map_length. cbn. lia. }
      lia.
    Qed.
  End Fluid.

  Lemma fluid_on_average value : fluid_value I = Some value -> (value <= sumQ cost_now (counted I))%Q.
  Proof.
    unfold fluid_value, fluid_of, machine_of. set (l := rev (SortJobs.sort (counted I))).
    set (w := match counted I with kj :: _ => weight (snd kj) | [] => 0%Q end).
    destruct (_ && _ && _ && _) eqn:Hcheck; [|discriminate]. intros [= <-].
    rewrite !andb_true_iff in Hcheck. destruct Hcheck as (((Horder & Hm) & Hequal) & Hlimit).
    apply Z.leb_le in Hm. rewrite forallb_forall in Hequal.
    assert (Hperm : Permutation l (counted I)).
    { unfold l. etransitivity; [symmetry; apply Permutation_rev|]. symmetry. apply SortJobs.Permuted_sort. }
    assert (Hw : forall kj, In kj (counted I) -> (weight (snd kj) == w)%Q) by (intros kj Hin; now apply Qeq_bool_iff, Hequal).
    assert (Hw0 : (0 <= w)%Q).
    { unfold w. destruct (counted I) as [|kj rest] eqn:E; [apply Qle_refl|].
      assert (Hin : In kj (counted I)) by (rewrite E; now left).
      destruct (job_of kj Hin) as (_ & _ & (_ & _ & H & _)). unfold Qle. cbn in *. lia. }
    set (total := match until I with
                  | Some limit => sum (fun e => Z.min e (limit * capacity I)) (machine_ends (fun kj => gang (snd kj) * shortest (snd kj)) (capacity I) l)
                  | None => sum same (machine_ends (fun kj => gang (snd kj) * shortest (snd kj)) (capacity I) l)
                  end).
    set (end_now := fun kj : nat * job => ends_at I (done (fst kj)) (complete (fst kj))).
    assert (Htotal : total <= capacity I * sum end_now (counted I)).
    { unfold total, end_now, ends_at. destruct (until I) as [limit|] eqn:Huntil.
      - apply Z.leb_le in Hlimit. exact (fluid_limit l Hperm Horder Hm limit Hlimit).
      - destruct (at_most_largest (machine_ends (fun kj => gang (snd kj) * shortest (snd kj)) (capacity I) l)) as (m1 & H1 & Hends).
        destruct (at_most_largest (map (fun kj => complete (fst kj)) (counted I))) as (m2 & H2 & Hcompletions).
        set (limit := Z.max m1 m2).
        pose proof (fluid_limit l Hperm Horder Hm limit ltac:(unfold limit; lia)) as H. unfold these_ends, fluid_ends in H.
        rewrite (sum_ext _ same) in H.
        2: { intros e He. specialize (Hends e He). unfold same. assert (e <= limit * capacity I) by (unfold limit; nia). lia. }
        eapply Z.le_trans; [exact H|]. apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_le. intros kj Hin.
        unfold waits_for. specialize (Hcompletions (complete (fst kj)) (in_map (fun kj => complete (fst kj)) _ _ Hin)).
        destruct (job_of kj Hin) as (Hk & Hcounts & _). rewrite (Hall _ _ Hk Hcounts eq_refl). lia. }
    assert (Hcost : (sumQ cost_now (counted I) == w * inject_Z (sum end_now (counted I)))%Q).
    { unfold cost_now. fold end_now. clear - Hw. clearbody w. induction (counted I) as [|kj rest IH]; cbn [sumQ sum]; [ring|].
      rewrite IH by (intros x Hx; apply Hw; now right). rewrite (Hw kj (or_introl eq_refl)), inject_Z_plus. unfold end_now at 2. ring. }
    rewrite Hcost. change (w * (total # Z.to_pos (capacity I)) <= w * inject_Z (sum end_now (counted I)))%Q.
    clearbody total w end_now. rewrite (Qmult_comm w (total # _)), (Qmult_comm w (inject_Z _)).
    apply Qmult_le_compat_r; [|exact Hw0].
    unfold Qle. cbn [Qnum Qden inject_Z]. rewrite Z2Pos.id by lia. lia.
  Qed.

  (** *** Total utility at prices of rounds *)

  Section Rounds.
    Variables (round : Z) (prices : list Z) (each : Q).
    Hypothesis Hround : 1 <= round.
    Hypothesis Heach : (0 <= each)%Q.
    Hypothesis Hprices : forall x, In x prices -> 0 <= x.
    Hypothesis Hsimple : forall j, In j (jobs I) -> times j = [((0%nat, 0%nat), shortest j)].

    Definition one_row : list (list Z) := [prices].

    Definition earned_now (kj : nat * job) : Q :=
      if done (fst kj) then utility I round (snd kj) ((complete (fst kj) - 1) / round) else 0%Q.

    Definition payoff_of (j : job) : Q := payoff I round one_row (length prices) each j.

    Lemma rows_fine : forall row, In row one_row -> length row = length prices /\ forall x, In x row -> 0 <= x.
    Proof. intros row [<-|[]]. split; [reflexivity|exact Hprices]. Qed.

    Definition price_at (t : Z) : Z := if 0 <=? t then price one_row 0 (t / round) else 0.

    Lemma price_at_positive t : 0 <= price_at t.
    Proof. unfold price_at. destruct (0 <=? t); [|lia]. apply (price_positive one_row (length prices) rows_fine). Qed.

    Definition paid_in (w : nat) (kj : nat * job) : Z := gang (snd kj) * sum price_at (held (fst kj) w).

    Lemma payoff_in w k j : nth_error (jobs I) k = Some j -> (w < n)%nat ->
      (earned_now (k, j) - inject_Z (paid_in w (k, j)) * each <= payoff_of j)%Q.
    Proof.
      intros Hk Hw. assert (Hj := sound_in _ _ _ Hsound Hk).
      assert (Hrent : 0 <= paid_in w (k, j)).
      { unfold paid_in. cbn [fst snd]. destruct Hj as (_ & Hg & _). apply Z.mul_nonneg_nonneg; [lia|].
        apply sum_nonneg. intros t _. apply price_at_positive. }
      unfold earned_now, payoff_of. cbn [fst snd]. destruct (done k) eqn:Hdone.
      - pose proof (alone_first k j Hk Hdone) as Halone.
        pose proof (shortest_positive j Hj) as Hp. assert (Ha : 0 <= arrival j) by apply Hj.
        set (at_round := (complete k - 1) / round).
        assert (Hround' : at_round * round <= complete k - 1 < (at_round + 1) * round).
        { unfold at_round. pose proof (Z.div_mod (complete k - 1) round ltac:(lia)).
          pose proof (Z.mod_pos_bound (complete k - 1) round ltac:(lia)). lia. }
        assert (Hfirst : arrival j / round <= at_round) by (apply Z.div_le_mono; lia).
        assert (Hfirst0 : 0 <= arrival j / round) by (apply Z.div_pos; lia).
        destruct (Z_lt_ge_dec at_round (Z.of_nat (length prices))) as [Hbefore|Hafter].
        + unfold payoff. apply payoffs_sound; try assumption; [lia| |lia|].
          * intros a d Ha' Hd. unfold paid_in. cbn [fst snd].
            assert (Hg : 1 <= gang j) by apply Hj.
            assert (Htimes := Hsimple j (nth_error_In _ _ Hk)).
            assert (Hmeasure : measure j = shortest j).
            { unfold measure. rewrite Htimes. cbn [fold_right snd]. rewrite Z.lcm_1_r. lia. }
            assert (Hspeeds : speeds j = [(shortest j, [0%nat])]).
            { unfold speeds. rewrite Htimes. cbn [map filter snd fst]. rewrite Z.leb_refl. reflexivity. }
            rewrite Hmeasure, Hspeeds.
            set (gain := fun t => gains one_row a d (shortest j) [(shortest j, [0%nat])] (t / round)).
            assert (Hsome : sum gain (held k w) <= sum gain (ticks (arrival j) ((at_round + 1) * round))).
            { apply sum_included; [apply Hdistinct|intros t; apply gains_positive|].
              intros t Ht _. apply in_ticks. pose proof (Hbounds k j w t Hk Ht). lia. }
            assert (Hone : a * Z.of_nat (length (held k w)) - d * sum price_at (held k w) <= sum gain (held k w)).
            { replace (a * Z.of_nat (length (held k w)) - d * sum price_at (held k w))
                with (sum (fun t => a + - d * price_at t) (held k w))
                by (rewrite sum_add, sum_const, sum_scale; lia).
              apply sum_le. intros t Ht. pose proof (Hbounds k j w t Hk Ht). unfold gain.
              pose proof (gains_at_least one_row a d (shortest j) [(shortest j, [0%nat])] (t / round) _ (or_introl eq_refl)) as Hgain.
              cbn [fst snd] in Hgain. rewrite Z.div_same in Hgain by lia. unfold price_at.
              assert (0 <=? t = true) as -> by (apply Z.leb_le; lia).
              change (column one_row [0%nat] (t / round)) with (price one_row 0 (t / round)) in Hgain. lia. }
            pose proof (Henough k j w Hk Hw Hdone) as Hlong.
            replace (d * (gang j * sum price_at (held k w))) with (gang j * (d * sum price_at (held k w))) by ring.
            apply Z.mul_le_mono_nonneg_l; [lia|].
            assert (a * shortest j <= a * Z.of_nat (length (held k w))) by (apply Z.mul_le_mono_nonneg_l; lia).
            fold gain. lia.
          * intros a d. cbn [sum]. rewrite Z.max_l.
            -- unfold ticks. rewrite Z.sub_diag. reflexivity.
            -- rewrite Z.mul_comm. apply Z.mul_div_le. lia.
        + eapply Qle_trans; [now apply less_rent|]. unfold payoff.
          eapply Qle_trans; [|apply payoffs_best]. apply utility_falls; try assumption. lia.
      - eapply Qle_trans; [now apply less_rent|]. unfold payoff.
        eapply Qle_trans; [|apply payoffs_best]. now apply utility_positive.
    Qed.

    Lemma all_paid : sum (fun w => sum (paid_in w) (counted I)) (seq 0 n)
      <= Z.of_nat n * (capacity I * (round * sum same prices)).
    Proof.
      rewrite sum_swap.
      transitivity (sum (fun kj => gang (snd kj) * sum (fun w => sum price_at (held (fst kj) w)) (seq 0 n)) (numbered I)).
      { unfold counted. rewrite sum_filter. apply sum_le. intros [k j] Hin. cbn [snd fst].
        apply in_numbered in Hin. destruct (sound_in _ _ _ Hsound Hin) as (_ & Hg & _).
        assert (Hpos : 0 <= sum (fun w => sum price_at (held k w)) (seq 0 n)).
        { apply sum_nonneg. intros w _. apply sum_nonneg. intros; apply price_at_positive. }
        destruct (counts I j); [|nia]. unfold paid_in. cbn [fst snd]. rewrite sum_scale. lia. }
      assert (Hsum : sum price_at (ticks 0 (Z.of_nat (length prices) * round)) = round * sum same prices).
      { rewrite <- sum_of_nth.
        transitivity (sum (fun t => price one_row 0 (t / round)) (ticks 0 (Z.of_nat (length prices) * round))).
        - apply sum_ext. intros t Ht. apply in_ticks in Ht. unfold price_at.
          assert (0 <=? t = true) as -> by (apply Z.leb_le; lia). reflexivity.
        - rewrite (sum_of_rounds round Hround). f_equal. apply sum_ext. intros k _. unfold price, one_row.
          cbn [nth]. now rewrite Nat2Z.id. }
      rewrite <- Hsum, Z.mul_assoc. apply Hroom; [apply nodup_ticks|apply price_at_positive|].
      intros t Ht. apply in_ticks. unfold price_at in Ht. destruct (Z.leb_spec 0 t); [|congruence]. split; [assumption|].
      destruct (Z_lt_ge_dec t (Z.of_nat (length prices) * round)) as [|Hlate]; [assumption|]. exfalso. apply Ht.
      apply (price_late one_row (length prices) rows_fine). apply Z.div_le_lower_bound; lia.
    Qed.

    Lemma rounds_on_average :
      (sumQ earned_now (counted I)
       <= sumQ payoff_of (counted_jobs I) + inject_Z (capacity I * (round * sum same prices)) * each)%Q.
    Proof.
      rewrite <- (sumQ_counted I payoff_of).
      assert (Hone : forall w, In w (seq 0 n) ->
        (sumQ earned_now (counted I) <= sumQ (fun kj => payoff_of (snd kj)) (counted I) + inject_Z (sum (paid_in w) (counted I)) * each)%Q).
      { intros w Hw. apply in_seq in Hw.
        assert (H : (sumQ (fun kj => earned_now kj) (counted I)
                     <= sumQ (fun kj => payoff_of (snd kj) + inject_Z (paid_in w kj) * each) (counted I))%Q).
        { apply sumQ_le. intros [k j] Hin. destruct (job_of _ Hin) as (Hk & _). cbn [fst snd] in *.
          pose proof (payoff_in w k j Hk ltac:(lia)). lra. }
        eapply Qle_trans; [exact H|]. rewrite sumQ_add. apply Qplus_le_compat; [apply Qle_refl|].
        clear. induction (counted I) as [|kj l IH]; cbn [sumQ sum]; [rewrite Qmult_0_l; apply Qle_refl|].
        rewrite inject_Z_plus, Qmult_plus_distr_l. apply Qplus_le_compat; [apply Qle_refl|exact IH]. }
      assert (Hsum : (sumQ (fun _ : nat => sumQ earned_now (counted I)) (seq 0 n)
        <= sumQ (fun w => sumQ (fun kj => payoff_of (snd kj)) (counted I) + inject_Z (sum (paid_in w) (counted I)) * each) (seq 0 n))%Q)
        by (apply sumQ_le; exact Hone).
      rewrite sumQ_add, !sumQ_all, seq_length in Hsum.
      assert (Hpaid : (sumQ (fun w => inject_Z (sum (paid_in w) (counted I)) * each) (seq 0 n)
                       <= inject_Z (Z.of_nat n) * (inject_Z (capacity I * (round * sum same prices)) * each))%Q).
      { assert (E : (sumQ (fun w => inject_Z (sum (paid_in w) (counted I)) * each) (seq 0 n)
                     == inject_Z (sum (fun w => sum (paid_in w) (counted I)) (seq 0 n)) * each)%Q).
        { clear. induction (seq 0 n) as [|w l IH]; cbn [sumQ sum]; [ring|]. rewrite IH, inject_Z_plus. ring. }
        rewrite E, Qmult_assoc, <- inject_Z_mult. apply Qmult_le_compat_r; [|exact Heach]. rewrite <- Zle_Qle. exact all_paid. }
      set (e := sumQ earned_now (counted I)) in *. set (p := sumQ (fun kj => payoff_of (snd kj)) (counted I)) in *.
      set (r := (inject_Z (capacity I * (round * sum same prices)) * each)%Q) in *.
      set (paid := sumQ (fun w => inject_Z (sum (paid_in w) (counted I)) * each)%Q (seq 0 n)) in *.
      assert (H : (inject_Z (Z.of_nat n) * e <= inject_Z (Z.of_nat n) * (p + r))%Q).
      { eapply Qle_trans; [exact Hsum|]. rewrite Qmult_plus_distr_r. apply Qplus_le_compat; [apply Qle_refl|exact Hpaid]. }
      assert (Hpos : (0 < inject_Z (Z.of_nat n))%Q) by (unfold Qlt; cbn [Qnum Qden inject_Z]; lia).
      rewrite !(Qmult_comm (inject_Z (Z.of_nat n))) in H. exact (proj1 (Qmult_le_r _ _ _ Hpos) H).
    Qed.
  End Rounds.
End Scenarios.
