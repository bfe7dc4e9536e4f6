(** Modes in which jobs can run, of which each asks for GPUs of a type, and for so much CPU and memory of each of them; and
    bounds at prices of all that (LB-mode). *)

From Coq Require Import List ZArith QArith Lia Bool Permutation.
From Shadowprice Require Import Sums Schedule JobPrice Duality Utility Span Fluid Checker Starts Claim Lists Priced.
Import ListNotations.
Open Scope Z_scope.

(** Ticks of all of the job on GPUs of a type under a condition; GPUs that it holds in all, and what it asks for each. *)
Record mode := Mode { on_type : nat; lasts_in : Z; gpus_in : Z; cpus_in : Z; memory_in : Z }.

(** What each job holds and asks for under a condition: (condition, (GPUs, (CPUs, memory))). *)
Definition asks : Type := list (list (nat * (Z * (Z * Z)))).

Definition modes_of (table : asks) (kj : numbered_job) : list mode :=
  flat_map (fun entry => match find (fun row => Nat.eqb (fst row) (snd (fst entry))) (nth (fst kj) table []) with
                         | Some (_, (width, (cpus, memory))) => [Mode (fst (fst entry)) (snd entry) width cpus memory]
                         | None => []
                         end) (times (snd kj)).

(** CPUs and memory of nodes are every other of the amounts. *)
Definition is_memory (I : instance) (i : nat) : option bool :=
  if Nat.ltb i (2 * length (nodes I)) && Nat.ltb i (length (amounts I)) then Some (Nat.odd i) else None.

Definition holds_of (I : instance) (memory : bool) (r : run) : Z :=
  sum (fun u => match is_memory I (fst u) with
                | Some other => if Bool.eqb other memory then snd u else 0
                | None => 0
                end) (uses r).

(** A run holds, on each of its nodes, what a mode asks for that is no slower than the run and no wider. *)
Definition holds_modes (I : instance) (table : asks) (kj : numbered_job) (r : run) (ms : list ((nat * Z) * mode)) : Prop :=
  map fst ms = pieces r /\
  (forall pm, In pm ms -> In (snd pm) (modes_of table kj) /\ lasts_in (snd pm) <= pace I (snd kj) r /\
     gpus_in (snd pm) <= sum snd (pieces r) /\
     exists n, nth_error (nodes I) (fst (fst pm)) = Some n /\ on_type (snd pm) = gpu_type n) /\
  sum (fun pm => snd (fst pm) * cpus_in (snd pm)) ms <= holds_of I false r /\
  sum (fun pm => snd (fst pm) * memory_in (snd pm)) ms <= holds_of I true r.

(** Of the class: there is as much of all as is held, and runs hold what their modes ask for. *)
Record fed (I : instance) (table : asks) (s : schedule) : Prop := Fed {
  enough : forall i n, nth_error (amounts I) i = Some n -> forall t, in_use uses s i t <= n;
  modes_held : forall k j r, nth_error (jobs I) k = Some j -> In r (runs_of k s) -> exists ms, holds_modes I table (k, j) r ms
}.

(** ** Who holds what: runs of the file list CPUs and memory of each piece, or none of any *)

