(** The checker in OCaml. Extraction, its mapping of numbers to Zarith's, and what reads the file are trusted. *)

From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Shadowprice Require Import Schedule Claim Windows Modes Nodes MoreClaims WholeRounds Graphs GraphClaim Copies CopyClaim.

Extraction "proven.ml" check check_utility check_more beyond_proof check_whole_rounds Node Job Run Charges Checkpoint Instance Certificate UtilityCertificate IntervalPrices PlanPrices Alone Area OneMachine BusyTimes WideGangs
  ByLists ByConfigurations ByWindows ByModes ModePrices ByNodes NodeRow Cut Leaf
  Completion Flow Makespan check_graphs check_graph_utility GraphCertificate GraphUtility Mapped Network Graph Stage Link depth least_ticks_of
  check_copies check_copy_utility Copied Copy CopyCertificate CopyUtility.
