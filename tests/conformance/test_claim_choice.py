"""Which runs a claim takes, compared with a plain model over random runs; most belong to other workers."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.mariadb import claim as mariadb_claim
from holdfast.store.sql.postgres import claim as postgres_claim
from holdfast.store.sql.sqlite import claim as sqlite_claim
from holdfast.testing.conformance.kit import TTL
from holdfast.types.concurrency_limits import LimitRow, flow_limit, key_limit

if TYPE_CHECKING:
    from holdfast.store.rows import RunRow
    from holdfast.testing.conformance.kit import StoreKit

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-S2", "CORE-STORE-02")]

VERSIONS = ("g1-a", "g1-b", "attractor-1", "attractor-2", "attractor", "document-1")
OTHERS = ("g1-other", "attractor-other", "z-last")
ASKED = (
    None,
    ("g1-a",),
    ("g1-a", "g1-b", "attractor-1"),
    ("attractor", "attractor-1"),
    ("g1-b", "document", "z"),
    ("g1-a", "g1-none", "document"),
    ("nothing",),
)


class Model:
    """The rules in their plainest form: the best of all runs, one after the other."""

    def __init__(self) -> None:
        self.turns: dict[str, int] = {}

    def claims(self, rows: list[RunRow], want: ClaimRequest, now: int) -> list[str]:
        running = Counter(row.tenant for row in rows if row.worker is not None)
        inside = Counter(name for row in rows if row.worker is not None for name in names(row))
        ready = [row for row in rows if is_ready(row, want, now)]
        taken: list[str] = []
        while len(taken) < want.limit:
            left = [row for row in ready if row.id not in taken and admits(row, inside)]
            if not left:
                break
            best = min(left, key=lambda row: self.rank(row, running))
            taken.append(best.id)
            running[best.tenant] += 1
            inside.update(names(best))
            self.turns[best.tenant] = max(self.turns.values(), default=0) + 1
        return taken

    def rank(self, row: RunRow, running: Counter[str]) -> tuple[int, ...]:
        turn = self.turns.get(row.tenant, 0)
        return -row.priority, running[row.tenant], turn, row.ready_at or 0, row.key


def names(row: RunRow) -> set[str]:
    """The limits that it counts for: that of its flow, and that of its key."""
    return {row.limit, row.limit.partition("/")[0]} if row.limit else set()


def admits(row: RunRow, inside: Counter[str]) -> bool:
    return all(inside[name] < (1 if "/" in name else 3) for name in names(row))


def is_ready(row: RunRow, want: ClaimRequest, now: int) -> bool:
    served = (
        want.versions is None or row.version in want.versions or row.version.split("-")[0] in want.versions
    )
    here = want.lanes is None or row.lane in want.lanes
    due = row.worker is None and row.ready_at is not None and row.ready_at <= now
    return served and here and due and row.suspect is want.suspects


async def fill(kit: StoreKit, dice: random.Random, *, limited: str) -> list[RunRow]:
    now = kit.clock.now()
    rows: list[RunRow] = []
    crowd = dice.choice((0, 25, 45, 90))
    versions = [*dice.choices(OTHERS, k=crowd), *dice.choices(VERSIONS, k=30)]
    limits = [LimitRow(name=flow_limit("refund"), concurrency=3)]
    limits += [LimitRow(name=f"{flow_limit('refund')}/*", concurrency=1)] if limited == "keys" else []
    for place, version in enumerate(versions):
        given: dict[str, Any] = {}
        if limited and dice.random() < 0.3:
            key = key_limit("refund", dice.choice("abc"))
            given = {"limit": key if limited == "keys" else flow_limit("refund"), "limits": limits}
        at = now - dice.randint(0, 5) if place >= crowd or dice.random() < 0.5 else now - 1000
        rows.append(
            await kit.created(
                version=version,
                tenant=dice.choice(("t1", "t1", "t2", "t3")),
                lane=dice.choice(("main", "main", "gpu")),
                priority=dice.choice((0, 0, 1, 2)) if limited else 0,
                ready_at=at if dice.random() < 0.9 else now + 10**9,
                **given,
            )
        )
    return rows


@pytest.mark.parametrize("seed", range(12))
async def test_a_claim_takes_what_the_plain_rules_say(
    seed: int, kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    limited = ("", "flow", "keys")[seed % 3]
    if seed % 4 == 3:  # too many versions to ask for one by one
        for module in (sqlite_claim, postgres_claim, mariadb_claim):
            monkeypatch.setattr(module, "_VERSIONS", 1)
    made = await fill(kit, dice, limited=limited)
    model = Model()
    if seed % 2:
        before = [await kit.row(row.id) for row in made]
        gone = ClaimRequest(worker="gone", ttl=1, limit=1)
        expected = model.claims(before, gone, kit.clock.now())
        assert [one.run.id for one in await kit.store.claim(gone)] == expected
        kit.clock.advance(seconds=1)
        await kit.store.reclaim(limit=10, max_recoveries=10)
    for size in (*[1] * 12, 8):
        want = ClaimRequest(
            worker="w",
            ttl=TTL,
            # The order is not promised where one claim reaches a limit or another priority.
            limit=1 if limited else size,
            lanes=dice.choice((None, None, ("main",), ("gpu", "other"))),
            versions=dice.choice(ASKED),
            suspects=dice.random() < 0.2,
        )
        rows = [await kit.row(row.id) for row in made]
        expected = model.claims(rows, want, kit.clock.now())
        assert [one.run.id for one in await kit.store.claim(want)] == expected, want
