"""Job graphs of real runs: in job files, in instances, in leases, and as they are measured."""
