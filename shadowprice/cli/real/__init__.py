"""Commands about real runs."""
