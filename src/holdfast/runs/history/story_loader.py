"""A run's story from its store: its own records, and those of the runs that it branched off from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.run_history import begin, error_of
from holdfast.checkpoint.visit import CallDetail, QuestionDetail, Visit
from holdfast.errors import BlobMissingError, CheckpointCorruptError, HoldfastError
from holdfast.model.graph import Graph
from holdfast.model.position import SETTLED, Position
from holdfast.model.record_bodies import AttemptBody, SnapshotBody
from holdfast.model.snapshot import load_position
from holdfast.runs.driver import load as loading
from holdfast.runs.history.checkpoints import lineage_of
from holdfast.runs.history.redact import hide_story
from holdfast.runs.history.story import Story, StoryBuilder
from holdfast.runs.history.versions import RunReader, RunReaders, readers_of
from holdfast.types.ids import RunId
from holdfast.types.record import Record, is_private

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow
    from holdfast.types.hold import HoldRow

SettledCalls = dict[tuple[str, int], list[CallDetail]]
"""By label and number of a visit."""

PAGE = 1_000
ANCESTORS = 50


async def load_story(service: RunAccess, row: RunRow, upto: int | None = None, depth: int = 0) -> Story:
    """Up to record `upto` (default: the last). What a fork took from its source is read there, if that still
    exists. Of damaged records only the columns are known."""
    readers = await readers_of(service, row)
    last = row.head if upto is None else upto
    builder = StoryBuilder(readers.at(row.horizon).graph, row.id)
    settled = await _read(service, row, readers, builder, last)
    if row.ended_at is not None and last == row.head:
        # A superseded run ended without a record.
        builder.stop(row.ended_at)
    story = builder.finish()
    earlier_calls = _add_settled_calls(story, settled)
    await _answers(service, row, story, last)
    if (story.brought or earlier_calls) and depth < ANCESTORS:
        await _fill_in(service, story, depth)
    hide_story(story, readers.at(last).graph.secrets)
    return story


async def _read(
    service: RunAccess, row: RunRow, readers: RunReaders, builder: StoryBuilder, last: int
) -> SettledCalls:
    """Returns the calls that were settled inside nodes that had begun before the first record."""
    walker, settled = _Walker(service, row, readers), SettledCalls()
    for first in range(row.horizon, last + 1, PAGE):
        for record in await service.store.read(row.id, first=first, last=min(first + PAGE - 1, last)):
            reader = readers.at(record.seq)
            body = decoded(reader, record)
            if record.seq == row.horizon:
                _beginning(builder, record, body)
            builder.pos, builder.graph = walker.pos, reader.graph
            builder.add(record, body)
            await walker.follow(record, body)
            if record.seq == row.horizon and walker.pos is not None:
                settled = _settled_calls(walker.pos, reader.graph, record)
    return settled


def decoded(reader: RunReader, record: Record) -> Any:
    try:
        return reader.codec.decode(record)
    except CheckpointCorruptError:
        return None


def _beginning(builder: StoryBuilder, record: Record, body: Any) -> None:
    if body is not None:
        for visit in begin(record, body).executions:
            builder.add_earlier(visit)
        builder.story.lineage = lineage_of(body)


class _Walker:
    """The position of the run, record by record; unknown after a damaged record until the next snapshot."""

    def __init__(self, service: RunAccess, row: RunRow, readers: RunReaders) -> None:
        self.service, self.row, self.readers = service, row, readers
        self.pos: Position | None = None
        self._fell_back = False

    async def follow(self, record: Record, body: Any) -> None:
        try:
            if body is None:
                self.pos = None
            else:
                await self._follow(record, body)
        except (BlobMissingError, CheckpointCorruptError, KeyError):
            self.pos = None
        self._fell_back = isinstance(body, AttemptBody) and body.reason == "fell_back"

    async def _follow(self, record: Record, body: Any) -> None:
        reader = self.readers.at(record.seq)
        store, run = self.service.store, self.row.id
        blobs = self.service.runtime.blobs.of(self.row.tenant)
        if record.seq == self.row.horizon:
            self.pos = await loading.begin(reader.graph, reader.codec, run, record, store, blobs)
        elif isinstance(body, SnapshotBody) and (self._fell_back or self.pos is None):
            load = await loading.segment_loader(store, reader.codec, run, body)
            self.pos = load_position(body.position, load=load)
            await blobs.fill_state(self.pos, reader.codec.registry)
            self.pos.head, self.pos.at = record.seq, record.at
        elif self.pos is not None:
            await loading.fetch_and_apply(reader.graph, self.pos, record, body, blobs, reader.codec)


# ---------------------------------------------------------------------- what became of the questions


async def _answers(service: RunAccess, row: RunRow, story: Story, last: int) -> None:
    questions = [q for visit in story.visits for q in visit.questions] + story.questions
    if not questions:
        return
    rows = {hold.id: hold for hold in await service.store.holds(run=row.id, limit=1_000_000)}
    newest = await service.store.read(row.id, first=last, last=last, payloads=False)
    for question in questions:
        hold = rows.get(question.hold)  # type: ignore[call-overload]
        if hold is not None:
            _answer(question, hold, newest[0].at if newest and last < row.head else None)


def _answer(question: QuestionDetail, hold: HoldRow, until: int | None) -> None:
    if until is not None and hold.resolved_at is not None and hold.resolved_at > until:
        return
    resolution: dict[str, Any] = msgspec.json.decode(hold.resolution) if hold.resolution else {}
    question.status, question.closed = str(hold.status), hold.closed_reason or ""
    question.decision, question.data = resolution.get("decision"), resolution.get("response_data")
    question.comment, question.by = resolution.get("comment"), hold.resolved_by or ""
    question.ended_at = hold.resolved_at


# ---------------------------------------------------------------------- what a fork brought along


def _settled_calls(pos: Position, graph: Graph, record: Record) -> SettledCalls:
    found: SettledCalls = {}
    for (scope, number), execution in pos.execs.items():
        node = pos.scope_graph(graph, pos.scopes[scope]).nodes[number].id
        found[scope + node, execution.visit] = [
            CallDetail(
                name=sub.name,
                ordinal=ordinal,
                effect="",
                at=record.at,
                seq=-1,
                value=None if is_private(ordinal) else sub.value,
                error=error_of(sub.error),
            )
            for ordinal, sub in execution.subs.items()
            if sub.done and not sub.hold and ordinal != SETTLED
        ]
    return found


def _add_settled_calls(story: Story, settled: SettledCalls) -> bool:
    """A call that was settled before a fork is not made again: it belongs to the fork's visit too."""
    for visit in story.visits:
        visit.calls[:0] = settled.get((visit.label, visit.visit), ())
    return any(settled.values())


