"""The library: fixed instances, and of each the best schedule and the best bound that are known.

``instances()`` of :mod:`shadowprice.library.collection` are its instances, ``docs/library.md`` its formats and rules.
"""
