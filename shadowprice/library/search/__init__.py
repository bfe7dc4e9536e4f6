"""Searches for entries: schedules of systems and classics, orders of jobs bettered move by move, and long bounds.

``python -m shadowprice.library.search NAME --seconds 60`` betters the entries of an instance; what is stored was
verified.
"""
