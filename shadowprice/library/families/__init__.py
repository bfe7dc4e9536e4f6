"""Families of instances, a file each: what an instance says beyond jobs and nodes."""
