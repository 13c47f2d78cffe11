"""What a codergen stage needs of whoever answers its prompts."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol, cast

from holdfast.attractor.outcome import Outcome

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.attractor.handler import Visit
    from holdfast.frontends.dot.document import Stage

Answer = str | Outcome


class CodergenBackend(Protocol):
    """The specification's interface: text or an Outcome, sync or async; an exception is a failure of the
    stage. It may run again after a crash, so what it does outside belongs into tools of its own."""

    def run(self, node: Stage, prompt: str, context: PipelineContext) -> Answer | Awaitable[Answer]: ...


class DurableBackend(Protocol):
    """One that records what it does by `visit.ctx`: after a crash it goes on where it was."""

    async def answer(self, visit: Visit, prompt: str) -> Answer: ...


AnyBackend = CodergenBackend | DurableBackend


def is_durable(backend: Any) -> bool:
    return callable(getattr(backend, "answer", None))


def durably(backend: AnyBackend) -> DurableBackend:
    return cast("DurableBackend", backend)


def plainly(backend: AnyBackend) -> CodergenBackend:
    return cast("CodergenBackend", backend)
