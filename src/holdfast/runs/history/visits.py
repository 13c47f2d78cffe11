"""The visits of a run's nodes: when each began, tried again, waited, asked, and what came of it.

A run is told twice, by two folds, and neither could be made of the other. This one (`seeing.py`) goes by
events: it follows a run that another process advances, keeps as much as is shown, and knows when something
waited; but events carry no values. The other (`chronicle.py`) goes by records with the position before each:
it tells what changed in the state, what a call returned, who coped with a failure; for that it opens every
body and keeps every visit, so it cannot watch. What both tell, they tell alike:
`tests/flows/test_two_folds.py`.

From events to visits: one fold for a run that is long over and for one that is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from holdfast.model.breakpoints import SUFFIX
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.model.position import NAP
from holdfast.types.event import Event

FAILED = frozenset({"failed", "unknown"})


class Wait(msgspec.Struct, kw_only=True):
    """`kind`: `person`, `time`, or `retry` (the pause before another attempt). Open while `until` is None."""

    kind: str
    since: int
    until: int | None = None
    wake_at: int | None = None
    about: str = ""
    hold: str = ""
    by: str = ""
    decision: Any = None


class VisitRetry(msgspec.Struct, frozen=True):
    at: int
    error: str


class NodeVisit(msgspec.Struct, kw_only=True):
    """One visit of one node, with all its attempts. States: running, asking, waiting, ready (answered, and
    nobody has gone on yet), done, failed, unknown, abandoned, stopped (the run ended around it)."""

    node: str
    scope: str
    visit: int
    started_at: int
    ended_at: int | None = None
    state: str = "running"
    outcome: str = ""
    attempts: int = 1
    # What handlers took, all attempts that settled; waiting is not in it.
    work_us: int = 0
    error: str = ""
    waits: list[Wait] = []
    retries: list[VisitRetry] = []
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    emitted: int = 0
    # The end of what it told with `ctx.emit`, and how far it says that it is (0 to 1).
    said: str = ""
    progress: float | None = None
    # The run that it happened in, where a fork brought it along.
    run: str = ""

    @property
    def label(self) -> str:
        return self.scope + self.node

    @property
    def path(self) -> str:
        return path_of(self.scope) + self.node


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


def path_of(scope: str) -> str:
    """Where in the graph a scope is: `send.1[0]/pay.1[2]/` is inside `send/pay/`."""
    if not scope:
        return ""
    names = [part.rpartition("[")[0].rpartition(".")[0] for part in scope.split("/")[:-1]]
    return "/".join(names) + "/"


def _owner(scope: str) -> str:
    """The label of the node that a scope is inside of."""
    return scope.rpartition("[")[0].rpartition(".")[0]


def split_label(label: str) -> tuple[str, str]:
    """The scope and the node of it."""
    scope, slash, node = label.rpartition("/")
    return scope + slash, node


def place_of(label: str) -> str:
    """Where in the graph a node or edge is: `send.1[0]/pay` is `send/pay`."""
    scope, node = split_label(label)
    return path_of(scope) + node


class Visits:
    """`keep`: so many ended visits stay in full, the newest; `left_out` counts the rest. Sums are whole."""

    def __init__(self, keep: int | None = None) -> None:
        self.ended: list[NodeVisit] = []
        self.open: dict[str, NodeVisit] = {}
        self.nodes: dict[str, NodeSum] = {}
        # How often each edge was taken, by the path of its graph and its id.
        self.edges: dict[str, int] = {}
        self.asked: dict[str, NodeVisit] = {}
        self.resumes: list[int] = []
        self.left_out = 0
        self._keep = keep
        self._last: dict[str, NodeVisit] = {}

    def all(self) -> list[NodeVisit]:
        """In the order in which they began."""
        return sorted([*self.ended, *self.open.values()], key=lambda v: (v.started_at, v.visit, v.label))

    def node(self, path: str) -> NodeSum:
        return self.nodes.setdefault(path, NodeSum())

    def begin(self, visit: NodeVisit) -> None:
        self.open[visit.label] = self._last[visit.label] = visit
        node = self.node(visit.path)
        node.visits += 1
        node.open += 1
        node.state = visit.state

    def end(self, visit: NodeVisit, at: int, state: str) -> None:
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
        """The run ended around what is open."""
        for visit in list(self.open.values()):
            self.end(visit, at, "stopped")

    def rest(self) -> None:
        """Nobody has the run: what was at work is only ready to go on. A map stands where its items do."""
        around = {_owner(visit.scope) for visit in self.open.values()}
        for visit in self.open.values():
            if visit.state == "running" and visit.label not in around:
                visit.state = self.node(visit.path).state = "ready"

    def trim(self) -> None:
        """Down to what is kept."""
        if self._keep is not None and len(self.ended) > self._keep:
            self.left_out += len(self.ended) - self._keep
            self.ended = self.ended[-self._keep :] if self._keep else []

    def spend(self, visit: NodeVisit, work_us: int, tokens: int, cost: float) -> None:
        node = self.node(visit.path)
        for spender in (visit, node):
            spender.work_us += work_us
            spender.tokens += tokens
            spender.cost += cost

    def at_work(self, node: str, scope: str, number: int, at: int) -> NodeVisit:
        """The visit that is meant; one that had ended goes on (a mended failure, a settled doubt)."""
        label = scope + node
        visit = self.open.get(label)
        if visit is not None:
            # The start of a node that a walk jumps to does not tell which visit it is; what follows does.
            visit.visit = number or visit.visit
            return visit
        visit = self._last.get(label)
        if visit is None or (number and visit.visit != number):
            visit = NodeVisit(node=node, scope=scope, visit=number or 1, started_at=at)
            self.begin(visit)
        else:
            self._reopen(visit)
        return visit

    def _reopen(self, visit: NodeVisit) -> None:
        node = self.node(visit.path)
        node.done -= visit.state == "done"
        node.failed -= visit.state in FAILED
        node.open += 1
        visit.ended_at, visit.state = None, "running"
        self.ended = [ended for ended in self.ended if ended is not visit]
        self.open[visit.label] = visit

    def rename(self, labels: dict[str, str]) -> None:
        """The run went over to a version that calls nodes otherwise. What had ended keeps its old name."""
        for known in (self.open, self._last):
            moved = {new: known.pop(old) for old, new in labels.items() if old in known}
            known.update(moved)
        for label, visit in self.open.items():
            visit.scope, visit.node = split_label(label)
        paths = {place_of(old): place_of(new) for old, new in labels.items()}
        sums = {new: self.nodes.pop(old) for old, new in paths.items() if old != new and old in self.nodes}
        self.nodes.update(sums)

    def set_state(self, visit: NodeVisit, state: str) -> None:
        visit.state = self.node(visit.path).state = state


def close_waits(visit: NodeVisit, at: int) -> None:
    for wait in visit.waits:
        wait.until = wait.until or at


DONE = frozenset({"success", "partial_success"})

TEXT_LENGTH = 400
"""Characters of a node's live output that are remembered."""


