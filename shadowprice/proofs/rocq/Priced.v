(** A machine at prices of what jobs hold (LB-mode): each job's work on it is what all of it costs at least, and it does in a tick
    what all that there is costs. *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Fluid Checker Claim.
Import ListNotations.
Open Scope Z_scope.

Section Priced.
  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  (** Price of what a run holds for a tick, and of all that there is. *)
  Variables (price : run -> Z) (all : Z).
  Hypothesis Hprice : forall r, In r s -> 0 <= price r.
  Hypothesis Hall : forall t, sum (fun r => if active t r then price r else 0) s <= all.

  (** What a job pays for a function of time. *)
  Definition paid_for (k : nat) (f : Z -> Z) : Z :=
    sum (fun r => price r * sum f (ticks (start r) (stop r))) (runs_of k s).

  Lemma paid_positive k f : (forall t, 0 <= f t) -> 0 <= paid_for k f.
  Proof.
    intros Hf. unfold paid_for. apply sum_nonneg. intros r Hr. apply in_runs_of in Hr.
    apply Z.mul_nonneg_nonneg; [now apply Hprice|]. apply sum_nonneg. auto.
  Qed.

  Lemma paid_add k f g h : (forall t, h t = f t + g t) -> paid_for k h = paid_for k f + paid_for k g.
  Proof.
    intros H. unfold paid_for. rewrite <- sum_add. apply sum_ext. intros r _. rewrite <- Z.mul_add_distr_l. f_equal.
    rewrite <- sum_add. apply sum_ext. intros t _. apply H.
  Qed.

  Lemma sum_chosen {A} (g : A -> Z) (same : A -> A -> bool) (x : A) some :
    (forall y, same x y = true <-> x = y) -> NoDup some -> 0 <= g x -> sum (fun y => if same x y then g x else 0) some <= g x.
  Proof.
    intros Hsame Hnd Hx. induction Hnd as [|y some Hy _ IH]; cbn [sum]; [exact Hx|].
    destruct (same x y) eqn:E; [|lia]. apply Hsame in E. subst y.
    assert (sum (fun y => if same x y then g x else 0) some = 0); [|lia].
    transitivity (sum (fun _ : A => 0) some); [|rewrite sum_const; lia]. apply sum_ext. intros z Hz.
    destruct (same x z) eqn:E; [|reflexivity]. apply Hsame in E. subst. contradiction.
  Qed.

  (** No jobs pay more than all that there is costs. *)
  Lemma paid_at_most some f those : NoDup some -> NoDup those -> (forall t, 0 <= f t) -> (forall t, f t <> 0 -> In t those) ->
    sum (fun k => paid_for k f) some <= all * sum f those.
  Proof.
    intros Hnd Hthose Hf Hin.
    transitivity (sum (fun r => price r * sum f (ticks (start r) (stop r))) s).
    { unfold paid_for, runs_of.
      rewrite (sum_ext _ (fun k => sum (fun r => if Nat.eqb (of_job r) k then price r * sum f (ticks (start r) (stop r)) else 0) s))
        by (intros k _; now rewrite sum_filter).
      rewrite sum_swap. apply sum_le. intros r Hr.
      apply (sum_chosen (fun _ => price r * sum f (ticks (start r) (stop r))) Nat.eqb (of_job r) some); [|exact Hnd|].
      - intros y. apply Nat.eqb_eq.
      - apply Z.mul_nonneg_nonneg; [now apply Hprice|]. apply sum_nonneg. auto. }
    transitivity (sum (fun r => sum (fun t => if active t r then price r * f t else 0) those) s).
    { apply sum_le. intros r Hr.
      rewrite (sum_ext (fun t => if active t r then price r * f t else 0) (fun t => price r * (if active t r then f t else 0)))
        by (intros t _; destruct (active t r); lia).
      rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [now apply Hprice|]. rewrite <- sum_filter.
      apply sum_included; [apply nodup_ticks|exact Hf|]. intros t Ht Hft. apply in_ticks in Ht. apply filter_In.
      split; [now apply Hin|]. unfold active. apply andb_true_intro. split; [apply Z.leb_le|apply Z.ltb_lt]; lia. }
    rewrite sum_swap, <- sum_scale. apply sum_le. intros t _.
    rewrite (sum_ext _ (fun r => f t * (if active t r then price r else 0))) by (intros r _; destruct (active t r); lia).
    rewrite sum_scale. specialize (Hall t). specialize (Hf t). nia.
  Qed.

  Definition always (t : Z) : Z := 1.

  (** A job that is complete has paid for all of it. *)
  Lemma paid_enough k j amount : nth_error (jobs I) k = Some j -> 0 <= amount ->
    (forall r, In r (runs_of k s) -> amount <= price r * pace I j r) ->
    finished I j (runs_of k s) = true -> amount <= paid_for k always.
  Proof.
    intros Hk Hpos Hmine Hdone. pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork.
    assert (Hruns : forall r, In r (runs_of k s) -> 1 <= pace I j r /\ 0 <= ran r <= stop r - start r /\ 0 <= price r).
    { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & Ho & _ & Hne & Hpieces).
      pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hp.
      assert (shortest j <= pace I j r).
      { apply pace_shortest; [|exact Hne]. intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Htime). eauto. }
      apply in_runs_of in Hr. split; [lia|]. split; [unfold ran; lia|now apply Hprice]. }
    assert (H : (inject_Z amount * work I j (runs_of k s) <= inject_Z (paid_for k always))%Q).
    { unfold paid_for, work. clear Hwork Hdone. induction (runs_of k s) as [|r l IH]; cbn [sumQ sum].
      - unfold Qle. cbn. lia.
      - rewrite inject_Z_plus, Qmult_plus_distr_r. apply Qplus_le_compat.
        + destruct (Hruns r (or_introl eq_refl)) as (Hp & Hran & Hpr). specialize (Hmine r (or_introl eq_refl)).
          unfold always. rewrite sum_const, length_ticks. unfold share, Qle, Qmult, inject_Z. cbn [Qnum Qden].
          rewrite Pos.mul_1_l, Z2Pos.id by lia. rewrite Z.mul_1_r, Z.mul_1_l, Z.max_r by lia.
          transitivity (price r * pace I j r * ran r); [apply Z.mul_le_mono_nonneg_r; lia|].
          replace (price r * (stop r - start r) * pace I j r) with (price r * pace I j r * (stop r - start r)) by ring.
          apply Z.mul_le_mono_nonneg_l; [apply Z.mul_nonneg_nonneg; lia|lia].
        + apply IH; intros x Hx; [apply Hmine|apply Hruns]; now right. }
    assert (H1 : (inject_Z amount <= inject_Z amount * work I j (runs_of k s))%Q).
    { rewrite <- (Qmult_1_r (inject_Z amount)) at 1. rewrite !(Qmult_comm (inject_Z amount)).
      apply Qmult_le_compat_r; [exact Hwork|]. unfold Qle. cbn. lia. }
    rewrite Zle_Qle. eapply Qle_trans; eassumption.
  Qed.

  (** *** Jobs of equal weight *)

  (** The least that all of a job costs. *)
  Variable amount : nat * job -> Z.
  Hypothesis Hamount : forall k j r, nth_error (jobs I) k = Some j -> counts I j = true -> In r (runs_of k s) ->
    amount (k, j) <= price r * pace I j r.

  Variable those : list (nat * job).
  Hypothesis Hm : 1 <= all.
  Hypothesis Hthose : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\ counts I (snd kj) = true /\ 1 <= amount kj.
  Hypothesis Hdistinct : NoDup (map fst those).

  Definition until_then (t u : Z) : Z := if u <? t then 1 else 0.
  Definition left_to_pay (k : nat) (t : Z) : Z :=
    match nth_error (jobs I) k with Some j => Z.max 0 (amount (k, j) - paid_for k (until_then t)) | None => 0 end.

  Theorem priced_at_most l limit : Permutation l those -> numbered_in_order l = true -> 0 <= limit ->
    sum (fun e => Z.min e (limit * all)) (machine_ends amount all l) <= all * sum (waits I s limit) those.
  Proof.
    intros Hperm Horder. apply (machine_at_most I s amount left_to_pay all those); try assumption.
    - intros kj Hin. destruct (Hthose kj Hin) as (Hk & _ & Ha). now split.
    - intros k t _. unfold left_to_pay. destruct (nth_error _ _); lia.
    - intros k j t Hin Ht. destruct (Hthose _ Hin) as (Hk & _ & Ha). cbn [fst snd] in *. unfold left_to_pay. rewrite Hk.
      assert (paid_for k (until_then t) = 0) as ->; [|lia].
      unfold paid_for. transitivity (sum (fun _ : run => 0) (runs_of k s)); [|rewrite sum_const; lia]. apply sum_ext. intros r Hr.
      destruct (run_of_fits I s k j r Hs Hk Hr) as (Harr & _).
      assert (sum (until_then t) (ticks (start r) (stop r)) = 0) as ->; [|lia].
      transitivity (sum (fun _ : Z => 0) (ticks (start r) (stop r))); [|rewrite sum_const; lia]. apply sum_ext. intros u Hu.
      apply in_ticks in Hu. unfold until_then. destruct (Z.ltb_spec u t); lia.
    - intros k j t Hin Hdone Ht. destruct (Hthose _ Hin) as (Hk & Hcounts & Ha). cbn [fst snd] in *. unfold left_to_pay. rewrite Hk.
      pose proof (paid_enough k j (amount (k, j)) Hk ltac:(lia) (fun r => Hamount k j r Hk Hcounts) Hdone) as Henough.
      assert (paid_for k (until_then t) = paid_for k always); [|lia]. unfold paid_for. apply sum_ext. intros r Hr. f_equal.
      apply sum_ext. intros u Hu. apply in_ticks in Hu. pose proof (completion_after _ _ _ Hr). unfold until_then, always.
      destruct (Z.ltb_spec u t); lia.
    - intros some t later Hnd Hknown Ht.
      set (f := fun u => if (t <=? u) && (u <? later) then 1 else 0).
      assert (Hf : forall u, 0 <= f u) by (intros u; unfold f; destruct (_ && _); lia).
      assert (H1 : sum (fun k => left_to_pay k t) some <= sum (fun k => left_to_pay k later + paid_for k f) some).
      { apply sum_le. intros k Hk. destruct (Hknown k Hk) as (j & Hj). destruct (Hthose _ Hj) as (Hk' & _). cbn [fst snd] in Hk'.
        unfold left_to_pay. rewrite Hk'.
        assert (Hadd : paid_for k (until_then later) = paid_for k (until_then t) + paid_for k f).
        { apply paid_add. intros u. unfold until_then, f. destruct (Z.ltb_spec u later), (Z.ltb_spec u t), (Z.leb_spec t u); cbn; lia. }
        rewrite Hadd. pose proof (paid_positive k f Hf). lia. }
      rewrite sum_add in H1.
      pose proof (paid_at_most some f (ticks t later) Hnd (nodup_ticks _ _) Hf) as H2.
      assert (H2' := H2 ltac:(intros u Hu; apply in_ticks; unfold f in Hu;
                               destruct (Z.leb_spec t u), (Z.ltb_spec u later); cbn in Hu; lia)).
      assert (H3 : sum f (ticks t later) = later - t).
      { transitivity (sum (fun _ : Z => 1) (ticks t later)); [|rewrite sum_const, length_ticks; lia].
        apply sum_ext. intros u Hu. apply in_ticks in Hu. unfold f.
        destruct (Z.leb_spec t u), (Z.ltb_spec u later); cbn; lia. }
      rewrite H3 in H2'. lia.
  Qed.
