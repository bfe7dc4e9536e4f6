"""Names of models as traces spell them: ``VGG19``, ``vgg-19`` and ``vgg_19`` are one."""

from __future__ import annotations


def plain_name(name: str) -> str:
    """A name without case, spaces, hyphens and underscores."""
    return name.lower().translate(str.maketrans("", "", "-_ "))
