"""The backend protocols of codergen stages."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from holdfast.agents.messages import Message
from holdfast.attractor.outcome import StageOutcome
from holdfast.errors import HoldfastError, InputError, RequirementsMissingError
from holdfast.runs.unserved import how_to_get
from holdfast.types.status import Effect

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.attractor.conversations import ConversationTurn
    from holdfast.attractor.handler import StageVisit
    from holdfast.frontends.dot.document import Stage

BackendAnswer = str | StageOutcome


class Exchange(msgspec.Struct, frozen=True):
    """`session`: of an agent that keeps its conversations itself."""

    prompt: str
    text: str
    session: str = ""


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt, with what the stage's fidelity adds: a preamble, or the turns of a conversation."""

    visit: StageVisit
    prompt: str
    preamble: str = ""
    thread: str = ""
    """The conversation's key; empty for a new conversation."""
    turns: tuple[ConversationTurn, ...] = ()
    refuses: Callable[[StageVisit], str] | None = None
    """Returns why a command of the document may not run here, or an empty text."""
    equipped: bool = True
    """False: only a text is wanted, and no tools are used."""
    verdict: str = ""
    """How to report the verdict, for backends with files; empty if the stage wants none."""
    earlier: Exchange | None = None
    """The first turn of this stage: this one asks for its verdict."""

    @property
    def whole(self) -> str:
        """The preamble, then the prompt."""
        return f"{self.preamble}\n\n{self.prompt}" if self.preamble else self.prompt

    @property
    def turn(self) -> int:
        return 1 if self.earlier is None else 2

    def with_verdict(self, text: str) -> str:
        """The text, then how to report the verdict."""
        return f"{text}\n\n{self.verdict}" if self.verdict else text

    def exchange(self, text: str) -> Exchange:
        """What was asked and answered in this stage, with its first turn."""
        if self.earlier is None:
            return Exchange(self.prompt, text)
        return Exchange(self.earlier.prompt, f"{self.earlier.text}\n\n{text}")


class BackendReply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as text. `messages`: what was added to the conversation. `status`: the fields of the status
    file that the stage wrote; `fault`: why they cannot be used. `structured`: the same as structured output.
    `failed`: why this is no success, whatever the answer says, with its failure class in `kind`. `cut`: why
    the answer ends before its end."""

    text: str
    messages: tuple[Message, ...] = ()
    model: str = ""
    status: Mapping[str, Any] | None = None
    fault: str = ""
    structured: Mapping[str, Any] | None = None
    failed: str = ""
    kind: str = ""
    cut: str = ""
    session: str = ""


class CodergenBackend(Protocol):
    """The specification's interface: text or an Outcome, sync or async; an exception is a failure of the
    stage. With `effect = "read"` it may run again after a crash; else a person is asked first. Stages with
    `tool_approval` are refused, unless it changes nothing or has `keeps_approvals = True`."""

    def run(
        self, node: Stage, prompt: str, context: PipelineContext
    ) -> BackendAnswer | Awaitable[BackendAnswer]: ...


class DurableBackend(Protocol):
    """A backend that records its work with `visit.ctx`: after a crash it resumes where it was."""

    async def answer(self, visit: StageVisit, prompt: str) -> BackendAnswer: ...


class ConversingBackend(DurableBackend, Protocol):
    """A backend that also takes part in conversations, and returns their messages."""

    async def converse(self, asking: PromptRequest) -> BackendReply | StageOutcome: ...


AnyBackend = CodergenBackend | DurableBackend

OPTIONAL_PARAMETERS: Final = frozenset({"preamble", "session", "verdict"})
"""What a plain backend gets if it has parameters of these names."""


def is_durable(backend: Any) -> bool:
    return callable(getattr(backend, "answer", None))


def is_conversing(backend: Any) -> bool:
    return callable(getattr(backend, "converse", None))


def reserves(backend: Any) -> bool:
    """Whether it reserves each of its calls in the run's ledger, or spends nothing."""
    return getattr(backend, "reserves", False) is True


def keeps_approvals(backend: Any) -> bool:
    """Whether it asks a person, or refuses the stage, where `tool_approval` is set."""
    return getattr(backend, "keeps_approvals", False) is True


def declared_effect(backend: Any) -> Effect | None:
    """`effect` of a function, or of an object with `run`. Raises InputError if it is none."""
    found = getattr(backend, "effect", None)
    if found is None:
        return None
    if found not in Effect.__members__.values():
        raise InputError(
            f"a backend has the effect {found!r}.", hint=f"Use one of {', '.join(Effect.__members__)}."
        )
    return Effect(found)


def as_durable(backend: AnyBackend) -> DurableBackend:
    return cast("DurableBackend", backend)


def as_conversing(backend: AnyBackend) -> ConversingBackend:
    return cast("ConversingBackend", backend)


def as_codergen(backend: AnyBackend) -> CodergenBackend:
    return cast("CodergenBackend", backend)


def optional_parameters_of(fn: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(OPTIONAL_PARAMETERS & inspect.signature(fn).parameters.keys())
    except (TypeError, ValueError):
        return frozenset()


def optional_arguments(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    """The carried-over values that this backend has parameters for."""
    given: dict[str, Any] = {
        "preamble": asking.preamble,
        "session": session_messages(asking),
        "verdict": asking.verdict,
    }
    return {name: given[name] for name in backend_parameters(backend)}


def backend_parameters(backend: AnyBackend) -> frozenset[str]:
    found: Any = getattr(backend, "wants", None)
    return (
        cast("frozenset[str]", found)
        if isinstance(found, frozenset)
        else optional_parameters_of(as_codergen(backend).run)
    )


def takes_preamble(backend: AnyBackend) -> bool:
    return is_conversing(backend) or is_durable(backend) or "preamble" in backend_parameters(backend)


def session_messages(asking: PromptRequest) -> list[dict[str, str]]:
    """A conversation as plain data: roles and texts."""
    messages = (message for turn in asking.turns for message in turn.messages)
    return [{"role": message.role, "text": message.text} for message in messages if message.text]


def as_conversation(asking: PromptRequest) -> str:
    """The prompt, after the conversation so far; for a backend that keeps none."""
    if not asking.turns:
        return asking.whole
    text = "\n\n".join(f"[{each['role']}]\n{each['text']}" for each in session_messages(asking))
    return f"The conversation so far:\n\n{text}\n\n[user]\n{asking.whole}"


def missing_error(missing: Iterable[str], why: HoldfastError | None = None) -> RequirementsMissingError:
    words = list(missing)
    more = "" if why is None else f" {why.message}"
    return RequirementsMissingError(
        f"this run waits for a worker with {' and '.join(words)}, which this process does not have.{more}",
        hint=why.hint if why else f"Start a worker that has it, or give it here: {how_to_get(words)}.",
        missing=words,
    )
