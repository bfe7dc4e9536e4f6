(** Jobs of equal weight on one machine that does what all GPUs do (LB-fluid): at every moment no schedule has
    completed more jobs than the one that serves the job with the least work left (Schrage 1968).

    The l jobs of any schedule that have least work left have at least as much as those of that one: a job that arrives
    changes that for neither, and no schedule can serve them faster (derived). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice PlanPrice Duality Span.
Import ListNotations.
Open Scope Z_scope.

(** ** The machine: work that is left, the least first *)

Fixpoint insert_work (x : Z) (l : list Z) : list Z :=
  match l with
  | [] => [x]
  | y :: rest => if x <=? y then x :: l else y :: insert_work x rest
  end.

(** Ends of what [room] units of service complete from [now] on, and what is left. *)
Fixpoint consume (room now : Z) (l : list Z) : list Z * list Z :=
  match l with
  | [] => ([], [])
  | x :: rest =>
      if x <=? room
      then let '(ends, rest_of) := consume (room - x) (now + x) rest in (now + x :: ends, rest_of)
      else ([], (x - room) :: rest)
  end.

(** Ends of jobs, (arrival, work) in order of arrival, in units of 1 / [m] ticks. *)
Fixpoint least_work_first (m now : Z) (queue : list Z) (l : list (Z * Z)) : list Z :=
  match l with
  | [] => fst (consume (sum same queue) (now * m) queue)
  | (r, a) :: rest =>
      let '(ends, rest_of) := consume (m * (r - now)) (now * m) queue in
      ends ++ least_work_first m r (insert_work a rest_of) rest
  end.

Fixpoint prefix (k : nat) (l : list Z) : Z :=
  match k, l with
  | S k, x :: rest => x + prefix k rest
  | _, _ => 0
  end.

Fixpoint ascending (l : list Z) : Prop :=
  match l with
  | [] => True
  | x :: rest => (forall y, In y rest -> x <= y) /\ ascending rest
  end.

Definition all_positive (l : list Z) : Prop := forall x, In x l -> 1 <= x.

Definition up_to (t : Z) (ends : list Z) : Z := sum (fun e => if e <=? t then 1 else 0) ends.

Lemma up_to_positive t ends : 0 <= up_to t ends.
Proof. unfold up_to. apply sum_nonneg. intros x _. destruct (x <=? t); lia. Qed.

Lemma positive_tail x l : all_positive (x :: l) -> 1 <= x /\ all_positive l.
Proof. intros H. split; [apply H; now left|]. intros y Hy. apply H. now right. Qed.

Lemma prefix_positive k : forall l, all_positive l -> 0 <= prefix k l.
Proof.
  induction k as [|k IH]; intros l Hl; [cbn; lia|]. destruct l as [|x l]; cbn [prefix]; [lia|].
  apply positive_tail in Hl. specialize (IH l (proj2 Hl)). lia.
Qed.

Lemma prefix_all k : forall l, all_positive l -> prefix k l <= sum same l.
Proof.
  induction k as [|k IH]; intros l Hl; cbn [prefix].
  - apply sum_nonneg. intros x Hx. specialize (Hl x Hx). unfold same. lia.
  - destruct l as [|x l]; cbn [prefix sum]; [lia|]. apply positive_tail in Hl. specialize (IH l (proj2 Hl)).
    unfold same at 1. lia.
Qed.

Lemma insert_in_work y x l : In y (insert_work x l) -> y = x \/ In y l.
Proof.
  induction l as [|z l IH]; cbn [insert_work].
  - intros [<-|[]]. now left.
  - destruct (x <=? z); intros [<-|H]; try now left.
    + now right.
    + right. now left.
    + destruct (IH H) as [->|H']; [now left|right; now right].
Qed.

Lemma insert_length x l : length (insert_work x l) = S (length l).
Proof. induction l as [|z l IH]; cbn [insert_work]; [reflexivity|]. destruct (x <=? z); cbn; congruence. Qed.

Lemma insert_ascending x l : ascending l -> ascending (insert_work x l).
Proof.
  induction l as [|z l IH]; cbn [insert_work]; intros H; [split; [intros y []|exact H]|].
  destruct (Z.leb_spec x z).
  - split; [|exact H]. intros y [->|Hy]; [assumption|]. destruct H as [H _]. specialize (H y Hy). lia.
  - destruct H as [H Hl]. split; [|now apply IH]. intros y Hy. apply insert_in_work in Hy.
    destruct Hy as [->|Hy]; [lia|now apply H].
Qed.

Lemma insert_positive x l : 1 <= x -> all_positive l -> all_positive (insert_work x l).
Proof. intros Hx Hl y Hy. apply insert_in_work in Hy. destruct Hy as [->|Hy]; [assumption|now apply Hl]. Qed.

Lemma insert_prefix_more x : forall l k, prefix (S k) (insert_work x l) <= x + prefix k l.
Proof.
  induction l as [|y l IH]; intros k; cbn [insert_work].
  - cbn. destruct k; lia.
  - destruct (Z.leb_spec x y); [cbn [prefix]; lia|].
    change (prefix (S k) (y :: insert_work x l)) with (y + prefix k (insert_work x l)).
    destruct k as [|k]; [cbn; lia|]. specialize (IH k). cbn [prefix] in *. lia.
Qed.

Lemma prefix_shift : forall k y l, ascending (y :: l) -> (k <= length l)%nat -> prefix k (y :: l) <= prefix k l.
Proof.
  induction k as [|k IH]; intros y l Hl Hk; [cbn; lia|].
  destruct l as [|z l]; [cbn in Hk; lia|].
  destruct Hl as [Hy Hl]. specialize (IH z l Hl ltac:(cbn in Hk; lia)). specialize (Hy z (or_introl eq_refl)).
  change (prefix (S k) (y :: z :: l)) with (y + prefix k (z :: l)).
  change (prefix (S k) (z :: l)) with (z + prefix k l). lia.
Qed.

Lemma insert_prefix_same x : forall l k, ascending l -> (k <= length l)%nat ->
  prefix k (insert_work x l) <= prefix k l.
Proof.
  induction l as [|y l IH]; intros k Hl Hk; cbn [insert_work].
  - cbn in Hk. destruct k; [cbn; lia|lia].
  - destruct k as [|k]; [cbn; lia|]. destruct (Z.leb_spec x y).
    + change (prefix (S k) (x :: y :: l)) with (x + prefix k (y :: l)).
      change (prefix (S k) (y :: l)) with (y + prefix k l).
      pose proof (prefix_shift k y l Hl ltac:(cbn in Hk; lia)). lia.
    + change (prefix (S k) (y :: insert_work x l)) with (y + prefix k (insert_work x l)).
      change (prefix (S k) (y :: l)) with (y + prefix k l).
      destruct Hl as [_ Hl]. specialize (IH k Hl ltac:(cbn in Hk; lia)). lia.
Qed.

Lemma consume_facts : forall l room now ends left, consume room now l = (ends, left) ->
  0 <= room -> all_positive l -> ascending l ->
  (length ends + length left = length l)%nat /\ all_positive left /\ ascending left /\
  (forall e, In e ends -> e <= now + room) /\
  (forall k, prefix (k - length ends) left <= Z.max 0 (prefix k l - room)) /\
  (forall k t, (k <= length l)%nat -> prefix k l <= t - now -> prefix k l <= room -> Z.of_nat k <= up_to t ends).
Proof.
  induction l as [|x l IH]; intros room now ends left H Hroom Hpos Hasc; cbn [consume] in H.
  - injection H as <- <-. repeat split; try assumption.
    + intros e [].
    + intros k. cbn. destruct k; cbn; lia.
    + intros k t Hk _ _. cbn in Hk. cbn. lia.
  - apply positive_tail in Hpos. destruct Hpos as [Hx Hpos]. destruct Hasc as [Hfirst Hasc].
    destruct (Z.leb_spec x room) as [Hle|Hgt].
    + destruct (consume (room - x) (now + x) l) as [e q] eqn:E. injection H as <- <-.
      destruct (IH _ _ _ _ E ltac:(lia) Hpos Hasc) as (H1 & H2 & H3 & H4 & H5 & H6).
      repeat split; try assumption.
      * cbn. lia.
      * intros y [<-|Hy]; [lia|]. specialize (H4 y Hy). lia.
      * intros k. destruct k as [|k]; [cbn; lia|]. cbn [length Nat.sub prefix]. specialize (H5 k). lia.
      * intros k t Hk Ht Hr. destruct k as [|k]; [pose proof (up_to_positive t (now + x :: e)); lia|].
        cbn [prefix] in Ht, Hr. pose proof (prefix_positive k l Hpos).
        specialize (H6 k t ltac:(cbn in Hk; lia) ltac:(lia) ltac:(lia)).
        unfold up_to in *. cbn [sum]. destruct (Z.leb_spec (now + x) t); lia.
    + injection H as <- <-. repeat split.
      * intros y [<-|Hy]; [lia|now apply Hpos].
      * intros y Hy. specialize (Hfirst y Hy). lia.
      * exact Hasc.
      * intros e [].
      * intros k. cbn [length]. rewrite Nat.sub_0_r. destruct k as [|k]; cbn [prefix]; [lia|].
        pose proof (prefix_positive k l Hpos). lia.
      * intros k t Hk Ht Hr. destruct k as [|k]; [cbn; lia|]. cbn [prefix] in Hr.
        pose proof (prefix_positive k l Hpos). lia.
Qed.

Lemma consume_length room now l : (length (fst (consume room now l)) <= length l)%nat.
Proof.
  revert room now. induction l as [|x l IH]; intros room now; cbn [consume]; [cbn; lia|].
  destruct (x <=? room); [|cbn; lia]. specialize (IH (room - x) (now + x)).
  destruct (consume (room - x) (now + x) l). cbn in *. lia.
Qed.

Lemma up_to_app t a b : up_to t (a ++ b) = up_to t a + up_to t b.
Proof. apply sum_app. Qed.

Lemma up_to_all t ends : (forall e, In e ends -> e <= t) -> up_to t ends = Z.of_nat (length ends).
Proof.
  intros H. rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. unfold up_to. apply sum_ext.
  intros e He. specialize (H e He). destruct (Z.leb_spec e t); lia.
Qed.

(** ** Against any schedule *)

Section Machine.
  (** Work of jobs that is [left] at a tick, from their [release] on at first all of it; [m] of it is done in a tick. *)
  Variables (left : nat -> Z -> Z) (release work : nat -> Z) (m : Z) (known : nat -> Prop).
  Hypothesis Hm : 1 <= m.
  Hypothesis Hleft : forall k t, known k -> 0 <= left k t.
  Hypothesis Hwork : forall k, known k -> 1 <= work k.
  Hypothesis Hbefore : forall k t, known k -> t <= release k -> left k t = work k.
  Hypothesis Hserved : forall some t later, NoDup some -> (forall k, In k some -> known k) -> t <= later ->
    sum (fun k => left k t) some <= sum (fun k => left k later) some + m * (later - t).

  Fixpoint in_order (now : Z) (l : list nat) : Prop :=
    match l with
    | [] => True
    | k :: rest => now <= release k /\ in_order (release k) rest
    end.

  Lemma in_order_after l : forall now, in_order now l -> forall k, In k l -> now <= release k.
  Proof.
    induction l as [|x l IH]; intros now H k Hk; [destruct Hk|]. destruct H as [H Hl].
    destruct Hk as [->|Hk]; [exact H|]. specialize (IH _ Hl k Hk). lia.
  Qed.

  Lemma none_left some t : (forall k, In k some -> known k) -> 0 <= sum (fun k => left k t) some.
  Proof. intros H. apply sum_nonneg. intros k Hk. now apply Hleft, H. Qed.

  Lemma completed_at_most : forall l now queue z arrived,
    in_order now l -> NoDup (arrived ++ l) -> (forall k, In k (arrived ++ l) -> known k) ->
    all_positive queue -> ascending queue -> (length arrived = z + length queue)%nat ->
    (forall some, NoDup some -> incl some arrived ->
       prefix (length some - z) queue <= sum (fun k => left k now) some) ->
    forall t some, now <= t -> NoDup some -> incl some (arrived ++ l) -> (forall k, In k some -> left k t = 0) ->
    Z.of_nat (length some)
    <= Z.of_nat z + up_to (t * m) (least_work_first m now queue (map (fun k => (release k, work k)) l)).
  Proof.
    induction l as [|j l IH]; intros now queue z arrived Horder Hnd Hknown Hpos Hasc Hlength Hinv t some Ht Hsome Hincl Hzero;
      cbn [map least_work_first].
    - rewrite app_nil_r in *.
      destruct (consume (sum same queue) (now * m) queue) as [ends rest] eqn:E. cbn [fst].
      assert (Hall : 0 <= sum same queue) by (apply sum_nonneg; intros x Hx; specialize (Hpos x Hx); unfold same; lia).
      destruct (consume_facts _ _ _ _ _ E Hall Hpos Hasc) as (_ & _ & _ & _ & _ & H6).
      assert (Hfew : (length some <= length arrived)%nat) by now apply NoDup_incl_length.
      specialize (Hinv some Hsome Hincl).
      assert (Hk : forall k, In k some -> known k) by (intros k Hk; apply Hknown; now apply Hincl).
      pose proof (Hserved some now t Hsome Hk Ht) as Hserve.
      assert (Hnone : sum (fun k => left k t) some = 0).
      { transitivity (sum (fun _ : nat => 0) some); [|rewrite sum_const; lia]. now apply sum_ext. }
      specialize (H6 (length some - z)%nat (t * m) ltac:(lia) ltac:(lia) (prefix_all _ _ Hpos)). lia.
    - destruct Horder as [Hj Horder].
      assert (Hjknown : known j) by (apply Hknown, in_app_iff; right; now left).
      destruct (consume (m * (release j - now)) (now * m) queue) as [ends rest] eqn:E.
      assert (Hroom : 0 <= m * (release j - now)) by (apply Z.mul_nonneg_nonneg; lia).
      destruct (consume_facts _ _ _ _ _ E Hroom Hpos Hasc) as (H1 & H2 & H3 & H4 & H5 & H6).
      rewrite up_to_app.
      destruct (Z_lt_ge_dec t (release j)) as [Hearly|Hlate].
      + (* nobody arrives until then *)
        assert (Hincl' : incl some arrived).
        { intros k Hk. specialize (Hincl k Hk). apply in_app_iff in Hincl. destruct Hincl as [H|H]; [exact H|].
          exfalso. assert (Hkn : known k) by (apply Hknown, in_app_iff; now right).
          assert (Hrel : release j <= release k).
          { destruct H as [->|H]; [lia|]. exact (in_order_after _ _ Horder k H). }
          pose proof (Hbefore k t Hkn ltac:(lia)) as Hall. rewrite (Hzero k Hk) in Hall.
          specialize (Hwork k Hkn). lia. }
        assert (Hk : forall k, In k some -> known k) by (intros k Hk; apply Hknown, in_app_iff; left; now apply Hincl').
        assert (Hfew : (length some <= length arrived)%nat) by now apply NoDup_incl_length.
        specialize (Hinv some Hsome Hincl'). pose proof (Hserved some now t Hsome Hk Ht) as Hserve.
        assert (Hnone : sum (fun k => left k t) some = 0).
        { transitivity (sum (fun _ : nat => 0) some); [|rewrite sum_const; lia]. now apply sum_ext. }
        assert (Hless : m * (t - now) <= m * (release j - now)) by (apply Z.mul_le_mono_nonneg_l; lia).
        specialize (H6 (length some - z)%nat (t * m) ltac:(lia) ltac:(lia) ltac:(lia)).
        match goal with |- context [up_to ?a (least_work_first ?b ?c ?d ?e)] =>
          pose proof (up_to_positive a (least_work_first b c d e)) end.
        lia.
      + rewrite (up_to_all (t * m) ends).
        2: { intros e He. specialize (H4 e He). nia. }
        assert (Hle : Z.of_nat (length some) <= Z.of_nat (z + length ends)
                 + up_to (t * m) (least_work_first m (release j) (insert_work (work j) rest)
                                    (map (fun k => (release k, work k)) l))); [|lia].
        apply (IH (release j) _ _ (j :: arrived)); try assumption; try lia.
        * cbn [app]. eapply Permutation_NoDup; [|exact Hnd]. symmetry. apply Permutation_middle.
        * intros k Hk. apply Hknown. cbn [app] in Hk. apply in_app_iff. destruct Hk as [->|Hk]; [right; now left|].
          apply in_app_iff in Hk. destruct Hk as [Hk|Hk]; [now left|right; now right].
        * apply insert_positive; [now apply Hwork|exact H2].
        * now apply insert_ascending.
        * rewrite insert_length. cbn [length]. lia.
        * intros other Hother Hincl'.
          assert (Hkn : forall k, In k other -> known k).
          { intros k Hk. specialize (Hincl' k Hk). apply Hknown, in_app_iff.
            destruct Hincl' as [->|H]; [right; now left|now left]. }
          assert (Hpast : forall those, NoDup those -> incl those arrived ->
                    prefix (length those - (z + length ends)) rest <= sum (fun k => left k (release j)) those).
          { intros those Hthose Hin.
            assert (Hk : forall k, In k those -> known k) by (intros k Hk; apply Hknown, in_app_iff; left; now apply Hin).
            specialize (Hinv those Hthose Hin). specialize (H5 (length those - z)%nat).
            replace (length those - z - length ends)%nat with (length those - (z + length ends))%nat in H5 by lia.
            pose proof (Hserved those now (release j) Hthose Hk Hj). pose proof (none_left those (release j) Hk). lia. }
          destruct (in_dec Nat.eq_dec j other) as [Hin|Hout].
          -- destruct (in_split _ _ Hin) as (a & b & ->).
             assert (Hperm : Permutation (a ++ j :: b) (j :: a ++ b)) by (symmetry; apply Permutation_middle).
             rewrite (sum_perm _ _ _ Hperm). rewrite (Permutation_length Hperm). cbn [sum length].
             assert (Hnd' : NoDup (j :: a ++ b)) by (eapply Permutation_NoDup; eassumption).
             inversion Hnd' as [|? ? Hnot Hrest]; subst.
             assert (Hin' : incl (a ++ b) arrived).
             { intros k Hk. assert (Hk' : In k (a ++ j :: b)).
               { apply in_app_iff in Hk. apply in_app_iff. destruct Hk; [now left|right; now right]. }
               destruct (Hincl' k Hk') as [->|H]; [contradiction|exact H]. }
             specialize (Hpast (a ++ b) Hrest Hin'). rewrite (Hbefore j (release j) Hjknown ltac:(lia)).
             destruct (le_lt_dec (z + length ends) (length (a ++ b))) as [Hge|Hlt].
             ++ replace (S (length (a ++ b)) - (z + length ends))%nat with (S (length (a ++ b) - (z + length ends))) by lia.
                pose proof (insert_prefix_more (work j) rest (length (a ++ b) - (z + length ends))). lia.
             ++ replace (S (length (a ++ b)) - (z + length ends))%nat with 0%nat by lia. cbn [prefix].
                assert (0 <= sum (fun k => left k (release j)) (a ++ b)).
                { apply none_left. intros k Hk. apply Hknown, in_app_iff. left. now apply Hin'. }
                specialize (Hwork j Hjknown). lia.
          -- assert (Hin' : incl other arrived).
             { intros k Hk. destruct (Hincl' k Hk) as [->|H]; [contradiction|exact H]. }
             assert (Hfew : (length other <= length arrived)%nat) by now apply NoDup_incl_length.
             specialize (Hpast other Hother Hin').
             pose proof (insert_prefix_same (work j) rest (length other - (z + length ends)) H3 ltac:(lia)). lia.
        * intros k Hk. specialize (Hincl k Hk). apply in_app_iff in Hincl. cbn [app].
          destruct Hincl as [H|[->|H]]; [right; apply in_app_iff; now left|now left|right; apply in_app_iff; now right].
  Qed.
End Machine.

(** ** Schedules of gangs *)

Lemma in_numbered_nodup I : NoDup (map fst (numbered I)).
Proof.
  unfold numbered. assert (H : forall (l : list job) b, map fst (combine (seq b (length l)) l) = seq b (length l)).
  { induction l as [|x l IH]; intros b; cbn; [reflexivity|]. now rewrite IH. }
  rewrite H. apply seq_NoDup.
Qed.

Definition numbered_in_order (l : list (nat * job)) : bool :=
  (fix go now l := match l with
                   | [] => true
                   | kj :: rest => (now <=? arrival (snd kj)) && go (arrival (snd kj)) rest
                   end) 0 l.

(** ** Machines of which jobs that run hold shares *)

(** Shares that some jobs hold of a machine of speed [m], for a function of time, are no more than it has. *)
Definition rentable (s : schedule) (share_of : job -> Z) (m : Z) (those : list (nat * job)) : Prop :=
  forall some (f : Z -> Z) all, NoDup some -> incl some those -> NoDup all -> (forall t, 0 <= f t) ->
    (forall t, f t <> 0 -> In t all) ->
    sum (fun kj => share_of (snd kj) * sum f (held_ticks s (fst kj))) some <= m * sum f all.

Lemma nodup_of_fst {A B} (l : list (A * B)) : NoDup (map fst l) -> NoDup l.
Proof.
  induction l as [|x l IH]; cbn; intros H; [constructor|]. inversion H as [|? ? Hx Hl]; subst.
  constructor; [|now apply IH]. intros Hin. apply Hx. now apply in_map.
Qed.

(** Gangs on all GPUs. *)
Lemma gangs_rentable I s : sound I -> feasible I s -> rentable s gang (capacity I) (counted I).
Proof.
  intros Hsound Hs some f all Hnd Hincl Hall Hf Hin.
  eapply Z.le_trans; [|apply (rent_at_most I s f all Hs Hall Hf); intros t Ht _; now apply Hin].
  assert (Hnumbered : incl some (numbered I)).
  { intros kj Hkj. specialize (Hincl kj Hkj). unfold counted in Hincl. now apply filter_In in Hincl. }
  clear Hincl. assert (Hn : NoDup (numbered I)) by (apply nodup_of_fst, in_numbered_nodup).
  set (g := fun kj => gang (snd kj) * sum f (held_ticks s (fst kj))).
  assert (Hg : forall kj, In kj (numbered I) -> 0 <= g kj).
  { intros [k j] H. apply in_numbered in H. destruct (sound_in _ _ _ Hsound H) as (_ & Hgang & _).
    assert (0 <= sum f (held_ticks s k)) by (apply sum_nonneg; auto). unfold g. cbn [fst snd]. nia. }
  revert Hnumbered Hg. generalize (numbered I). clear - Hnd.
  induction Hnd as [|x some Hx _ IH]; intros l Hl Hg; [cbn; now apply sum_nonneg|].
  destruct (in_split _ _ (Hl x (or_introl eq_refl))) as (l1 & l2 & ->). rewrite sum_app. cbn [sum].
  assert (H : sum g some <= sum g (l1 ++ l2)).
  { apply IH.
    - intros y Hy. specialize (Hl y (or_intror Hy)). apply in_app_iff in Hl. apply in_app_iff.
      destruct Hl as [H|[H|H]]; [now left| |now right]. subst. contradiction.
    - intros y Hy. apply Hg. apply in_app_iff in Hy. apply in_app_iff. destruct Hy; [now left|right; now right]. }
  rewrite sum_app in H. lia.
Qed.

Lemma sum_swap_lists {A} (f : A -> Z -> Z) (l : list A) (k : A -> list Z) all :
  (forall x t, In x l -> In t (k x) -> f x t <> 0 -> In t all) -> (forall x, In x l -> NoDup (k x)) ->
  (forall x t, 0 <= f x t) ->
  sum (fun x => sum (f x) (k x)) l
  <= sum (fun t => sum (fun x => if in_dec Z.eq_dec t (k x) then f x t else 0) l) all.
Proof.
  intros Hin Hnd Hf. rewrite sum_swap. apply sum_le. intros x Hx.
  transitivity (sum (f x) (filter (fun t => if in_dec Z.eq_dec t (k x) then true else false) all)).
  - apply sum_included; [now apply Hnd|now intros|]. intros t Ht Hft. apply filter_In. split; [now apply (Hin x)|].
    destruct (in_dec Z.eq_dec t (k x)); [reflexivity|contradiction].
  - rewrite sum_filter. apply sum_le. intros t _. destruct (in_dec Z.eq_dec t (k x)); lia.
Qed.

(** Gangs of which [q] + 1 do not fit: one at a time on each of [q] machines. *)
Definition too_wide (I : instance) (q : Z) (kj : nat * job) : bool := capacity I <? gang (snd kj) * (q + 1).

Lemma wide_rentable I s q : sound I -> feasible I s -> 0 <= q -> 0 <= capacity I ->
  rentable s (fun _ => 1) q (filter (too_wide I q) (counted I)).
Proof.
  intros Hsound Hs Hq Hcap some f all Hnd Hincl Hall Hf Hin.
  assert (Hcounted : incl some (counted I)).
  { intros kj Hkj. specialize (Hincl kj Hkj). now apply filter_In in Hincl. }
  assert (Hhere : forall t, sum (fun kj => if in_dec Z.eq_dec t (held_ticks s (fst kj)) then 1 else 0) some <= q).
  { intros t. set (one := fun x => if x =? t then 1 else 0).
    assert (Hsingle : NoDup [t]) by (constructor; [intros []|constructor]).
    pose proof (gangs_rentable I s Hsound Hs some one [t] Hnd Hcounted Hsingle) as Hone.
    assert (Hone' := Hone ltac:(intros x; unfold one; destruct (x =? t); lia)
                          ltac:(intros x Hx; left; unfold one in Hx; destruct (Z.eqb_spec x t); [congruence|lia])).
    clear Hone. cbn [sum] in Hone'. unfold one at 2 in Hone'. rewrite Z.eqb_refl in Hone'.
    set (count := sum (fun kj => if in_dec Z.eq_dec t (held_ticks s (fst kj)) then 1 else 0) some).
    assert (Hmany : (capacity I + 1) * count
              <= sum (fun kj => (q + 1) * (gang (snd kj) * sum one (held_ticks s (fst kj)))) some).
    { unfold count. rewrite <- sum_scale. apply sum_le. intros kj Hkj. specialize (Hincl kj Hkj).
      apply filter_In in Hincl. destruct Hincl as [Hc Hw]. unfold too_wide in Hw. apply Z.ltb_lt in Hw.
      destruct kj as [k j]. apply in_counted in Hc. destruct (sound_in _ _ _ Hsound (proj1 Hc)) as (_ & Hg & _).
      cbn [fst snd] in *. assert (Hpos : forall l, 0 <= sum one l).
      { intros l. apply sum_nonneg. intros x _. unfold one. destruct (x =? t); lia. }
      destruct (in_dec Z.eq_dec t (held_ticks s k)) as [Ht|Ht].
      - assert (Hat : 1 <= sum one (held_ticks s k)).
        { destruct (in_split _ _ Ht) as (l1 & l2 & ->). rewrite sum_app. cbn [sum]. unfold one at 2. rewrite Z.eqb_refl.
          pose proof (Hpos l1). pose proof (Hpos l2). lia. }
        nia.
      - specialize (Hpos (held_ticks s k)). nia. }
    rewrite sum_scale in Hmany.
    assert ((capacity I + 1) * count <= (q + 1) * capacity I) by nia. nia. }
  assert (Hbounds : forall kj, In kj some -> NoDup (held_ticks s (fst kj))).
  { intros kj _. apply nodup_held_ticks. apply Hs. }
  rewrite (sum_ext _ (fun kj => sum f (held_ticks s (fst kj)))) by (intros; lia).
  eapply Z.le_trans; [apply (sum_swap_lists (fun _ => f) some (fun kj => held_ticks s (fst kj)) all)|].
  - intros x t _ _ Ht. now apply Hin.
  - exact Hbounds.
  - intros _ t. apply Hf.
  - rewrite <- sum_scale. apply sum_le. intros t _.
    rewrite (sum_ext _ (fun kj => f t * (if in_dec Z.eq_dec t (held_ticks s (fst kj)) then 1 else 0))).
    + rewrite sum_scale. specialize (Hhere t). specialize (Hf t). nia.
    + intros kj _. destruct (in_dec Z.eq_dec t (held_ticks s (fst kj))); lia.
Qed.

(** Schedules against the machine, of whose work jobs have [left] so much at a tick, and [amount] in all. *)
Section Ends.
  Variables (I : instance) (s : schedule).
  Variables (amount : nat * job -> Z) (left : nat -> Z -> Z) (m : Z) (those : list (nat * job)).
  Let known (k : nat) : Prop := exists j, In (k, j) those.
  Hypothesis Hm : 1 <= m.
  Hypothesis Hthose : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\ 1 <= amount kj.
  Hypothesis Hdistinct : NoDup (map fst those).
  Hypothesis Hleft : forall k t, known k -> 0 <= left k t.
  Hypothesis Hall : forall k j t, In (k, j) those -> t <= arrival j -> left k t = amount (k, j).
  Hypothesis Hnone : forall k j t, In (k, j) those -> finished I j (runs_of k s) = true -> completion s k <= t -> left k t = 0.
  Hypothesis Hserved : forall some t later, NoDup some -> (forall k, In k some -> known k) -> t <= later ->
    sum (fun k => left k t) some <= sum (fun k => left k later) some + m * (later - t).

  Let of_number {A} (f : job -> A) (default : A) (k : nat) : A :=
    match nth_error (jobs I) k with Some j => f j | None => default end.
  Let release_of := of_number arrival 0.
  Let work_of (k : nat) : Z := of_number (fun j => amount (k, j)) 0 k.

  Definition complete_by (t : Z) (kj : nat * job) : bool :=
    finished I (snd kj) (runs_of (fst kj) s) && (completion s (fst kj) <=? t).

  Variable l : list (nat * job).
  Hypothesis Hperm : Permutation l those.
  Hypothesis Horder : numbered_in_order l = true.

  Definition machine_ends : list Z :=
    least_work_first m 0 [] (map (fun kj => (arrival (snd kj), amount kj)) l).

  Lemma complete_at_most t : 0 <= t ->
    sum (fun kj => if complete_by t kj then 1 else 0) those <= up_to (t * m) machine_ends.
  Proof.
    intros Ht. set (some := map fst (filter (complete_by t) those)).
    assert (Hcount : sum (fun kj => if complete_by t kj then 1 else 0) those = Z.of_nat (length some)).
    { unfold some. rewrite map_length, <- (Z.mul_1_l (Z.of_nat _)), <- sum_const, sum_filter. reflexivity. }
    rewrite Hcount.
    assert (Hin : forall kj, In kj l -> nth_error (jobs I) (fst kj) = Some (snd kj)).
    { intros kj H. apply Hthose. eapply Permutation_in; [exact Hperm|exact H]. }
    assert (Hends : machine_ends = least_work_first m 0 []
                      (map (fun k => (release_of k, work_of k)) (map fst l))).
    { unfold machine_ends. rewrite map_map. f_equal. apply map_ext_in. intros kj H.
      unfold release_of, work_of, of_number. rewrite (Hin kj H). now destruct kj. }
    rewrite Hends.
    assert (Hnd : NoDup (map fst l)).
    { eapply Permutation_NoDup; [symmetry; apply Permutation_map; exact Hperm|].
      exact Hdistinct. }
    assert (Hknown : forall k, In k (map fst l) -> known k).
    { intros k H. apply in_map_iff in H. destruct H as (kj & <- & H). exists (snd kj).
      rewrite <- surjective_pairing. eapply Permutation_in; [exact Hperm|exact H]. }
    rewrite <- (Z.add_0_l (up_to _ _)). change 0 with (Z.of_nat 0) at 1.
    apply (completed_at_most left release_of work_of m known) with (arrived := []); try assumption.
    - intros k (j & Hj). destruct (Hthose _ Hj) as [Hj' Hg]. cbn [fst snd] in *.
      unfold work_of, of_number. rewrite Hj'. exact Hg.
    - intros k x (j & Hj) Hx. destruct (Hthose _ Hj) as [Hj' _]. cbn [fst snd] in *.
      unfold release_of, work_of, of_number in *. rewrite Hj' in *. now apply Hall.
    - clear - Horder Hin. unfold numbered_in_order in Horder. revert Horder. generalize 0.
      induction l as [|kj rest IH]; intros now H; cbn [map in_order]; [exact Logic.I|].
      apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le in H1.
      assert (Hrel : release_of (fst kj) = arrival (snd kj)).
      { unfold release_of, of_number. now rewrite (Hin kj (or_introl eq_refl)). }
      rewrite Hrel. split; [exact H1|]. apply IH; [intros x Hx; apply Hin; now right|exact H2].
    - intros x [].
    - exact Logic.I.
    - reflexivity.
    - intros other _ Hincl. destruct other as [|x other]; [cbn; lia|]. destruct (Hincl x (or_introl eq_refl)).
    - unfold some. now apply nodup_filter_fst.
    - intros k H. cbn [app]. apply in_map_iff in H. destruct H as (kj & <- & H). apply filter_In in H.
      apply in_map. eapply Permutation_in; [symmetry; exact Hperm|]. apply H.
    - intros k H. apply in_map_iff in H. destruct H as ([k' j] & <- & H). apply filter_In in H.
      destruct H as [H Hc]. unfold complete_by in Hc. cbn [fst snd] in *. apply andb_prop in Hc. destruct Hc as [Hf Hc].
      apply (Hnone k' j t); [exact H|exact Hf|now apply Z.leb_le].
  Qed.

  (** Ticks at which a job is not complete, before [limit]. *)
  Definition waits (limit : Z) (kj : nat * job) : Z :=
    if finished I (snd kj) (runs_of (fst kj) s) then Z.min limit (completion s (fst kj)) else limit.

  Lemma completion_positive k : 0 <= completion s k.
  Proof. unfold completion, latest. induction (runs_of k s); cbn; lia. Qed.

  Lemma waits_is n kj :
    sum (fun t => if complete_by t kj then 0 else 1) (ticks 0 (Z.of_nat n)) = waits (Z.of_nat n) kj.
  Proof.
    pose proof (completion_positive (fst kj)) as Hc. unfold waits, complete_by.
    induction n as [|n IH]; [cbn; destruct (finished _ _ _); lia|].
    rewrite (ticks_app 0 (Z.of_nat n)) by lia. rewrite sum_app, IH.
    assert (Hone : ticks (Z.of_nat n) (Z.of_nat (S n)) = [Z.of_nat n]).
    { unfold ticks. replace (Z.to_nat (Z.of_nat (S n) - Z.of_nat n)) with 1%nat by lia. cbn. f_equal. lia. }
    rewrite Hone. cbn [sum]. destruct (finished _ _ _); cbn [andb]; [|lia].
    destruct (Z.leb_spec (completion s (fst kj)) (Z.of_nat n)); lia.
  Qed.

  Lemma late_is speed e n : 1 <= speed ->
    Z.min e (Z.of_nat n * speed) <= speed * sum (fun t => if e <=? t * speed then 0 else 1) (ticks 0 (Z.of_nat n)).
  Proof.
    intros Hspeed. induction n as [|n IH]; [cbn; lia|].
    rewrite (ticks_app 0 (Z.of_nat n)) by lia. rewrite sum_app.
    assert (Hone : ticks (Z.of_nat n) (Z.of_nat (S n)) = [Z.of_nat n]).
    { unfold ticks. replace (Z.to_nat (Z.of_nat (S n) - Z.of_nat n)) with 1%nat by lia. cbn. f_equal. lia. }
    rewrite Hone. cbn [sum]. destruct (Z.leb_spec e (Z.of_nat n * speed)); nia.
  Qed.

  Lemma least_work_first_length speed : forall jobs now queue,
    (length (least_work_first speed now queue jobs) <= length queue + length jobs)%nat.
  Proof.
    induction jobs as [|[r a] rest IH]; intros now queue; cbn [least_work_first].
    - pose proof (consume_length (sum same queue) (now * speed) queue). lia.
    - destruct (consume (speed * (r - now)) (now * speed) queue) as [ends rest_of] eqn:E. rewrite app_length.
      specialize (IH r (insert_work a rest_of)). rewrite insert_length in IH. cbn [length].
      assert (Hlen : forall q room now e q', consume room now q = (e, q') -> (length e + length q' = length q)%nat).
      { clear. induction q as [|x q IH]; intros room now e q' H; cbn [consume] in H.
        - injection H as <- <-. reflexivity.
        - destruct (x <=? room).
          + destruct (consume (room - x) (now + x) q) as [e1 q1] eqn:E. injection H as <- <-.
            specialize (IH _ _ _ _ E). cbn. lia.
          + injection H as <- <-. reflexivity. }
      specialize (Hlen _ _ _ _ _ E). lia.
  Qed.

  Theorem machine_at_most limit : 0 <= limit ->
    sum (fun e => Z.min e (limit * m)) machine_ends <= m * sum (waits limit) those.
  Proof.
    intros Hlimit. set (n := Z.to_nat limit).
    replace limit with (Z.of_nat n) by lia. set (all := ticks 0 (Z.of_nat n)).
    assert (H1 : sum (fun e => Z.min e (Z.of_nat n * m)) machine_ends
                 <= sum (fun e => m * sum (fun t => if e <=? t * m then 0 else 1) all) machine_ends).
    { apply sum_le. intros e _. now apply late_is. }
    rewrite sum_scale, sum_swap in H1.
    assert (H2 : sum (waits (Z.of_nat n)) those
                 = sum (fun t => sum (fun kj => if complete_by t kj then 0 else 1) those) all).
    { rewrite sum_swap. apply sum_ext. intros kj _. symmetry. apply waits_is. }
    rewrite H2. eapply Z.le_trans; [exact H1|]. apply Z.mul_le_mono_nonneg_l; [lia|]. apply sum_le.
    intros t Ht. apply in_ticks in Ht. pose proof (complete_at_most t ltac:(lia)) as Hcount.
    assert (H3 : forall (l' : list (nat * job)), sum (fun kj => if complete_by t kj then 0 else 1) l'
              = Z.of_nat (length l') - sum (fun kj => if complete_by t kj then 1 else 0) l').
    { induction l' as [|kj l' IH]; cbn [sum length]; [lia|]. rewrite IH. destruct (complete_by t kj); lia. }
    assert (H4 : forall ends, sum (fun e => if e <=? t * m then 0 else 1) ends
              = Z.of_nat (length ends) - up_to (t * m) ends).
    { unfold up_to. induction ends as [|e ends IH]; cbn [sum length]; [lia|]. rewrite IH. destruct (e <=? t * m); lia. }
    rewrite H3, H4.
    assert (Hlength : (length machine_ends <= length those)%nat).
    { rewrite <- (Permutation_length Hperm). unfold machine_ends. eapply Nat.le_trans; [apply least_work_first_length|].
      rewrite map_length. cbn. lia. }
    lia.
  Qed.
End Ends.

Section OfSchedule.
  Variables (I : instance) (s : schedule).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Variables (share_of : job -> Z) (m : Z) (those : list (nat * job)).
  Hypothesis Hm : 1 <= m.
  Hypothesis Hthose : forall kj, In kj those -> nth_error (jobs I) (fst kj) = Some (snd kj) /\ 1 <= share_of (snd kj).
  Hypothesis Hdistinct : NoDup (map fst those).
  Hypothesis Hrent : rentable s share_of m those.

  Let of_number {A} (f : job -> A) (default : A) (k : nat) : A :=
    match nth_error (jobs I) k with Some j => f j | None => default end.
  Let before (t : Z) (k : nat) : Z := sum (fun x => if x <? t then 1 else 0) (held_ticks s k).
  Let left_of (k : nat) (t : Z) : Z := of_number (fun j => Z.max 0 (share_of j * (shortest j - before t k))) 0 k.
  Let known (k : nat) : Prop := exists j, In (k, j) those.

  Lemma before_is_more t later k : t <= later ->
    before later k = before t k + sum (fun x => if (t <=? x) && (x <? later) then 1 else 0) (held_ticks s k).
  Proof.
    intros Ht. unfold before. rewrite <- sum_add. apply sum_ext. intros x _.
    destruct (Z.ltb_spec x later), (Z.ltb_spec x t), (Z.leb_spec t x); cbn; lia.
  Qed.

  Lemma known_pairs some : NoDup some -> (forall k, In k some -> known k) ->
    exists pairs, map fst pairs = some /\ NoDup pairs /\ incl pairs those.
  Proof.
    intros Hnd Hknown. assert (H : exists pairs, map fst pairs = some /\ incl pairs those).
    { clear Hnd. induction some as [|k some IH]; [exists []; split; [reflexivity|intros x []]|].
      destruct IH as (pairs & <- & Hincl); [intros; apply Hknown; now right|].
      destruct (Hknown k (or_introl eq_refl)) as (j & Hj). exists ((k, j) :: pairs). split; [reflexivity|].
      intros x [<-|Hx]; [exact Hj|now apply Hincl]. }
    destruct H as (pairs & Hpairs & Hincl). exists pairs. split; [exact Hpairs|]. split; [|exact Hincl].
    apply nodup_of_fst. now rewrite Hpairs.
  Qed.

  Lemma served some t later : NoDup some -> (forall k, In k some -> known k) -> t <= later ->
    sum (fun k => left_of k t) some <= sum (fun k => left_of k later) some + m * (later - t).
  Proof.
    intros Hnd Hknown Ht. destruct (known_pairs some Hnd Hknown) as (pairs & <- & Hpairs & Hincl).
    set (f := fun x => if (t <=? x) && (x <? later) then 1 else 0).
    assert (Hf : forall x, 0 <= f x) by (intros x; unfold f; destruct (_ && _); lia).
    rewrite !sum_map.
    assert (H1 : sum (fun kj => left_of (fst kj) t) pairs
                 <= sum (fun kj => left_of (fst kj) later + share_of (snd kj) * sum f (held_ticks s (fst kj))) pairs).
    { apply sum_le. intros [k j] Hk. destruct (Hthose _ (Hincl _ Hk)) as [Hj Hg]. cbn [fst snd] in *.
      unfold left_of, of_number. rewrite Hj.
      rewrite (before_is_more t later k Ht). fold f.
      assert (0 <= sum f (held_ticks s k)) by (apply sum_nonneg; auto). nia. }
    rewrite sum_add in H1.
    assert (H2 := Hrent pairs f (ticks t later) Hpairs Hincl (nodup_ticks _ _) Hf).
    assert (H2' := H2 ltac:(intros x Hx; apply in_ticks; unfold f in Hx;
                             destruct (Z.leb_spec t x), (Z.ltb_spec x later); cbn in Hx; lia)).
    assert (H3 : sum f (ticks t later) = later - t).
    { transitivity (sum (fun _ : Z => 1) (ticks t later)).
      - apply sum_ext. intros x Hx. apply in_ticks in Hx. unfold f.
        destruct (Z.leb_spec t x), (Z.ltb_spec x later); cbn; lia.
      - rewrite sum_const, length_ticks. lia. }
    rewrite H3 in H2'. lia.
  Qed.

  Lemma all_left k j t : In (k, j) those -> t <= arrival j -> left_of k t = share_of j * shortest j.
  Proof.
    intros Hin Ht. destruct (Hthose _ Hin) as [Hj Hg]. cbn [fst snd] in *.
    unfold left_of, of_number in *. rewrite Hj in *.
    assert (Hbefore : before t k = 0).
    { unfold before. transitivity (sum (fun _ : Z => 0) (held_ticks s k)); [|rewrite sum_const; lia].
      apply sum_ext. intros x Hx. pose proof (held_ticks_bounds I s k j Hs Hj x Hx).
      destruct (Z.ltb_spec x t); lia. }
    rewrite Hbefore, Z.sub_0_r. pose proof (shortest_positive j (sound_in _ _ _ Hsound Hj)). nia.
  Qed.

  Lemma complete_none_left k j t : In (k, j) those -> finished I j (runs_of k s) = true ->
    completion s k <= t -> left_of k t = 0.
  Proof.
    intros Hin Hdone Ht. destruct (Hthose _ Hin) as [Hj Hg]. cbn [fst snd] in *. unfold left_of, of_number. rewrite Hj.
    pose proof (held_ticks_enough I s k j Hsound Hs Hj Hdone) as Henough.
    assert (Hbefore : before t k = Z.of_nat (length (held_ticks s k))).
    { unfold before. rewrite <- (Z.mul_1_l (Z.of_nat _)), <- sum_const. apply sum_ext. intros x Hx.
      pose proof (held_ticks_bounds I s k j Hs Hj x Hx). destruct (Z.ltb_spec x t); lia. }
    rewrite Hbefore. nia.
  Qed.

  Definition fluid_ends (l : list (nat * job)) : list Z := machine_ends (fun kj => share_of (snd kj) * shortest (snd kj)) m l.

  Theorem fluid_at_most l : Permutation l those -> numbered_in_order l = true -> forall limit, 0 <= limit ->
    sum (fun e => Z.min e (limit * m)) (fluid_ends l) <= m * sum (waits I s limit) those.
  Proof.
    intros Hperm Horder. apply (machine_at_most I s (fun kj => share_of (snd kj) * shortest (snd kj)) left_of m those); try assumption.
    - intros kj Hin. destruct (Hthose kj Hin) as [Hj Hg]. split; [exact Hj|].
      pose proof (shortest_positive (snd kj) (sound_in _ _ _ Hsound Hj)). nia.
    - intros k t _. unfold left_of, of_number. destruct (nth_error _ _); lia.
    - apply all_left.
    - apply complete_none_left.
    - apply served.
  Qed.
End OfSchedule.
