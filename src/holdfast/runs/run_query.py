"""Search queries for runs: `status:failed flow:claims created<2d timeout`.

Words with a known name restrict the list; the rest is searched in the flow's name and the run's id. A word
with an unknown name is refused: `text:` searches for it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.holds.queries.search import (
    TEXT,
    length_of,
    named,
    parted,
    require_colon,
    require_known_name,
    split_words,
    text_of,
    unknown_value,
)
from holdfast.store.rows import RunFilter
from holdfast.types.status import RUN_LABELS, RunStatus
from holdfast.types.text import require_text

WORDS: Final = "status: flow: version: by:me key: thread: error: created<2d took>1h at:breakpoint text:"
_PLAIN: Final = {
    "flow": "flow", "version": "version", "key": "instance_key", "thread": "thread", "error": "error",
}  # fmt: skip


def read_run_query(text: str, where: RunFilter, *, me: str, now: int) -> RunFilter:
    """`where`, restricted by the query. `me` replaces `by:me`. Raises InputError for an invalid value."""
    reading = RunQueryReader(me, now)
    for word in split_words(require_text(text, "a search")):
        reading.take(word)
    given = {name: value for name, value in reading.fields.items() if value}
    free = " ".join(reading.free)
    return msgspec.structs.replace(where, shown_at=now, **given, **({"text": free} if free else {}))


class RunQueryReader:
    def __init__(self, me: str, now: int) -> None:
        self._me = me
        self._now = now
        self.fields: dict[str, Any] = {}
        self.free: list[str] = []

    def take(self, word: str) -> None:
        name, sign, value = parted(word)
        read = _READERS.get(name)
        if read is None or not value:
            require_known_name(word, (*_READERS, TEXT))
            self.free.append(text_of(word) if name == TEXT and value else word)
            return
        with named(word):
            read(self, name, sign, value)

    def _set(self, word: str, field: str, value: Any) -> None:
        if field in self.fields:
            raise InputError(
                f"{word} is given twice.", hint="Give it once; a run has one of it.", reason="twice"
            )
        self.fields[field] = value

    def plain(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        self._set(name, _PLAIN[name], value)

    def by(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        person = value if ":" in value else f"user:{value}"
        self._set(name, "started_by", self._me if value == "me" else person)

    def status(self, name: str, sign: str, value: str) -> None:
        """By its name or its label; several with commas, or by repeating the word."""
        require_colon(name, sign)
        known = {label.replace(" ", "_"): status for status, label in RUN_LABELS.items()}
        for each in value.lower().split(","):
            if each not in tuple(RunStatus) and each not in known:
                raise unknown_value(name, each, tuple(RunStatus))
            found = known.get(each) or RunStatus(each)
            self.fields["status"] = (*self.fields.get("status", ()), found)

    def created(self, name: str, sign: str, value: str) -> None:
        """`created<2d`: within the last two days."""
        at = self._now - length_of(name, sign, value)
        self._set(name, "created_after" if sign.startswith("<") else "created_before", at)

    def took(self, name: str, sign: str, value: str) -> None:
        self._set(name, "took_under" if sign.startswith("<") else "took_over", length_of(name, sign, value))

    def at(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        if value != "breakpoint":
            raise unknown_value(name, value, ("breakpoint",))
        self.fields["at_breakpoint"] = True


_READERS: Final[dict[str, Callable[[RunQueryReader, str, str, str], None]]] = {
    **dict.fromkeys(_PLAIN, RunQueryReader.plain),
    "by": RunQueryReader.by,
    "status": RunQueryReader.status,
    "created": RunQueryReader.created,
    "took": RunQueryReader.took,
    "at": RunQueryReader.at,
}
