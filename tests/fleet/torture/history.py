"""All that is known in the end: what the store and the outside say, what people and readers were told.

Plain data, so that the judge can be given a history that somebody has falsified.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from holdfast.holds.queries.audit import verify_audit
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import DEFAULT_TENANT, derived_id
from tests.fleet.torture import flows
from tests.fleet.torture.ledger import Line, Outside


class Watched(msgspec.Struct):
    """What the reader saw, in its order."""

    feed: list[tuple[str, int, int]] = []
    events: dict[str, list[tuple[int, str]]] = {}
    streams: dict[str, list[tuple[int, str]]] = {}
    streamed: list[str] = []
    """runs whose stream came to its end"""
    broken: int = 0


class Hold(msgspec.Struct, kw_only=True):
    id: str
    node: str
    type: str
    status: str
    decision: str | None
    effect: str | None
    """of a hold in doubt: which effect it asks about"""


class Ran(msgspec.Struct, kw_only=True):
    """One run as the store has it."""

    id: str
    flow: str
    status: str
    error: str | None
    state: dict[str, Any]
    worker: str | None
    recoveries: int
    seconds: float
    """from its creation to its last change, by the store's time"""
    term: int
    head: int
    event_seq: int
    events: list[tuple[int, str]]
    recovered: bool
    """whether a worker ever fell silent with it"""
    restarts: dict[str, int]
    """node -> how often it began again because of doubt"""
    resolved: dict[str, int]
    """hold -> how many events say that it was decided"""
    holds: list[Hold]


class Ack(msgspec.Struct, kw_only=True):
    what: str
    run: str = ""
    flow: str = ""
    n: int = 0
    hold: str = ""
    decision: str = ""
    type: str = ""
    code: str = ""
    begin: int = 0
    end: int = 0


class History(msgspec.Struct, kw_only=True):
    seed: int
    runs: list[Ran]
    lines: list[Line]
    acks: list[Ack]
    watched: Watched
    feed: list[tuple[str, int, int]]
    audit: str
    """'' where the chain is whole"""
    errors: list[str]
    """lines of the processes' logs that nobody should see"""
    leases: int
    faults: dict[str, int]


async def gather(
    service: RunService, folder: Path, *, seed: int, errors: list[str], faults: dict[str, int]
) -> History:
    rows = await service.store.list_runs(RunFilter(), after=None, limit=100_000)
    outside = Outside(folder / "ledger.jsonl").lines()
    runs = [await _ran(service, row, outside) for row in rows]
    audit = await verify_audit(service.store, DEFAULT_TENANT)
    acks = (folder / "acks.jsonl").read_bytes().splitlines()
    watched = msgspec.json.decode((folder / "watched.json").read_bytes(), type=Watched)
    return History(
        seed=seed,
        runs=runs,
        lines=outside,
        acks=[msgspec.json.decode(line, type=Ack) for line in acks],
        watched=watched,
        feed=await _feed(service),
        audit="" if audit.whole else f"{audit.problem} at {audit.seq}",
        errors=errors,
        leases=sum(row.worker is not None for row in rows),
        faults=faults,
    )


async def _ran(service: RunService, row: RunRow, lines: list[Line]) -> Ran:
    events = await service.events(row.id, limit=100_000)
    # Read without the flow's code: sabotaged processes have another.
    picture = await service.latest(row.id)
    wanted = set(flows.expected(row.flow, 0)) | {"word", "said", "late", "ticked"}
    state = {name: value for name, value in dict(picture.state or {}).items() if name in wanted}
    restarts: dict[str, int] = {}
    resolved: dict[str, int] = {}
    for event in events:
        if event.type == "node.restarted" and event.data.get("reason") == "in_doubt":
            restarts[event.node] = restarts.get(event.node, 0) + 1
        if event.type == "hold.resolved":
            resolved[event.data["hold_id"]] = resolved.get(event.data["hold_id"], 0) + 1
    holds = await service.holds(row.id, open_only=False)
    return Ran(
        id=row.id, flow=row.flow, status=str(row.status), error=row.error, state=_plain(state),
        worker=row.worker, recoveries=len(await service.store.deaths(row.id)),
        seconds=(row.updated_at - row.created_at) / 1e6,
        term=row.term, head=row.head, event_seq=row.event_seq,
        events=[(event.number, event.type) for event in events],
        recovered=any(event.type == "run.recovered" for event in events),
        restarts=restarts, resolved=resolved, holds=[_hold(hold, lines) for hold in holds],
    )  # fmt: skip


def _hold(hold: HoldRow, lines: list[Line]) -> Hold:
    said = json.loads(hold.resolution)["decision"] if hold.resolution else None
    effect = None
    if hold.type == "in_doubt":
        key = key_of(hold)
        effect = next((line.effect for line in lines if (line.run, line.key) == (hold.run, key)), hold.node)
    return Hold(
        id=hold.id, node=hold.node, type=hold.type, status=str(hold.status), decision=said, effect=effect
    )


def key_of(hold: HoldRow) -> str:
    """Under which key the outside would know of the effect that a hold in doubt asks about."""
    step = json.loads(hold.context)["step"]
    if step:
        return f"{hold.run}/{step}"
    return derived_id(hold.run, hold.scope, hold.node, hold.visit, -1)


async def _feed(service: RunService) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    position = 0
    while rows := await service.store.feed(after=position, limit=1000):
        found += [(run, first, last) for _, run, first, last in rows]
        position = rows[-1][0]
    return found


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(state, enc_hook=str))
