"""Derives visits from events: one fold for ended runs and for running ones.

Events have no values: what a step changed in the state or what a call returned is added by
`runs.history.story`, from the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from holdfast.checkpoint.visit import STATES, AttemptDetail, Visit, Wait, path_of, place_of, split_scope
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.model.position import NAP
from holdfast.types.event import Event
from holdfast.types.hold import MACHINE_WAITS

FAILED = frozenset({"failed", "unknown"})


class NodeSum(msgspec.Struct, kw_only=True):
    """A place in the graph over all its visits, items of maps included. `open`: visits not ended."""

    state: str = ""
    visits: int = 0
    open: int = 0
    done: int = 0
    failed: int = 0
    retries: int = 0
    work_us: int = 0
    tokens: int = 0
    cost: float = 0.0


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A record that readers look for. `kind`: failed, decided or resumed; `worker`: who resumed it, if that
    is recorded."""

    kind: str
    seq: int
    at: int
    node: str = ""
    worker: str = ""


def _owner(scope: str) -> str:
    """The label of the node that a scope is inside of."""
    return scope.rpartition("[")[0].rpartition(".")[0]


class Visits:
    """`keep`: the number of ended visits kept in full, the newest; `left_out` counts the rest. Sums are
    complete. `on_begin` is called with each visit that begins."""

    def __init__(self, keep: int | None = None, on_begin: Callable[[Visit], None] | None = None) -> None:
        self.ended: list[Visit] = []
        self.open: dict[str, Visit] = {}
        self.nodes: dict[str, NodeSum] = {}
        # How often each edge was taken, by the path of its graph and its id.
        self.edges: dict[str, int] = {}
        self.asked: dict[str, Visit] = {}
        self.marks: list[Mark] = []
        # Workers that lost the run, by the number of their claim.
        self.lost: dict[int, str] = {}
        self.left_out = 0
        # Ended visits are shared with copies: one that continues is replaced, not changed.
        self._shared = False
        self._keep = keep
        self._on_begin = on_begin
        self._last: dict[str, Visit] = {}

    def all(self) -> list[Visit]:
        """In the order in which they began."""
        return sorted([*self.ended, *self.open.values()], key=lambda v: (v.started_at, v.visit, v.label))

    def copy(self) -> Visits:
        """Whose open visits and sums can change without these: to show them as they are now, and go on."""
        self._shared = True
        found = Visits(self._keep)
        found.ended, found.left_out, found._shared = list(self.ended), self.left_out, True
        found.open = {label: _copied(visit) for label, visit in self.open.items()}
        found.nodes = {path: replace(node) for path, node in self.nodes.items()}
        found.edges, found.marks, found.lost = dict(self.edges), list(self.marks), dict(self.lost)
        return found

    def node(self, path: str) -> NodeSum:
        found = self.nodes.get(path)
        if found is None:
            found = self.nodes[path] = NodeSum()
        return found

    def begin(self, visit: Visit) -> None:
        self.open[visit.label] = self._last[visit.label] = visit
        node = self.node(visit.path)
        node.visits += 1
        node.open += 1
        node.state = visit.state
        if self._on_begin is not None:
            self._on_begin(visit)

    def add_ended(self, visit: Visit) -> None:
        """A visit that ended before the remaining history, with what it spent."""
        self.begin(visit)
        self.end(visit, visit.ended_at or visit.started_at, visit.state)
        node = self.node(visit.path)
        node.work_us += visit.work_us
        node.tokens += visit.tokens
        node.cost += visit.cost

    def last(self, label: str) -> Visit | None:
        """The visit of this node that began last, whether it has ended or not."""
        return self._last.get(label)

    def end(self, visit: Visit, at: int, state: str) -> None:
        visit.ended_at, visit.state = at, state
        close_waits(visit, at)
        if self.open.pop(visit.label, None) is None:
            return
        node = self.node(visit.path)
        node.open -= 1
        node.state = state
        node.done += state == "done"
        node.failed += state in FAILED
        self.ended.append(visit)
        if self._keep is not None and len(self.ended) > 2 * self._keep:
            self.trim()

    def stop(self, at: int) -> None:
        """The run ended while these visits were open."""
        for visit in list(self.open.values()):
            self.end(visit, at, "stopped")

    def mark_ready(self) -> None:
        """No worker has the run: running visits are only ready to continue. A map is ready if its
        items are."""
        around = {_owner(visit.scope) for visit in self.open.values()}
        for visit in self.open.values():
            if visit.state == "running" and visit.label not in around:
                visit.state = self.node(visit.path).state = "ready"

    def trim(self) -> None:
        """Drop all but those that are kept."""
        if self._keep is not None and len(self.ended) > self._keep:
            self.left_out += len(self.ended) - self._keep
            self.ended = self.ended[-self._keep :] if self._keep else []

    def spend(self, visit: Visit, work_us: int, tokens: int, cost: float) -> None:
        node = self.node(visit.path)
        for spender in (visit, node):
            spender.work_us += work_us
            spender.tokens += tokens
            spender.cost += cost

    def at_work(self, node: str, scope: str, number: int, at: int) -> Visit:
        """The visit that is meant; an ended one continues (a repaired failure, a settled doubt)."""
        label = scope + node
        visit = self.open.get(label)
        if visit is not None:
            # The start of a node that a walk jumps to does not contain its visit; the next event does.
            visit.visit = number or visit.visit
            return visit
        visit = self._last.get(label)
        if visit is None or (number and visit.visit != number):
            visit = Visit(node=node, scope=scope, visit=number or 1, started_at=at)
            self.begin(visit)
        else:
            visit = self.reopen(visit, at)
        return visit

    def reopen(self, visit: Visit, at: int) -> Visit:
        """Between its failure and the retry of its run nothing worked, and nothing of it waited."""
        self.ended = [ended for ended in self.ended if ended is not visit]
        if self._shared:
            visit, old = _copied(visit), visit
            self._last[visit.label] = visit
            self.asked = {hold: visit if each is old else each for hold, each in self.asked.items()}
        if visit.state in FAILED and visit.ended_at is not None:
            visit.waits.append(Wait(kind="failed", since=visit.ended_at, until=at))
        node = self.node(visit.path)
        node.done -= visit.state == "done"
        node.failed -= visit.state in FAILED
        node.open += 1
        visit.ended_at, visit.state = None, "running"
        self.open[visit.label] = visit
        return visit

    def rename(self, labels: dict[str, str]) -> None:
        """The run was migrated to a version with other node names. Ended visits keep their old name."""
        for known in (self.open, self._last):
            moved = {new: known.pop(old) for old, new in labels.items() if old in known}
            known.update(moved)
        for label, visit in self.open.items():
            visit.scope, visit.node = split_scope(label)
        paths = {place_of(old): place_of(new) for old, new in labels.items()}
        sums = {new: self.nodes.pop(old) for old, new in paths.items() if old != new and old in self.nodes}
        self.nodes.update(sums)

    def set_state(self, visit: Visit, state: str) -> None:
        visit.state = self.node(visit.path).state = state


