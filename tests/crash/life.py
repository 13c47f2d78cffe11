"""The whole life of one run: started, advanced, asked about and answered, until it ends.

May be left at any point and begun again by another process: it goes on from what the store holds. What it
has been told is acknowledged (created, events, answers) is said aloud, so that it can be held against what
is there in the end.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from holdfast import Flow, Holdfast, RunBusyError, RunSettings
from holdfast.app.flow import result_of
from holdfast.runs.service import RunService
from holdfast.types.hold import HoldRow
from holdfast.types.ids import derived_id
from holdfast.types.status import ENDED, RunStatus
from tests.crash import document_flow, flows
from tests.deadlines import HANG

Say = Callable[..., None]

# Leases are short, so that a run whose worker died is soon free; waits of over 0.1 s are parked.
# Short, so that a dead process's run is free soon; VICTIM_LEASE is for those among whom nobody dies.
LEASE = float(os.environ.get("VICTIM_LEASE", "0.3"))
SETTINGS = RunSettings(lease_ttl=LEASE, lease_margin=0.05, hot_timer=0.1, poll=0.05, patience=0.0)


async def live(hf: Holdfast, name: str, run: str, say: Say, pause: Callable[[float], Any]) -> None:
    """Until the run has ended; then says what it came to."""
    service = await hf.service()
    await begin(hf, service, name, run, say)
    watching = asyncio.ensure_future(watch(service, run, say))
    try:
        while (await service.get(run)).status not in ENDED:
            await advance(hf, service, name, run, say, pause)
        await asyncio.wait_for(watching, HANG)
    finally:
        watching.cancel()
    await report(service, name, run, say)


def flow_of(name: str) -> Flow | document_flow.DocumentFlow:
    return document_flow.DOCUMENT_FLOW if name == document_flow.NAME else flows.FLOWS[name]


async def begin(hf: Holdfast, service: RunService, name: str, run: str, say: Say) -> None:
    program = flow_of(name).program()
    hf.register(program)
    service.runtime.register(program)
    if await service.store.get_run(run) is None:  # type: ignore[arg-type]
        given = document_flow.GIVEN if name == document_flow.NAME else flows.GIVEN[name]
        await service.create(program, given, run_id=run)
        say("created", run)


async def watch(service: RunService, run: str, say: Say) -> None:
    async for event in service.stream(run, poll=0.05):
        say("event", event.number, event.type)


async def advance(
    hf: Holdfast,
    service: RunService,
    name: str,
    run: str,
    say: Say,
    pause: Callable[[float], Any],
    *,
    answering: bool = True,
) -> None:
    try:
        result = await flow_of(name).resume(run, on=hf)
    except RunBusyError:
        await pause(0.05)
        return
    if result.status is RunStatus.pending_input and answering:
        for hold in result.holds:
            if hold.type == "in_doubt" or hold.node in flows.SAYS:
                await answer(service, hold, say)
            else:
                await pause(0.05)  # nobody says anything to it
    elif result.status is RunStatus.waiting:
        await pause(0.05)
        await service.store.fire_timers(limit=10)


async def answer(service: RunService, hold: HoldRow, say: Say) -> None:
    if hold.type == "in_doubt":
        decision, data = truth(hold)
        say("doubt", hold.id, decision)
    else:
        decision, data = flows.SAYS[hold.node], None
    await service.answer(hold.id, decision, data=data)
    say("answer", hold.id, decision)


def truth(hold: HoldRow) -> tuple[str, dict[str, Any] | None]:
    """What a careful person finds out: whether the effect is there, and what it gave."""
    context = json.loads(hold.context)
    if context["step"]:
        key = f"{hold.run}/{context['step']}"
    else:
        key = derived_id(hold.run, hold.scope, hold.node, hold.visit, -1)
    line = flows.WORLD.find(hold.run, key)
    if line is None:
        return "not_happened", None
    return "happened", {name: line[name] for name in ("update", "value") if name in line}


async def report(service: RunService, name: str, run: str, say: Say) -> None:
    """What the run came to, and everything that the store tells about it."""
    row = await service.get(run)
    result = await result_of(service, flow_of(name).program(), row.id)
    events = await service.events(run, limit=100_000)
    holds = await service.holds(row.id, open_only=False)
    say(
        "end",
        status=str(row.status),
        state=plain(without_times(result.state)),
        artifacts=plain(result.artifacts),
        error=repr(result.error),
        events=[[event.number, event.type] for event in events],
        event_seq=row.event_seq,
        head=row.head,
        holds={hold.id: _said(hold) for hold in holds},
    )


def without_times(state: Any) -> Any:
    """When somebody decided differs from life to life."""
    if not isinstance(state, dict):
        return state
    return {
        name: {key: inner for key, inner in value.items() if key != "resolved_at"}
        if name.endswith("_result")
        else value
        for name, value in state.items()
    }


# When a person decided is another moment in each life, and `run` of a document has the id of the run.
_EACH_LIFE = ("resolved_at", "members", "run")


def plain(value: Any) -> Any:
    """As JSON; what is large by its digest."""
    if is_dataclass(value):
        # By name: a long list is loaded when somebody asks for it.
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key not in _EACH_LIFE}
    text = json.dumps(value, default=repr, sort_keys=True)
    return text if len(text) < 500 else hashlib.sha256(text.encode()).hexdigest()


def _said(hold: HoldRow) -> str | None:
    return json.loads(hold.resolution)["decision"] if hold.resolution else None
