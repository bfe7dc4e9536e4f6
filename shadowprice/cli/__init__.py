"""The command line: its program, and the commands about instances, policies, runs and proofs."""
