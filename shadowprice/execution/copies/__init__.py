"""HadarE in simulation: rounds in which a job runs as several copies."""
