"""The post-mortem of a run as data: the content of its reports. The run need not have ended.

It includes the run's graph, with the state of each node and the taken edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.checkpoint import Checkpoint
from holdfast.checkpoint.diff_result import RunUsage
from holdfast.checkpoint.visit import QuestionDetail, Visit, place_of
from holdfast.drawing import NodeOverlay, Picture, State
from holdfast.errors import BlobMissingError, CheckpointCorruptError, InputError
from holdfast.model.fingerprint import PIPELINES, dialect_of
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name, without_internals
from holdfast.reports.graph_marks import STATES, notes, run_overlay_picture
from holdfast.reports.incidents import Incident, find_incidents
from holdfast.runs.history.checkpoints import make_checkpoint
from holdfast.runs.history.story import Story, StoryRemark
from holdfast.runs.history.story_loader import load_story
from holdfast.runs.history.versions import reader_at

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


def story_picture(graph: Graph, story: Story, *, expand: bool = True) -> Picture:
    by_path: dict[str, list[Visit]] = {}
    for visit in story.visits:
        by_path.setdefault(place_of(visit.label), []).append(visit)
    shown = {path: _node_overlay(chapters) for path, chapters in by_path.items()}
    for label in story.skipped:
        shown.setdefault(place_of(label), NodeOverlay(state=State.skipped))
    taken = {place_of(edge) for visit in story.visits for edge in visit.edges}
    for opened in (expand, False):
        try:
            return run_overlay_picture(graph, shown, taken, expand=opened)
        except InputError:
            continue  # too much to draw
    return Picture(nodes=(), title=graph.name)


def _node_overlay(chapters: list[Visit]) -> NodeOverlay:
    last = chapters[-1]
    waits = any(question.status == "pending" for question in last.questions) and last.ended_at is None
    failed = any(visit.halts and not visit.handed_to for visit in chapters)
    state = State.failed if failed else State.asking if waits else _state(last)
    return NodeOverlay(state=state, note=_note(chapters))


def _state(visit: Visit) -> State:
    """A page is read later: nodes that were running when it was written are shown as ready to continue."""
    state = STATES.get(visit.state, State.idle)
    return State.ready if state is State.running else state


def _note(chapters: list[Visit]) -> str:
    retries = sum(trial.reason == "retry" for visit in chapters for trial in visit.trials)
    return ", ".join(notes(len(chapters), retries, sum(visit.duration for visit in chapters)))


_INTERNAL = "state.internal."
MAX_VISITS = 300
"""Visits that are shown in full: the first, the last, and those between them with an incident."""


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """The number of visits without an incident that are left out here."""

    left_out: int


class WaitTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Microseconds."""

    people: int = 0
    retries: int = 0


class Postmortem(msgspec.Struct, kw_only=True):
    """Times are microseconds since the epoch."""

    run: str
    flow: str
    version: str
    # The version's label, for people.
    label: str
    status: str
    error: str
    tenant: str
    thread: str | None
    created_at: int
    ended_at: int | None
    until: int
    recoveries: int
    forked_from: str | None
    superseded_by: str | None
    records: int
    horizon: int
    brought: int
    lineage: dict[str, Any]
    spent: RunUsage
    waited: WaitTimes
    chapters: list[Visit | Gap]
    visits: int
    skipped: list[str]
    troubles: list[Incident]
    questions: list[tuple[str, QuestionDetail]]
    remarks: list[StoryRemark]
    input: Any
    state: Any
    artifacts: Any
    picture: Picture
    # How people read the names of nodes inside maps and sub-flows: `each[3]` for `each.1[3]/fetch`.
    names: dict[str, str] = {}
    # Why the last state cannot be shown: the journal is damaged, or a blob is missing.
    unreadable: str = ""

    def name(self, label: str) -> str:
        return self.names.get(label, label)

    @property
    def elapsed(self) -> int:
        return (self.ended_at or self.until) - self.created_at


