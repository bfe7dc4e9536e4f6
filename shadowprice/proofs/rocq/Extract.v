(** The checker in OCaml. Extraction, its mapping of numbers to Zarith's, and what reads the file are trusted. *)

From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Shadowprice Require Import Schedule Claim Graphs GraphClaim Copies CopyClaim.

Extraction "proven.ml" check check_utility Node Job Run Charges Checkpoint Instance Certificate UtilityCertificate IntervalPrices PlanPrices Alone Area OneMachine BusyTimes WideGangs
  Completion Flow Makespan check_graphs check_graph_utility GraphCertificate GraphUtility Mapped Network Graph Stage Link depth least_ticks_of
  check_copies check_copy_utility Copied Copy CopyCertificate CopyUtility.
