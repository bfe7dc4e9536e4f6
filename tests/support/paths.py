"""Where things lie; tests take it from here, so that their own files may be in any folder."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

SHARED = ROOT.parent / "shared"
"""Recorded runs and public data, beside the repository; absent in most checkouts."""
