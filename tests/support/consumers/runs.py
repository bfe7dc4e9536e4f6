"""Readers of instances: runs."""

from __future__ import annotations

from support.consumers.consumer import Consumer

CONSUMERS: tuple[Consumer, ...] = ()
