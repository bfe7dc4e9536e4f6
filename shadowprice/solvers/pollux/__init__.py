"""Pollux (OSDI'21) and what it was compared with: jobs that change their width and batch."""
