"""An inbox without a terminal: keys go in, lines of text come out."""

from __future__ import annotations

from typing import Any

from holdfast import Flow, Holdfast
from holdfast.cli.hold_session import HoldSession
from holdfast.cli.inbox.program import InboxProgram
from holdfast.cli.inbox.screen import frame
from holdfast.cli.inbox.service_calls import Actions
from holdfast.cli.inbox.state import InboxState
from holdfast.cli.inbox.text_spans import plain
from holdfast.testing.clock import FakeClock
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
    """Somebody's inbox, and the others who work at the same time."""

    def __init__(self, hf: Holdfast, clock: FakeClock, inbox: InboxProgram, desk: HoldSession) -> None:
        self.hf = hf
        self.clock = clock
        self.inbox = inbox
        self.desk = desk
        self.width, self.height = 80, 30

    @property
    def state(self) -> InboxState:
        return self.inbox.state

    async def press(self, *keys: str) -> list[str]:
        """One key after another; a text of several letters is typed."""
        for key in keys:
            named = key in NAMED or len(key) == 1
            for each in [key] if named else list(key):
                await self.inbox.take("space" if each == " " else each)
        return self.lines()

    async def others(self) -> list[str]:
        """What others did is noticed."""
        await self.inbox.take("changed")
        return self.lines()

    def lines(self) -> list[str]:
        made = frame(self.state, self.width, self.height)
        return [plain(line).rstrip() for line in made.lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    async def row(self, hold: str) -> HoldRow:
        return await self.desk.holds.get(self.desk.actor, hold)


NAMED = frozenset(
    {"enter", "esc", "up", "down", "space", "backspace", "ctrl-u", "ctrl-c", "pagedown", "home", "end", "tab"}
)


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


async def screen(
    hf: Holdfast, clock: FakeClock, *, actor: Actor = DANA, view: str = "mine", limit: int = 200
) -> Screen:
    desk = HoldSession(hf, await hf.holds(), actor)
    state = InboxState(me=actor.id, view=view, limit=limit, now=desk.now)
    return Screen(hf, clock, InboxProgram(desk, await Actions(desk).reader.load(state)), desk)
