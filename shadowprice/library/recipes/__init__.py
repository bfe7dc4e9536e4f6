"""Recipes of instances: from a generator by its seed, or cut from a public trace by its checksum."""
