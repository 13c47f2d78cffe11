"""Runs at gates: where a new one stands, and how whoever drives one himself waits in line for it."""

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
from holdfast.store.protocols import RunRow, Store
from holdfast.types.limit_rows import LimitRow, flow_limit, key_limit, path_of, root_of
from holdfast.types.limits import rate_text

_held_limits: ContextVar[tuple[str, ...]] = ContextVar(
    "gates whose places the runs around here have", default=()
)


class QueuedRun(msgspec.Struct, frozen=True):
    """A run that was just created, and that its gate does not let pass yet."""

    row: RunRow


# ---------------------------------------------------------------------- where a run stands


def limits_for_new_run(
    program: Program, values: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[str, list[LimitRow]]:
    """The gate of a new run, and what its flow declares. `values`: what it starts with; `own`: its names.

    Raises StateError where the input has not what the key is made of."""
    limits, flow = program.limits, program.graph.name
    if limits is None:
        return "", []
    if limits.key is None:
        return flow_limit(flow), limits.gates(flow)

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
            f"the limits of flow {flow!r} are divided by {limits.key!r}, and in the input there is no "
            f"{'.'.join(error.path)}.",
            hint="Give it, or declare it with a default.",
            flow=flow,
        ) from error
    return key_limit(flow, key), limits.gates(flow)


def limits_for_fork(program: Program, source: RunRow) -> tuple[str, list[LimitRow]]:
    """That of a run's fork: where the run itself stands, or stood."""
    declared = [] if program.limits is None else program.limits.gates(source.flow)
    return source.gate or (flow_limit(source.flow) if declared else ""), declared


# ---------------------------------------------------------------------- waiting in line


@contextmanager
def inside_limit(gate: str) -> Generator[None]:
    """What happens here happens in a run that has a place at that gate."""
    if not gate:
        yield
        return
    token = _held_limits.set((*_held_limits.get(), root_of(gate)))
    try:
        yield
    finally:
        _held_limits.reset(token)


def held_limits() -> tuple[str, ...]:
    """For whoever goes on in another thread, which does not know what it is started from."""
    return _held_limits.get()


def set_held_limits(places: tuple[str, ...]) -> None:
    _held_limits.set(places)


async def limit_reached_error(store: Store, row: RunRow) -> LimitReachedError:
    """Why the run was not claimed."""
    found = {gate.name: (gate, inside) for gate, inside, _ in await store.gates(prefix=root_of(row.gate))}
    full, why = False, "others were faster"
    for name in path_of(row.gate):
        gate, held = found.get(name, (LimitRow(name=name), 0))
        if gate.concurrency is not None and held >= gate.concurrency:
            full, why = True, f"{name} lets {gate.concurrency} go on at once, and {held} do"
        elif gate.rate is not None and not full:
            why = f"{name} lets {rate_text(gate.rate, gate.per)} start"
    return LimitReachedError(
        f"run {row.id} waits in line: {why}.",
        hint="It goes on when there is room; `holdfast limits list` shows who is inside and who waits.",
        run=row.id,
        flow=row.flow,
        gate=row.gate,
        full=full,
    )
