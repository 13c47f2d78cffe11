"""Sends a message to the agent that is running in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.engine.decision import node_of
from holdfast.errors import InputError, RunEndedError, RunStatusError
from holdfast.runs.driver.load import load
from holdfast.runs.history.versions import readers_of
from holdfast.runs.steer_messages import MOST, SteerMessage, SteerMessages, agent_place
from holdfast.store.errors import require_live
from holdfast.types.status import ENDED
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.model.position import Exec
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

LONGEST: Final = 16_384
"""Characters of one message."""
# The first record of a conversation with a model; the one before a command-line agent is started.
_PROMPT, _SESSION = "/prompt", "session"


async def steer(service: RunAccess, run: str, text: str, *, by: str, stage: str = "") -> SteerMessage:
    """`stage`: the node whose agent gets it; without one, the first that can. Raises RunStatusError if no
    such agent is at work, RunEndedError, and InputError."""
    row = await service.get(run)
    require_live(row)
    if row.status in ENDED:
        raise RunEndedError(f"run {row.id} has ended ({row.status}).", run=row.id, status=row.status)
    require_text(text, "the message")
    if not text.strip():
        raise InputError("the message is empty.", hint="Say what the agent should know or do.")
    if len(text) > LONGEST:
        raise InputError(
            f"the message has {len(text):,} characters.", hint=f"At most {LONGEST:,} are allowed."
        )
    active = await _agents_at_work(service, row)
    places = sorted({place for node, found in active.items() if stage in ("", node) for place in found})
    if not active or (stage and stage not in active):
        what = (
            f"stage {stage!r} of run {row.id} with an agent is not active"
            if stage
            else (f"no stage of run {row.id} with an agent is active")
        )
        hint = "Steer a run while a model with tools, or a command-line agent, is running."
        raise RunStatusError(
            f"{what}: no agent would get the message.",
            hint=f"At work are: {', '.join(sorted(active))}." if active else hint,
            run=row.id,
            status=row.status,
        )
    box = SteerMessages(service.store, row.tenant, row.id)
    if len(await box.all()) >= MOST:
        raise RunStatusError(f"{MOST} messages wait for run {row.id} already.", run=row.id, status=row.status)
    return await box.put(text, by, stage, places)


async def _agents_at_work(service: RunAccess, row: RunRow) -> dict[str, list[str]]:
    """The nodes whose agent would get a message, with the places of their visits; from the newest snapshot,
    however long the run is."""
    reader = (await readers_of(service, row)).at(row.head)
    loaded = await load(
        service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs, row=row
    )
    pos = loaded.pos
    found: dict[str, list[str]] = {}
    for execution in pos.execs.values():
        if execution.phase != "failed" and _has_conversation(execution):
            node = node_of(reader.graph, pos, execution).id
            found.setdefault(node, []).append(agent_place(execution.scope, node, execution.visit))
    return found


def _has_conversation(execution: Exec) -> bool:
    return any(
        sub.name == _SESSION or (key.startswith("=agent") and key.endswith(_PROMPT))
        for key, sub in execution.subs.items()
    )
