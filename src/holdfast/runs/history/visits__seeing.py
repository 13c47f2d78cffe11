"""From events to visits: one fold for a run that is long over and for one that is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from holdfast.model.breakpoints import SUFFIX
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.model.position import NAP
from holdfast.runs.history.visits import Retry, Visit, Visits, Wait, close_waits, path_of
from holdfast.types.event import Event

DONE = frozenset({"success", "partial_success"})

SAID = 400
"""Characters of a node's live output that are remembered."""


def see(visits: Visits, event: Event) -> None:
    tell = _SEE.get(event.type)
    if tell is not None:
        tell(visits, event)


def error_text(data: dict[str, Any]) -> str:
    error: Any = data.get("error")
    return f"{error['type']}: {error['message']}" if error else ""


def _meant(visits: Visits, event: Event) -> Visit:
    return visits.at_work(event.node, event.scope, int(event.data.get("visit") or 0), event.at)


def _started(visits: Visits, event: Event) -> None:
    number = int(event.data.get("visit") or 1)
    visits.begin(Visit(node=event.node, scope=event.scope, visit=number, started_at=event.at))


def _settled(visits: Visits, event: Event) -> None:
    visit, data = _meant(visits, event), event.data
    visit.attempts = max(visit.attempts, int(data.get("attempt") or 1))
    visits.spend(visit, int(data.get("duration_us") or 0), *_spent(data))
    visit.outcome, visit.error = str(data.get("outcome") or ""), error_text(data)
    visits.end(visit, event.at, _SETTLED[event.type])


def _spent(data: dict[str, Any]) -> tuple[int, float]:
    usage: dict[str, Any] = data.get("usage") or {}
    return int(usage.get("tokens") or 0), float(usage.get("cost") or 0)


def _attempted(visits: Visits, event: Event) -> None:
    visit, data = _meant(visits, event), event.data
    visit.attempts = max(visit.attempts, int(data.get("attempt") or 1))
    close_waits(visit, event.at)
    visits.set_state(visit, "running")


def _retried(visits: Visits, event: Event) -> None:
    _attempted(visits, event)
    visit, wake_at = _meant(visits, event), event.data.get("wake_at")
    visit.retries.append(Retry(event.at, error_text(event.data)))
    visits.node(visit.path).retries += 1
    if wake_at is not None:
        visit.waits.append(Wait(kind="retry", since=event.at, wake_at=wake_at))
        visits.set_state(visit, "waiting")


def _slept(visits: Visits, event: Event) -> None:
    visit = _meant(visits, event)
    visit.waits.append(Wait(kind="time", since=event.at, wake_at=event.data.get("wake_at")))
    visits.set_state(visit, "waiting")


def _asked(visits: Visits, event: Event) -> None:
    if not event.node:
        return  # a question of the run itself, not of one of its nodes
    if event.data.get("type") == BREAKPOINT:
        # It stands before a node, and is none itself: the node's visit waits.
        event = msgspec.structs.replace(event, node=event.node.removesuffix(SUFFIX))
    visit, hold = _meant(visits, event), str(event.data.get("checkpoint_id", ""))
    about = str(event.data.get("prompt") or "")
    visit.waits.append(Wait(kind="person", since=event.at, about=about, hold=hold))
    visits.asked[hold] = visit
    visits.set_state(visit, "asking")


def _resolved(visits: Visits, event: Event) -> None:
    hold = str(event.data.get("hold", ""))
    visit = visits.asked.get(hold)
    if visit is None:
        return
    for wait in visit.waits:
        if wait.hold == hold:
            wait.by, wait.decision = str(event.data.get("by", "")), event.data.get("decision")
            wait.until = event.at
    if visit.ended_at is None and not _waits(visit):
        visits.set_state(visit, "ready")


def _answered(visits: Visits, event: Event) -> None:
    visit = _meant(visits, event)
    for wait in visit.waits:
        if wait.hold == event.data.get("hold"):
            wait.until = wait.until or event.at
    if not _waits(visit):
        visits.set_state(visit, "running")


def _waits(visit: Visit) -> bool:
    return any(wait.until is None for wait in visit.waits)


def _woke_inside(visits: Visits, visit: Visit, at: int) -> None:
    for wait in visit.waits:
        if wait.kind == "time" and wait.until is None:
            wait.until = at
            break
    if not _waits(visit):
        visits.set_state(visit, "running")


