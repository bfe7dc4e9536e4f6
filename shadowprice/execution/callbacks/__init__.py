"""Thin extras over :mod:`shadowprice.execution.job` for training frameworks."""
