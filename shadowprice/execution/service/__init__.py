"""A pool that several users submit jobs to: who may do what, and the jobs that come."""
