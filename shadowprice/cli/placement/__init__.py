"""Commands about where replicas of one job, or of a few, are placed."""
