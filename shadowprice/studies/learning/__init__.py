"""Learning a policy: the engine as an environment."""
