(** Schedules in which jobs begin once, or lose what they did when they are preempted: each job holds its gang without
    a gap until it is complete, for its shortest time and a start. So they are lists of jobs (LB-list). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Span Fluid Checker Starts Lists.
Import ListNotations.
Open Scope Z_scope.

(** Of the class: jobs begin once, where that is asked for; they go on only where they were stopped, at once; and who
    makes progress after a beginning, before the next, has paid a start since. *)
Record begins_in_full (I : instance) (s : schedule) : Prop := BeginsInFull {
  begin_once : forall k j, nth_error (jobs I) k = Some j -> counts I j = true -> once I = true ->
    forallb goes_on (tl (runs_of k s)) = true;
  go_on_at_once : forall k j, nth_error (jobs I) k = Some j -> counts I j = true ->
    forall a r r' d, runs_of k s = a ++ r :: r' :: d -> goes_on r' = true -> stop r = start r';
  pay_each_start : forall k j, nth_error (jobs I) k = Some j -> counts I j = true ->
    forall a r c d, runs_of k s = a ++ r :: c ++ d -> a = [] \/ goes_on r = false -> forallb goes_on c = true ->
      0 < sum ran (r :: c) -> least_start I <= sum overhead (r :: c)
}.

(** ** Who obeys all rules is of the class *)

Lemma charges_paid_after c g b : check_charges c = true -> forall a owed before, 0 <= owed ->
  charges_paid c g owed before (a ++ b) = true ->
  exists owed' before', 0 <= owed' /\ charges_paid c g owed' before' b = true /\
    (a = [] -> before' = before) /\ (a <> [] -> before' = Some (last a (Run 0 0 0 0 [] 0 [] false))).
Proof.
  intros Hc. induction a as [|r a IH]; intros owed before Howed H.
  - exists owed, before. repeat split; try assumption. congruence.
  - cbn [app charges_paid] in H. rewrite !andb_true_iff in H. destruct H as [[_ Hleft] H].
    set (left := owed + owed_at c g before r - overhead r) in *.
    assert (Hpos : 0 <= left).
    { apply orb_prop in Hleft. destruct Hleft as [E|E]; [apply Z.eqb_eq in E; lia|].
      apply andb_prop in E. destruct E as [E _]. apply Z.ltb_lt in E. lia. }
    destruct (IH left (Some r) Hpos H) as (owed' & before' & H1 & H2 & H3 & H4).
    exists owed', before'. repeat split; try assumption; [congruence|]. intros _.
    destruct a as [|r' a]; [now apply H3|]. rewrite H4 by discriminate. reflexivity.
Qed.

Lemma charges_paid_prefix c g d : forall a owed before, charges_paid c g owed before (a ++ d) = true ->
  charges_paid c g owed before a = true.
Proof.
  induction a as [|r a IH]; intros owed before H; [reflexivity|]. cbn [app charges_paid] in *.
  rewrite !andb_true_iff in *. destruct H as [H1 H2]. split; [exact H1|now apply IH in H2].
Qed.

Lemma some_progress runs : 0 < sum ran runs -> exists r, In r runs /\ ran r <> 0.
Proof.
  induction runs as [|r runs IH]; cbn [sum]; intros H; [lia|].
  destruct (Z.eq_dec (ran r) 0) as [E|E]; [|exists r; split; [now left|exact E]].
  destruct IH as (x & Hx & Hne); [lia|]. exists x. split; [now right|exact Hne].
Qed.

Lemma begins_if_obeys I s :
  check_charges (charged I) = true -> least_start I <= start_charge (charged I) ->
  feasible I s -> obeys I s -> begins_in_full I s.
Proof.
  intros Hc Hleast Hs Hobeys. split; intros k j Hk Hcounts.
  - intros Honce. pose proof (jobs_begin_once I s Hobeys k j Hk) as H. unfold begins_once in H. rewrite Honce in H. exact H.
  - intros a r r' d Hruns Hon. pose proof (charges_are_paid I s Hobeys k j Hk) as H. rewrite Hruns in H.
    replace (a ++ r :: r' :: d) with ((a ++ [r]) ++ r' :: d) in H by now rewrite <- app_assoc.
    destruct (charges_paid_after _ _ _ Hc _ _ _ (Z.le_refl 0) H) as (owed' & before' & _ & H' & _ & Hbefore).
    rewrite Hbefore in H' by (destruct a; discriminate). rewrite last_last in H'. cbn [charges_paid] in H'.
    rewrite !andb_true_iff in H'. destruct H' as [[H' _] _]. unfold may_go_on in H'. rewrite Hon in H'. cbn [negb orb] in H'.
    apply andb_prop in H'. destruct H' as [H' _]. now apply Z.eqb_eq.
  - intros a r c d Hruns Hbegin Hon Hran. pose proof (charges_are_paid I s Hobeys k j Hk) as H. rewrite Hruns in H.
    destruct (charges_paid_after _ _ _ Hc _ _ _ (Z.le_refl 0) H) as (owed' & before' & Howed & H' & Hnone & _).
    apply (charges_paid_prefix _ _ d (r :: c)) in H'. cbn [charges_paid] in H'.
    rewrite !andb_true_iff in H'. destruct H' as [[Hgo Hleft] Hlater].
    assert (Hanew : goes_on r = false).
    { destruct Hbegin as [Ha|Ha]; [|exact Ha]. rewrite (Hnone Ha) in Hgo. unfold may_go_on in Hgo.
      rewrite orb_false_r in Hgo. now apply negb_true_iff in Hgo. }
    assert (Hstart : start_charge (charged I) <= owed_at (charged I) (gang j) before' r).
    { unfold owed_at. rewrite Hanew. assert (Hc' := Hc). unfold check_charges in Hc'. rewrite !andb_true_iff, !Z.leb_le in Hc'.
      destruct Hc' as ((_ & Hm) & Hr). destruct before' as [b|]; [|lia].
      pose proof (restart_charge_positive (charged I) (gang j) Hr). destruct (same_pieces _ _); lia. }
    set (left := owed' + owed_at (charged I) (gang j) before' r - overhead r) in *.
    assert (Hoverheads : forall x, In x c -> 0 <= overhead x).
    { intros x Hx. assert (Hin : In x (runs_of k s)).
      { rewrite Hruns. apply in_app_iff. right. right. apply in_app_iff. now left. }
      destruct (run_of_fits I s k j x Hs Hk Hin) as (_ & Ho & _). lia. }
    assert (Hrest : 0 <= sum overhead c) by now apply sum_nonneg.
    cbn [sum]. apply orb_prop in Hleft. destruct Hleft as [Hzero|Hsome]; [apply Z.eqb_eq in Hzero; lia|].
    apply andb_prop in Hsome. destruct Hsome as [Hsome Hnothing]. apply Z.ltb_lt in Hsome. apply Z.eqb_eq in Hnothing.
    assert (left <= sum overhead c); [|lia].
    apply (charges_paid_owed (charged I) (gang j) c left (Some r)); try assumption; [lia|].
    cbn [sum] in Hran. apply some_progress. lia.
Qed.

(** ** A job that is complete did all of its work in one go *)

Lemma work_in_one_go I j runs :
  lost I = true -> (forall c, saves I = Some c -> sound_rule c) -> (forall r, In r runs -> 0 <= ran r) ->
  forall done, (0 <= done)%Q -> finished_from I j done runs = true ->
  (exists c d, runs = c ++ d /\ forallb goes_on c = true /\ (1 <= done + work I j c)%Q) \/
  (exists a r c d, runs = a ++ r :: c ++ d /\ goes_on r = false /\ forallb goes_on c = true /\ (1 <= work I j (r :: c))%Q).
Proof.
  intros Hlost Hrule. induction runs as [|r later IH]; intros Hran done Hdone H; cbn [finished_from] in H; [discriminate|].
  assert (Hr : 0 <= ran r) by (apply Hran; now left).
  destruct (made_at_most I (ran r) Hrule Hr) as [Hsaved Hmade].
  unfold before_run in H. rewrite Hlost in H. cbn [andb] in H.
  set (before := if negb (goes_on r) then 0%Q else done) in *.
  assert (Hbefore : (0 <= before)%Q) by (unfold before; destruct (goes_on r); cbn [negb]; [exact Hdone|apply Qle_refl]).
  set (next := if cut_short I r then addQ before (share I j r (saved I (ran r)))
               else addQ before (share I j r (made I (ran r)))) in *.
  assert (Hnext : (next <= before + share I j r (ran r))%Q).
  { unfold next. destruct (cut_short I r); rewrite addQ_is; (apply Qplus_le_compat; [apply Qle_refl|apply share_le; lia]). }
  assert (Hnext0 : (0 <= next)%Q).
  { unfold next. destruct (cut_short I r); rewrite addQ_is, <- (Qplus_0_l 0);
      (apply Qplus_le_compat; [exact Hbefore|rewrite <- (share_zero I j r); apply share_le; lia]). }
  assert (Hfull : (addQ before (share I j r (made I (ran r))) <= before + share I j r (ran r))%Q).
  { rewrite addQ_is. apply Qplus_le_compat; [apply Qle_refl|now apply share_le]. }
  (* whatever is done with this run and some that go on from it *)
  assert (Hchain : forall c d, later = c ++ d -> forallb goes_on c = true -> (1 <= before + share I j r (ran r) + work I j c)%Q ->
    (exists c d, r :: later = c ++ d /\ forallb goes_on c = true /\ (1 <= done + work I j c)%Q) \/
    (exists a r' c d, r :: later = a ++ r' :: c ++ d /\ goes_on r' = false /\ forallb goes_on c = true /\ (1 <= work I j (r' :: c))%Q)).
  { intros c d -> Hc Hwork. unfold before in Hwork. destruct (goes_on r) eqn:Hgo; cbn [negb] in Hwork.
    - left. exists (r :: c), d. split; [reflexivity|]. split; [cbn [forallb]; now rewrite Hgo|].
      unfold work in *. cbn [sumQ]. rewrite Qplus_assoc. exact Hwork.
    - right. exists [], r, c, d. split; [reflexivity|]. split; [exact Hgo|]. split; [exact Hc|].
      unfold work in *. cbn [sumQ]. rewrite Qplus_0_l in Hwork. exact Hwork. }
  apply orb_prop in H. destruct H as [H|H].
  - apply Qle_bool_iff in H. apply (Hchain [] later); [reflexivity|reflexivity|]. unfold work. cbn [sumQ]. rewrite Qplus_0_r.
    eapply Qle_trans; [exact H|exact Hfull].
  - destruct (IH (fun x Hx => Hran x (or_intror Hx)) next Hnext0 H) as [(c & d & -> & Hc & Hwork)|(a & r' & c & d & -> & Hgo & Hc & Hwork)].
    + apply (Hchain c d); [reflexivity|exact Hc|]. eapply Qle_trans; [exact Hwork|].
      apply Qplus_le_compat; [exact Hnext|apply Qle_refl].
    + right. exists (r :: a), r', c, d. repeat split; assumption.
Qed.

(** Runs of which each goes on where the one before stopped, at once. *)
Fixpoint adjacent (r : run) (c : list run) : Prop :=
  match c with
  | [] => True
  | r' :: c' => stop r = start r' /\ adjacent r' c'
  end.

Definition last_stop (r : run) (c : list run) : Z := stop (last (r :: c) r).

Lemma last_any {A} (l : list A) a b : l <> [] -> last l a = last l b.
Proof.
  induction l as [|x l IH]; intros H; [congruence|]. destruct l as [|y l]; [reflexivity|].
  change (last (y :: l) a = last (y :: l) b). now apply IH.
Qed.

Lemma adjacent_all : forall c r, adjacent r c -> (forall x, In x (r :: c) -> start x <= stop x) ->
  sum (fun x => stop x - start x) (r :: c) = last_stop r c - start r /\
  forall t, start r <= t < last_stop r c -> In t (flat_map (fun x => ticks (start x) (stop x)) (r :: c)).
Proof.
  induction c as [|r' c IH]; intros r Hadj Hpos.
  - unfold last_stop. cbn. split; [lia|]. intros t Ht. rewrite app_nil_r. now apply in_ticks.
  - destruct Hadj as [Hstop Hadj]. destruct (IH r' Hadj (fun x Hx => Hpos x (or_intror Hx))) as [Hsum Hin].
    assert (Hlast : last_stop r (r' :: c) = last_stop r' c).
    { unfold last_stop. change (last (r :: r' :: c) r) with (last (r' :: c) r). f_equal. apply last_any. discriminate. }
    rewrite Hlast. split.
    + cbn [sum] in *. lia.
    + intros t Ht. cbn [flat_map]. apply in_app_iff. destruct (Z_lt_ge_dec t (stop r)) as [H|H].
      * left. apply in_ticks. lia.
      * right. apply Hin. lia.
Qed.

Lemma adjacent_of runs : (forall a r r' d, runs = a ++ r :: r' :: d -> goes_on r' = true -> stop r = start r') ->
  forall c a r d, runs = a ++ r :: c ++ d -> forallb goes_on c = true -> adjacent r c.
Proof.
  intros H. induction c as [|r' c IH]; intros a r d Hruns Hon; [exact Logic.I|].
  cbn [forallb] in Hon. apply andb_prop in Hon. destruct Hon as [Hr Hon]. split.
  - apply (H a r r' (c ++ d)); assumption.
  - apply (IH (a ++ [r]) r' d); [|exact Hon]. rewrite <- app_assoc. exact Hruns.
Qed.

Section Once.
  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hclass : begins_in_full I s.
  Hypothesis Hrule : once I = true \/ lost I = true.

  Definition length_in_full (j : job) : Z := shortest j + least_start I.

  Lemma held_in_one_go k j : nth_error (jobs I) k = Some j -> counts I j = true ->
    finished I j (runs_of k s) = true ->
    exists begin, arrival j <= begin /\ begin + length_in_full j <= completion s k /\
      forall t, begin <= t < begin + length_in_full j -> In t (held_ticks s k).
  Proof.
    intros Hk Hcounts Hdone. destruct Hsound as [_ Hsaves].
    pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hp.
    assert (Hruns : forall r, In r (runs_of k s) -> arrival j <= start r < stop r /\ 0 <= ran r /\ 0 <= overhead r /\ shortest j <= pace I j r).
    { intros r Hr. destruct (run_of_fits I s k j r Hs Hk Hr) as (Ht & Ho & _ & Hne & Hpieces).
      unfold ran. repeat split; try lia. apply pace_shortest; [|assumption].
      intros piece Hin. destruct (Hpieces piece Hin) as (_ & n & t & Hn & Htime). eauto. }
    assert (Hgo : exists a r c d, runs_of k s = a ++ r :: c ++ d /\ (a = [] \/ goes_on r = false) /\
              forallb goes_on c = true /\ (1 <= work I j (r :: c))%Q).
    { destruct (lost I) eqn:Hlost.
      - destruct (work_in_one_go I j (runs_of k s) Hlost Hsaves (fun r Hr => proj1 (proj2 (Hruns r Hr))) 0%Q (Qle_refl 0) Hdone)
          as [(c & d & Heq & Hc & Hwork)|(a & r & c & d & Heq & Hr & Hc & Hwork)].
        + destruct c as [|r c]; [exfalso; rewrite Qplus_0_l in Hwork; unfold work, Qle in Hwork; cbn in Hwork; lia|].
          cbn [forallb] in Hc. apply andb_prop in Hc. destruct Hc as [_ Hc].
          exists [], r, c, d. rewrite Qplus_0_l in Hwork. repeat split; try assumption. now left.
        + exists a, r, c, d. repeat split; try assumption. now right.
      - destruct Hrule as [Honce|H]; [|congruence].
        pose proof (begin_once I s Hclass k j Hk Hcounts Honce) as Htl.
        pose proof (finished_work I s k j Hsound Hs Hk Hdone) as Hwork.
        destruct (runs_of k s) as [|r c] eqn:E; [unfold work, Qle in Hwork; cbn in Hwork; lia|].
        exists [], r, c, []. rewrite app_nil_r. repeat split; try assumption. now left. }
    destruct Hgo as (a & r & c & d & Heq & Hbegin & Hc & Hwork).
    assert (Hin : forall x, In x (r :: c) -> In x (runs_of k s)).
    { intros x Hx. rewrite Heq. apply in_app_iff. right. destruct Hx as [<-|Hx]; [now left|]. right. apply in_app_iff. now left. }
    assert (Henough : shortest j <= sum ran (r :: c)).
    { assert (Hle : (work I j (r :: c) <= sum ran (r :: c) # Z.to_pos (shortest j))%Q).
      { rewrite <- sumQ_same_denominator. unfold work. apply sumQ_le. intros x Hx.
        destruct (Hruns x (Hin x Hx)) as (_ & Hran & _ & Hpace).
        unfold share, Qle. cbn [Qnum Qden]. rewrite !Z2Pos.id by lia. nia. }
      assert (H : (1 <= sum ran (r :: c) # Z.to_pos (shortest j))%Q) by (eapply Qle_trans; eassumption).
      unfold Qle in H. cbn [Qnum Qden] in H. rewrite Z2Pos.id in H by lia. lia. }
    pose proof (pay_each_start I s Hclass k j Hk Hcounts a r c d Heq Hbegin Hc ltac:(lia)) as Hstart.
    pose proof (adjacent_of (runs_of k s) (go_on_at_once I s Hclass k j Hk Hcounts) c a r d Heq Hc) as Hadj.
    destruct (adjacent_all c r Hadj) as [Hsum Hall].
    { intros x Hx. destruct (Hruns x (Hin x Hx)). lia. }
    assert (Hlong : length_in_full j <= last_stop r c - start r).
    { rewrite <- Hsum. unfold length_in_full. transitivity (sum ran (r :: c) + sum overhead (r :: c)); [lia|].
      rewrite <- sum_add. apply Z.eq_le_incl, sum_ext. intros x _. unfold ran. lia. }
    exists (start r). split; [destruct (Hruns r (Hin r (or_introl eq_refl))); lia|]. split.
    - assert (last_stop r c <= completion s k); [|lia]. unfold last_stop. apply completion_after. apply Hin.
      assert (Hne : r :: c <> []) by discriminate.
      rewrite (app_removelast_last r Hne) at 2. apply in_app_iff. right. now left.
    - intros t Ht. unfold held_ticks. rewrite Heq. rewrite flat_map_app. apply in_app_iff. right.
      change (r :: c ++ d) with ((r :: c) ++ d). rewrite flat_map_app. apply in_app_iff. left. apply Hall. lia.
  Qed.
End Once.
