"""The tightest instance of each theorem: how close what it bounds comes to what it allows.

``comparisons.py`` says what a theorem's entry is, the files beside it hold the entries, and ``search.py`` looks for an
instance and checks a stored one.
"""
