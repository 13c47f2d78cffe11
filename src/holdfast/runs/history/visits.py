"""The visits of a run's nodes: when each began, tried again, waited, asked, and what came of it.

A run is told twice, by two folds, and neither could be made of the other. This one (`seeing.py`) goes by
events: it follows a run that another process advances, keeps as much as is shown, and knows when something
waited; but events carry no values. The other (`chronicle.py`) goes by records with the position before each:
it tells what changed in the state, what a call returned, who coped with a failure; for that it opens every
body and keeps every visit, so it cannot watch. What both tell, they tell alike:
`tests/flows/test_two_folds.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

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


class Retry(msgspec.Struct, frozen=True):
    at: int
    error: str


class Visit(msgspec.Struct, kw_only=True):
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
    retries: list[Retry] = []
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
        self.ended: list[Visit] = []
        self.open: dict[str, Visit] = {}
        self.nodes: dict[str, NodeSum] = {}
        # How often each edge was taken, by the path of its graph and its id.
        self.edges: dict[str, int] = {}
        self.asked: dict[str, Visit] = {}
        self.resumes: list[int] = []
        self.left_out = 0
        self._keep = keep
        self._last: dict[str, Visit] = {}

    def all(self) -> list[Visit]:
        """In the order in which they began."""
        return sorted([*self.ended, *self.open.values()], key=lambda v: (v.started_at, v.visit, v.label))

    def node(self, path: str) -> NodeSum:
        return self.nodes.setdefault(path, NodeSum())

    def begin(self, visit: Visit) -> None:
        self.open[visit.label] = self._last[visit.label] = visit
        node = self.node(visit.path)
        node.visits += 1
        node.open += 1
        node.state = visit.state

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

    def spend(self, visit: Visit, work_us: int, tokens: int, cost: float) -> None:
        node = self.node(visit.path)
        for spender in (visit, node):
            spender.work_us += work_us
            spender.tokens += tokens
            spender.cost += cost

    def at_work(self, node: str, scope: str, number: int, at: int) -> Visit:
        """The visit that is meant; one that had ended goes on (a mended failure, a settled doubt)."""
        label = scope + node
        visit = self.open.get(label)
        if visit is not None:
            # The start of a node that a walk jumps to does not tell which visit it is; what follows does.
            visit.visit = number or visit.visit
            return visit
        visit = self._last.get(label)
        if visit is None or (number and visit.visit != number):
            visit = Visit(node=node, scope=scope, visit=number or 1, started_at=at)
            self.begin(visit)
        else:
            self._reopen(visit)
        return visit

    def _reopen(self, visit: Visit) -> None:
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

    def set_state(self, visit: Visit, state: str) -> None:
        visit.state = self.node(visit.path).state = state


def close_waits(visit: Visit, at: int) -> None:
    for wait in visit.waits:
        wait.until = wait.until or at
