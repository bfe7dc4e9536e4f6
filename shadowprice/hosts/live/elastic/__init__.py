"""Jobs of real runs that change their width: in instances, and how fast and how far they are."""
