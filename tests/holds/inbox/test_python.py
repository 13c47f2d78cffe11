"""The Python calls: everything that can be done with holds, from the public names alone."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Actor, Flow, Holdfast, HoldFilter, HoldService, operator
from holdfast.testing.clock import FakeClock

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-03")]

DANA, SAM = Actor(id="user:dana@acme", channel="inbox"), Actor(id="user:sam@acme", channel="inbox")
IAN, ADMIN = Actor(id="user:ian@acme"), operator("user:ada@acme")
PAPER = {"type": "input", "field": "paper", "kind": "file"}
DECISION = {"type": "decision", "field": "decision", "options": ["approve", "reject"]}


class Calls:
    """A service that remembers which of its calls were made."""

    def __init__(self, holds: HoldService) -> None:
        self._holds = holds
        self.made: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.made.add(name)
        return getattr(self._holds, name)


async def asked(hf: Holdfast, **more: Any) -> str:
    flow = Flow("refund", effect="pure")
    options = {} if "sections" in more else {"options": ["approve", "reject"]}
    flow.hold("approve", prompt="Pay 250?", assignee="user:dana@acme", timeout="2d", **options, **more)
    return (await flow.run({}, on=hf, started_by="user:ian@acme")).holds[0].id


@pytest.fixture(params=("memory", "sqlite"))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'holds.db'}"


async def test_every_call_does_what_it_says(address: str, clock: FakeClock) -> None:
    async with Holdfast(address, clock=clock) as hf:
        holds: Any = Calls(await hf.holds())

        await _looks_around(holds, await asked(hf))
        await _talks(holds, await asked(hf))
        await _arranges(holds, await asked(hf))
        await _decides(holds, hf)

        await holds.verify_audit("default")
        head = await holds.sign_head("default", b"k" * 16)
        assert (await holds.verify_audit("default", against=head)).whole
        public = {
            name
            for name, call in inspect.getmembers(HoldService, inspect.iscoroutinefunction)
            if not name.startswith("_")
        }
        assert public - holds.made == set()


async def _looks_around(holds: Any, hold: str) -> None:
    assert (await holds.get(DANA, hold)).prompt == "Pay 250?"
    page = await holds.list(DANA, view="mine", where=HoldFilter(text="250"))
    assert [row.id for row in page.rows] == [hold]
    assert await holds.count(DANA, view="mine") == 1
    assert [row.id for row in await holds.visible(DANA, page.rows)] == [hold]
    assert await holds.shadow(DANA, hold) is None
    assert await holds.why(DANA, hold)
    await holds.require_resolvable(DANA, hold, "approve")
    await holds.seen(DANA, hold)
    assert [entry.action for entry in await holds.history(DANA, hold)] == ["created", "viewed"]
    assert (await holds.metrics(ADMIN)).holds == 1
    assert await holds.answer(hold, "approve", by="user:ada@acme")
    assert b'"approve"' in await holds.evidence(ADMIN, hold)


async def _talks(holds: Any, hold: str) -> None:
    await holds.comment(DANA, hold, "Odd.")
    assert (await holds.ask_back(DANA, hold, "Which?")).paused_at is not None
    assert (await holds.reply(IAN, hold, "That one.")).paused_at is None
    kinds = [note.kind for note in await holds.comments(DANA, hold)]
    assert kinds == ["comment", "question", "reply"]
    await holds.ask_back(DANA, hold, "Sure?")
    assert (await holds.withdraw_question(DANA, hold)).paused_at is None
    await holds.save_draft(DANA, hold, {"comment": "so far"})
    assert (await holds.draft(DANA, hold)).comment == "so far"
    await holds.delete_draft(DANA, hold)
    assert await holds.draft(DANA, hold) is None
    await holds.watch(DANA, hold)
    assert await holds.count(DANA, view="watching") == 1
    await holds.unwatch(DANA, hold)
    await holds.snooze(DANA, hold, timedelta(hours=4))
    assert await holds.count(DANA, view="mine") == 0
    assert await holds.snoozed_until(DANA, hold) is not None
    await holds.unsnooze(DANA, hold)
    assert await holds.snoozed_until(DANA, hold) is None
    assert await holds.count(DANA, view="mine") == 1


async def _arranges(holds: Any, hold: str) -> None:
    assert (await holds.claim(DANA, hold)).claimed_by == "user:dana@acme"
    assert (await holds.release(DANA, hold)).claimed_by is None
    assert (await holds.reassign(DANA, hold, "user:sam@acme")).epoch == 2
    before = (await holds.get(SAM, hold)).expires_at
    assert (await holds.extend(ADMIN, hold, timedelta(days=9))).expires_at > before
    assert str((await holds.cancel(ADMIN, hold, reason="twice")).status) == "cancelled"


async def _decides(holds: Any, hf: Holdfast) -> None:
    first, second, third = [await asked(hf) for _ in range(3)]
    assert (await holds.place(DANA, first, "approve")).row.placed_by == "user:dana@acme"
    assert (await holds.undo(DANA, first)).placed is None
    assert (await holds.resolve(DANA, first, {"resolution": "reject"})).row.resolved_by == "user:dana@acme"
    assert (await holds.vote(DANA, second, "approve")).row.resolution is not None
    assert (await holds.bulk(DANA, [third], "approve", preview=False)).done == 1
    form = await asked(hf, sections=[PAPER, DECISION])
    kept = await holds.attach(DANA, form, "paper", "a.txt", b"text")
    assert len(await holds.files(DANA, form)) == 1
    assert await holds.read_file(DANA, form, kept["sha256"]) == (kept, b"text")
    await holds.resolve(DANA, form, decision="approve", response_data={"paper": kept})
