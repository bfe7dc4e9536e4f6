"""Points of figures and studies: independent runs whose rows are kept as each ends."""
