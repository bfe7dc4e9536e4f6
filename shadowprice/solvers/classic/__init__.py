"""Classic policies: first in first out, backfilling, shortest job, remaining time, least service, filled servers."""
