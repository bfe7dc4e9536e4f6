"""Pages in one file that ask the network for nothing."""
