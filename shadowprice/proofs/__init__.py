"""Verification and proofs: the verifier, and one file a theorem."""
