"""The ratio study: how far every policy is from what was possible."""
