"""For doubles of the outside world: tell the crash explorer what was done (`holdfast.testing.torture`)."""

from __future__ import annotations

from holdfast.torture.effects import record

__all__ = ["record"]
