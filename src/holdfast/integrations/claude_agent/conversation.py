"""A turn of a conversation with Claude Code that ends when it has to wait too long for a person."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import NamedTuple

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, query

from holdfast.integrations.claude_agent.permission_holds import PermissionHolds


class ClaudeOutcome(NamedTuple):
    """`result`: the last message, None if the turn was stopped. `session_id`: to resume it with.
    `waiting`: the holds that it waits for."""

    result: ResultMessage | None
    session_id: str | None
    waiting: tuple[str, ...] = ()


async def ask_claude(
    prompt: str, options: ClaudeAgentOptions, holds: PermissionHolds, *, patience: float = 60.0
) -> ClaudeOutcome:
    """`query` of the SDK with `holds` as its `can_use_tool`. If a person has not decided after `patience`
    seconds, the process of Claude Code is stopped and the outcome says what it waits for: later, in any
    process, call it again with `ClaudeAgentOptions(resume=outcome.session_id)`. The `options` stay as they
    are."""
    turn = _Turn(prompt, dataclasses.replace(options, can_use_tool=holds))
    reading = asyncio.ensure_future(turn.read())
    try:
        while not reading.done():
            holds.changed.clear()
            asked = asyncio.ensure_future(holds.changed.wait())
            limit = patience if holds.waiting else None
            await asyncio.wait({reading, asked}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            stuck = not asked.done()
            asked.cancel()
            if stuck and not reading.done() and holds.waiting:
                return ClaudeOutcome(None, turn.session_id, tuple(holds.waiting))
        return ClaudeOutcome(await reading, turn.session_id)
    finally:
        # Also stops the process of Claude Code.
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await holds.settle()


class _Turn:
    def __init__(self, prompt: str, options: ClaudeAgentOptions) -> None:
        self._prompt = prompt
        self._options = options
        self.session_id = options.resume

    async def read(self) -> ResultMessage | None:
        found: ResultMessage | None = None
        async for message in query(prompt=self._prompt, options=self._options):
            if isinstance(message, SystemMessage) and message.subtype == "init":
                self.session_id = message.data.get("session_id") or self.session_id
            elif isinstance(message, ResultMessage):
                found, self.session_id = message, message.session_id
        return found
