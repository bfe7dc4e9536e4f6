"""The one place through which solvers are called, and where it is decided what an answer is worth.

``gate`` decides; ``exact`` evaluates points and bounds without trusting a solver; ``proof_tree``
proves an optimum by branching; ``whole`` describes programmes in whole numbers. The only modules
that import a solver are ``highs`` (HiGHS) and ``cp_sat`` (OR-Tools), and they do so when the first
programme is solved.
"""