def apply_event(visits: Visits, event: Event) -> None:
    tell = _APPLY.get(event.type)
    if tell is not None:
        tell(visits, event)


def error_text(data: dict[str, Any]) -> str:
    error: Any = data.get("error")
    return f"{error['type']}: {error['message']}" if error else ""


def _visit_for(visits: Visits, event: Event) -> NodeVisit:
    return visits.at_work(event.node, event.scope, int(event.data.get("visit") or 0), event.at)


def _started(visits: Visits, event: Event) -> None:
    number = int(event.data.get("visit") or 1)
    visits.begin(NodeVisit(node=event.node, scope=event.scope, visit=number, started_at=event.at))


def _settled(visits: Visits, event: Event) -> None:
    visit, data = _visit_for(visits, event), event.data
    visit.attempts = max(visit.attempts, int(data.get("attempt") or 1))
    visits.spend(visit, int(data.get("duration_us") or 0), *_spent(data))
    visit.outcome, visit.error = str(data.get("outcome") or ""), error_text(data)
    visits.end(visit, event.at, _SETTLED[event.type])


def _spent(data: dict[str, Any]) -> tuple[int, float]:
    usage: dict[str, Any] = data.get("usage") or {}
    return int(usage.get("tokens") or 0), float(usage.get("cost") or 0)


def _attempted(visits: Visits, event: Event) -> None:
    visit, data = _visit_for(visits, event), event.data
    visit.attempts = max(visit.attempts, int(data.get("attempt") or 1))
    close_waits(visit, event.at)
    visits.set_state(visit, "running")


def _retried(visits: Visits, event: Event) -> None:
    _attempted(visits, event)
    visit, wake_at = _visit_for(visits, event), event.data.get("wake_at")
    visit.retries.append(VisitRetry(event.at, error_text(event.data)))
    visits.node(visit.path).retries += 1
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
    if event.data.get("type") == BREAKPOINT:
        # It stands before a node, and is none itself: the node's visit waits.
        event = msgspec.structs.replace(event, node=event.node.removesuffix(SUFFIX))
    visit, hold = _visit_for(visits, event), str(event.data.get("hold_id", ""))
    about = str(event.data.get("prompt") or "")
    visit.waits.append(Wait(kind="person", since=event.at, about=about, hold=hold))
    visits.asked[hold] = visit
    visits.set_state(visit, "asking")


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


def _waits(visit: NodeVisit) -> bool:
    return any(wait.until is None for wait in visit.waits)


def _woke_inside(visits: Visits, visit: NodeVisit, at: int) -> None:
    for wait in visit.waits:
        if wait.kind == "time" and wait.until is None:
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


def _emitted(visits: Visits, event: Event) -> None:
    """Text grows at its end, as tokens do; `kind="progress"` is a number from 0 to 1, or done and total."""
    told: Any = _words(event.data.get("kind"), event.data.get("data"))
    visit = _visit_for(visits, event)
    visit.emitted += 1
    visit.said = (visit.said + told)[-TEXT_LENGTH:] if isinstance(told, str) else repr(told)[-TEXT_LENGTH:]
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
_APPLY: dict[str, Callable[[Visits, Event], None]] = {
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
