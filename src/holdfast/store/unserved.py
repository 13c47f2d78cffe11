"""What runs wait for that no live worker has: which change a run was last informed of, and the events of
each change."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from holdfast.types.event import EventRow

UNSERVED_EVENT = "run.unserved"
SERVED_EVENT = "run.served"


def missing_mark(missing: Sequence[str]) -> str:
    """What a run's row keeps of it, so that each change is told once: '' for nothing."""
    return sha256("\n".join(sorted(missing)).encode()).hexdigest()[:32] if missing else ""


def missing_event(missing: Sequence[str], at: int) -> EventRow:
    if not missing:
        return EventRow(0, at, SERVED_EVENT, b"{}")
    return EventRow(0, at, UNSERVED_EVENT, msgspec.json.encode({"missing": sorted(missing)}))
