"""Terms in options and files: their settings, and how these are read."""
