"""Inputs: clusters, workloads, instances, schedules; importers and generators."""
