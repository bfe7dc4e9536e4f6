"""Hadar's offline optimum: branch and price over the schedules of jobs."""
