"""`runs` and `show`: the commands that only look. They need no code of the flow."""

from __future__ import annotations

from typing import Any

from holdfast.checkpoint.picture import Checkpoint
from holdfast.cli.main import Exit
from holdfast.cli.opening import open_house
from holdfast.cli.screen import brief, fields, print_json, say, table
from holdfast.cli.telling import clock_time, hold_json, tell_hold
from holdfast.errors import InputError, RunNotFoundError
from holdfast.runs.history import reader_of
from holdfast.runs.loading import load
from holdfast.runs.service import RunService
from holdfast.store.base import RunFilter, RunRow
from holdfast.types.ids import is_id
from holdfast.types.record import Kind, Record
from holdfast.types.status import RunStatus


async def list_runs(
    status: list[str], flow: str | None, limit: int, *, store: str | None, json: bool
) -> Exit:
    where = RunFilter(status=tuple(_status(word) for word in status), flow=flow)
    async with open_house(store, must_exist=True) as house:
        service = await house.service()
        rows = await service.list(where, limit=limit)
        asks = {hold.run: hold.prompt for hold in reversed(await service.holds())}
    if json:
        print_json(rows)
    elif not rows:
        say("No runs." if not status and not flow else "No runs like that.")
    else:
        heads = ("run", "flow", "status", "created", "changed", "asks or error")
        table(heads, [_run_cells(row, asks.get(row.id, "")) for row in rows])
    return Exit.ok


def _status(word: str) -> RunStatus:
    try:
        return RunStatus(word)
    except ValueError:
        raise InputError(f"{word!r} is not a status.", hint=f"They are: {', '.join(RunStatus)}.") from None


def _run_cells(row: RunRow, asks: str) -> tuple[str, ...]:
    last = next(iter((row.error or asks).splitlines()), "")
    return (row.id, row.flow, str(row.status), clock_time(row.created_at), clock_time(row.updated_at), last)


async def show(ref: str, seq: int | None, *, store: str | None, json: bool, form: str | None) -> Exit:
    """A run as it stands; with a record's number or a checkpoint's id, a moment of its life."""
    if form not in (None, "", "interface"):
        raise InputError(f"there is no JSON form {form!r}.", hint="Write --json or --json=interface.")
    async with open_house(store, must_exist=True) as house:
        service = await house.service()
        try:
            row = await service.get(ref)
        except RunNotFoundError:
            if not is_id(ref):
                raise
            return _tell_checkpoint(await service.checkpoint(ref), json=json, form=form)
        if seq is not None or form:
            found = await (service.latest(row.id) if seq is None else service.checkpoint(row.id, seq))
            return _tell_checkpoint(found, json=json, form=form)
        return await _show_run(service, row, store=store, json=json)


def _tell_checkpoint(found: Checkpoint, *, json: bool, form: str | None) -> Exit:
    if json:
        print_json(found.as_interface() if form == "interface" else found)
        return Exit.ok
    fields(
        [
            ("checkpoint", found.id),
            ("run", found.run),
            ("record", str(found.seq)),
            ("node", found.node),
            ("time", clock_time(found.at)),
            ("status", str(found.status)),
            ("flow", f"{found.flow} ({found.version})"),
            ("input", brief(found.input)),
            ("state", brief(found.state)),
            ("artifacts", brief(found.artifacts) if found.artifacts else ""),
            ("visited", ", ".join(found.visited)),
            ("skipped", ", ".join(found.skipped)),
            ("pending edges", ", ".join(found.pending_edges)),
            *[("asks", pending.prompt) for pending in found.pending_input],
        ]
    )
    return Exit.ok


async def _show_run(service: RunService, row: RunRow, *, store: str | None, json: bool) -> Exit:
    told = await _tell(service, row)
    if json:
        print_json(told)
        return Exit.ok
    fields(
        [
            ("run", row.id),
            ("flow", f"{row.flow} ({row.version})"),
            ("status", str(row.status)),
            ("error", row.error or ""),
            ("created", clock_time(row.created_at)),
            ("changed", clock_time(row.updated_at)),
            ("ended", clock_time(row.ended_at)),
            ("worker", f"{row.worker}, until {clock_time(row.lease_until)}" if row.worker else ""),
            ("recoveries", str(row.recoveries or "")),
            ("forked from", row.forked_from or ""),
            ("superseded by", row.superseded_by or ""),
            ("state", brief(told["state"])),
            ("artifacts", brief(told["artifacts"]) if told["artifacts"] else ""),
        ]
    )
    say()
    table(("seq", "time", "record", "node", "visit", "attempt", "effect", "outcome"), _cells(told["records"]))
    for hold in await service.holds(row.id):
        tell_hold(hold, store)
    return Exit.ok


def _cells(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            str(r["seq"]),
            clock_time(r["at"])[11:],
            r["kind"],
            r["scope"] + r["node"],
            str(r["visit"] or ""),
            str(r["attempt"] or ""),
            r["effect"],
            r["outcome"],
        )
        for r in records
    ]


async def _tell(service: RunService, row: RunRow) -> dict[str, Any]:
    records = await service.store.read(row.id, payloads=False)
    holds = await service.holds(row.id, open_only=False)
    state, artifacts = await _state(service, row)
    return {
        "run": row,
        "state": state,
        "artifacts": artifacts,
        "holds": [hold_json(hold) for hold in holds],
        "records": [_record(record) for record in records],
    }


async def _state(service: RunService, row: RunRow) -> tuple[Any, Any]:
    reader = await reader_of(service, row)
    pos = (await load(service.store, reader.sealer, reader.graph, row.id)).pos
    await service.runtime.desk.materialise(pos, reader.sealer.registry)
    values = pos.scopes[""].tree.merged()
    return values.get("scratch", {}), values.get("artifacts", {})


def _record(record: Record) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "kind": Kind(record.kind).name,
        "at": record.at,
        "term": record.term,
        "node": record.node,
        "scope": record.scope,
        "visit": record.visit,
        "attempt": record.attempt,
        "effect": record.effect,
        "outcome": record.outcome,
        "listed": record.listed,
    }