def _copied(visit: Visit) -> Visit:
    return replace(visit, waits=[replace(wait) for wait in visit.waits], trials=list(visit.trials))


def close_waits(visit: Visit, at: int) -> None:
    for wait in visit.waits:
        wait.until = wait.until or at


TEXT_LENGTH = 400
"""Characters of a node's live output that are kept."""


def apply_event(visits: Visits, event: Event) -> None:
    apply = _APPLY.get(event.type)
    if apply is not None:
        apply(visits, event)


def _error(data: dict[str, Any]) -> dict[str, str] | None:
    error: Any = data.get("error")
    return dict(error) if error else None


def _visit_for(visits: Visits, event: Event) -> Visit:
    visit = visits.at_work(event.node, event.scope, int(event.data.get("visit") or 0), event.at)
    if event.seq >= 0 and event.type != "node.emitted":
        visit.seq, visit.run = event.seq, event.run
        visit.first = event.seq if visit.first < 0 else visit.first
    return visit


def _mark(visits: Visits, visit: Visit, event: Event, kind: str) -> None:
    visits.marks.append(Mark(kind=kind, seq=event.seq, at=event.at, node=visit.label))


def _started(visits: Visits, event: Event) -> None:
    number = int(event.data.get("visit") or 1)
    visits.begin(
        Visit(node=event.node, scope=event.scope, visit=number, started_at=event.at, first=event.seq)
    )


def _settled(visits: Visits, event: Event) -> None:
    visit, data = _visit_for(visits, event), event.data
    visit.attempts = max(visit.attempts, int(data.get("attempt") or 1))
    visit.duration = int(data.get("duration_us") or 0)
    visits.spend(visit, visit.duration, *_spent(data))
    visit.outcome, visit.error = str(data.get("outcome") or ""), _error(data)
    if any(wait.kind == "person" for wait in visit.waits):
        _mark(visits, visit, event, "decided")
    visits.end(visit, event.at, _SETTLED[event.type])
    if visit.state in FAILED:
        _mark(visits, visit, event, "failed")


