"""An inbox without a terminal: keys go in, lines of text come out (textual's Pilot)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from holdfast import Flow, Holdfast
from holdfast.cli.hold_session import HoldSession
from holdfast.cli.inbox.app import InboxApp
from holdfast.cli.inbox.service_calls import Actions
from holdfast.cli.inbox.state import InboxState
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Actor, operator

DANA = operator("user:dana@acme", channel="inbox")
YES_NO = ["approve", {"id": "reject", "label": "No", "variant": "danger", "requires_comment": True}]
FORM = [
    {"type": "context", "title": "Invoice", "content": "Number {{number}}"},
    {
        "type": "input", "field": "amount", "kind": "currency", "currency": "EUR", "label": "Amount",
        "default": "{{amount}}", "required": True,
    },
    {"type": "input", "field": "why", "kind": "text", "visible_if": "decision == 'reject'", "required": True},
    {"type": "input", "field": "tags", "kind": "multiselect", "options": ["vat", "travel", "misc"]},
    {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
]  # fmt: skip


class Screen:
    """A person's inbox, and the others who work at the same time."""

    def __init__(self, session: HoldSession, pilot: Pilot[None]) -> None:
        self.session = session
        self.pilot = pilot

    @property
    def app(self) -> InboxApp:
        app = self.pilot.app
        assert isinstance(app, InboxApp)
        return app

    @property
    def state(self) -> InboxState:
        return self.app.state

    async def press(self, *keys: str) -> list[str]:
        """One key after another; a text of several letters is typed."""
        for key in keys:
            for each in [key] if key in NAMED else list(key):
                self.app.post_message(key_event(each))
            await self.handled()
        return self.lines()

    async def paste(self, text: str) -> list[str]:
        self.app.post_message(events.Paste(text))
        return await self.painted()

    async def resize(self, width: int, height: int) -> list[str]:
        await self.pilot.resize_terminal(width, height)
        return await self.painted()

    async def painted(self) -> list[str]:
        await self.handled()
        return self.lines()

    async def handled(self) -> None:
        """Everything that was sent is handled, and on the screen."""
        # A key goes from the app to a widget, which tells the app what was entered, which tells the widgets.
        for _ in range(4):
            await self.pilot.pause(0)
        while self.app.is_running and not self.app.is_painted:
            await self.pilot.pause(0)

    async def others(self) -> list[str]:
        """What others did is noticed."""
        self.app.call_later(self.app.refresh_holds)
        return await self.painted()

    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.replace("\N{NO-BREAK SPACE}", " ").rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    async def row(self, hold: str) -> HoldRow:
        return await self.session.holds.get(self.session.actor, hold)


NAMED = frozenset(
    {"enter", "escape", "up", "down", "space", "backspace", "tab", "ctrl+u", "ctrl+w", "ctrl+c"}
)


def key_event(key: str) -> events.Key:
    char = key if len(key) == 1 else None
    return events.Key(key if char is None else _character_to_key(char), char)


async def ask(hf: Holdfast, amount: int = 250, **asked: Any) -> str:
    options: dict[str, Any] = {
        "prompt": f"Refund {amount}?", "options": YES_NO, "assignee": "user:dana@acme", **asked,
    }  # fmt: skip
    if "sections" in options:
        del options["options"]
    flow = Flow("refund", effect="pure")
    flow.hold("approve", **options)
    result = await flow.run({"amount": amount, "number": "A-17"}, on=hf, started_by="user:ian@acme")
    return result.holds[0].id


OpenScreen = Callable[..., Awaitable[Screen]]


def screens(stack: AsyncExitStack) -> OpenScreen:
    """Each is closed when the stack is."""

    async def screen(
        hf: Holdfast,
        *,
        actor: Actor = DANA,
        view: str = "mine",
        limit: int = 200,
        size: tuple[int, int] = (80, 30),
    ) -> Screen:
        session = HoldSession(hf, await hf.holds(), actor)
        state = InboxState(me=actor.id, view=view, limit=limit, now=session.now)
        app = InboxApp(session, await Actions(session).reader.load(state), live=False)
        pilot = await stack.enter_async_context(app.run_test(size=size))
        opened = Screen(session, pilot)
        await opened.painted()
        return opened

    return screen
