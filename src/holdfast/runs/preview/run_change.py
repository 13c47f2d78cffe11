"""What a resume, retry, fork, rewind or cancel of a run would do, said before it is done. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from holdfast.checkpoint.visit import Visit
from holdfast.errors import InputError, RunEndedError
from holdfast.model.graph import Graph, InDoubt
from holdfast.model.position import Position
from holdfast.model.shown_names import shown_name
from holdfast.runs.events import reader_of
from holdfast.runs.fork.carried_decisions import fork_point
from holdfast.runs.history.checkpoints import fold_to
from holdfast.runs.preview.outcome import PreviewEntry
from holdfast.runs.unserved import is_unserved
from holdfast.store.errors import require_live
from holdfast.types.hold import UNASKED, HoldRow
from holdfast.types.status import ENDED, Effect, HoldStatus, RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.history.story import Story
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow
    from holdfast.types.terms import Actor

Action = Literal["resume", "retry", "fork", "rewind", "cancel"]
_OUTSIDE: Final = (Effect.write, Effect.external)
UNSERVED: Final = "No worker that is alive serves this version of the flow: the run waits for one."


class RepeatedEffect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect outside that may happen again. `guarded`: by a key that the callee recognises, which is the
    same again."""

    node: str
    effect: str
    guarded: bool


class RunChangePreview(msgspec.Struct, frozen=True, kw_only=True):
    """`head`: the last record when it was made; if the run has moved since, ask again. `record`: the record
    from which the run, or the new run, continues. `run_again`: nodes; `in_doubt`: nodes that had begun their
    effect there, of which a person is asked first whether it took effect; `withdrawn` and `asked_again`:
    questions; `text`: all of it as sentences. `refused_without_consent`: nodes with effects outside that a
    branch repeats because it has to start before a question; it is refused without `repeat_effects`."""

    run: str
    action: str
    head: int
    record: int
    version: str
    run_again: list[str]
    in_doubt: list[str] = []
    repeated_effects: list[RepeatedEffect]
    withdrawn: list[str]
    asked_again: list[str]
    text: list[str]
    refused_without_consent: list[str] = []
    # With a patch: what the new run does, up to its next questions and outside effects. The other fields say
    # what this run did after the record.
    way: list[PreviewEntry] = []


async def preview_change(
    service: RunAccess,
    row: RunRow,
    action: Action,
    *,
    at: int | None = None,
    patch: Mapping[str, Any] | None = None,
    actor: Actor | None,
) -> RunChangePreview:
    """`at`: the record to fork or rewind to; default: the last. `patch`: the state that a fork or rewind
    changes. `actor`: the caller of a server; None for the owner of the store. Raises RunEndedError where the
    action does not apply, InputError for a record that it does not have, and what `fork` raises for the
    patch."""
    from holdfast.runs.history.story_loader import load_story

    if at is not None and (not row.horizon <= at <= row.head or action not in ("fork", "rewind")):
        raise InputError(
            f"run {row.id} cannot be changed from record {at} by {action}.",
            hint=f"Forks and rewinds start at a record from {row.horizon} to {row.head}.",
        )
    if action != "fork":
        require_live(row)
    if action == "cancel" and row.status in ENDED:
        raise RunEndedError(f"run {row.id} is {run_label(row.status)}.", run=row.id)
    if action in ("resume", "retry") and row.status in (RunStatus.completed, RunStatus.cancelled):
        raise RunEndedError(f"run {row.id} is {run_label(row.status)}: nothing would run.", run=row.id)
    if patch is not None and action not in ("fork", "rewind"):
        raise InputError(f"a {action} changes no state.", hint="Leave the patch out, or fork the run.")
    record = row.head if at is None else at
    refused: tuple[str, ...] = ()
    if action in ("fork", "rewind") and actor is not None:
        # Decisions that this person may not take along are asked again, so it starts before them.
        point = await fork_point(service, row, record, actor)
        record, refused = point.seq if point.run.id == row.id else row.horizon, point.repeats
    way: list[PreviewEntry] = []
    if patch:
        from holdfast.runs.preview.preview import preview_branch

        way = await preview_branch(service, row, record, patch, actor)
    graph = (await reader_of(service, row)).graph
    visits = list(_runs_again(await load_story(service, row), action, record))
    doubted: list[str] = []
    if action != "cancel" and any(visit.effect in _OUTSIDE for visit in visits):
        begun = _begun_effects(graph, (await fold_to(service, row, record)).pos)
        doubted = [shown_name(each.label, graph) for each in visits if _place(each) in begun]
        visits = [each for each in visits if _place(each) not in begun]
    holds = await service.holds(row.id, open_only=False)
    open_holds = [hold for hold in holds if hold.status is HoldStatus.pending and hold.type not in UNASKED]
    withdrawn = open_holds if action in ("cancel", "rewind") else []
    asked = [hold for hold in holds if _is_asked_again(hold, record)] if action in ("fork", "rewind") else []
    found = RunChangePreview(
        run=row.id,
        action=action,
        head=row.head,
        record=record,
        version=row.version,
        run_again=list(dict.fromkeys(shown_name(visit.label, graph) for visit in visits)),
        in_doubt=list(dict.fromkeys(doubted)),
        repeated_effects=_repeated(visits, graph) if action != "cancel" else [],
        withdrawn=[hold.prompt for hold in withdrawn],
        asked_again=[hold.prompt for hold in asked],
        text=[],
        refused_without_consent=list(refused),
        way=way,
    )
    text = list(_sentences(found, row.status))
    # The owner of the store resumes it in a process of their own.
    if action == "resume" and actor is not None and await is_unserved(service.store, row):
        text.append(UNSERVED)
    return msgspec.structs.replace(found, text=text)


