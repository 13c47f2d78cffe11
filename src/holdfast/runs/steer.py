"""Sends a message to the agent that is at work in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.errors import InputError, RunEndedError, RunStatusError
from holdfast.runs.history.story_loader import load_story
from holdfast.runs.steer_messages import MOST, SteerMessage, SteerMessages
from holdfast.store.refusals import require_live
from holdfast.types.status import ENDED
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.checkpoint.visit import Visit
    from holdfast.runs.access import RunAccess

LONGEST: Final = 16_384
"""Characters of one message."""
_OPEN: Final = frozenset({"running", "asking", "waiting", "ready"})
# The first record of a conversation with a model; the one before a command-line agent is started.
_PROMPT, _SESSION = "/prompt", "session"


async def steer(service: RunAccess, run: str, text: str, *, by: str) -> SteerMessage:
    """Raises RunStatusError if no agent is at work, RunEndedError, and InputError."""
    row = await service.get(run)
    require_live(row)
    if row.status in ENDED:
        raise RunEndedError(f"run {row.id} has already {row.status}.", run=row.id, status=row.status)
    require_text(text, "the message")
    if not text.strip():
        raise InputError("the message is empty.", hint="Say what the agent should know or do.")
    if len(text) > LONGEST:
        raise InputError(
            f"the message has {len(text):,} characters.", hint=f"At most {LONGEST:,} are allowed."
        )
    story = await load_story(service, row, None)
    if not any(_is_steerable(visit) for visit in story.visits):
        raise RunStatusError(
            f"no stage of run {row.id} with an agent is active: nobody would get the message.",
            hint="Steer a run while a model with tools, or a command-line agent, is at work.",
            run=row.id,
            status=row.status,
        )
    box = SteerMessages(service.store, row.tenant, row.id)
    if len(await box.all()) >= MOST:
        raise RunStatusError(f"{MOST} messages wait for run {row.id} already.", run=row.id, status=row.status)
    return await box.put(text, by)


def _is_steerable(visit: Visit) -> bool:
    return visit.state in _OPEN and any(
        call.name == _SESSION or (call.ordinal.startswith("=agent") and call.ordinal.endswith(_PROMPT))
        for call in visit.calls
    )
