"""The payloads of journal records, one for each kind of the closed set (D-1)."""

# msgspec copies mutable defaults for each instance.
# ruff: noqa: RUF012

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.types.record import Body, Kind, Move, Op


class ErrorInfo(msgspec.Struct, frozen=True, array_like=True):
    """An error as it is stored: never an exception object. `detail`: its traceback, shortened."""

    code: str
    type: str
    message: str
    detail: str = ""

    @property
    def summary(self) -> str:
        return f"{self.type}: {self.message}"


HALTED = "halted"
"""The code of an error that ends the run: no edge and no retry target handles it."""
RETRY_ASKED = "retry_asked"
"""The error code of an attempt whose handler asked for a retry."""
RETRIES_EXCEEDED = "max retries exceeded"
PARTIAL_ACCEPTED = "retries exhausted, partial accepted"
"""The outcome of such an attempt if none is left."""


class Usage(msgspec.Struct, frozen=True, array_like=True):
    """What a node's work cost."""

    tokens: int = 0
    cost: float = 0.0
    micros: int = 0  # of calls of models and tools


def usage_of_judge(resolution: Any) -> Usage | None:
    """What the judge that decided has used, where no worker advanced the run then."""
    usage: Any = resolution.get("usage") if resolution is not None else None
    return None if usage is None else Usage(int(usage["tokens"]), float(usage["cost"]))


class CreatedBody(Body):
    flow: str
    version: str
    code: str
    input: Any
    scratch: Any
    artifacts: Any
    moves: list[Move]
    mode: str
    options: dict[str, Any] = {}
    lineage: dict[str, Any] = {}
    base: Any = None  # of a fork: the whole position, self-contained (D-35)


class IntentBody(Body):
    ordinal: int
    name: str
    key: str
    facts: Any = None


ATTEMPT_REASONS: Final = frozenset(
    {
        "before", "breaks", "child_failed", "children", "code_changed", "continued", "damaged", "failing",
        "fell_back", "ignored", "in_doubt", "join_timeout", "join_timer", "limit", "loaded", "nap",
        "not_happened", "restarted", "resumed", "retry", "sleep", "step_retry", "step_woke", "timed_out",
        "uncheckpointed", "withdrawn", "woke",
    }
)  # fmt: skip
"""All that were ever written. A reader refuses any other: a newer version wrote it, and applying it as one of
these would run effects again."""


class AttemptBody(Body):
    """Another attempt of a node, or a start that no settled node caused. `reason`: one of
    `ATTEMPT_REASONS`."""

    reason: str
    error: ErrorInfo | None = None
    wake_at: int | None = None
    token: str = ""
    moves: list[Move] = []
    # The nodes whose code changed; a sleep's number in the node; who loaded the run; of a sub-step that is
    # retried: its number, its name, and how many attempts failed.
    nodes: list[str] = []
    usage: Usage | None = None  # of the attempt of a sub-step that failed


class SubstepBody(Body):
    ordinal: str
    name: str
    value: Any = None
    error: ErrorInfo | None = None
    hold: str = ""
    code: str = ""
    usage: Usage | None = None
    failures: int = 0  # attempts that failed, of a sub-step with retries of its own
    digests: dict[str, str] | None = None  # of the model, the prompt, the tools ... that it used


class AskedBody(Body):
    hold: str
    ordinal: int
    type: str
    prompt: str
    options: Any
    assignee: str | None
    priority: str
    context: Any
    schema: Any
    expires_at: int | None
    key: str = ""
    token: str = ""  # of a timer that expired it, in older journals: now the row expires itself
    on_timeout: str | None = None
    code: str = ""
    more: Any = None  # tags, reminder and terms, if any; used only if it is asked again


class ChunkBody(Body):
    """Live output. `inside`: of a sub-step, which is not repeated when the node is entered again. `lines`:
    how many of the items are lines of `ctx.log`."""

    items: list[tuple[str, Any]]
    inside: bool = False
    lines: int = 0


class StepBody(Body):
    ops: list[Op]
    moves: list[Move]
    duration: int
    output: Any = None
    promoted: bool = False
    usage: Usage | None = None
    error: ErrorInfo | None = None
    notes: Any = None
    routes: list[int] | None = None
    walk: Any = None
    # A failure that is not handled: the execution stays, and the run fails.
    halts: bool = False


class ShortStepBody(Body):
    """How a StepBody is written whose other fields have their defaults; it is read as a StepBody."""

    ops: list[Op]
    moves: list[Move]
    duration: int


class SnapshotBody(Body):
    position: Any


class EndBody(Body):
    status: str
    error: ErrorInfo | None = None
    node: str = ""


BODY_TYPES: dict[int, type[Body]] = {
    Kind.created: CreatedBody,
    Kind.intent: IntentBody,
    Kind.attempt: AttemptBody,
    Kind.substep: SubstepBody,
    Kind.asked: AskedBody,
    Kind.chunk: ChunkBody,
    Kind.step: StepBody,
    Kind.snapshot: SnapshotBody,
    Kind.end: EndBody,
}