def _runs_again(story: Story, action: Action, record: int) -> Iterator[Visit]:
    for visit in story.visits:
        # Questions are listed apart.
        if visit.run != story.run or any(question.why == "node" for question in visit.questions):
            continue
        unfinished = visit.halts or visit.state in ("running", "failed", "unknown", "stopped")
        if unfinished or (action in ("fork", "rewind") and visit.seq > record):
            yield visit


def _begun_effects(graph: Graph, pos: Position) -> set[tuple[str, str, int]]:
    """Of which a person is asked: begun, without an outcome and without a key."""
    found: set[tuple[str, str, int]] = set()
    for execution in pos.execs.values():
        node = pos.scope_graph(graph, pos.scopes[execution.scope]).nodes[execution.node]
        policy = node.in_doubt or graph.spec.in_doubt
        if execution.intent >= 0 and not node.idempotency_key and policy in (InDoubt.ask, InDoubt.probe):
            found.add((execution.scope, node.id, execution.visit))
    return found


def _place(visit: Visit) -> tuple[str, str, int]:
    return visit.scope, visit.node, visit.visit


def _is_asked_again(hold: HoldRow, record: int) -> bool:
    """Decided after the record, or still open there: the new run asks it under an id of its own."""
    if hold.type in UNASKED or hold.status is HoldStatus.cancelled:
        return False
    return hold.status is HoldStatus.pending or hold.seq > record


def _repeated(visits: Sequence[Visit], graph: Graph) -> list[RepeatedEffect]:
    found: dict[str, RepeatedEffect] = {}
    keyed = {node.id for node in graph.nodes if node.idempotency_key}
    for visit in visits:
        outside = [call.effect for call in visit.calls if call.effect in _OUTSIDE]
        if visit.effect in _OUTSIDE:
            outside.insert(0, visit.effect)
        if outside:
            name = shown_name(visit.label, graph)
            found[name] = RepeatedEffect(node=name, effect=outside[0], guarded=visit.node in keyed)
    return list(found.values())


def _sentences(found: RunChangePreview, status: RunStatus) -> Iterator[str]:
    fate = f"stays {run_label(status)}" if status in ENDED else "is cancelled"
    yield {
        "resume": "The run continues from its last checkpoint.",
        "retry": "What failed runs again, with all its attempts.",
        "fork": f"A new run starts from record {found.record}. This run is not changed.",
        "rewind": f"A new run starts from record {found.record} and replaces this one, which {fate}.",
        "cancel": "The run ends as cancelled. What runs is stopped; an effect that began may still happen.",
    }[found.action]
    if found.run_again:
        verb = "Stops" if found.action == "cancel" else "Runs again"
        yield f"{verb}: {', '.join(found.run_again)}."
    if found.in_doubt:
        yield f"Asks whether it took effect, before it runs again: {', '.join(found.in_doubt)}."
    for guarded, words in ((False, "no key guards them"), (True, "a key guards them")):
        names = [each.node for each in found.repeated_effects if each.guarded is guarded]
        if names:
            yield f"May happen outside once more ({words}): {', '.join(names)}."
    if found.refused_without_consent:
        yield (
            "It has to start before a question that you cannot decide alone, and does this work with effects "
            f"outside once more: {', '.join(found.refused_without_consent)}."
        )
    for prompt in found.withdrawn:
        yield f"Withdraws the question: {prompt}"
    for prompt in found.asked_again:
        yield f"Asks again: {prompt}"
