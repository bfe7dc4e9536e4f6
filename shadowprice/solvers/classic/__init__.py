"""Classic policies: first in first out, backfilling, shortest job, shortest remaining time, least service."""