Fixpoint choose (I : instance) (table : asks) (kj : numbered_job) (r : run) (ps : list (nat * Z)) (us : list (nat * Z))
  : option (list ((nat * Z) * mode)) :=
  match ps with
  | [] => match us with [] => Some [] | _ => None end
  | p :: ps =>
      let asked := match us with
                   | (i, cpus) :: (i', memory) :: rest =>
                       match is_memory I i, is_memory I i' with
                       | Some false, Some true => Some (cpus, memory, rest)
                       | _, _ => None
                       end
                   | [] => Some (0, 0, [])
                   | _ => None
                   end in
      match asked, nth_error (nodes I) (fst p) with
      | Some (cpus, memory, rest), Some n =>
          match find (fun m => Nat.eqb (on_type m) (gpu_type n) && (lasts_in m <=? pace I (snd kj) r)
                               && (gpus_in m <=? sum snd (pieces r))
                               && (snd p * cpus_in m =? cpus) && (snd p * memory_in m =? memory)) (modes_of table kj),
                choose I table kj r ps rest with
          | Some m, Some ms => Some ((p, m) :: ms)
          | _, _ => None
          end
      | _, _ => None
      end
  end.

Lemma choose_sound I table kj r : forall ps us ms, choose I table kj r ps us = Some ms ->
  map fst ms = ps /\
  (forall pm, In pm ms -> In (snd pm) (modes_of table kj) /\ lasts_in (snd pm) <= pace I (snd kj) r /\
     gpus_in (snd pm) <= sum snd (pieces r) /\
     exists n, nth_error (nodes I) (fst (fst pm)) = Some n /\ on_type (snd pm) = gpu_type n) /\
  (forall memory, sum (fun u => match is_memory I (fst u) with
                | Some other => if Bool.eqb other memory then snd u else 0
                | None => 0
                end) us
     = sum (fun pm => snd (fst pm) * (if memory then memory_in (snd pm) else cpus_in (snd pm))) ms).
Proof.
  induction ps as [|p ps IH]; intros us ms H; cbn [choose] in H.
  - destruct us; [|discriminate]. injection H as <-. split; [reflexivity|]. split; [intros pm []|reflexivity].
  - set (asked := match us with [] => _ | _ => _ end) in H. destruct asked as [[[cpus memory] rest]|] eqn:Easked; [|discriminate].
    destruct (nth_error (nodes I) (fst p)) as [n|] eqn:En; [|discriminate].
    destruct (find _ _) as [m|] eqn:Em; [|discriminate]. destruct (choose I table kj r ps rest) as [ms'|] eqn:Ems; [|discriminate].
    injection H as <-. destruct (IH rest ms' Ems) as (H1 & H2 & H3). apply find_some in Em. destruct Em as [Hin Em].
    rewrite !andb_true_iff, !Z.leb_le, !Z.eqb_eq, Nat.eqb_eq in Em. destruct Em as ((((Htype & Hlasts) & Hwidth) & Hcpus) & Hmemory).
    split; [cbn [map fst]; now rewrite H1|]. split.
    + intros pm [<-|Hpm]; [|now apply H2]. cbn [fst snd]. repeat split; try assumption. now exists n.
    + intros other. cbn [sum fst snd]. rewrite <- (H3 other). unfold asked in Easked.
      destruct us as [|[i c] us]; [injection Easked as <- <- <-; cbn [sum]; destruct other; lia|].
      destruct us as [|[i' c'] us]; [discriminate|].
      destruct (is_memory I i) as [[|]|] eqn:Ei; try discriminate. destruct (is_memory I i') as [[|]|] eqn:Ei'; try discriminate.
      injection Easked as <- <- <-. cbn [sum fst snd]. rewrite Ei, Ei'. destruct other; cbn [Bool.eqb]; lia.
Qed.

Definition check_fed (I : instance) (table : asks) (s : schedule) : bool :=
  forallb (fun r => match nth_error (jobs I) (of_job r) with
                    | Some j => match choose I table (of_job r, j) r (pieces r) (uses r) with Some _ => true | None => false end
                    | None => true
                    end) s.

Lemma check_fed_sound I table s : obeys I s -> check_fed I table s = true -> fed I table s.
Proof.
  intros Hobeys Hcheck. split; [exact (amounts_suffice I s Hobeys)|]. intros k j r Hk Hr. apply in_runs_of in Hr. destruct Hr as [Hr Hof].
  unfold check_fed in Hcheck. rewrite forallb_forall in Hcheck. specialize (Hcheck r Hr). rewrite Hof, Hk in Hcheck.
  destruct (choose I table (k, j) r (pieces r) (uses r)) as [ms|] eqn:E; [|discriminate]. exists ms.
  destruct (choose_sound _ _ _ _ _ _ _ E) as (H1 & H2 & H3). split; [exact H1|]. split; [exact H2|].
  unfold holds_of. rewrite (H3 false), (H3 true). split; apply Z.le_refl.
Qed.

(** ** Prices *)

(** Of a unit of GPUs of each type, and of a unit of CPUs and memory. *)
Record mode_prices := ModePrices { of_types : list Z; of_cpus : Z; of_memory : Z }.

Definition sound_prices (p : mode_prices) : Prop :=
  (forall x, In x (of_types p) -> 0 <= x) /\ 0 <= of_cpus p /\ 0 <= of_memory p.

(** Price of a unit of a gang in a mode; and of all of the job, with that of its own time. *)
Definition unit_price (p : mode_prices) (m : mode) : Z :=
  nth (on_type m) (of_types p) 0 + of_cpus p * cpus_in m + of_memory p * memory_in m.

Definition mode_cost (p : mode_prices) (own : Z) (m : mode) : Z := lasts_in m * (gpus_in m * unit_price p m + own).

Definition least_cost (table : asks) (p : mode_prices) (own : Z) (kj : numbered_job) : Z :=
  match map (mode_cost p own) (modes_of table kj) with
  | [] => 0
  | cost :: rest => fold_right Z.min cost rest
  end.

Definition amount_price (I : instance) (p : mode_prices) (i : nat) : Z :=
  match is_memory I i with Some true => of_memory p | Some false => of_cpus p | None => 0 end.

Definition rows_of (p : mode_prices) : list (list Z) := map (fun x => [x]) (of_types p).

Definition run_price (I : instance) (p : mode_prices) (r : run) : Z :=
  rate I (rows_of p) r 0 + sum (fun u => snd u * amount_price I p (fst u)) (uses r).

Definition all_price (I : instance) (p : mode_prices) : Z :=
  sum (fun n => gpus n * nth (gpu_type n) (of_types p) 0) (nodes I)
  + sum (fun ia => snd ia * amount_price I p (fst ia)) (combine (seq 0 (length (amounts I))) (amounts I)).

Lemma type_price p ty : price (rows_of p) ty 0 = nth ty (of_types p) 0.
Proof.
  unfold price, rows_of. cbn [Z.to_nat]. destruct (le_lt_dec (length (of_types p)) ty) as [H|H].
  - rewrite (nth_overflow (map (fun x => [x]) (of_types p))) by (rewrite map_length; exact H). rewrite (nth_overflow (of_types p)) by exact H. reflexivity.
  - rewrite (nth_indep _ [] [0]) by (rewrite map_length; exact H). rewrite (map_nth (fun x => [x])). reflexivity.
Qed.

Section Prices.
  Variables (I : instance) (table : asks) (s : schedule) (p : mode_prices).
  Hypothesis Hsound : sound I.
  Hypothesis Hs : feasible I s.
  Hypothesis Hfed : fed I table s.
  Hypothesis Hp : sound_prices p.
  (** Modes ask for no less than nothing. *)
  Hypothesis Htable : forall kj m, In m (modes_of table kj) -> 0 <= gpus_in m /\ 0 <= cpus_in m /\ 0 <= memory_in m.

  Lemma rows_sound : forall row, In row (rows_of p) -> length row = 1%nat /\ forall x, In x row -> 0 <= x.
  Proof.
    intros row Hin. unfold rows_of in Hin. apply in_map_iff in Hin. destruct Hin as (x & <- & Hx). split; [reflexivity|].
    intros y [<-|[]]. now apply Hp.
  Qed.

  Lemma type_price_positive ty : 0 <= nth ty (of_types p) 0.
  Proof. destruct (nth_in_or_default ty (of_types p) 0) as [H| ->]; [now apply Hp|lia]. Qed.

  Lemma unit_price_positive kj m : In m (modes_of table kj) -> 0 <= unit_price p m.
  Proof.
    intros Hm. destruct (Htable kj m Hm) as (_ & Hc & Hmem). destruct Hp as (_ & Hpc & Hpm).
    pose proof (type_price_positive (on_type m)). unfold unit_price. nia.
  Qed.

  Lemma uses_price r : sum (fun u => snd u * amount_price I p (fst u)) (uses r)
    = of_cpus p * holds_of I false r + of_memory p * holds_of I true r.
  Proof.
    unfold holds_of. rewrite <- !sum_scale, <- sum_add. apply sum_ext. intros u _. unfold amount_price.
    destruct (is_memory I (fst u)) as [[|]|]; cbn [Bool.eqb]; lia.
  Qed.

  (** A run pays for its modes. *)
  Lemma run_pays k j r ms : In r (runs_of k s) -> holds_modes I table (k, j) r ms ->
    sum (fun pm => snd (fst pm) * unit_price p (snd pm)) ms <= run_price I p r.
  Proof.
    intros Hr (Hpieces & Hms & Hcpus & Hmemory). unfold run_price. rewrite uses_price. destruct Hp as (_ & Hpc & Hpm).
    assert (Hrate : rate I (rows_of p) r 0 = sum (fun pm => snd (fst pm) * nth (on_type (snd pm)) (of_types p) 0) ms).
    { unfold rate. rewrite <- Hpieces, sum_map. apply sum_ext. intros pm Hin. destruct (Hms pm Hin) as (_ & _ & _ & n & Hn & Hty).
      unfold at_node. rewrite Hn, type_price, Hty. reflexivity. }
    rewrite Hrate.
    assert (of_cpus p * sum (fun pm => snd (fst pm) * cpus_in (snd pm)) ms <= of_cpus p * holds_of I false r) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (of_memory p * sum (fun pm => snd (fst pm) * memory_in (snd pm)) ms <= of_memory p * holds_of I true r) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (Hsum : sum (fun pm => snd (fst pm) * unit_price p (snd pm)) ms
                   = sum (fun pm => snd (fst pm) * nth (on_type (snd pm)) (of_types p) 0) ms
                     + of_cpus p * sum (fun pm => snd (fst pm) * cpus_in (snd pm)) ms
                     + of_memory p * sum (fun pm => snd (fst pm) * memory_in (snd pm)) ms).
    { rewrite <- !sum_scale, <- !sum_add. apply sum_ext. intros pm _. unfold unit_price. ring. }
    lia.
  Qed.

  Lemma run_price_positive r : In r s -> 0 <= run_price I p r.
  Proof.
    intros Hr. assert (Hfits := Hs). destruct Hfits as (Hfits & _). rewrite Forall_forall in Hfits.
    destruct (Hfits r Hr) as (j & Hk & _ & _ & _ & _ & Hpieces).
    assert (Hin : In r (runs_of (of_job r) s)) by (apply in_runs_of; tauto).
    destruct (modes_held I table s Hfed (of_job r) j r Hk Hin) as (ms & Hms).
    etransitivity; [|exact (run_pays _ j r ms Hin Hms)]. apply sum_nonneg. intros pm Hpm. destruct Hms as (Heq & Hms & _).
    destruct (Hms pm Hpm) as (Hm & _). pose proof (unit_price_positive _ _ Hm).
    assert (Hpiece : In (fst pm) (pieces r)) by (rewrite <- Heq; now apply in_map). destruct (Hpieces _ Hpiece) as [Hone _]. nia.
  Qed.

  Lemma least_cost_below own kj m : In m (modes_of table kj) -> least_cost table p own kj <= mode_cost p own m.
  Proof.
    intros Hm. unfold least_cost. apply (in_map (mode_cost p own)) in Hm.
    destruct (map (mode_cost p own) (modes_of table kj)) as [|cost rest]; [destruct Hm|]. now apply fold_min_below.
  Qed.

  (** A job pays for all of it no less than in its cheapest mode. *)
  Lemma run_price_at_least own k j r : 0 <= own -> nth_error (jobs I) k = Some j -> In r (runs_of k s) ->
    least_cost table p own (k, j) <= (run_price I p r + own) * pace I j r.
  Proof.
    intros Hown Hk Hr. destruct (modes_held I table s Hfed k j r Hk Hr) as (ms & Hmodes).
    pose proof (run_pays k j r ms Hr Hmodes) as Hpays. destruct Hmodes as (Heq & Hms & _).
    destruct (run_of_fits I s k j r Hs Hk Hr) as (_ & _ & Hgang & Hne & Hpieces).
    destruct (sound_in _ _ _ Hsound Hk) as (_ & Hg & _).
    pose proof (shortest_positive j (sound_in _ _ _ Hsound Hk)) as Hshort.
    assert (Hpace : 0 <= pace I j r).
    { assert (shortest j <= pace I j r); [|lia]. apply pace_shortest; [|exact Hne]. intros piece Hin.
      destruct (Hpieces piece Hin) as (_ & n & t & Hn & Htime). eauto. }
    set (G := sum snd (pieces r)) in *. assert (HG : 1 <= G) by lia.
    set (L := least_cost table p own (k, j)) in *. set (paid := sum (fun pm => snd (fst pm) * unit_price p (snd pm)) ms) in *.
    assert (Hpiece : forall pm, In pm ms -> 1 <= snd (fst pm)).
    { intros pm Hpm. assert (Hin : In (fst pm) (pieces r)) by (rewrite <- Heq; now apply in_map). now apply Hpieces. }
    assert (Heach : forall pm, In pm ms -> snd (fst pm) * L <= snd (fst pm) * (pace I j r * (G * unit_price p (snd pm) + own))).
    { intros pm Hpm. destruct (Hms pm Hpm) as (Hm & Hlasts & Hwidth & _). cbn [snd] in Hlasts. fold G in Hwidth.
      pose proof (unit_price_positive _ _ Hm) as Hu. destruct (Htable _ _ Hm) as (Hw & _).
      apply Z.mul_le_mono_nonneg_l; [specialize (Hpiece pm Hpm); lia|].
      etransitivity; [exact (least_cost_below own (k, j) _ Hm)|]. unfold mode_cost.
      transitivity (pace I j r * (gpus_in (snd pm) * unit_price p (snd pm) + own)).
      - apply Z.mul_le_mono_nonneg_r; [|exact Hlasts]. assert (0 <= gpus_in (snd pm) * unit_price p (snd pm)) by (apply Z.mul_nonneg_nonneg; lia). lia.
      - apply Z.mul_le_mono_nonneg_l; [exact Hpace|]. apply Z.add_le_mono_r. apply Z.mul_le_mono_nonneg_r; lia. }
    assert (Hsum : sum (fun pm => snd (fst pm) * L) ms <= sum (fun pm => snd (fst pm) * (pace I j r * (G * unit_price p (snd pm) + own))) ms)
      by now apply sum_le.
    assert (HG' : sum (fun pm => snd (fst pm)) ms = G).
    { unfold G. rewrite <- Heq, sum_map. reflexivity. }
    rewrite (sum_ext _ (fun pm => L * snd (fst pm))) in Hsum by (intros; ring). rewrite sum_scale, HG' in Hsum.
    rewrite (sum_ext (fun pm => snd (fst pm) * (pace I j r * (G * unit_price p (snd pm) + own)))
               (fun pm => (pace I j r * G) * (snd (fst pm) * unit_price p (snd pm)) + (pace I j r * own) * snd (fst pm))) in Hsum
      by (intros; ring).
    rewrite sum_add, !sum_scale, HG' in Hsum. fold paid in Hsum.
    assert (L * G <= (paid + own) * pace I j r * G) by (etransitivity; [exact Hsum|]; apply Z.eq_le_incl; ring).
    assert (L <= (paid + own) * pace I j r) by (apply (Z.mul_le_mono_pos_r _ _ G); lia).
    etransitivity; [eassumption|]. apply Z.mul_le_mono_nonneg_r; lia.
  Qed.

  (** All that is held costs no more than all that there is. *)
  Lemma all_price_enough t : sum (fun r => if active t r then run_price I p r else 0) s <= all_price I p.
  Proof.
    unfold run_price, all_price. destruct Hs as (Hfits & _ & Hheld & _).
    rewrite (sum_ext _ (fun r => (if active t r then rate I (rows_of p) r 0 else 0)
                                 + (if active t r then sum (fun u => snd u * amount_price I p (fst u)) (uses r) else 0)))
      by (intros r _; destruct (active t r); lia).
    rewrite sum_add. apply Z.add_le_mono.
    - etransitivity; [apply (rates_held I (rows_of p) 1 rows_sound s t 0 Hfits (fun k n Hk => Hheld k n Hk t))|].
      apply Z.eq_le_incl, sum_ext. intros n _. now rewrite type_price.
    - set (N := length (amounts I)).
      transitivity (sum (fun i => amount_price I p i * in_use uses s i t) (seq 0 N)).
      + unfold in_use.
        rewrite (sum_ext (fun i => amount_price I p i * _)
                   (fun i => sum (fun r => if active t r then sum (fun u => if Nat.eqb (fst u) i then snd u * amount_price I p (fst u) else 0) (uses r) else 0) s)).
        2: { intros i _. rewrite <- sum_scale. apply sum_ext. intros r _. destruct (active t r); [|lia]. rewrite <- sum_scale. apply sum_ext.
             intros u _. destruct (Nat.eqb_spec (fst u) i) as [->|]; lia. }
        rewrite sum_swap. apply sum_le. intros r _. destruct (active t r); [|rewrite sum_const; lia].
        rewrite sum_swap. apply sum_le. intros u _. destruct (le_lt_dec N (fst u)) as [H|H].
        * assert (amount_price I p (fst u) = 0) as ->.
          { unfold amount_price, is_memory. destruct (Nat.ltb_spec (fst u) (length (amounts I))); [unfold N in H; lia|].
            rewrite andb_false_r. reflexivity. }
          rewrite Z.mul_0_r. apply sum_nonneg. intros i _. destruct (Nat.eqb _ _); lia.
        * rewrite one_of_range by exact H. apply Z.le_refl.
      + assert (Hpos : forall i, 0 <= amount_price I p i).
        { intros i. destruct Hp as (_ & Hc & Hm). unfold amount_price. destruct (is_memory I i) as [[|]|]; lia. }
        assert (H : forall (l : list Z) b, (forall i n, nth_error l i = Some n -> in_use uses s (b + i) t <= n) ->
                  sum (fun i => amount_price I p i * in_use uses s i t) (seq b (length l))
                  <= sum (fun ia => snd ia * amount_price I p (fst ia)) (combine (seq b (length l)) l)).
        { induction l as [|n l IH]; intros b Hl; cbn [length seq combine sum fst snd]; [lia|].
          pose proof (Hl 0%nat n eq_refl) as H0. rewrite Nat.add_0_r in H0. specialize (Hpos b).
          assert (Hrest : sum (fun i => amount_price I p i * in_use uses s i t) (seq (S b) (length l))
                          <= sum (fun ia => snd ia * amount_price I p (fst ia)) (combine (seq (S b) (length l)) l)).
          { apply IH. intros i n' Hi. replace (S b + i)%nat with (b + S i)%nat by lia. now apply Hl. }
          nia. }
        apply (H (amounts I) 0%nat). intros i n Hi. now apply (enough I table s Hfed).
  Qed.
End Prices.

(** ** Values *)

Definition check_prices_of_modes (table : asks) (p : mode_prices) : bool :=
  forallb (fun x => 0 <=? x) (of_types p) && (0 <=? of_cpus p) && (0 <=? of_memory p)
  && forallb (forallb (fun row => (0 <=? fst (snd row)) && (0 <=? fst (snd (snd row))) && (0 <=? snd (snd (snd row))))) table.

Lemma check_prices_of_modes_sound table p : check_prices_of_modes table p = true ->
  sound_prices p /\ forall kj m, In m (modes_of table kj) -> 0 <= gpus_in m /\ 0 <= cpus_in m /\ 0 <= memory_in m.
Proof.
  unfold check_prices_of_modes. rewrite !andb_true_iff, !Z.leb_le, !forallb_forall. intros (((Ht & Hc) & Hm) & Htable). split.
  - split; [|split; assumption]. intros x Hx. apply Z.leb_le. now apply Ht.
  - intros kj m Hin. unfold modes_of in Hin. apply in_flat_map in Hin. destruct Hin as (entry & _ & Hin).
    destruct (find _ _) as [[c (w & (cpus & memory))]|] eqn:E; [|destruct Hin]. destruct Hin as [<-|[]]. apply find_some in E.
    destruct E as [E _]. destruct (nth_in_or_default (fst kj) table []) as [Hrow|Hno]; [|rewrite Hno in E; destruct E].
    specialize (Htable _ Hrow). rewrite forallb_forall in Htable. specialize (Htable _ E). cbn [fst snd] in Htable.
    rewrite !andb_true_iff, !Z.leb_le in Htable. cbn [gpus_in cpus_in memory_in]. tauto.
Qed.

Definition fluid_of_modes (I : instance) (table : asks) (p : mode_prices) : option Q :=
  if check_prices_of_modes table p && forallb (fun kj => 1 <=? least_cost table p 0 kj) (counted I)
  then machine_of I (least_cost table p 0) (all_price I p) (counted I)
  else None.

Lemma fluid_of_modes_sound I table s p value : sound I -> feasible I s -> fed I table s ->
  fluid_of_modes I table p = Some value -> (value <= cost Completion I s)%Q.
Proof.
  intros Hsound Hs Hfed. unfold fluid_of_modes. destruct (_ && _) eqn:Hcheck; [|discriminate].
  apply andb_prop in Hcheck. destruct Hcheck as [Hcheck Hpositive]. apply check_prices_of_modes_sound in Hcheck.
  destruct Hcheck as [Hp Htable]. rewrite forallb_forall in Hpositive.
  apply (machine_of_sound I s (least_cost table p 0) (all_price I p) (counted I) value Hsound Hs (incl_refl _)).
  intros l limit Hm Hperm Horder.
  apply (priced_at_most I s Hsound Hs (run_price I p) (all_price I p)); try assumption.
  - intros r Hr. now apply (run_price_positive I table s).
  - intros t. now apply (all_price_enough I table s p Hs Hfed Hp).
  - intros k j r Hk _ Hr. rewrite <- (Z.add_0_r (run_price I p r)).
    apply (run_price_at_least I table s p Hsound Hs Hfed Hp Htable); [lia|exact Hk|exact Hr].
  - intros [k j] Hin. assert (Hpos := Hpositive _ Hin). apply Z.leb_le in Hpos. apply in_counted in Hin. cbn [fst snd]. tauto.
  - apply counted_distinct.
Qed.

Definition span_of_modes (I : instance) (table : asks) (p : mode_prices) (own : list Z) : option Q :=
  if check_prices_of_modes table p
  then span_value I (fun kj => least_cost table p (nth (fst kj) own 0) kj) (all_price I p) own
  else None.

Lemma span_of_modes_sound I table s p own value : sound I -> feasible I s -> fed I table s ->
  span_of_modes I table p own = Some value -> (value <= inject_Z (last_completion I s))%Q.
Proof.
  intros Hsound Hs Hfed. unfold span_of_modes. destruct (check_prices_of_modes table p) eqn:Hcheck; [|discriminate].
  apply check_prices_of_modes_sound in Hcheck. destruct Hcheck as [Hp Htable].
  apply (span_value_sound I s (run_price I p)); try assumption.
  - intros r Hr. now apply (run_price_positive I table s).
  - intros t. now apply (all_price_enough I table s p Hs Hfed Hp).
  - intros Hown k j r Hk Hr. now apply (run_price_at_least I table s p Hsound Hs Hfed Hp Htable).
Qed.
