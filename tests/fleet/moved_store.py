"""A store with runs in every state and rows in every table, and all that can be seen of it."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from holdfast import Flow, Holdfast, RunSettings
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.store.protocols import Store
from holdfast.store.rows import ClaimRequest, RunFilter
from holdfast.types.clock import MICROS
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.graph_thread import GraphBatch, GraphCheckpointRow, GraphValueRow, GraphWriteRow
from holdfast.types.hold import HoldId
from holdfast.types.ids import RunId
from holdfast.types.queue_message import NewMessage
from holdfast.types.schedule import ScheduleRow
from tests.deadlines import HANG
from tests.flows.test_long_lists import growing
from tests.storage.canary import tell, telling_flow
from tests.storage.test_hold_encryption import asking, lived

SETTINGS = RunSettings(lease_ttl=2.0, lease_margin=0.4, poll=0.1, hot_timer=0.1)
ODD = "a\0b \ue0c0 ü"
"""PostgreSQL keeps no NUL, and marks it by a character that may also stand for itself."""
NOISE = Random(5).randbytes(2 << 20)
"""Too large for a row of SQLite, and nothing makes it smaller."""


def shipping(ledger: Path) -> Flow:
    """Waits a moment, then does something outside, once."""
    flow = Flow("shipping", effect="pure")

    async def pack(s: Any) -> dict[str, Any]:
        return {"packed": True, "note": ODD}

    async def ship(s: Any, ctx: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{ctx.idempotency_key}\n")
        return {"shipped": True}

    flow.node(id="pack")(pack)
    flow.timer("rest", until="rest")
    flow.node(id="ship", effect="external", idempotency_key="{{order}}")(ship)
    flow.chain("pack", "rest", "ship")
    return flow


def nested() -> Flow:
    child = Flow("child", effect="pure")

    @child.node
    async def inside(s: dict[str, Any]) -> dict[str, Any]:
        return {"seen": 1}

    flow = Flow("nested", effect="pure")

    @flow.node
    async def first(s: dict[str, Any]) -> dict[str, Any]:
        return {"noise": NOISE}

    flow.subflow("sub", child)
    flow.edge(first, "sub")
    return flow


def sent() -> Flow:
    """Asks one person, who gets a link."""
    flow = Flow("sent", effect="pure")
    flow.start(
        flow.hold(
            "ask", prompt="Well, {{who}}?", options=["yes", "no"], assignee="user:{{who}}", tags=["a", "ü"]
        )
    )
    return flow


def flows(ledger: Path) -> list[Flow]:
    return [shipping(ledger), nested(), asking(), sent(), growing(), telling_flow()]


class Home:
    """What a test has to know of it."""

    asked: HoldId  # an open question, with all that people leave at one
    grown: str  # a run whose lists were left in the journal, and which asks
    grown_hold: HoldId
    orders: list[str]
    failed: RunId
    link: str  # that a person was sent, not used yet
    link_hold: HoldId


async def furnish(hf: Holdfast, ledger: Path) -> Home:
    home = Home()
    service = await hf.service()
    store = service.store
    # Every start of this flow is counted.
    await store.put_limit(
        LimitRow(name="flow:shipping", concurrency=50, rate=1000, per=3600 * MICROS, fixed=True)
    )
    home.failed = await tell(hf, thread=f"talk {ODD}")  # blobs in rows and files, memories, events, failed
    await nested().run({}, on=hf, tenant="acme")
    done = await nested().run({}, on=hf, idempotency_key="once")
    await service.fork(done.run_id, 1)
    paused = await growing().run({}, on=hf)
    home.grown, home.grown_hold = paused.run_id, HoldId(paused.holds[0].id)
    home.asked = HoldId((await asking().run({"text": ODD}, on=hf)).holds[0].id)
    await lived(store, home.asked)  # somebody decided it; that takes effect when nobody objects
    await asking().run({"text": "still open"}, on=hf)
    answered = await asking().run({"text": "no"}, on=hf, tenant="acme")
    await service.answer(answered.holds[0].id, "no")  # its run was told, and nobody took it yet
    home.link, home.link_hold = await _link(hf, "ada@acme.example")
    used, _ = await _link(hf, "bea@acme.example")
    await Links(service.people.ctx).decide(used, Submission(decision="yes"))
    cancelled = await asking().run({"text": "x"}, on=hf)
    await service.cancel(cancelled.run_id)
    flow = shipping(ledger)
    home.orders = ["at-once", "soon", "lapsed", "given-back", "late"]
    for order in ("at-once", "soon", "late"):
        rest = {"at-once": 0, "soon": 2, "late": 3600}[order]
        await flow.run({"order": order, "rest": rest}, on=hf)
    await _abandoned(hf, flow)
    await service.create(flow.program(), {"order": "pending", "rest": 0}, lane="slow", priority=7)
    await _small_things(store, home)
    return home


async def _link(hf: Holdfast, to: str) -> tuple[str, HoldId]:
    """A question that somebody was sent a link for."""
    hold = HoldId((await sent().run({"who": to}, on=hf)).holds[0].id)
    service = await hf.service()
    row = await service.store.hold(hold)
    assert row is not None
    return await Links(service.people.ctx).make(row, LinkGrant(to=f"user:{to}", purpose="decide")), hold


async def _abandoned(hf: Holdfast, flow: Flow) -> None:
    """Claimed by somebody who fell silent: one is found so, one was given up as dead."""
    service = await hf.service()
    for order, bound in (("dead", 0), ("lapsed", 5)):
        row, _ = await service.create(flow.program(), {"order": order, "rest": 0})
        want = ClaimRequest(worker="ghost", ttl=1000, limit=1, lanes=None, versions=None, run=row.id)
        assert await service.store.claim(want)
        await asyncio.sleep(0.01)
        if not bound:
            await service.store.reclaim(limit=9, max_recoveries=0)


async def _small_things(store: Store, home: Home) -> None:
    now = store.now()
    await store.put_schedule(
        ScheduleRow(tenant="acme", name=f"nightly {ODD}", flow="shipping", body=b"{}", next_at=now + 10**12)
    )
    await store.report_late(home.failed, 3, b"late word")
    message = NewMessage(id="m-1", tenant="acme", scope="s", queue="q", payload=b'{"a":1}', digest="d")
    await store.publish_message(message)
    checkpoint = GraphCheckpointRow(id="1", parent=None, ns="", body=b"body", digest=b"1", values=(-5,))
    wrote = GraphWriteRow(checkpoint="1", ns="", task="t", path="", channel="c", idx=0, data=b"w")
    # Compressed values have negative numbers, large ones are blobs.
    large = sha256(b"large").digest()
    await store.put_blob(large, 5, b"large")
    value = GraphValueRow(number=-5, channel="c", data=large, blob_digest=large)
    thread = GraphBatch(
        tenant="acme", thread="t-1", checkpoints=(checkpoint,), values=(value,), writes=(wrote,)
    )
    await store.put_graph_rows(thread)
    await store.trim_feed(before=0)


async def portrait(hf: Holdfast) -> dict[str, Any]:
    """Everything that anybody can see: each run's row, checkpoints, events, questions."""
    service = await hf.service()
    store = service.store
    seen: dict[str, Any] = {}
    for row in await store.list_runs(RunFilter(), after=None, limit=1000):
        lines = [(await service.checkpoint(each.id)).as_interface() for each in await _some(service, row.id)]
        seen[row.id] = (
            row,
            await service.checkpoints(row.id, limit=0),
            lines,
            list(await service.events(row.id)),
            await service.holds(row.id, open_only=False),
            await store.pending(row.id),
            await store.late_reports(row.id),
            await store.deaths(row.id),
            await store.read(row.id),
        )
    seen["gates"] = await store.limits()
    seen["schedules"] = await store.schedules()
    seen["audit"] = [await store.audit(tenant) for tenant in await store.audit_tenants()]
    seen["feed"] = await _feed(store)
    seen["outbox"] = await store.list_outbox()
    seen["graph thread"] = (
        await store.graph_checkpoint("acme", "t-1", ""),
        await store.graph_values("acme", "t-1", [-5]),
        await store.blob(sha256(b"large").digest()),
    )
    seen["memories"] = await store.find_memories(tenant="default", scope="telling", query="", limit=99)
    return seen


async def _feed(store: Store) -> list[Any]:
    """Open transactions of others on the same server may hold it back for a while."""
    rows = await store.list_runs(RunFilter(), after=None, limit=999)
    ends = {row.id: row.event_seq for row in rows if not row.read_only}
    async with asyncio.timeout(HANG):
        while True:
            found = await store.feed(after=0, limit=10_000)
            upto = {run: last for _, run, _, last in found}
            if all(upto.get(run, 0) == end for run, end in ends.items()):
                return found
            await asyncio.sleep(0.1)


async def _some(service: Any, run: str) -> list[Any]:
    """Pictures of three hundred steps take their time: the ends and a few between."""
    found = await service.checkpoints(run, limit=0)
    return found if len(found) < 20 else [*found[:3], *found[3:-3:60], *found[-3:]]