def _stepped(visits: Visits, event: Event) -> None:
    visit = _meant(visits, event)
    if event.data.get("step") == NAP:
        _woke_inside(visits, visit, event.at)
        return
    visit.steps += 1
    visits.spend(visit, 0, *_spent(event.data))


def _emitted(visits: Visits, event: Event) -> None:
    """Text grows at its end, as tokens do; `kind="progress"` is a number from 0 to 1, or done and total."""
    told: Any = _words(event.data.get("kind"), event.data.get("data"))
    visit = _meant(visits, event)
    visit.emitted += 1
    visit.said = (visit.said + told)[-SAID:] if isinstance(told, str) else repr(told)[-SAID:]
    if event.data.get("kind") == "progress":
        visit.progress = _share(told)


def _words(kind: Any, told: Any) -> Any:
    """Of agents: what a sub-agent says reads on like any text, and a tool is named where it begins."""
    if kind == "agent" and isinstance(told, dict):
        return cast("dict[str, Any]", told).get("text", told)
    if kind == "tool" and isinstance(told, dict):
        return f" [{cast('dict[str, Any]', told).get('tool')}] "
    return told


def _share(told: Any) -> float | None:
    if isinstance(told, dict):
        known: dict[str, Any] = told  # type: ignore[assignment]
        done, total = known.get("done"), known.get("total")
        told = (
            done / total
            if isinstance(done, int | float) and isinstance(total, int | float) and total
            else None
        )
    return min(max(float(told), 0.0), 1.0) if isinstance(told, int | float) else None


def _skipped(visits: Visits, event: Event) -> None:
    """Of a node that has been visited before, in another turn or for another item, that is what counts."""
    node = visits.node(path_of(event.scope) + event.node)
    if not node.visits:
        node.state = "skipped"


def _abandoned(visits: Visits, event: Event) -> None:
    visit = visits.open.get(event.scope + event.node)
    if visit is not None:
        visits.end(visit, event.at, "abandoned")


def _dropped(visits: Visits, event: Event) -> None:
    """A branch with all that still ran in it."""
    label, branch = event.scope + event.node, f"[{event.data.get('branch')}]/"
    for place, visit in list(visits.open.items()):
        inside = place.removeprefix(label)
        if place.startswith(f"{label}.") and inside[inside.find("[") :].startswith(branch):
            visits.end(visit, event.at, "abandoned")


def _took(visits: Visits, event: Event) -> None:
    edge = path_of(event.scope) + str(event.data.get("edge", ""))
    visits.edges[edge] = visits.edges.get(edge, 0) + 1


def _resumed(visits: Visits, event: Event) -> None:
    visits.resumes.append(event.at)


def _unreadable(visits: Visits, event: Event) -> None:
    """A damaged record still tells by its columns that a node was settled, and how."""
    visit = visits.open.get(event.scope + event.node)
    if visit is not None and event.data.get("kind") == "step":
        visit.outcome = str(event.data.get("outcome") or "")
        visits.end(visit, event.at, "done" if visit.outcome in DONE else "failed")


def _migrated(visits: Visits, event: Event) -> None:
    visits.rename(event.data.get("renamed") or {})


def _ended(visits: Visits, event: Event) -> None:
    visits.stop(event.at)


_SETTLED = {
    "node.completed": "done",
    "node.failed": "failed",
    "node.unknown": "unknown",
    "node.skipped_failure": "failed",
}
_SEE: dict[str, Callable[[Visits, Event], None]] = {
    **dict.fromkeys(_SETTLED, _settled),
    **dict.fromkeys(
        ("node.restarted", "node.resumed", "node.woke", "node.withdrawn", "node.continued"), _attempted
    ),
    **dict.fromkeys(("node.step_done", "node.step_failed"), _stepped),
    **dict.fromkeys(("run.completed", "run.failed", "run.cancelled"), _ended),
    "node.started": _started,
    "node.retried": _retried,
    "node.emitted": _emitted,
    "node.skipped": _skipped,
    "node.abandoned": _abandoned,
    "branch.dropped": _dropped,
    "timer.started": _slept,
    "hold.opened": _asked,
    "hold.resolved": _resolved,
    "hold.answered": _answered,
    "edge.taken": _took,
    "run.resumed": _resumed,
    "run.migrated": _migrated,
    "record.unreadable": _unreadable,
}