def _spent(data: dict[str, Any]) -> tuple[int, float]:
    usage: dict[str, Any] | None = data.get("usage")
    if not usage:
        return 0, 0.0
    return int(usage.get("tokens") or 0), float(usage.get("cost") or 0)


def _attempted(visits: Visits, event: Event) -> None:
    visit, data = _visit_for(visits, event), event.data
    # Events of earlier releases give no reason for a retry.
    reason = str(data.get("reason") or ("retry" if event.type == "node.retried" else ""))
    attempt = int(data.get("attempt") or 1)
    visit.attempts = max(visit.attempts, attempt)
    if reason not in _NO_TRIAL:
        error, wake_at = _error(data), data.get("wake_at")
        trial = AttemptDetail(
            reason=reason, attempt=attempt, at=event.at, seq=event.seq, error=error, wake_at=wake_at
        )
        visit.trials.append(trial)
    close_waits(visit, event.at)
    visits.set_state(visit, "running")


def _retried(visits: Visits, event: Event) -> None:
    _attempted(visits, event)
    visit, wake_at = _visit_for(visits, event), event.data.get("wake_at")
    visits.node(visit.path).retries += 1
    _mark(visits, visit, event, "failed")
    if wake_at is not None:
        visit.waits.append(Wait(kind="retry", since=event.at, wake_at=wake_at))
        visits.set_state(visit, "waiting")


def _slept(visits: Visits, event: Event) -> None:
    visit = _visit_for(visits, event)
    visit.waits.append(Wait(kind="time", since=event.at, wake_at=event.data.get("wake_at")))
    visits.set_state(visit, "waiting")


def _asked(visits: Visits, event: Event) -> None:
    if not event.node:
        return  # a question of the run itself, not of one of its nodes
    paused = event.data.get("type") == BREAKPOINT
    if paused:
        # A breakpoint is before a node, and is not a node: the node's visit waits.
        event = replace(event, node=event.node.removesuffix(SUFFIX))
    visit, hold = _visit_for(visits, event), str(event.data.get("hold_id", ""))
    about = str(event.data.get("prompt") or "")
    machine = event.data.get("type") in MACHINE_WAITS
    kind = "message" if machine else "person"
    visit.waits.append(Wait(kind=kind, since=event.at, about=about, hold=hold, breakpoint=paused))
    visits.asked[hold] = visit
    visits.set_state(visit, "waiting" if machine else "asking")


def _resolved(visits: Visits, event: Event) -> None:
    hold = str(event.data.get("hold_id", ""))
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
    visit = _visit_for(visits, event)
    for wait in visit.waits:
        if wait.hold == event.data.get("hold_id"):
            wait.until = wait.until or event.at
    if not _waits(visit):
        visits.set_state(visit, "running")


def _waits(visit: Visit) -> bool:
    return any(wait.until is None for wait in visit.waits)


def _woke_inside(visits: Visits, visit: Visit, at: int, kind: str = "time") -> None:
    for wait in visit.waits:
        if wait.kind == kind and wait.until is None:
            wait.until = at
            break
    if not _waits(visit):
        visits.set_state(visit, "running")


def _stepped(visits: Visits, event: Event) -> None:
    visit = _visit_for(visits, event)
    if event.data.get("step") == NAP:
        _woke_inside(visits, visit, event.at)
        return
    visit.steps += 1
    visits.spend(visit, 0, *_spent(event.data))


def _step_retried(visits: Visits, event: Event) -> None:
    visit = _visit_for(visits, event)
    visits.spend(visit, 0, *_spent(event.data))
    wake_at = event.data.get("wake_at")
    visit.waits.append(Wait(kind="retry", since=event.at, about=str(event.data.get("step")), wake_at=wake_at))
    visits.set_state(visit, "waiting")


def _step_woke(visits: Visits, event: Event) -> None:
    _woke_inside(visits, _visit_for(visits, event), event.at, "retry")


