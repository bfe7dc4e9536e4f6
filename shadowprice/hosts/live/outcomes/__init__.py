"""Ends of leases: what follows from them for a job, and whose failures they are."""
