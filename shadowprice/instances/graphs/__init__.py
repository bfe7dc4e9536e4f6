"""Job graphs: stages, replicas and the traffic between them, and the time of an iteration."""
