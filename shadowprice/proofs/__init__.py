"""Why to believe it: the verifier, and one file a theorem."""