End Priced.

(** When the last of some jobs completes that arrive from a moment on: they pay for their own time as well. *)
Section PricedSpan.
  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Variables (price : run -> Z) (all : Z) (own : nat -> Z) (least : nat * job -> Z).
  Hypothesis Hprice : forall r, In r s -> 0 <= price r.
  Hypothesis Hall : forall t, sum (fun r => if active t r then price r else 0) s <= all.
  Hypothesis Hown : forall k, 0 <= own k.
  Variables (some : list (nat * job)) (first : Z).
  Hypothesis Hdistinct : NoDup (map fst some).
  Hypothesis Hincl : incl some (counted I).
  Hypothesis Hlimit : until I = None.
  Hypothesis Harrive : forall kj, In kj some -> first <= arrival (snd kj).
  Hypothesis Hpositive : forall kj, In kj some -> 0 <= least kj.
  Hypothesis Hleast : forall kj r, In kj some -> In r (runs_of (fst kj) s) ->
    least kj <= (price r + own (fst kj)) * pace I (snd kj) r.

  Let latest_end := last_completion I s.

  Lemma priced_span : sum least some <= (all + sum (fun kj => own (fst kj)) some) * Z.max 0 (latest_end - first).
  Proof.
    set (f := fun t => if (first <=? t) && (t <? latest_end) then 1 else 0).
    assert (Hf : forall t, 0 <= f t) by (intros t; unfold f; destruct (_ && _); lia).
    assert (Hsum : sum f (ticks first latest_end) = Z.max 0 (latest_end - first)).
    { rewrite <- length_ticks, <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros t Ht. apply in_ticks in Ht.
      unfold f. destruct (Z.leb_spec first t), (Z.ltb_spec t latest_end); cbn; lia. }
    assert (Hheld : forall kj r t, In kj some -> In r (runs_of (fst kj) s) -> In t (ticks (start r) (stop r)) -> first <= t < latest_end).
    { intros [k j] r t Hin Hr Ht. specialize (Harrive _ Hin). apply Hincl, in_counted in Hin. cbn [fst snd] in *.
      destruct (run_of_fits I s k j r Hs (proj1 Hin) Hr) as (Harr & _). apply in_ticks in Ht.
      pose proof (completion_after _ _ _ Hr). pose proof (completion_last I s k j (proj1 Hin) (proj2 Hin)). unfold latest_end. lia. }
    assert (Hmine : forall kj, In kj some -> least kj <= paid_for s price (fst kj) f + own (fst kj) * Z.max 0 (latest_end - first)).
    { intros kj Hin. assert (Hc := Hincl kj Hin). destruct kj as [k j]. apply in_counted in Hc. destruct Hc as [Hk Hcounts]. cbn [fst snd].
      assert (Hdone : finished I j (runs_of k s) = true) by (destruct Hs as (_ & _ & _ & Hdone); now apply Hdone).
      set (price2 := fun r => price r + own (of_job r)).
      assert (Henough : least (k, j) <= paid_for s price2 k always).
      { apply (paid_enough I s Hsound Hs price2) with (j := j); try assumption.
        - intros r Hr. unfold price2. specialize (Hprice r Hr). specialize (Hown (of_job r)). lia.
        - now apply Hpositive.
        - intros r Hr. unfold price2. assert (of_job r = k) as -> by (now apply in_runs_of in Hr). now apply (Hleast (k, j)). }
      etransitivity; [exact Henough|].
      assert (Hsame : paid_for s price2 k always = paid_for s price k f + own k * sum (fun r => sum f (ticks (start r) (stop r))) (runs_of k s)).
      { unfold paid_for. rewrite <- sum_scale, <- sum_add. apply sum_ext. intros r Hr.
        assert (Hf1 : sum always (ticks (start r) (stop r)) = sum f (ticks (start r) (stop r))).
        { apply sum_ext. intros t Ht. specialize (Hheld (k, j) r t Hin Hr Ht). unfold always, f.
          destruct (Z.leb_spec first t), (Z.ltb_spec t latest_end); cbn; lia. }
        rewrite Hf1. unfold price2. assert (of_job r = k) as -> by (now apply in_runs_of in Hr). ring. }
      rewrite Hsame. apply Z.add_le_mono_l. apply Z.mul_le_mono_nonneg_l; [apply Hown|].
      rewrite <- Hsum, <- sum_flat_map. fold (held_ticks s k). apply sum_included.
      - apply nodup_held_ticks. apply Hs.
      - exact Hf.
      - intros t Ht _. apply in_ticks. unfold held_ticks in Ht. apply in_flat_map in Ht. destruct Ht as (r & Hr & Ht).
        exact (Hheld (k, j) r t Hin Hr Ht). }
    transitivity (sum (fun kj => paid_for s price (fst kj) f + own (fst kj) * Z.max 0 (latest_end - first)) some); [now apply sum_le|].
    rewrite sum_add. rewrite Z.mul_add_distr_r. apply Z.add_le_mono.
    - rewrite <- Hsum, <- (sum_map (fun k => paid_for s price k f) fst).
      apply (paid_at_most s price all); try assumption; [apply nodup_ticks|]. intros t Ht. apply in_ticks. unfold f in Ht.
      destruct (Z.leb_spec first t), (Z.ltb_spec t latest_end); cbn in Ht; lia.
    - rewrite Z.mul_comm, <- sum_scale. apply sum_le. intros kj _. lia.
  Qed.
