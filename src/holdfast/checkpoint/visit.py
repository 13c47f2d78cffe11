"""One visit of one node, as everything that shows a run uses it: checkpoints, timelines, stories, spans.

Three things make visits, each for as much as it can know: `checkpoint.run_history` from settled steps (also
those that a fork or a pruned run brings along), `runs.history.visits` from events, also while the run is
under way, and `runs.history.story` adds the details that only records have.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.checkpoint.value_diff import Change

STATES: Final = {"skipped": "failed", "unknown": "unknown", "fail": "failed"}
"""The state of a visit by its outcome; any other: done. A skipped node has failed, and the run continued."""


class Wait(msgspec.Struct, kw_only=True):
    """`kind`: `person`, `time`, `retry` (the pause before another attempt) or `failed` (its run had failed,
    until it was retried). Open while `until` is None. `breakpoint`: the person continues the run there."""

    kind: str
    since: int
    until: int | None = None
    wake_at: int | None = None
    about: str = ""
    hold: str = ""
    by: str = ""
    decision: Any = None
    breakpoint: bool = False


class AttemptDetail(msgspec.Struct, kw_only=True):
    """One more attempt and why: `retry`, `restarted`, `in_doubt`, `resumed`, `woke`, ... `error`: that of the
    attempt before it."""

    reason: str
    attempt: int
    at: int
    seq: int = -1
    term: int = 0
    error: dict[str, str] | None = None
    traceback: str = ""
    wake_at: int | None = None


class CallDetail(msgspec.Struct, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    ordinal: str
    effect: str
    at: int
    seq: int
    value: Any = None
    error: dict[str, str] | None = None
    traceback: str = ""
    tokens: int = 0
    cost: float = 0.0


class EmittedDetail(msgspec.Struct, kw_only=True):
    """Something that a node wrote with `ctx.emit` or `ctx.log`. `kind`: `text`, `log`, `progress`, ..."""

    kind: str
    at: int
    data: Any
    attempt: int = 1


class QuestionDetail(msgspec.Struct, kw_only=True):
    """`why`: node, ask, doubt, doubt_step, break or code. `status` as in the hold's row.
    `key`: the name that its node gave it."""

    hold: str
    why: str
    prompt: str
    asked_at: int
    seq: int
    type: str = ""
    options: list[str] = []
    assignee: str | None = None
    expires_at: int | None = None
    status: str = "pending"
    decision: Any = None
    data: Any = None
    comment: str | None = None
    by: str = ""
    ended_at: int | None = None
    closed: str = ""
    key: str = ""


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET
    parts: tuple[Change, ...] = ()


class Visit(msgspec.Struct, kw_only=True):
    """One visit of one node, with all its attempts.

    States: running, asking, waiting, ready (answered, and no worker has claimed the run since), done, failed,
    unknown, abandoned, stopped (the run ended while it was open)."""

    node: str
    scope: str
    visit: int
    started_at: int
    ended_at: int | None = None
    state: str = "running"
    outcome: str = ""
    effect: str = ""
    attempts: int = 1
    # The record with which it began, the record that settled it (or the latest about it), and the run whose
    # journal has them, if it comes from a fork's source.
    first: int = -1
    seq: int = -1
    run: str = ""
    # How long the handler ran: in the attempt that settled it, and in all attempts; without waits.
    duration: int = 0
    work_us: int = 0
    tokens: int = 0
    cost: float = 0.0
    output: Any = None
    error: dict[str, str] | None = None
    # Its failure was not handled there: it ended the scope around it, or the run.
    halts: bool = False
    # False for a damaged record: only its columns are known.
    readable: bool = True

    waits: list[Wait] = []
    trials: list[AttemptDetail] = []
    steps: int = 0
    emitted: int = 0
    # The end of what it wrote with `ctx.emit`, and its progress (0 to 1).
    said: str = ""
    progress: float | None = None

    # Added by a story. `term`: of the worker under which it began.
    term: int = 0
    traceback: str = ""
    chunks: list[EmittedDetail] = []
    calls: list[CallDetail] = []
    questions: list[QuestionDetail] = []
    changes: list[Alteration] = []
    edges: list[str] = []
    followed: str = ""
    handed_to: str = ""
    notes: Any = None

    @property
    def label(self) -> str:
        return self.scope + self.node

    @property
    def path(self) -> str:
        return path_of(self.scope) + self.node if self.scope else self.node

    @property
    def identity(self) -> tuple[str, int]:
        """The same visit, even if a fork took it from its source."""
        return self.run, self.seq

    @property
    def settled(self) -> bool:
        """The run continued after it."""
        return not self.halts

    @property
    def retries(self) -> list[AttemptDetail]:
        return [trial for trial in self.trials if trial.reason == "retry"]

    @property
    def error_text(self) -> str:
        return error_text(self.error)

    @property
    def last_error_text(self) -> str:
        """Its error; while it has none, that of the attempt that was retried last."""
        retries = self.retries
        return self.error_text or (error_text(retries[-1].error) if retries else "")


def error_text(error: dict[str, str] | None) -> str:
    return f"{error['type']}: {error['message']}" if error else ""


# ---------------------------------------------------------------------- scopes and places


def path_of(scope: str) -> str:
    """Where in the graph a scope is: `send.1[0]/pay.1[2]/` is inside `send/pay/`."""
    if not scope:
        return ""
    names = [part.rpartition("[")[0].rpartition(".")[0] for part in scope.split("/")[:-1]]
    return "/".join(names) + "/"


def split_scope(label: str) -> tuple[str, str]:
    """The scope and the node of it."""
    scope, slash, node = label.rpartition("/")
    return scope + slash, node


def place_of(label: str) -> str:
    """Where in the graph a node or edge is: `send.1[0]/pay` is `send/pay`."""
    scope, node = split_scope(label)
    return path_of(scope) + node
