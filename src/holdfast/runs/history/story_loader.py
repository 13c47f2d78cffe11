"""A run's story from its store: its own records, and those of the runs that it branched off from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.fold import begin, error_of
from holdfast.errors import BlobMissingError, CheckpointCorruptError, HoldfastError
from holdfast.model.graph import Graph
from holdfast.model.position import SETTLED, Position
from holdfast.model.record_bodies import AttemptBody, SnapshotBody
from holdfast.model.snapshot import load_position
from holdfast.runs.driver import load as loading
from holdfast.runs.history.checkpoints import lineage_of
from holdfast.runs.history.redact import hide_story
from holdfast.runs.history.story import CallDetail, QuestionDetail, Story, StoryBuilder, VisitDetail
from holdfast.runs.history.versions import RunReader, RunReaders, readers_of
from holdfast.types.ids import RunId
from holdfast.types.record import Record

if TYPE_CHECKING:
    from holdfast.runs.access import RunAccess
    from holdfast.store.protocols import RunRow
    from holdfast.types.hold import HoldRow

SettledCalls = dict[tuple[str, int], list[CallDetail]]
"""By the label and the visit of a chapter."""

PAGE = 1_000
ANCESTORS = 50


async def load_story(service: RunAccess, row: RunRow, upto: int | None = None, depth: int = 0) -> Story:
    """Until record `upto` (default: the last). What a fork brought along is told from its source, if that is
    still there. Damaged records are told by their columns."""
    readers = await readers_of(service, row)
    last = row.head if upto is None else upto
    told = StoryBuilder(readers.at(row.horizon).graph, row.id)
    carried = _add_settled_calls(told.story, await _read(service, row, readers, told, last))
    if row.ended_at is not None and last == row.head:
        # One that was superseded ended without a record of its own.
        told.stop(row.ended_at)
    await _answers(service, row, told.story, last)
    if (told.story.brought or carried) and depth < ANCESTORS:
        await _fill_in(service, told.story, depth)
    hide_story(told.story, readers.at(last).graph.secrets)
    return told.story


async def _read(
    service: RunAccess, row: RunRow, readers: RunReaders, told: StoryBuilder, last: int
) -> SettledCalls:
    """Answers which calls were settled inside nodes that had begun before the first record."""
    walker, carried = _Walker(service, row, readers), SettledCalls()
    for first in range(row.horizon, last + 1, PAGE):
        for record in await service.store.read(row.id, first=first, last=min(first + PAGE - 1, last)):
            reader = readers.at(record.seq)
            body = _decoded(reader, record)
            if record.seq == row.horizon:
                _beginning(told, record, body)
            told.pos, told.graph = walker.pos, reader.graph
            told.tell(record, body)
            await walker.follow(record, body)
            if record.seq == row.horizon and walker.pos is not None:
                carried = _settled_calls(walker.pos, reader.graph, record)
    return carried


def _decoded(reader: RunReader, record: Record) -> Any:
    try:
        return reader.sealer.open(record)
    except CheckpointCorruptError:
        return None


def _beginning(told: StoryBuilder, record: Record, body: Any) -> None:
    if body is not None:
        for execution in begin(record, body).executions:
            told.add_execution(execution)
        told.story.lineage = lineage_of(body)


class _Walker:
    """Where the run stood, record by record; not known behind a damaged one until a snapshot tells it."""

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
        desk = self.service.runtime.desk.of(self.row.tenant)
        if record.seq == self.row.horizon:
            self.pos = await loading.begin(reader.graph, reader.sealer, run, record, store, desk)
        elif isinstance(body, SnapshotBody) and (self._fell_back or self.pos is None):
            load = await loading.segment_loader(store, reader.sealer, run, body)
            self.pos = load_position(body.position, load=load)
            await desk.fill_state(self.pos, reader.sealer.registry)
            self.pos.head, self.pos.at = record.seq, record.at
        elif self.pos is not None:
            await loading.fetch_and_apply(reader.graph, self.pos, record, body, desk, reader.sealer)


# ---------------------------------------------------------------------- what became of the questions


async def _answers(service: RunAccess, row: RunRow, story: Story, last: int) -> None:
    questions = [q for chapter in story.chapters for q in chapter.questions] + story.questions
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
    said: dict[str, Any] = msgspec.json.decode(hold.resolution) if hold.resolution else {}
    question.status, question.closed = str(hold.status), hold.closed_reason or ""
    question.decision, question.data = said.get("decision"), said.get("response_data")
    question.comment, question.by = said.get("comment"), hold.resolved_by or ""
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
                value=sub.value,
                error=error_of(sub.error),
            )
            for ordinal, sub in execution.subs.items()
            if sub.done and not sub.hold and ordinal != SETTLED
        ]
    return found


def _add_settled_calls(story: Story, carried: SettledCalls) -> bool:
    """A call that was settled before a fork is not made again: it belongs to the fork's visit too."""
    for chapter in story.chapters:
        chapter.calls[:0] = carried.get((chapter.label, chapter.visit), ())
    return any(carried.values())


async def _fill_in(service: RunAccess, story: Story, depth: int) -> None:
    """The source's chapters tell more than what a fork carries of them."""
    source, seq = story.lineage.get("run"), story.lineage.get("seq")
    row = await service.store.get_run(RunId(source)) if isinstance(source, str) else None
    if row is None or not isinstance(seq, int) or seq > row.head or seq < row.horizon:
        return
    try:
        told = await load_story(service, row, seq, depth + 1)
    except HoldfastError:
        return
    whole: dict[tuple[str, int], VisitDetail] = {c.identity: c for c in told.chapters if c.seq >= 0}
    story.chapters = [whole.get(chapter.identity, chapter) for chapter in story.chapters]
    begun = {(c.label, c.visit): {call.ordinal: call for call in c.calls} for c in told.chapters if c.seq < 0}
    for chapter in story.chapters:
        known = begun.get((chapter.label, chapter.visit), {})
        carried = [call for call in chapter.calls if call.seq < 0 and call.ordinal in known]
        chapter.calls = [known[call.ordinal] if call in carried else call for call in chapter.calls]
        chapter.tokens += sum(known[call.ordinal].tokens for call in carried)
        chapter.cost += sum(known[call.ordinal].cost for call in carried)
    story.brought = told.brought
