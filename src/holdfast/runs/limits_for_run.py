"""The concurrency limits of a run: which limit a new run has, and why a run was not claimed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.errors import LimitReachedError, StateError
from holdfast.model.expr import MISSING, PARTITIONS, Path, walk
from holdfast.model.program import Program
from holdfast.model.template import TemplateRenderError, as_text, compile_template
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.concurrency_limits import LimitRow, flow_limit, key_limit, path_of, rate_text, root_of

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
    token = _held_limits.set((*_held_limits.get(), root_of(name)))
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
