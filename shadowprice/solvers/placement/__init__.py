"""Placements: which nodes a gang gets. Adding one is adding a file that lists it in ``PLACEMENTS``."""
