"""One visit with everything about it, from its own records: a reader of one step of a long run does not pay
for the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.checkpoint.visit import Visit
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.graph import Graph
from holdfast.model.position import Exec, Position
from holdfast.model.record_bodies import AttemptBody
from holdfast.model.secrets import masked
from holdfast.runs.driver.load import load
from holdfast.runs.history.redact import hide_story
from holdfast.runs.history.story import Story, StoryBuilder
from holdfast.runs.history.story_loader import decoded, load_story
from holdfast.runs.history.versions import RunReaders, readers_of
from holdfast.types.record import Kind, Record

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

PAGE: Final = 1_000
NEAR: Final = 8
"""Own records that are not further apart are read together, with those between them."""
# After these a visit may go on: its failure is repaired, its doubt settled.
_MAY_GO_ON: Final = frozenset({"fail", "unknown"})


class LoadedVisit(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: before the record; `workers`: their names by term, as far as they are recorded."""

    visit: Visit
    state: Any
    workers: dict[int, str]


async def load_visit(service: RunAccess, row: RunRow, at: int, *, past: bool) -> LoadedVisit | None:
    """The visit that record `at` is about; None if it is about none. `past`: without what came later."""
    if at < row.horizon:
        return await _visit_before_horizon(service, row, at)
    if at > row.head:
        return None
    (record,) = await service.store.read(row.id, first=at, last=at, payloads=False)
    # The first record that is left of a pruned run is a snapshot, and still names the node of the record that
    # it replaced.
    is_first = at == row.horizon > 0
    if not record.node or record.kind == Kind.created or (record.kind == Kind.snapshot and not is_first):
        return None
    loader = _VisitLoader(service, row, await readers_of(service, row), record, at if past else row.head)
    before = await loader.position(at - 1)
    execution = None if is_first else loader.under_way(before)
    if execution is None or not _has_start(row, execution):
        story = await load_story(service, row, loader.last)
    else:
        story = await loader.story(before, execution)
    # The record of an end has its node without the number of its visit: it is the last one.
    own = [each for each in story.visits if (each.run, each.label) == (row.id, loader.label)]
    visit = next((each for each in reversed(own) if record.visit in (0, each.visit)), None)
    if visit is None:
        return None
    state = await loader.shown_state(before)
    return LoadedVisit(visit=visit, state=state, workers=await loader.workers(story, visit))


async def _visit_before_horizon(service: RunAccess, row: RunRow, at: int) -> LoadedVisit | None:
    """Its record was pruned: what the first record that is left still says about it, without the state."""
    story = await load_story(service, row)
    visit = next((each for each in story.visits if (each.run, each.seq) == (row.id, at)), None)
    if visit is None:
        return None
    return LoadedVisit(visit=visit, state=None, workers=dict(story.workers))


def _has_start(row: RunRow, execution: Exec) -> bool:
    """Whether the record that began it is in this run's journal, under the present names. What a fork or a
    pruned run brought along is only in its first record."""
    whole = row.horizon == 0 and row.forked_from is None
    return execution.seq > row.migrated if row.migrated else execution.seq > row.horizon or whole


