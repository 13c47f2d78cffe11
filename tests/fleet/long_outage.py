"""A run that lives through an outage: its effects go to a ledger outside, held against the journal later."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast import Flow, Holdfast, RunSettings
from holdfast.errors import HoldDecidedError, RunBusyError, StoreError
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from holdfast.types.status import ENDED
from tests.deadlines import HANG
from tests.fleet.faults import Fault, noise

SETTINGS = RunSettings(lease_ttl=3.0, lease_margin=0.5, poll=0.1, patience=0.0)


class Ledger:
    """What happened outside, for good."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ledger.txt"
        # Asked at the moment of an effect, where the test has somebody to ask.
        self.fault: Fault | None = None
        self.unannounced: list[str] = []

    def happens(self, run: str, node: str) -> None:
        if self.fault is not None and self.fault.intents(node) == 0:
            self.unannounced.append(node)
        with self.file.open("a") as file:
            file.write(f"{run} {node}\n")

    def of(self, run: str) -> Counter[str]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return Counter(node for of, node in map(str.split, lines) if of == run)


def paying(ledger: Ledger, *, value: int = 30_000, **options: Any) -> Flow:
    """An effect, a question, an effect; each leaves a value that needs its room."""
    flow = Flow("paying", effect="pure", **options)

    async def pay(_s: Any, ctx: Any) -> dict[str, Any]:
        ledger.happens(ctx.run_id, "pay")
        return {"receipt": noise(value)}

    async def ship(_s: Any, ctx: Any) -> dict[str, Any]:
        ledger.happens(ctx.run_id, "ship")
        return {"label": noise(value)}

    flow.node(id="pay", effect="external")(pay)
    flow.hold("gate", prompt="Ship it?", options=["yes", "no"])
    flow.node(id="ship", effect="write")(ship)
    flow.chain("pay", "gate", "ship")
    return flow


async def until(what: Callable[[], Any], within: float = HANG) -> Any:
    """Until it answers with something. A store that is away says nothing, nor does a run with a lease."""
    async with asyncio.timeout(within):
        while True:
            try:
                found = await what()
            except (StoreError, RunBusyError):
                found = None
            if found:
                return found
            await asyncio.sleep(0.05)


async def created(service: RunService, flow: Flow) -> str:
    """A worker may have begun with it, and met the fault, before this caller has its answer: then it asks
    again. A run's id is taken once."""
    run = str(uuid4())
    await until(lambda: service.create(flow.program(), {}, run_id=run))
    return run


async def asked(service: RunService, run: str) -> str:
    """The id of the question that the run waits with, once it is let go."""

    async def look() -> str | None:
        row = await service.get(run)
        holds = await service.holds(row.id)
        assert all(hold.type != "in_doubt" for hold in holds), "nobody has to be asked: the process lived on"
        return holds[0].id if holds and row.status == "pending_input" else None

    return await until(look)


async def answered(service: RunService, hold: str) -> None:
    """As a person would who is told that the store is away: again, until it is done."""

    async def answer() -> bool:
        # It may have been done the first time, and the answer lost on its way.
        with suppress(HoldDecidedError):
            await service.answer(hold, "yes")
        return True

    await until(answer)


async def ended(service: RunService, run: str) -> None:
    async def look() -> bool:
        row = await service.get(run)
        assert all(hold.type != "in_doubt" for hold in await service.holds(row.id))
        return row.status in ENDED

    await until(look)


async def judge(hf: Holdfast, run: str, ledger: Ledger) -> None:
    """It came to its end, each effect happened once, and the journal has its intent before its end."""
    service = await hf.service()
    row = await service.get(run)
    assert (row.status, row.error) == ("completed", None)
    assert ledger.of(run) == {"pay": 1, "ship": 1}
    assert not ledger.unannounced, "it happened before its intent was durable"
    records = await service.store.read(RunId(run), first=0)
    assert [record.seq for record in records] == list(range(len(records)))
    for node in ("pay", "ship"):
        kinds = [record.kind for record in records if record.node == node]
        assert kinds.index(Kind.intent) < kinds.index(Kind.step)
    events = await service.events(run, limit=1000)
    assert [event.number for event in events] == list(range(1, row.event_seq + 1))
    assert sum(event.type == "hold.opened" for event in events) == 1
