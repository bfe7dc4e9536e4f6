"""Thin extras over :mod:`shadowprice.hosts.job` for training frameworks."""
