"""Public data sets, downloaded on request into the user's cache and checked by their checksums."""
