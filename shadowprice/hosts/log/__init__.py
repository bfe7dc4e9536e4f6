"""The log of a real run, checked: leases, checkpoints, mappings of graphs."""