End PricedSpan.

(** Jobs from the last that arrives: what they cost over all prices. *)
Fixpoint span_from (least : numbered_job -> Z) (own : list Z) (l : list numbered_job) (first worth rent : Z) (best : Q) : Q :=
  match l with
  | [] => best
  | kj :: rest =>
      let first := Z.min first (arrival (snd kj)) in
      let worth := worth + least kj in
      let rent := rent + nth (fst kj) own 0 in
      let value := (inject_Z first + (worth # Z.to_pos rent))%Q in
      span_from least own rest first worth rent (if Qle_bool best value then value else best)
  end.

Definition span_value (I : instance) (least : numbered_job -> Z) (all : Z) (own : list Z) : option Q :=
  if forallb (fun x => 0 <=? x) own && forallb (fun kj => 0 <=? least kj) (counted I)
     && (1 <=? all) && match until I with None => true | Some _ => false end
  then Some (span_from least own (SortJobs.sort (counted I)) (first_arrival I + 2 ^ 200) 0 all 0%Q)
  else None.

Lemma span_value_sound I s price least all own value : sound I -> feasible I s ->
  (forall r, In r s -> 0 <= price r) -> (forall t, sum (fun r => if active t r then price r else 0) s <= all) ->
  ((forall k, 0 <= nth k own 0) -> forall k j r, nth_error (jobs I) k = Some j -> In r (runs_of k s) ->
     least (k, j) <= (price r + nth k own 0) * pace I j r) ->
  span_value I least all own = Some value -> (value <= inject_Z (last_completion I s))%Q.
Proof.
  intros Hsound Hs Hprice Henough Hleast. unfold span_value. destruct (_ && _ && _ && _) eqn:Hcheck; [|discriminate]. intros [= <-].
  rewrite !andb_true_iff, !forallb_forall in Hcheck. destruct Hcheck as (((Hown & Hpositive) & Hall) & Huntil). apply Z.leb_le in Hall.
  assert (Hlimit : until I = None) by (destruct (until I); [discriminate|reflexivity]).
  assert (Hown' : forall k, 0 <= nth k own 0).
  { intros k. destruct (nth_in_or_default k own 0) as [H| ->]; [apply Z.leb_le; now apply Hown|lia]. }
  assert (H : forall rest some first worth rent best,
    Permutation (some ++ rest) (counted I) -> (forall kj, In kj some -> first <= arrival (snd kj)) ->
    worth = sum least some ->
    rent = all + sum (fun kj => nth (fst kj) own 0) some ->
    (best <= inject_Z (last_completion I s))%Q ->
    (span_from least own rest first worth rent best <= inject_Z (last_completion I s))%Q).
  { induction rest as [|kj rest IH]; intros some first worth rent best Hperm Hfirst Hworth Hrent Hbest; cbn [span_from]; [exact Hbest|].
    set (first' := Z.min first (arrival (snd kj))). set (worth' := worth + _). set (rent' := rent + _).
    assert (Hperm' : Permutation ((kj :: some) ++ rest) (counted I)).
    { etransitivity; [|exact Hperm]. cbn. apply Permutation_middle. }
    assert (Hfirst' : forall x, In x (kj :: some) -> first' <= arrival (snd x)).
    { intros x [<-|Hx]; [unfold first'; lia|]. specialize (Hfirst x Hx). unfold first'. lia. }
    assert (Hworth' : worth' = sum least (kj :: some)).
    { unfold worth'. cbn [sum]. lia. }
    assert (Hrent' : rent' = all + sum (fun kj => nth (fst kj) own 0) (kj :: some)).
    { unfold rent'. cbn [sum]. lia. }
    apply (IH (kj :: some)); try assumption.
    assert (Hincl : incl (kj :: some) (counted I)).
    { intros x Hx. eapply Permutation_in; [exact Hperm'|]. apply in_app_iff. now left. }
    assert (Hvalue : (inject_Z first' + (worth' # Z.to_pos rent') <= inject_Z (last_completion I s))%Q).
    { pose proof (priced_span I s Hsound Hs price all (fun k => nth k own 0) least) as Hspan.
      assert (Hspan' := Hspan Hprice Henough Hown' (kj :: some) first').
      clear Hspan.
      assert (Hdistinct : NoDup (map fst (kj :: some))).
      { assert (Hnd : NoDup (map fst ((kj :: some) ++ rest))).
        { eapply Permutation_NoDup; [symmetry; apply Permutation_map; exact Hperm'|apply counted_distinct]. }
        rewrite map_app in Hnd. now apply nodup_app_left in Hnd. }
      specialize (Hspan' Hdistinct Hincl Hlimit Hfirst').
      assert (Hspan := Hspan' ltac:(intros x Hx; apply Z.leb_le; now apply Hpositive, Hincl)
                        ltac:(intros [k j] r Hin Hr; assert (Hin' := Hincl _ Hin); apply in_counted in Hin';
                              apply (Hleast Hown'); [apply Hin'|exact Hr])).
      rewrite <- Hworth', <- Hrent' in Hspan.
      assert (Hmore : 0 <= sum (fun kj => nth (fst kj) own 0) (kj :: some)) by (apply sum_nonneg; intros; apply Hown').
      assert (Hlate : first' <= last_completion I s).
      { destruct kj as [k j]. assert (Hc := Hincl (k, j) (or_introl eq_refl)). apply in_counted in Hc. destruct Hc as [Hk Hcounts].
        pose proof (completion_last I s k j Hk Hcounts).
        pose proof (completion_alone I s k j Hsound Hs Hk) as Halone. destruct Hs as (_ & _ & _ & Hdone).
        specialize (Halone (Hdone k j Hk Hcounts Hlimit)). pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)).
        specialize (Hfirst' (k, j) (or_introl eq_refl)). cbn [snd] in Hfirst'. lia. }
      rewrite Z.max_r in Hspan by lia. unfold Qle, Qplus, inject_Z. cbn [Qnum Qden]. rewrite ?Pos.mul_1_l, ?Z.mul_1_r, Z2Pos.id by lia.
      nia. }
    destruct (Qle_bool best _); assumption. }
  apply (H _ []); try reflexivity.
  - cbn. symmetry. apply SortJobs.Permuted_sort.
  - intros kj [].
  - cbn. lia.
  - unfold Qle, inject_Z. cbn [Qnum Qden]. assert (0 <= last_completion I s); [|lia].
    unfold last_completion. clear. induction (counted I); cbn; lia.
Qed.
