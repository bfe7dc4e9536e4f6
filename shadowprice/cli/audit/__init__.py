"""The command that audits what was run."""
