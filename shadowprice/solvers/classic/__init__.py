"""Classic policies: order of arrival, backfilling, short jobs first, least service, filled servers, widths."""
