"""Records: rows of the journal, and their place in the feed."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.sqlite.connect import Cursor, Row
from holdfast.types.record import Record

_APPEND = """
INSERT INTO journal (key, kind, at, term, node, visit, attempt, scope, effect, outcome, listed, events,
                     event_from, digest, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

ANNOUNCE = "INSERT INTO feed (run_key, first, last) VALUES (?, ?, ?)"


def append(cur: Cursor, key: int, records: Sequence[Record], last: int) -> int:
    """Writes journal rows and their row in the feed. Events are numbered after `last`; returns the new last
    number."""
    base = key << 32
    first = number = last + 1
    values: list[Row] = []
    for r in records:
        values.append(
            (base | r.seq, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect, r.outcome,
             r.listed, r.events, number, r.digest, r.payload)
        )  # fmt: skip
        number += r.events
    if len(values) == 1:
        cur.execute(_APPEND, values[0])
    else:
        cur.executemany(_APPEND, values)
    if number > first:
        cur.execute(ANNOUNCE, (key, first, number - 1))
    return number - 1
