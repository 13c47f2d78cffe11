"""What a raised error means for a stage: worth a retry, or final."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.errors import (
    AgentLoopError,
    BudgetError,
    HoldfastError,
    InputError,
    LeaseLostError,
    ModelRefusedError,
    ModelUnavailableError,
    NodeTimeoutError,
    OutcomeUnknownError,
    ReplayMismatchError,
    RequirementsMissingError,
    ScriptError,
    StateMutationError,
    StepFailedError,
    StoreError,
    TurnLimitError,
)
from holdfast.frontends.dot.document import Stage
from holdfast.types.text import clean_text

TRANSIENT: Final = "transient"
TERMINAL: Final = "terminal"
LIMIT: Final = "limit"
"""A limit of turns or cost: not retried."""
LOOP: Final = "loop"
"""A model that repeats its calls: not retried."""
FINAL: Final = frozenset({TERMINAL, LIMIT, LOOP})
CLASS_KEY: Final = "failure_class"

_OURS = (
    LeaseLostError,
    StoreError,
    OutcomeUnknownError,
    ReplayMismatchError,
    RequirementsMissingError,
    ScriptError,
    StateMutationError,
)
_NETWORK = (ConnectionError, TimeoutError, asyncio.IncompleteReadError)
_TRANSIENT_CODES = frozenset(
    {ModelUnavailableError.code, NodeTimeoutError.code, "store_busy", "rate_limited"}
)
_TERMINAL_CODES = frozenset({ModelRefusedError.code, InputError.code})
_BUSY: Final = 429


def raise_if_ours(error: BaseException) -> None:
    """Whether it is not a failure of the stage: the lease was lost, the store is unavailable, an effect is in
    doubt, the replay does not match, this process lacks what the run needs. The engine handles those; and a
    budget that is used up stops the run."""
    if isinstance(error, _OURS) or (isinstance(error, BudgetError) and error.facts.get("halts")):
        raise error


def failure_of(error: BaseException) -> StageOutcome:
    """A FAIL with its reason; `terminal` if a retry cannot fix it (§3.6, Appendix D)."""
    reason = clean_text(error) or type(error).__name__
    kind = failure_class(error)
    return StageOutcome(
        status=StageStatus.FAIL,
        failure_reason=reason,
        terminal=kind in FINAL,
        context_updates={CLASS_KEY: kind},
    )


def timed_out(stage: Stage) -> StageOutcome:
    reason = f"timeout: stage {stage.id!r} took longer than {stage.text('timeout')}"
    return StageOutcome(
        status=StageStatus.FAIL, failure_reason=reason, context_updates={CLASS_KEY: TRANSIENT}
    )


class StageFailedError(Exception):
    """A failure that was recorded before: its reason and its class."""

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


def failure_class(error: BaseException) -> str:
    """Network errors, 429 and 5xx are transient; refused requests, bad values and settings are terminal.
    An unknown error may be retried, if the pipeline asks for retries."""
    if isinstance(error, StageFailedError):
        return error.kind
    status = _http_status(error)
    if status is not None:
        return TRANSIENT if status == _BUSY or status >= 500 else TERMINAL
    if isinstance(error, _NETWORK):
        return TRANSIENT
    code = _code(error)
    if code == AgentLoopError.code:
        return LOOP
    if code == TurnLimitError.code:
        return LIMIT
    if code in _TRANSIENT_CODES:
        return TRANSIENT
    if code in _TERMINAL_CODES or isinstance(error, (InputError, ValueError, TypeError, LookupError)):
        return TERMINAL
    return TRANSIENT


def _code(error: BaseException) -> str:
    if isinstance(error, StepFailedError):
        info = error.facts.get("info")
        return str(getattr(info, "code", ""))
    return error.code if isinstance(error, HoldfastError) else ""


def _http_status(error: BaseException) -> int | None:
    """The HTTP status of an error of any library: `status`, `status_code`, or that of its response."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and 400 <= found < 600:
                return None if isinstance(error, HoldfastError) else found
    return None
