"""Projects checkpoints into tables that plain SQL can read (docs/reference/tables.md).

A checkpoint never changes, so its row may be written later and is never stale: no run waits for it.
Any number of servers may do this at once; an existing row is not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.api.schemas.history import node_states
from holdfast.checkpoint.checkpoint import Checkpoint, checkpoint_status
from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import FeedTrimmedError, HoldfastError, StoreMovedError
from holdfast.runs.history.checkpoints import make_checkpoint
from holdfast.runs.service import RunService
from holdfast.telemetry import log
from holdfast.types.ids import RunId
from holdfast.types.projection import Projection
from holdfast.types.record import Kind, Record
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import CheckpointStatus

ProjectionScope = Literal["holds", "every", "none"]
PROJECTION_SCOPES: Final = ("holds", "every", "none")
PAGE: Final = 500
PAUSE_SECONDS: Final = 0.002
"""Pause after each fold, in seconds: it runs in the server's event loop, and requests come first."""
LARGEST: Final = 64 << 10
"""Maximum bytes of one value; of a larger one only the size is written."""
MOST: Final = 1 << 20
"""Maximum bytes of all outputs of a checkpoint: a run with many nodes writes all of them at each hold."""


class Projector:
    """`holds`: questions, failures and ends; `every`: all checkpoints that are listed."""

    def __init__(self, service: RunService, which: ProjectionScope = "holds", *, pause: float = 1.0) -> None:
        self.service = service
        self.which = which
        self.pause = pause

    async def serve(self) -> None:
        """Until cancelled. Raises StoreMovedError."""
        while self.which != "none":
            try:
                more = await self.sweep()
            except StoreMovedError:
                raise
            except HoldfastError as error:
                log.warning("checkpoints could not be written for SQL, retrying later: %s", error)
                more = False
            if not more:
                await asyncio.sleep(self.pause)

    async def sweep(self) -> bool:
        """Process the next page of the feed. False: it was empty."""
        store = self.service.store
        after = await store.projected_to()
        try:
            page = await store.feed(after=after, limit=PAGE)
        except FeedTrimmedError as error:
            floor = cast("int", error.facts["floor"])
            # The feed was trimmed while no server projected: continue with what is left.
            log.warning("checkpoints before position %d of the feed are not written for SQL", floor)
            await store.put_projections([], upto=floor)
            return True
        if not page:
            return False
        rows: list[Projection] = []
        for run, (first, last) in _spans(page).items():
            rows += [row async for row in self._of_run(run, first, last)]
            await asyncio.sleep(0)
        # Rows and position in one write: after a crash the page is read again, and no row is missing.
        await store.put_projections(rows, upto=page[-1][0])
        return True

    async def _of_run(self, run: RunId, first: int, last: int) -> AsyncGenerator[Projection]:
        due = [record async for record in self._records_for(run, first, last) if self._is_due(record)]
        row = await self.service.store.get_run(run) if due else None
        if row is None:
            return
        # Another server may have written them; making a checkpoint again costs a fold of the run.
        known = {each.seq for each in await self.service.store.projections(run)}
        for record in due:
            if record.seq in known or record.seq < row.horizon:
                continue
            try:
                made = await make_checkpoint(self.service, row, record.seq)
                with tenant_scope(row.tenant):
                    projection = _projection(made)
                yield projection
            except HoldfastError as error:
                # One damaged checkpoint must not stop the projection of all others.
                log.warning(
                    "checkpoint %d of run %s is not written for SQL: %s", record.seq, run, error,
                    extra={"run": run, "seq": record.seq},
                )  # fmt: skip
            await asyncio.sleep(PAUSE_SECONDS)

    async def _records_for(self, run: RunId, first: int, last: int) -> AsyncGenerator[Record]:
        """The run's records of these events."""
        while first <= last:
            page = await self.service.store.events(run, after=first - 1, limit=PAGE)
            for each in page:
                if isinstance(each, Record):
                    first = each.event_from + each.events
                    yield each
                else:
                    first = each.number + 1
                if first > last:
                    return
            if not page:
                return

    def _is_due(self, record: Record) -> bool:
        if not record.listed:
            return False
        return (
            self.which == "every"
            or record.kind == Kind.end
            or checkpoint_status(record) is not CheckpointStatus.active
        )


def _spans(page: list[tuple[int, RunId, int, int]]) -> dict[RunId, tuple[int, int]]:
    spans: dict[RunId, tuple[int, int]] = {}
    for _, run, first, last in page:
        low, high = spans.get(run, (first, last))
        spans[run] = (min(low, first), max(high, last))
    return spans


def _projection(checkpoint: Checkpoint) -> Projection:
    seen = checkpoint.shown()
    states = node_states(seen)
    left = MOST
    for state in states.values():
        state.output_data, size = _bounded(state.output_data, min(LARGEST, left))
        left -= size
    ended = seen.status is CheckpointStatus.completed
    output = {"state": jsonable(seen.state), "artifacts": jsonable(seen.artifacts)} if ended else None
    return Projection(
        run=seen.run,
        seq=seen.seq,
        checkpoint=seen.id,
        completed=_json(list(seen.visited)),
        node_states=_json(states),
        original_input=_json(_bounded(jsonable(seen.input))[0]),
        output=None if output is None else _json(_bounded(output)[0]),
    )


def _bounded(value: Any, most: int = LARGEST) -> tuple[Any, int]:
    """(the value to write, its size)."""
    size = len(msgspec.json.encode(value))
    return (value, size) if size <= most else ({"omitted_bytes": size}, 0)


def _json(value: Any) -> str:
    """No database accepts a NUL inside JSON."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text:
        text = msgspec.json.encode(_without_nul(msgspec.json.decode(text))).decode()
    return text


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        return {key.replace("\0", "\ufffd"): _without_nul(each) for key, each in inside.items()}
    if isinstance(value, list):
        return [_without_nul(each) for each in cast("list[Any]", value)]
    return value