async def _fill_in(service: RunAccess, story: Story, depth: int) -> None:
    """The source's visits have more details than a fork keeps of them."""
    source, seq = story.lineage.get("run"), story.lineage.get("seq")
    row = await service.store.get_run(RunId(source)) if isinstance(source, str) else None
    if row is None or not isinstance(seq, int) or seq > row.head or seq < row.horizon:
        return
    try:
        source_story = await load_story(service, row, seq, depth + 1)
    except HoldfastError:
        return
    whole: dict[tuple[str, int], Visit] = {v.identity: v for v in source_story.visits if v.seq >= 0}
    story.visits = [whole.get(visit.identity, visit) for visit in story.visits]
    under_way = [visit for visit in source_story.visits if visit.seq < 0]
    begun = {(v.label, v.visit): {call.ordinal: call for call in v.calls} for v in under_way}
    for visit in story.visits:
        known = begun.get((visit.label, visit.visit), {})
        settled = [call for call in visit.calls if call.seq < 0 and call.ordinal in known]
        visit.calls = [known[call.ordinal] if call in settled else call for call in visit.calls]
        visit.tokens += sum(known[call.ordinal].tokens for call in settled)
        visit.cost += sum(known[call.ordinal].cost for call in settled)
    story.brought = source_story.brought
