"""The protocols between a handler's context and the side that drives its run.

Contexts and the code that calls handlers know these protocols alone. The built-in driver implements them
(`runs.driver.session`, `runs.driver.context_calls`); another engine implements them its own way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from holdfast.engine.messages import HandlerFinished
from holdfast.errors import OutcomeUnknownError
from holdfast.model.graph import Graph, HoldSpec, Node, RetryPolicy
from holdfast.model.position import Exec, Position, Sub
from holdfast.model.program import Program
from holdfast.model.record_bodies import ChunkBody, ErrorInfo, SubstepBody, Usage
from holdfast.model.user_code.boundary import ControlFlow
from holdfast.types.clock import Clock
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import Body, Kind
from holdfast.types.status import Effect

if TYPE_CHECKING:
    from holdfast.runs.context.skills import RunSkills
    from holdfast.runs.driver.budget_ledger import RunLedger
    from holdfast.runs.driver.services import RunServices
    from holdfast.runs.record_codec import RecordCodec
    from holdfast.store.protocols import Store
    from holdfast.store.rows import RunRow

T = TypeVar("T")


class Suspended(ControlFlow):
    """Unwinds a handler that waits for a person or a time, where it is not kept in memory meanwhile."""


class SubstepCall(NamedTuple):
    """A call of `ctx.step`."""

    ordinal: str
    name: str
    effect: Effect
    idempotent: bool
    # Its own key; empty: the one of its place.
    key: str = ""
    # Retries of its own, and the error classes that they are for.
    retry: RetryPolicy | None = None
    retry_on: tuple[type[BaseException], ...] = ()
    timeout: int | None = None  # of one attempt, in microseconds


class OpenContext(Protocol):
    @property
    def busy(self) -> bool:
        """Whether a sub-step of its handler is running."""
        ...

    @property
    def patience(self) -> NodeTimeout:
        """The timeout of its node."""
        ...

    def close(self, why: str) -> None:
        """From now on it raises on use."""
        ...


class NodeTimeout(Protocol):
    limit: asyncio.Timeout | None

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        ...


class HandlerSession(Protocol):
    """What a handler's side reads of its run. The position has at least the execution, the scopes around it,
    and the totals and options of the run."""

    run: RunId
    row: RunRow
    program: Program
    graph: Graph
    pos: Position
    codec: RecordCodec
    clock: Clock
    loop: asyncio.AbstractEventLoop
    store: Store
    services: RunServices
    # Contexts of handlers that run now, by (scope, node).
    contexts: dict[tuple[str, int], OpenContext]
    # Handlers that wait for a person or a time, by place and ordinal of the question.
    answers: dict[tuple[str, int, str], asyncio.Future[Sub]]
    # Set when something happened that who drives the run has to handle.
    wake: asyncio.Event
    # The starts of items of maps that have a rate, by the place and the visit of the map.
    item_starts: dict[tuple[str, int, int], Any]
    # Whether other nodes of the run may be in other processes now.
    is_shared: bool
    # Code of this run that was stopped and still runs.
    left_running: set[asyncio.Future[Any]]

    def graph_of(self, execution: Exec) -> Graph: ...

    def node(self, execution: Exec) -> Node: ...

    def program_of(self, execution: Exec) -> Program: ...

    async def wait_for_code(self) -> None: ...


class ContextCalls(Protocol):
    """What contexts and the calls of handlers ask of the side that drives the run."""

    # Read-only, so that an implementation may have a narrower type.
    @property
    def session(self) -> HandlerSession: ...

    @property
    def skills(self) -> RunSkills: ...

    @property
    def ledger(self) -> RunLedger: ...

    @property
    def is_lost(self) -> bool:
        """Whether nothing of this run can be written here any more."""
        ...

    # ------------------------------------------------------------------ keys, code, files
    def idempotency_key(self, execution: Exec, node: Node) -> str: ...

    def substep_key(self, execution: Exec, node: Node, ordinal: str) -> str: ...

    def key_of(self, execution: Exec, node: Node, step: SubstepCall) -> str:
        """Empty: the callee does not recognise repetitions."""
        ...

    def render(self, execution: Exec, text: str) -> str: ...

    def code_of(self, execution: Exec) -> str: ...

    def artifact_op(self, execution: Exec, name: str) -> str: ...

    def lists_turns(self, execution: Exec, node: Node) -> bool: ...

    async def file(self, reference: Any) -> bytes: ...

    # ------------------------------------------------------------------ what is durable
    async def committed(self, seq: int | None = None) -> None:
        """Until this record, or everything that was noted so far, is durable."""
        ...

    async def reserved(self, seq: int) -> None:
        """The same for a record of the ledger, which a run in the mode `exit` does not wait for."""
        ...

    async def when_available(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call of the store, which is repeated while the store is unavailable."""
        ...

    # ------------------------------------------------------------------ effects and sub-steps
    async def begin_effect(self, execution: Exec) -> None:
        """Before the handler of an effect is called: until its intent is durable, and this process may begin
        the effect. Raises if it may not."""
        ...

    async def intend_step(self, execution: Exec, node: Node, step: SubstepCall) -> None:
        """The same for a sub-step: its intent is noted here."""
        ...

    def note(
        self,
        kind: Kind,
        body: Body,
        execution: Exec,
        node: Node,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> int:
        """The number of a new record about this execution. It is durable after `committed`."""
        ...

    async def note_substep(
        self,
        execution: Exec,
        node: Node,
        body: SubstepBody,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> None:
        """The end of a sub-step."""
        ...

    def back_off(
        self,
        execution: Exec,
        node: Node,
        step: SubstepCall,
        failures: int,
        error: ErrorInfo,
        usage: Usage | None,
    ) -> None: ...

    def continue_back_off(self, execution: Exec, node: Node, key: str) -> None: ...

    def decide_branches(self, execution: Exec, node: Node, body: SubstepBody, winner: str) -> None: ...

    def step_ended(self) -> None: ...

    def note_cost(self) -> None:
        """The handler took long, or its work was paid for: what it did is written soon."""
        ...

    def note_chunks(self, execution: Exec, node: Node, body: ChunkBody, *, now: bool) -> None: ...

    # ------------------------------------------------------------------ questions and sleeps
    def ask_inside(
        self, execution: Exec, key: str, ordinal: int, spec: HoldSpec, context: dict[str, Any]
    ) -> None: ...

    def sleep_inside(self, execution: Exec, node: Node, key: str, seconds: float) -> None: ...

    async def wait_answer(self, execution: Exec, key: str, *, in_thread: bool) -> Sub:
        """Raises Suspended where the handler is entered again with the answer."""
        ...

    # ------------------------------------------------------------------ memory
    def consistency(self, execution: Exec, node: Node) -> str: ...

    def remember_at_settle(self, finished: HandlerFinished, memories: list[Memory]) -> None: ...

    def uncommitted_memories(self) -> list[Memory]: ...


class Attempt:
    """One attempt at a node, shared by the parts of its context: open until it is closed, and until one of
    its sub-steps is in doubt."""

    __slots__ = ("calls", "closed", "doubt", "execution", "node", "session")

    def __init__(self, calls: ContextCalls, execution: Exec, node: Node) -> None:
        self.calls = calls
        self.session = calls.session
        self.execution = execution
        self.node = node
        # Why it is closed.
        self.closed = ""
        # A sub-step whose outcome is unknown: nothing else is done in this attempt.
        self.doubt: tuple[str, ErrorInfo] | None = None

    def check_open(self) -> None:
        if self.closed:
            raise RuntimeError(f"the context of node {self.node.id!r} is closed: {self.closed}")
        if self.doubt is not None:
            raise OutcomeUnknownError(
                f"a step of {self.node.id!r} has an unknown outcome: {self.doubt[1].message}"
            )
