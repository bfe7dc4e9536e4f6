"""Classic policies: order of arrival, backfilling, short or wide jobs first, least service, filled servers, widths."""
