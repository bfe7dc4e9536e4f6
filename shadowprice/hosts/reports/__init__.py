"""Real runs from outside: what happened, how it is going, reports."""
