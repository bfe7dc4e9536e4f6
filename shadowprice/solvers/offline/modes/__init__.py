"""Modes in which jobs run and resources that they use, as bounds see them: a kind of limit a file."""