def _emitted(visits: Visits, event: Event) -> None:
    """Text is appended, as tokens are; `kind="progress"` is a number from 0 to 1, or done and total."""
    emitted: Any = _words(event.data.get("kind"), event.data.get("data"))
    visit = _visit_for(visits, event)
    if event.data.get("kind") == "log" and isinstance(emitted, dict):
        # A line of `ctx.log`: it is not part of the text.
        return
    visit.emitted += 1
    text = visit.said + emitted if isinstance(emitted, str) else repr(emitted)
    visit.said = text[-TEXT_LENGTH:]
    if event.data.get("kind") == "progress":
        visit.progress = _share(emitted)


def _words(kind: Any, emitted: Any) -> Any:
    """Of agents: the text of a sub-agent is appended like any text, and a tool is named when it begins."""
    if kind == "agent" and isinstance(emitted, dict):
        return cast("dict[str, Any]", emitted).get("text", emitted)
    if kind == "tool" and isinstance(emitted, dict):
        return f" [{cast('dict[str, Any]', emitted).get('tool')}] "
    return emitted


def _share(emitted: Any) -> float | None:
    if isinstance(emitted, dict):
        known = cast("dict[str, Any]", emitted)
        done, total = known.get("done"), known.get("total")
        emitted = None
        if isinstance(done, int | float) and isinstance(total, int | float) and total:
            emitted = done / total
    return min(max(float(emitted), 0.0), 1.0) if isinstance(emitted, int | float) else None


def _skipped(visits: Visits, event: Event) -> None:
    """If the node has been visited before, in another turn or for another item, that visit counts."""
    node = visits.node(path_of(event.scope) + event.node)
    if not node.visits:
        node.state = "skipped"


def _abandoned(visits: Visits, event: Event) -> None:
    """A node with everything that still ran inside it."""
    label = event.scope + event.node
    for place, visit in list(visits.open.items()):
        if place == label or place.startswith(f"{label}."):
            visits.end(visit, event.at, "abandoned")


def _dropped(visits: Visits, event: Event) -> None:
    drop_branch(visits, event.scope + event.node, event.data.get("branch"), event.at)


def drop_branch(visits: Visits, label: str, number: int | None, at: int) -> None:
    """A branch with everything that still ran in it."""
    branch = f"[{number}]/"
    for place, visit in list(visits.open.items()):
        inside = place.removeprefix(label)
        if place.startswith(f"{label}.") and inside[inside.find("[") :].startswith(branch):
            visits.end(visit, at, "abandoned")


def _took(visits: Visits, event: Event) -> None:
    edge = path_of(event.scope) + str(event.data.get("edge", ""))
    visits.edges[edge] = visits.edges.get(edge, 0) + 1


def _resumed(visits: Visits, event: Event) -> None:
    worker = str(event.data.get("worker", ""))
    visits.marks.append(Mark(kind="resumed", seq=event.seq, at=event.at, worker=worker))


def _lost(visits: Visits, event: Event) -> None:
    visits.lost[int(event.data.get("term", 0))] = str(event.data.get("worker", ""))


def _unreadable(visits: Visits, event: Event) -> None:
    """The columns of a damaged record still show that a node was settled, and how."""
    visit = visits.open.get(event.scope + event.node)
    if visit is not None and event.data.get("kind") == "step":
        visit.outcome = str(event.data.get("outcome") or "")
        visits.end(visit, event.at, STATES.get(visit.outcome, "done"))


def _migrated(visits: Visits, event: Event) -> None:
    visits.rename(event.data.get("renamed") or {})


def _ended(visits: Visits, event: Event) -> None:
    visits.stop(event.at)


# Attempts that only continue: the handler waited, and nothing failed.
_NO_TRIAL = frozenset({"withdrawn", "continued"})
_SETTLED = {
    "node.completed": "done",
    "node.failed": "failed",
    "node.unknown": "unknown",
    "node.skipped_failure": "failed",
}
_APPLY: dict[str, Callable[[Visits, Event], None]] = {
    **dict.fromkeys(_SETTLED, _settled),
    **dict.fromkeys(
        ("node.restarted", "node.resumed", "node.woke", "node.withdrawn", "node.continued"), _attempted
    ),
    **dict.fromkeys(("node.step_done", "node.step_failed"), _stepped),
    **dict.fromkeys(("run.completed", "run.failed", "run.cancelled"), _ended),
    **dict.fromkeys(("run.recovered", "run.given_up"), _lost),
    "node.started": _started,
    "node.retried": _retried,
    "node.step_retried": _step_retried,
    "node.step_woke": _step_woke,
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

FOLDED: Final = frozenset(_APPLY)
"""The types of events that change visits."""
