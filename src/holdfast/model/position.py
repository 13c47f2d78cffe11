"""The position of a run: its scopes, the executions in them, and what they wait for.

It changes by recorded moves only (`model.moves`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import CheckpointCorruptError
from holdfast.model.budget_ledger import Amounts, Ledger
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Graph
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.values import Values
from holdfast.types.record import Record

ExecKey = tuple[str, int]
SETTLED = "="
"""The ordinal under which a node's changes are kept while Python code chooses among its edges."""


NAP = "sleep"
"""The name of `ctx.sleep` among the sub-steps; while it sleeps its value is the time when it ends."""


STEP_RETRY, STEP_WOKE = "step_retry", "step_woke"
"""Reasons of attempt records: a sub-step waits for its next attempt; that wait is over."""


class Sub(msgspec.Struct, array_like=True):
    """A recorded sub-step or answer inside a node (D-21). `hold`: the question, or the timer of a sleep or
    of a back-off. `failures`: attempts that failed, of a sub-step with retries of its own."""

    name: str
    value: Any = None
    error: ErrorInfo | None = None
    hold: str = ""
    done: bool = True
    failures: int = 0

    @property
    def is_answered(self) -> bool:
        """Whether its handler waits for nothing more: it is done, or its next attempt may start."""
        return self.done or not self.hold


class Exec(msgspec.Struct):
    """One execution of one node that has started and not settled.

    Phases: work (a handler is to run), asked (a hold is open), sleep and delay (a timer is armed),
    children (a map or sub-flow), doubt (an effect's outcome is unknown), break (it stopped at a breakpoint),
    failed.
    """

    scope: str
    node: int
    visit: int
    frame: int
    seq: int
    attempt: int = 1
    failures: int = 0
    phase: str = "work"
    intent: int = -1
    # Open intents of sub-steps: ordinal -> seq of the intent; and what those steps are called.
    step_intents: dict[str, int] = {}
    step_names: dict[str, str] = {}
    subs: dict[str, Sub] = {}
    # What its calls have used, by ordinal; a retry keeps it, although it repeats the calls that failed.
    spent: dict[str, Amounts] = {}
    wake_at: int | None = None
    token: str = ""
    error: ErrorInfo | None = None
    # A map: its items and their results.
    items: list[Any] | None = None
    results: dict[int, Any] = {}
    opened: int = 0
    # Live output of this attempt: whether there is some, and how much of it by the code around the sub-steps.
    # Lines of its log are counted apart.
    emitted: bool = False
    chunks: int = 0
    lines: int = 0
    # The handler's code when its first sub-step was recorded: other code may not re-enter this visit (D-34).
    code: str = ""
    # Its breakpoint was continued.
    passed: bool = False
    # The name it started under, if a migration has renamed it: its idempotency keys must not change (D-18).
    born: tuple[str, str] | None = None


class OpenHold(msgspec.Struct, array_like=True):
    """What waits for this hold: the node itself, a question inside it, or an effect whose outcome is
    unknown."""

    scope: str
    node: int
    why: str  # node, ask, doubt, doubt_step, break; code: changed code is to run (of no node)
    key: str = ""
    ordinal: int = 0
    on_timeout: str | None = None
    token: str = ""
    expires_at: int | None = None


class LoopState(msgspec.Struct, array_like=True):
    """An entered loop: the loop edges that are decided, and the dead exits that are decided at its end."""

    decided: list[int] = []
    fired: list[int] = []
    dead_exits: list[int] = []
    # Exits that fired in this turn, with their frames: they wait for the loop's end.
    held: dict[int, int] = {}


class Scope(msgspec.Struct):
    """The root, a sub-flow or one item of a map: a graph with its own position and values."""

    path: str
    graph: str
    tree: FrameTree
    owner: ExecKey | None = None
    index: int = 0
    tokens: dict[int, int] = {}
    waiting: dict[int, int] = {}
    arrived: dict[int, int] = {}
    early: list[int] = []
    visits: dict[int, int] = {}
    loop_counts: dict[int, int] = {}
    open_loops: dict[int, LoopState] = {}
    active: int = 0
    # Walk only: the last outcome, goal gates and counters.
    walk: dict[str, Any] = {}
    # Walk only: the visits of each node at its last restart; limits count from there.
    before: dict[int, int] = {}


