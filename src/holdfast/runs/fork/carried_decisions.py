"""Which decisions a branch takes along.

The person who makes it stands behind every decision that it keeps, so a decision is kept only if they may
decide that hold of their own run alone. Else the branch starts before the question, which is asked again
(ADR 59)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.checkpoint.read_without_code import LenientRegistry
from holdfast.errors import EffectsRepeatedError, ForbiddenError
from holdfast.holds.permissions.permission_facts import source_of
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.model.graph import GraphSpec, Node, NodeKind
from holdfast.model.program import Program
from holdfast.runs.events import reader_of
from holdfast.runs.history import checkpoints
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.rows import RunFilter
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldRow
from holdfast.types.ids import RunId, is_id
from holdfast.types.record import Kind, Record
from holdfast.types.status import ENDED, Effect, HoldStatus

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow
    from holdfast.types.terms import Actor


_OUTSIDE = (Effect.write, Effect.external)
_ALL = 10_000


class BranchPoint(NamedTuple):
    run: RunRow
    seq: int
    repeats: tuple[str, ...] = ()  # nodes with outside effects that were executed since, and would be again


async def fork_point(service: RunAccess, row: RunRow, at: int, actor: Actor) -> BranchPoint:
    """Where this person's branch of the record starts: there, or before the first question whose decision it
    would take along without their having the right to decide it alone.

    Raises ForbiddenError where the question cannot be asked again, because its history is gone or was
    imported."""
    starters = (*actor.people, *await RunStarters(service.store).of_source(row))
    path = [(row, at)]
    while path[-1][0].forked_from is not None:
        source, seq = await source_of(service.store, path[-1][0].forked_from)
        if source is None:
            await _require_free(service, row, "the run that it was forked from was deleted")
            break
        path.append((source, seq))
    for place in range(len(path) - 1, -1, -1):
        run, seq = path[place]
        # The caller may have written the imported file, so the place that its run has reached proves nothing.
        if run.read_only and await _may_have_asked(service, run):
            return await _earlier(service, path[: place + 1], await _first_record(service, run))
        taken = [
            hold.seq
            for hold in await _decided(service, run, seq)
            if not await _may_carry(service, hold, actor, starters)
        ]
        taken += [
            began async for began, child in _started(service, run, seq) if await _binds(service, child, actor)
        ]
        if taken:
            return await _earlier(service, path[: place + 1], min(taken) - 1)
    return BranchPoint(row, at)


async def _earlier(service: RunAccess, path: Sequence[tuple[RunRow, int]], at: int) -> BranchPoint:
    """A start in the last run of the path, with what was executed on the way from there to the first."""
    run = path[-1][0]
    executed: list[Record] = []
    for each, last in reversed(path):
        first = at + 1 if each is run else 0
        executed += await service.store.read(each.id, first=first, last=last, payloads=False)
    return BranchPoint(run, at, outside_effects(executed))


def outside_effects(records: Iterable[Record]) -> tuple[str, ...]:
    """The nodes that these records show to have had effects outside, or to have begun one."""
    found = (each for each in records if each.kind == Kind.intent or each.effect in _OUTSIDE)
    return tuple(dict.fromkeys(each.node for each in found))


def require_no_repeats(run: str, repeats: Sequence[str]) -> None:
    """Raises EffectsRepeatedError, for a caller who did not say that effects may be repeated."""
    if repeats:
        names = ", ".join(repeats[:10])
        raise EffectsRepeatedError(
            f"a branch of run {run} has to start before a question, which is asked again; that would repeat "
            f"work with effects outside: {names}.",
            hint="Send repeat_effects=true if that work may be done again, or start a new run.",
            run=run,
            nodes=list(repeats),
        )


async def _decided(service: RunAccess, run: RunRow, at: int) -> list[HoldRow]:
    """The decided questions of a run that are part of its state at a record, in order."""
    found = [
        hold
        for hold in await service.holds(run.id, open_only=False)
        if hold.status is HoldStatus.resolved and hold.seq < at and hold.type != BREAKPOINT
    ]
    if not found:
        return []
    picture = (await checkpoints.make_checkpoint(service, run, at)).shown()
    still_open = {each.hold for each in picture.pending_input}
    return sorted((hold for hold in found if hold.id not in still_open), key=lambda hold: hold.seq)


async def _may_carry(service: RunAccess, hold: HoldRow, actor: Actor, starters: tuple[str, ...]) -> bool:
    """Whether this person could decide the same hold alone, as the starter of the run that asks it."""
    if hold.terms.approval.mode != "any":
        return False
    ctx = service.people.ctx
    terms = msgspec.structs.replace(hold.terms, starters=starters, starter_in=None)
    asked = msgspec.structs.replace(
        hold,
        status=HoldStatus.pending,
        started_by=actor.id,
        terms=terms,
        **dict.fromkeys(OPEN_ONLY_FIELDS),
    )
    return await ctx.may(await ctx.standing(actor, ctx.now()), "resolve", asked, ctx.now())


async def _started(service: RunAccess, run: RunRow, at: int) -> AsyncIterator[tuple[int, RunRow]]:
    """The child runs that a run has started until a record, each with the record of its start. A branch waits
    for the same children, and gets the state that they ended with.

    Raises ForbiddenError if such a record is gone."""
    known: set[str] = set()
    codec = RecordCodec(LenientRegistry())
    for record in await service.store.read(run.id, first=run.horizon, last=at):
        made = codec.decode(record).value if record.kind == Kind.substep else None
        child = await service.store.get_run(RunId(made)) if isinstance(made, str) and is_id(made) else None
        if child is not None and child.tenant == run.tenant and child.id != run.id:
            known.add(child.id)
            yield record.seq, child
    listed = RunFilter(parent_run=run.id)
    children = await service.store.list_runs(listed, after=None, limit=_ALL) if run.horizon > 0 else ()
    if any(each.id not in known for each in children):
        raise ForbiddenError(
            f"what was decided in the child runs of run {run.id} cannot be checked: the records of their "
            "starts were pruned.",
            hint="Start a new run with its input.",
            run=run.id,
        )


async def _binds(service: RunAccess, child: RunRow, actor: Actor) -> bool:
    """Whether somebody else has to decide in a child run, or has decided. A branch of the parent then starts
    a child of its own: one decision must not count for two runs."""
    starters = (*actor.people, *await RunStarters(service.store).of_source(child))
    if child.status not in ENDED and await _may_have_asked(service, child):
        return True
    for hold in await service.holds(child.id, open_only=False):
        asked = hold.status in (HoldStatus.pending, HoldStatus.resolved) and hold.type != BREAKPOINT
        if asked and not await _may_carry(service, hold, actor, starters):
            return True
    # The one to which it was rewound took its place.
    newer = await service.store.get_run(child.superseded_by) if child.superseded_by else None
    if newer is not None and await _binds(service, newer, actor):
        return True
    return any([await _binds(service, each, actor) async for _, each in _started(service, child, child.head)])


async def _first_record(service: RunAccess, run: RunRow) -> int:
    """An imported run of such a flow starts again with its input."""
    folded = await checkpoints.fold_to(service, run, run.horizon)
    if run.horizon > 0 or folded.first.base:
        raise ForbiddenError(
            f"run {run.id} was imported in the middle of its work, and people may have decided before that.",
            hint="Start a new run with its input.",
            run=run.id,
        )
    return 0


async def _require_free(service: RunAccess, row: RunRow, why: str) -> None:
    if await _may_have_asked(service, row):
        raise ForbiddenError(
            f"what was decided before run {row.id} cannot be checked: {why}.",
            hint="Start a new run.",
            run=row.id,
        )


async def _may_have_asked(service: RunAccess, row: RunRow) -> bool:
    """Whether a run of this flow may ask people: by a hold, or in the middle of a node. Policies may bind any
    of these questions to certain people, so that what the flow itself says is not enough."""
    spec = (await reader_of(service, row)).graph.spec
    return may_ask(spec, service.runtime.programs.get(row.version))


def may_ask(spec: GraphSpec, program: Program | None) -> bool:
    return any(_node_may_ask(node, program) for node in spec.nodes) or any(
        may_ask(inner, None if program is None else program.children.get(inner.name))
        for inner in spec.subgraphs
    )


def _node_may_ask(node: Node, program: Program | None) -> bool:
    if node.kind not in (NodeKind.task, NodeKind.guardrail):
        return node.kind is NodeKind.hold
    handler = None if program is None else program.handlers.get(node.id)
    # Without its code nothing is known about it.
    return handler is None or handler.may_ask
