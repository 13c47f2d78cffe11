"""What an inbox is at a moment, and what a key asks the program to do. Values only, and no widgets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.types.hold import HoldRow, Note, Option

VIEWS: Final = {
    "m": "mine", "g": "groups", "q": "asked", "u": "unassigned", "a": "all", "w": "watching", "s": "snoozed",
    "d": "done", "b": "breakpoints",
}  # fmt: skip
"""The second key after `g`."""


PAGE: Final = 200
"""Holds that are read at once; at the end of them as many more are read."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A line to type. While there is one, letters are text and no keys. `text`: as it was last read."""

    kind: str  # search, comment, ask_back, reply, reassign, snooze, answer, why, field
    label: str
    text: str = ""
    hint: str = ""
    error: str = ""
    holds: tuple[str, ...] = ()  # what it is about, whatever becomes current meanwhile


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that is being made: what is filled in so far, and what is asked for now."""

    hold: str
    decision: str
    values: dict[str, Any] = {}
    field: str | None = None
    comment: str | None = None


class HoldDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One hold with its comments. `history`: lines of it, where they were asked for."""

    row: HoldRow
    notes: tuple[Note, ...] = ()
    draft: dict[str, Any] | None = None
    history: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()


class InboxState(msgspec.Struct, frozen=True, kw_only=True):
    """`at` is the row that the keys mean. `fresh`: rows that came since, and wait to be shown."""

    me: str = "user:local"
    now: int = 0
    view: str = "mine"
    query: str = ""
    chips: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    rows: tuple[HoldRow, ...] = ()
    more: bool = False
    limit: int = PAGE
    loaded_at: int = 0
    fresh: tuple[HoldRow, ...] = ()
    at: int = 0
    selected: frozenset[str] = frozenset()
    sheet: HoldDetails | None = None
    open: bool = False
    split: bool = False  # the list and the hold are both in sight
    expanded: bool = False
    choosing_view: bool = False  # after `g`: the next key names a view
    armed: str | None = None  # the decision that the next Enter makes, on `armed_on` and nothing else
    armed_on: str = ""
    sure: tuple[str, ...] = ()  # the holds of a preview that the next Enter decides
    prompt: Prompt | None = None
    filling: Filling | None = None
    cut_off: bool = False  # another person was first while this one typed: the next letters are no keys
    message: str = ""
    alert: bool = False  # the message is a refusal, or says that another person was first
    placed: tuple[str, ...] = ()  # one's own decisions that can still be taken back, oldest first
    decided: int = 0

    @property
    def current(self) -> HoldRow | None:
        """The hold that the keys mean, as it was last read."""
        if self.open and self.sheet is not None:
            return self.sheet.row
        return self.rows[self.at] if self.at < len(self.rows) else None

    @property
    def current_id(self) -> str:
        row = self.current
        return "" if row is None else row.id

    @property
    def options(self) -> tuple[Option, ...]:
        row = self.current
        return () if row is None else tuple(row.options or ())


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What the program is asked to do, by the name of a method of `Actions`, which returns another state."""

    do: str
    holds: tuple[str, ...] = ()
    text: str = ""
    decision: str = ""
    data: Any = None
    comment: str | None = None
    sure: bool = False
    field: str = ""
    view: str | None = None
    query: str | None = None


Step = tuple[InboxState, Act | None]


def with_message(state: InboxState, message: str, *, alert: bool = False) -> InboxState:
    return msgspec.structs.replace(state, message=message, alert=alert)
