"""Events: ordered, stored, past-tense facts about a run, numbered by the store (D-3)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.types.ids import RunId


class EventRow(msgspec.Struct, frozen=True):
    """An event that no journal record tells: what others did to the run (an answer, a cancel)."""

    number: int
    at: int
    type: str
    payload: bytes


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What streams show."""

    run: RunId
    number: int
    at: int
    type: str
    node: str = ""
    scope: str = ""
    data: dict[str, Any] = {}
