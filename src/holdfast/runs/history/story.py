"""A run as a story: each visit of a node is a chapter, with its attempts, sub-steps, questions and changes.

Told from records alone, with or without the flow's code; no user code runs (D-26). `telling.py` reads it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checkpoint.diff import Change


class Trial(msgspec.Struct, kw_only=True):
    """One more attempt and why: `retry`, `restarted`, `in_doubt`, `resumed`, `woke`, ... `error`: what the
    attempt before it came to."""

    reason: str
    attempt: int
    at: int
    seq: int
    error: dict[str, str] | None = None
    wake_at: int | None = None


class Call(msgspec.Struct, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    ordinal: str
    effect: str
    at: int
    seq: int
    value: Any = None
    error: dict[str, str] | None = None
    tokens: int = 0
    cost: float = 0.0


class Question(msgspec.Struct, kw_only=True):
    """`why`: node, ask, doubt, doubt_step, break or code. `status` as the hold's row says it."""

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


class Chapter(msgspec.Struct, kw_only=True):
    """One visit of one node. `state`: running, done, failed, unknown, abandoned, stopped. `halts`: nothing
    coped with its failure there. `run`: whose journal tells it; `seq`: the record that settled it."""

    node: str
    scope: str
    visit: int
    run: str
    started_at: int
    effect: str = ""
    state: str = "running"
    outcome: str = ""
    seq: int = -1
    ended_at: int | None = None
    attempts: int = 1
    duration: int = 0
    tokens: int = 0
    cost: float = 0.0
    output: Any = None
    error: dict[str, str] | None = None
    halts: bool = False
    handed_to: str = ""
    readable: bool = True
    # What it changed: (path, operation, before, after) in the words of the state's own operations.
    changes: list[Alteration] = []
    edges: list[str] = []
    followed: str = ""
    trials: list[Trial] = []
    calls: list[Call] = []
    questions: list[Question] = []
    emitted: int = 0
    notes: Any = None

    @property
    def label(self) -> str:
        return self.scope + self.node

    @property
    def identity(self) -> tuple[str, int]:
        """The very same execution, also where a fork brought it along."""
        return self.run, self.seq


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET
    parts: tuple[Change, ...] = ()


class Remark(msgspec.Struct, kw_only=True):
    """Something that befell the run as a whole. `kind`: taken_on, fell_back, damaged, uncheckpointed,
    code_changed, failing, cancelled, ended, breaks."""

    kind: str
    at: int
    seq: int
    text: str
    term: int = 0


class Story(msgspec.Struct, kw_only=True):
    run: str
    chapters: list[Chapter] = []
    remarks: list[Remark] = []
    skipped: list[str] = []
    # Questions about no node: changed code.
    questions: list[Question] = []
    records: int = 0
    # Chapters that a fork or a pruned run brought along without their records.
    brought: int = 0
    lineage: dict[str, Any] = {}
