"""Gavel (OSDI'20): allocations as programmes, and the round mechanism that follows them."""
