"""Whether the audit is whole: what was done to it is found, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from holdfast.errors import InputError
from holdfast.holds.queries.audit import check_head, sign_head, verify_audit
from holdfast.types.audit import GENESIS, AuditRow, NewAudit, next_row

pytestmark = pytest.mark.anyio

SECRET = b"a key that is kept elsewhere"
replace = msgspec.structs.replace


class Kept:
    """An audit as a store would give it back, after somebody was at its file."""

    def __init__(self, rows: Sequence[AuditRow], head: tuple[int, bytes] | None = None) -> None:
        self.rows = list(rows)
        self.head = head or (rows[-1].seq, rows[-1].hash)

    async def audit(self, _tenant: str, *, after: int, limit: int) -> list[AuditRow]:
        return [row for row in self.rows if row.seq > after][:limit]

    async def audit_head(self, _tenant: str) -> tuple[int, bytes]:
        return self.head

    def now(self) -> int:
        return 0


def chain(count: int = 5, word: str = "done") -> list[AuditRow]:
    rows: list[AuditRow] = []
    for seq in range(1, count + 1):
        prev = rows[-1].hash if rows else GENESIS
        rows.append(next_row("t", seq, prev, NewAudit(at=seq, actor="user:a", action=word, hold="h")))
    return rows


def edited(rows: list[AuditRow]) -> list[AuditRow]:
    return [*rows[:2], replace(rows[2], actor="user:b"), *rows[3:]]


def edited_in_its_data(rows: list[AuditRow]) -> list[AuditRow]:
    return [*rows[:2], replace(rows[2], data=b'{"decision":"approve"}'), *rows[3:]]


def removed(rows: list[AuditRow]) -> list[AuditRow]:
    return [*rows[:2], *rows[3:]]


def renumbered(rows: list[AuditRow]) -> list[AuditRow]:
    """One is taken out, and the others close ranks with hashes of their own."""
    return [*rows[:2], *(next_row("t", row.seq - 1, row.prev, _as_new(row)) for row in rows[3:])]


def swapped(rows: list[AuditRow]) -> list[AuditRow]:
    third, fourth = replace(rows[3], seq=3), replace(rows[2], seq=4)
    return [*rows[:2], third, fourth, rows[4]]


def swapped_with_hashes(rows: list[AuditRow]) -> list[AuditRow]:
    third = next_row("t", 3, rows[3].prev, _as_new(rows[3]))
    return [*rows[:2], third, next_row("t", 4, rows[2].prev, _as_new(rows[2])), rows[4]]


def _as_new(row: AuditRow) -> NewAudit:
    return NewAudit(at=row.at, actor=row.actor, action=row.action, hold=row.hold, run=row.run, data=row.data)


TAMPERED: dict[str, tuple[Any, str, int]] = {
    "a name was changed": (edited, "edited", 3),
    "data was changed": (edited_in_its_data, "edited", 3),
    "one was taken out": (removed, "removed", 3),
    "one was taken out and the others renumbered": (renumbered, "reordered", 3),
    "two changed places": (swapped, "edited", 3),
    "two changed places with hashes made anew": (swapped_with_hashes, "reordered", 3),
    "the last are gone": (lambda rows: rows[:3], "truncated", 4),
    "all are gone": (lambda rows: [], "truncated", 1),
}


@pytest.mark.covers("HI-5", "HOLD-AUDIT-02", "HOLD-SEC-13")
@pytest.mark.parametrize("what", list(TAMPERED))
async def test_what_was_done_to_the_audit_is_found_with_its_record(what: str) -> None:
    tamper, problem, seq = TAMPERED[what]
    rows = chain()
    good: Any = Kept(rows)
    assert (await verify_audit(good, "t")).whole
    bad: Any = Kept(tamper(rows) or rows[:0], (rows[-1].seq, rows[-1].hash))
    found = await verify_audit(bad, "t")
    assert (found.whole, found.problem, found.seq) == (False, problem, seq)
    assert str(seq) in found.why


@pytest.mark.covers("HI-5", "HOLD-SEC-13")
async def test_a_signed_head_finds_a_chain_that_was_written_anew_or_cut_with_its_head() -> None:
    store: Any = Kept(chain())
    head = await sign_head(store, "t", SECRET)
    check_head(head, [b"another", SECRET])
    assert (await verify_audit(store, "t", against=head)).whole
    longer: Any = Kept(chain(8))
    assert (await verify_audit(longer, "t", against=head)).whole
    forged: Any = Kept(chain(word="undone"))
    assert (await verify_audit(forged, "t")).whole
    assert (await verify_audit(forged, "t", against=head)).problem == "edited"
    cut: Any = Kept(chain(3))
    assert (await verify_audit(cut, "t")).whole
    assert (await verify_audit(cut, "t", against=head)).problem == "truncated"
    for wrong in (replace(head, seq=4), replace(head, key="other"), replace(head, signature="")):
        with pytest.raises(InputError, match="not signed"):
            check_head(wrong, [SECRET])
    with pytest.raises(InputError, match="must have at least 16 bytes"):
        await sign_head(store, "t", b"short")
