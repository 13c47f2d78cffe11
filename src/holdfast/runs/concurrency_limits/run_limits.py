"""The concurrency limits of a run: which limit a new run has, and why a run was not claimed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.errors import InputError, LimitReachedError, StateError
from holdfast.model.expressions import MISSING, PARTITIONS, Path, walk
from holdfast.model.program import Program
from holdfast.model.template import TemplateRenderError, as_text, compile_template
from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.concurrency_limits import (
    LimitRow,
    entity_limit,
    flow_limit,
    is_entity,
    key_limit,
    path_of,
    rate_text,
    root_of,
)
from holdfast.types.deployment import Deployment
from holdfast.types.status import BEGUN, RUN_LABELS, RunStatus
from holdfast.types.text import clean_text

_held_limits: ContextVar[tuple[str, ...]] = ContextVar(
    "limits that the runs around here count against", default=()
)


class QueuedRun(msgspec.Struct, frozen=True):
    """A run that was just created, and that a limit does not admit yet."""

    row: RunRow


# ---------------------------------------------------------------------- the limit of a run


def limits_for_new_run(
    program: Program, values: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[str, list[LimitRow]]:
    """The limit of a new run, and those that its flow declares. `values`: its input; `own`: its names. Raises
    StateError if the input lacks a value of the key."""
    limits, flow = program.limits, program.graph.name
    if limits is None:
        return "", []
    if limits.key is None:
        return flow_limit(flow), limits.rows(flow)

    def resolve(path: Path) -> object:
        first, *rest = path
        if rest and first in (*PARTITIONS, "state") and first not in values:
            first, *rest = rest
        found = values.get(first, own.get(first, MISSING))
        return MISSING if found is MISSING else walk(found, tuple(rest))

    try:
        key = as_text(compile_template(limits.key).render(resolve, strict=True).value)
    except TemplateRenderError as error:
        raise StateError(
            f"the limits of flow {flow!r} are divided by {limits.key!r}, and the input has no "
            f"{'.'.join(error.path)}.",
            hint="Give the value, or declare it with a default.",
            flow=flow,
        ) from error
    return key_limit(flow, key), limits.rows(flow)


def limits_for_entity(
    program: Program, deployment: Deployment, instance_key: str
) -> tuple[str, list[LimitRow]]:
    """The same for a run of a deployment in entity mode: of each entity one run is live at a time."""
    limits, flow = program.limits, program.graph.name
    if limits is not None and limits.key is not None:
        raise InputError(
            f"the limits of flow {flow!r} have a key, and deployment {deployment.name!r} has one run at a "
            "time for each instance key: a run has one key.",
            hint="Remove key= from the limits of the flow, or deploy it with mode='plain'.",
        )
    # The row of the flow, so that a claim finds one to lock.
    declared = [LimitRow(name=flow_limit(flow))] if limits is None else limits.rows(flow)
    return entity_limit(flow, deployment.id, instance_key), declared


def limits_for_fork(program: Program, source: RunRow) -> tuple[str, list[LimitRow]]:
    """The same for a fork: the limit of its source."""
    declared = [] if program.limits is None else program.limits.rows(source.flow)
    return source.limit or (flow_limit(source.flow) if declared else ""), declared


# ---------------------------------------------------------------------- waiting for a limit


@contextmanager
def inside_limit(name: str) -> Generator[None]:
    """The code inside runs in a run that counts against that limit."""
    if not name:
        yield
        return
    token = _held_limits.set((*_held_limits.get(), *path_of(name)))
    try:
        yield
    finally:
        _held_limits.reset(token)


def held_limits() -> tuple[str, ...]:
    """For code that continues in another thread, which does not inherit the context variable."""
    return _held_limits.get()


def set_held_limits(places: tuple[str, ...]) -> None:
    _held_limits.set(places)


async def limit_reached_error(store: Store, row: RunRow) -> LimitReachedError:
    """Why the run was not claimed."""
    if is_entity(row.limit) and (live := await live_run_of_entity(store, row)) is not None:
        return LimitReachedError(
            f"run {row.id} is queued: run {live.id} of the same entity, "
            f"{clean_text(row.instance_key, 80)!r}, is {RUN_LABELS[live.status]}.",
            hint=f"It starts when that one has ended; `holdfast cancel {live.id}` ends it.",
            run=row.id,
            flow=row.flow,
            gate=row.limit,
            full=True,
        )
    found = {
        limit.name: (limit, inside) for limit, inside, _ in await store.limits(prefix=root_of(row.limit))
    }
    full, why = False, "other runs were first"
    for name in path_of(row.limit):
        limit, held = found.get(name, (LimitRow(name=name), 0))
        if limit.concurrency is not None and held >= limit.concurrency:
            full, why = True, f"{name} allows {limit.concurrency} at once, and {held} are running"
        elif limit.rate is not None and not full:
            why = f"{name} allows {rate_text(limit.rate, limit.per)} to start"
    return LimitReachedError(
        f"run {row.id} is queued: {why}.",
        hint="It starts when the limit admits it; `holdfast limits list` shows what runs and what waits.",
        run=row.id,
        flow=row.flow,
        gate=row.limit,
        full=full,
    )


# ---------------------------------------------------------------------- entities


async def live_run_of_entity(store: Store, row: RunRow) -> RunRow | None:
    """Another run of the same entity that has begun and has not ended."""
    where = RunFilter(
        tenant=row.tenant, deployment=row.deployment, instance_key=row.instance_key, status=BEGUN
    )
    found = await store.list_runs(where, after=None, limit=10)
    return next((each for each in found if each.id != row.id and not each.read_only), None)


async def require_entity_free(store: Store, row: RunRow) -> None:
    """Before a failed run becomes live again. Raises LimitReachedError."""
    if row.status is not RunStatus.failed or not is_entity(row.limit):
        return
    live = await live_run_of_entity(store, row)
    if live is not None:
        raise LimitReachedError(
            f"run {row.id} cannot be resumed: run {live.id} of the same entity, "
            f"{clean_text(row.instance_key, 80)!r}, is {RUN_LABELS[live.status]}.",
            hint=f"Resume it when that one has ended, or end it: holdfast cancel {live.id}.",
            run=row.id,
            flow=row.flow,
            gate=row.limit,
            full=True,
        )
