"""Points of figures and studies: independent runs, whose rows are stored as each ends."""
