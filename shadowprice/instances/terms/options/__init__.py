"""Terms in options and files: how they are read."""
