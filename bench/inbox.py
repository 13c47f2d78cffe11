"""Row H: one person's inbox among many holds of their tenant."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter

import apsw

from bench.lines import Line
from bench.measure import Plan, folder, interleaved, line, ratios
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldFilter, HoldOrder
from holdfast.types.status import HoldStatus

MANY, FEW = 1_000_000, 10_000
MINE = 200  # what this person and their groups have to do, however many others there are
ASSIGNEES = (("user", "ada@x"), *(("group", f"g{number}") for number in range(6)), ("role", "cfo"))
INBOX = HoldFilter(
    tenant="acme",
    assignees=ASSIGNEES,
    status=(HoldStatus.pending,),
    not_type=("debug_breakpoint",),
    not_noted=("snooze", "user:ada@x", 0),
)
TIMES = 20

_RUN = """
INSERT INTO runs (id, status, head, event_seq, updated_at, priority, lane, tenant, flow, version, code,
                  created_at)
VALUES ('00000000-0000-4000-8000-000000000001', 'pending_input', 0, 0, 0, 0, '', 'acme', 'refund', '',
        '', 0)"""
# One in five of the others is open; they are spread over ten thousand people.
_OTHERS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO holds (id, run_key, tenant, seq, node, scope, visit, ordinal, type, assignee_type, assignee_value,
                   priority, created_at, updated_at, expires_at, request_hash, prompt, context, status,
                   resolution, resolved_by, resolved_at)
SELECT printf('00000000-0000-4000-8000-%012d', i), 1, 'acme', 1, 'approve', '', 1, i, 'approval', 'user',
       'u' || (i * 7919 % 10000), iif(i % 10, 'normal', 'high'), i, i, iif(i % 3, i * 10, NULL), 'h',
       'Refund?', x'7b7d', iif(i % 5, 'resolved', 'pending'), iif(i % 5, x'7b7d', NULL),
       iif(i % 5, 'user:u', NULL), iif(i % 5, i, NULL)
FROM n"""
_MINE = """
UPDATE holds SET assignee_type = ?, assignee_value = ? WHERE number = ?"""


async def filled(place: Path, holds: int, *, mine: int = MINE) -> str:
    """The address of a store with that many holds, of which `mine` are this person's, spread among them."""
    file = place / f"{holds}.db"
    await (await open_store(str(file))).close()
    conn = apsw.Connection(str(file))
    conn.execute("BEGIN; " + _RUN)
    conn.execute(_OTHERS, (holds,))
    for number in range(mine):
        # Open ones: each fifth is.
        conn.execute(_MINE, (*ASSIGNEES[number % len(ASSIGNEES)], 5 * (number * (holds // 5) // mine + 1)))
    conn.execute("COMMIT")
    conn.close()
    return str(file)


def row_h(plan: Plan) -> list[Line]:
    return asyncio.run(_row_h(plan))


async def _row_h(plan: Plan) -> list[Line]:
    with folder() as place:
        few = await open_store(await filled(place, FEW))
        many = await open_store(await filled(place, MANY))

        async def among_few() -> float:
            return await page(few)

        async def among_many() -> float:
            return await page(many)

        found = await interleaved(plan.rounds, few=among_few, many=among_many)
        await few.close()
        await many.close()
    compared = ratios(found["many"], found["few"])
    return [
        line("H", f"first page of an inbox among {FEW:,} holds", found["few"], "ms", scale=1e3),
        line("H", f"the same among {MANY:,}", found["many"], "ms", scale=1e3),
        line("H", "the one by the other", compared, "x", target="H-inbox"),
    ]


async def page(store: Store) -> float:
    """Seconds for the first page and the count beside it."""
    began = perf_counter()
    for _ in range(TIMES):
        rows = await store.list_holds(INBOX, order=HoldOrder.inbox, limit=50)
        if len(rows) != 50 or await store.count_holds(INBOX, limit=1_000) != MINE:
            raise AssertionError("the inbox is not the one that was filled")
    return (perf_counter() - began) / TIMES
