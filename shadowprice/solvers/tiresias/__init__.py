"""Tiresias (NSDI'19): discretised two-dimensional LAS and Gittins."""