async def build_postmortem(service: RunService, run: str, *, chapters: int = MAX_VISITS) -> Postmortem:
    """Raises RunNotFoundError, and FlowNotFoundError if the run's graph is not stored."""
    row = await service.get(run)
    story = await load_story(service, row)
    if dialect_of(row.version) == PIPELINES:
        for visit in story.visits:
            visit.changes = [change for change in visit.changes if not change.path.startswith(_INTERNAL)]
    last, unreadable = await _last(service, row)
    graph = (await reader_at(service, row, row.head)).graph
    return Postmortem(
        run=row.id,
        flow=row.flow,
        version=row.version,
        label=graph.label,
        status=str(row.status),
        error=row.error or "",
        tenant=row.tenant,
        thread=row.thread,
        created_at=row.created_at,
        ended_at=row.ended_at,
        until=service.store.now(),
        recoveries=row.recoveries,
        forked_from=row.forked_from,
        superseded_by=row.superseded_by,
        records=story.records,
        horizon=row.horizon,
        brought=story.brought,
        lineage=story.lineage,
        spent=_spent(story),
        waited=_waited(story, row, service.store.now()),
        chapters=_bounded(story.visits, chapters),
        visits=len(story.visits),
        skipped=story.skipped,
        troubles=find_incidents(story),
        questions=_questions(story),
        remarks=story.remarks,
        input=None if last is None else without_internals(row.version, last.input),
        state=None if last is None else without_internals(row.version, last.state),
        artifacts=None if last is None else last.artifacts,
        unreadable=unreadable,
        picture=story_picture(graph, story),
        names=_names(story, graph),
    )


def _names(story: Story, graph: Graph) -> dict[str, str]:
    labels = {label for label in (*(visit.label for visit in story.visits), *story.skipped) if "/" in label}
    return {label: shown_name(label, graph) for label in labels}


async def _last(service: RunService, row: RunRow) -> tuple[Checkpoint | None, str]:
    """Errors are kept in the report: a run with a damaged journal needs a post-mortem most."""
    try:
        return (await make_checkpoint(service, row, row.head)).shown(), ""
    except (CheckpointCorruptError, BlobMissingError) as error:
        return None, error.message


def _spent(story: Story) -> RunUsage:
    own = story.visits
    return RunUsage(
        steps=sum(visit.seq >= 0 for visit in own),
        duration=sum(visit.duration for visit in own),
        tokens=sum(visit.tokens for visit in own),
        # Sums of floats have noise in the last digits.
        cost=round(sum(visit.cost for visit in own), 9),
    )


def _waited(story: Story, row: RunRow, now: int) -> WaitTimes:
    until = row.ended_at or now
    asked = [question for _, question in _questions(story)]
    paused = [t for visit in story.visits for t in visit.trials if t.wake_at is not None]
    return WaitTimes(
        people=sum((question.ended_at or until) - question.asked_at for question in asked),
        retries=sum((trial.wake_at or trial.at) - trial.at for trial in paused if trial.reason == "retry"),
    )


def _questions(story: Story) -> list[tuple[str, QuestionDetail]]:
    """Each with its node, in order."""
    found = [(c.label, q) for c in story.visits for q in c.questions]
    found += [("", question) for question in story.questions]
    return sorted(found, key=lambda pair: pair[1].asked_at)


def _bounded(chapters: list[Visit], limit: int) -> list[Visit | Gap]:
    """All, or the first, the last and those with an incident; gaps say how many are left out."""
    if not limit or len(chapters) <= limit:
        return list(chapters)
    third = max(limit // 3, 1)
    kept = {*range(third), *range(len(chapters) - third, len(chapters))}
    notable = [i for i, visit in enumerate(chapters) if i not in kept and _is_notable(visit)]
    kept |= set(notable[:third])
    return list(_with_gaps(chapters, kept))


def _is_notable(visit: Visit) -> bool:
    return bool(visit.error or visit.trials or visit.questions or visit.ended_at is None)


def _with_gaps(chapters: list[Visit], kept: set[int]) -> list[Visit | Gap]:
    found: list[Visit | Gap] = []
    missing = 0
    for i, visit in enumerate(chapters):
        if i in kept:
            found += [Gap(missing), visit] if missing else [visit]
            missing = 0
        else:
            missing += 1
    return [*found, Gap(missing)] if missing else found
