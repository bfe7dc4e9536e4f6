"""Outcomes of runs in which jobs run as several copies."""
