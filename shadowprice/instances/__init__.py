"""What is given: clusters, workloads, instances, schedules; importers and generators."""
