"""Terms in options and files: how they are read, and what old options are now."""