class Position(msgspec.Struct):
    run: str
    head: int = -1
    at: int = 0
    status: str = "running"
    mode: str = "barrier"
    scopes: dict[str, Scope] = {}
    execs: dict[ExecKey, Exec] = {}
    holds: dict[str, OpenHold] = {}
    timers: dict[str, ExecKey] = {}
    # When joins with a time limit give up waiting, by the token of their timer.
    join_wakes: dict[str, int] = {}
    failing: ErrorInfo | None = None
    failed_node: str = ""
    cancelling: str | None = None
    cancel_rows: list[int] = []
    totals: dict[str, float] = {}
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    # Options of this run: its breakpoints (and whether they are on), and which records are listed as
    # checkpoints.
    breaks: list[str] = []
    breaks_off: bool = False
    checkpoints: dict[str, Any] = {}
    # The skills that this run uses from its start to its end, as its first record has them.
    skills: list[dict[str, str]] = []
    # Whether expressions read records, and missing names fail maps and sub-flows when they start: not in runs
    # that were started before that rule, whose records were decided without it.
    strict_names: bool = False
    # The code that this run was last advanced with, where it is not the one it was started with (D-34).
    code: str = ""

    def scope_graph(self, graph: Graph, scope: Scope) -> Graph:
        return graph if scope.graph == "" else _nested(graph, scope.graph)


def _nested(graph: Graph, path: str) -> Graph:
    for name in path.split("/"):
        graph = graph.subgraphs[name]
    return graph


def new_scope(path: str, graph: str, values: Values, owner: ExecKey | None = None, index: int = 0) -> Scope:
    return Scope(path, graph, FrameTree.rooted(values), owner, index)


def find_exec(graph: Graph, pos: Position, record: Record, node: str = "") -> Exec:
    """The execution that a record is about (`node`: if the record names another). Raises
    CheckpointCorruptError if there is none."""
    scope = pos.scopes.get(record.scope)
    found = None
    if scope is not None:
        inner = pos.scope_graph(graph, scope)
        found = pos.execs.get((record.scope, inner.index.get(node or record.node, -1)))
    if found is None:
        raise CheckpointCorruptError(
            f"run {pos.run}: record {record.seq} is about node {record.node!r}, which is not running there"
        )
    return found


def naps_of(pos: Position, execution: Exec) -> list[str]:
    """The tokens of open `ctx.sleep`s inside this execution."""
    if not pos.timers or not execution.subs:
        return []
    return [sub.hold for sub in execution.subs.values() if not sub.done and sub.hold in pos.timers]


def wakes_of(pos: Position) -> dict[str, int]:
    """When each open wait for a time is over, by its token."""
    found = {token: at for token, at in pos.join_wakes.items() if token in pos.timers}
    for execution in pos.execs.values():
        if execution.wake_at is not None and execution.token in pos.timers:
            found[execution.token] = execution.wake_at
        for sub in execution.subs.values():
            if not sub.done and sub.hold in pos.timers:
                found[sub.hold] = int(sub.value)
    return found


def waits_inside(pos: Position, execution: Exec) -> bool:
    """Whether its handler waits for an answer or a timer."""
    open_ = (sub.hold for sub in execution.subs.values() if not sub.done)
    return any(hold in pos.holds or hold in pos.timers for hold in open_)


def close_waits(pos: Position, execution: Exec) -> None:
    """Close the timer, sleeps and questions that this execution waits for."""
    if execution.token:
        pos.timers.pop(execution.token, None)
    for token in naps_of(pos, execution):
        del pos.timers[token]
    if pos.holds:
        mine = [
            hold
            for hold, waiting in pos.holds.items()
            if waiting.node == execution.node and waiting.scope == execution.scope
        ]
        for hold in mine:
            token = pos.holds.pop(hold).token
            pos.timers.pop(token, None)
