"""`can_use_tool` of the Claude Agent SDK, answered by people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from hashlib import sha256
from typing import Any, Final, TypedDict, TypeVar, cast
from uuid import UUID

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from holdfast.app.flow import Flow
from holdfast.app.holdfast import Holdfast
from holdfast.app.result import Result
from holdfast.errors import InputError, RunBusyError
from holdfast.integrations.tool_holds import HoldOptions, ask_approval, hold_options
from holdfast.runs.context.context import Context
from holdfast.store.rows import RunRow
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from holdfast.types.value import thaw


class PermissionState(TypedDict, total=False):
    tool: str
    input: dict[str, Any]
    conversation: str
    hold: dict[str, Any]
    approved: bool
    updated_input: dict[str, Any] | None
    message: str


class UsedState(TypedDict, total=False):
    question: str


permission: Final = Flow("claude-permission", state=PermissionState)
used: Final = Flow("claude-permission-used", state=UsedState)


@permission.script
async def ask(s: Any, ctx: Context) -> dict[str, Any]:
    given = thaw(s["input"])
    context = {"conversation": s["conversation"]}
    decision = await ask_approval(ctx, s["tool"], given, key="ask", hold=thaw(s["hold"]), context=context)
    return {
        "approved": decision.approved,
        "updated_input": decision.arguments,
        "message": decision.message,
    }


@used.node(effect="pure")
async def mark(_state: Any) -> None:
    """Nothing: that the run exists says that the answer was given to a process."""


permission.start(ask)
used.start(mark)


T = TypeVar("T")


class PermissionHolds:
    """Give it to the SDK: `ClaudeAgentOptions(can_use_tool=PermissionHolds(hf, "order-8"))`. Each request for
    a tool is a hold; the request is answered when a person has decided. The answer belongs to this
    conversation, tool and input, and is given to one request: an equal one after it is asked again.

    The hold is a run in the store: it stays open when the process ends, and a process that is asked the same
    again finds it, or its answer. `hold`: whom it goes to and until when, as for `ctx.ask`, or a function of
    the tool's name and input. `poll`: seconds between two looks at an open hold."""

    def __init__(
        self,
        hf: Holdfast,
        conversation: str,
        *,
        hold: HoldOptions = None,
        tenant: str = "default",
        poll: float = 1.0,
    ) -> None:
        if not isinstance(cast("Any", conversation), str) or not conversation:
            raise InputError(
                f"PermissionHolds was given the conversation {conversation!r}.",
                hint="Give a text that is the same when the conversation is resumed, such as an order's id.",
            )
        self._hf = hf
        self._conversation = conversation
        self._hold = hold
        self._tenant = tenant
        self._poll = poll
        self.waiting: dict[str, str] = {}
        """Holds that a request of this process waits for, with the name of the tool."""
        self._working: set[asyncio.Future[Any]] = set()
        self.changed = asyncio.Event()
        """Set when a request begins or ends to wait."""

    async def __call__(
        self, tool: str, given: dict[str, Any], _context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        number = 1
        while True:
            question = self._id("question", tool, given, number)
            mark = self._id("used", tool, given, number)
            if not await self._exists(mark):
                state = await self._decided(question, tool, given)
                # Before it is given to the SDK: an answer that may have been used is not used again.
                if await self._take(mark, question):
                    return _result(state)
            number += 1

    async def _decided(self, question: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Opens the hold, or finds it, and waits for its decision."""
        state = {
            "tool": tool,
            "input": given,
            "conversation": self._conversation,
            "hold": hold_options(self._hold, tool, given),
        }
        if await self._exists(question):
            result = await self._resumed(question)
        else:
            result = await self._apart(
                permission.run(
                    state, on=self._hf, run_id=question, idempotency_key=question, tenant=self._tenant
                )
            )
        hold: str | None = None
        try:
            # Not decided; or another request is about to ask the same.
            while result.status not in ENDED:
                if hold is None and result.holds:
                    hold = result.holds[0].id
                    self._now(hold, tool)
                await asyncio.sleep(self._poll)
                result = await self._resumed(question)
        finally:
            if hold is not None:
                self._now(hold, None)
        return cast("dict[str, Any]", thaw(dict(cast("Any", result.expect().state))))

    async def _resumed(self, question: str) -> Result[Any]:
        while True:
            try:
                return await self._apart(permission.resume(question, on=self._hf, tenant=self._tenant))
            except RunBusyError:
                # Another process asks for the same, or did and was killed: its lease ends.
                await asyncio.sleep(self._poll)

    async def _apart(self, work: Coroutine[Any, Any, T]) -> T:
        """The SDK cancels a request whose process ends; a run that is being written ends its step first."""
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Waits for what requests that were cancelled have left behind: moments."""
        await asyncio.gather(*self._working, return_exceptions=True)

    def _now(self, hold: str, tool: str | None) -> None:
        if tool is None:
            self.waiting.pop(hold, None)
        else:
            self.waiting[hold] = tool
        self.changed.set()

    async def _take(self, mark: str, question: str) -> bool:
        """Whether the answer is this request's: of several requests, one makes the run that marks it."""
        return await self._apart(self._make_mark(mark, question))

    async def _make_mark(self, mark: str, question: str) -> bool:
        program = used.program()
        self._hf.register(program)
        service = await self._hf.service()
        started = await service.start(program, {"question": question}, run_id=mark, tenant=self._tenant)
        if isinstance(started, RunRow):
            return False
        if isinstance(started, tuple):
            await service.runtime.drive(*started)
        return True

    async def _exists(self, run: str) -> bool:
        return await (await self._hf.service()).store.get_run(RunId(run)) is not None

    def _id(self, kind: str, tool: str, given: dict[str, Any], number: int) -> str:
        """The same for the same request, whatever the order of its fields."""
        text = json.dumps(
            [kind, self._tenant, self._conversation, tool, given, number], sort_keys=True, ensure_ascii=True
        )
        return str(UUID(bytes=sha256(text.encode()).digest()[:16], version=4))


def _result(state: dict[str, Any]) -> PermissionResultAllow | PermissionResultDeny:
    if state["approved"] is not True:
        return PermissionResultDeny(message=state["message"])
    return PermissionResultAllow(updated_input=state.get("updated_input"))
