"""Classic policies: first in first out, backfilling, least job, remaining time or service, filled servers, widths."""