class _VisitLoader:
    def __init__(
        self, service: RunAccess, row: RunRow, readers: RunReaders, record: Record, last: int
    ) -> None:
        self.service, self.row, self.readers = service, row, readers
        self.record, self.last = record, last
        self.node = record.node.removesuffix(SUFFIX)
        self.label = record.scope + self.node

    async def position(self, seq: int) -> Position:
        seq = max(seq, self.row.horizon)
        reader, blobs = self.readers.at(seq), self.service.runtime.blobs
        store = self.service.store
        return (await load(store, reader.codec, reader.graph, self.row.id, blobs=blobs, upto=seq)).pos

    def under_way(self, pos: Position, visit: int | None = None) -> Exec | None:
        scope = pos.scopes.get(self.record.scope)
        if scope is None:
            return None
        inner: Graph = pos.scope_graph(self.readers.at(pos.head).graph, scope)
        found = pos.execs.get((self.record.scope, inner.index.get(self.node, -1)))
        wanted = self.record.visit if visit is None else visit
        return found if found is not None and wanted in (0, found.visit) else None

    # ------------------------------------------------------------------ the visit
    async def story(self, before: Position, execution: Exec) -> Story:
        builder = StoryBuilder(self.readers.at(self.row.horizon).graph, self.row.id)
        start = execution.seq
        for record in await self.service.store.read(self.row.id, first=start, last=start):
            self._add(builder, record)
        after = start
        async for record in self._with_payloads(await self._own(start + 1, execution.visit)):
            if record.kind == Kind.end:
                await self._drop(builder, after, record.seq - 1, execution.visit)
            elif record.seq == self.record.seq:
                builder.pos = before
            elif record.kind == Kind.step:
                builder.pos = await self.position(record.seq - 1)
            self._add(builder, record)
            after = record.seq
        await self._drop(builder, after, self.last, execution.visit)
        if self.row.ended_at is not None and self.last == self.row.head:
            # A superseded run ended without a record.
            builder.stop(self.row.ended_at)
        story = builder.finish()
        story.visits = [each for each in story.visits if each.label == self.label]
        hide_story(story, self.readers.at(self.last).graph.secrets)
        return story

    def _add(self, builder: StoryBuilder, record: Record) -> None:
        reader = self.readers.at(record.seq)
        builder.graph = reader.graph
        builder.add(record, decoded(reader, record))
        builder.pos = None

    async def _own(self, first: int, visit: int) -> list[Record]:
        """Records about the visit, by their columns, up to the one after which nothing more can follow."""
        found: list[Record] = []
        while first <= self.last:
            end = min(first + PAGE - 1, self.last)
            if first <= self.record.seq:
                # Most steps end with the record that is asked for.
                end = min(end, self.record.seq)
            for record in await self.service.store.read(self.row.id, first=first, last=end, payloads=False):
                if record.kind == Kind.end:
                    # Of any node: it ends what is under way, until the run is retried.
                    found.append(record)
                elif record.node and record.scope + record.node.removesuffix(SUFFIX) == self.label:
                    if record.visit not in (0, visit):
                        return found
                    found.append(record)
                    if record.kind == Kind.step and record.outcome not in _MAY_GO_ON:
                        return found
            first = end + 1
        return found

    async def _with_payloads(self, own: Sequence[Record]) -> AsyncIterator[Record]:
        wanted = {record.seq for record in own}
        first = 0
        for place, record in enumerate(own):
            if place + 1 < len(own) and own[place + 1].seq - record.seq <= NEAR:
                continue
            last = record.seq
            for each in await self.service.store.read(self.row.id, first=own[first].seq, last=last):
                if each.seq in wanted:
                    yield each
            first = place + 1

    async def _drop(self, builder: StoryBuilder, after: int, last: int, visit: int) -> None:
        """A visit without a record of its own end is under way, or ended with a branch that was not needed:
        then a record of another node says so."""
        begun = (each for each in builder.story.visits if (each.label, each.visit) == (self.label, visit))
        found = next(begun, None)
        if found is None or found.ended_at is not None or last <= after:
            return
        if self.under_way(await self.position(last), visit) is not None:
            return
        for first in range(after + 1, last + 1, PAGE):
            end = min(first + PAGE - 1, last)
            for record in await self.service.store.read(self.row.id, first=first, last=end):
                self._add(builder, record)
                if found.ended_at is not None:
                    return

    # ------------------------------------------------------------------ around it
    async def shown_state(self, pos: Position) -> Any:
        """Whole, without secrets. Changes the position: its large values are fetched."""
        reader = self.readers.at(pos.head)
        await self.service.runtime.blobs.of(self.row.tenant).materialise(pos, reader.codec.registry)
        return masked(pos.scopes[""].tree.merged().get("scratch", {}), reader.graph.secrets)

    async def workers(self, story: Story, visit: Visit) -> dict[int, str]:
        found = dict(story.workers)
        if self.row.worker:
            found[self.row.term] = self.row.worker
        for term in {visit.term, *(trial.term for trial in visit.trials)} - {0, *found}:
            found[term] = await self._worker(term)
        return found

    async def _worker(self, term: int) -> str:
        """Terms grow with the records, and the first record of a claim names its worker."""
        low, high = self.row.horizon, self.last
        while low < high:
            middle = (low + high) // 2
            (record,) = await self.service.store.read(self.row.id, first=middle, last=middle, payloads=False)
            low, high = (middle + 1, high) if record.term < term else (low, middle)
        (record,) = await self.service.store.read(self.row.id, first=low, last=low)
        body = decoded(self.readers.at(record.seq), record)
        claimed = record.term == term and isinstance(body, AttemptBody) and body.reason == "loaded"
        return body.nodes[0] if claimed and body.nodes else ""
