"""For fakes of external services: report effects to the crash explorer (`holdfast.testing.torture`)."""

from __future__ import annotations

from holdfast.torture.effects import record

__all__ = ["record"]
