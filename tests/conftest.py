"""Hypothesis profiles: dev by default, ci where CI=true, any by HYPOTHESIS_PROFILE."""

from __future__ import annotations

import os

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=2000, deadline=None)
_DEFAULT = "ci" if os.environ.get("CI") == "true" else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _DEFAULT))
