"""Traces as they are: what is in one, as a table and as a page, and laws that are fitted to one."""
