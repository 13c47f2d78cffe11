"""A store of before the rows of holds kept their own deadlines: what was agreed then happens now."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Worker
from holdfast.frontends.python import builder
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus

pytestmark = pytest.mark.anyio

STORE = Path(__file__).parent / "golden" / "stores" / "deadlines5.db.gz"


def gated(on_timeout: str | None) -> Flow:
    name = (on_timeout or "none").partition(":")[0]
    flow = Flow(f"old-{name}", effect="pure")
    flow.hold(
        "gate",
        prompt="Go?",
        options=["yes", "no"],
        assignee="user:dana",
        timeout="2h",
        on_timeout=on_timeout,
    )

    @flow.node
    async def late() -> dict[str, Any]:
        return {"late": True}

    if name != "branch":
        flow.edge("gate", late, when="decision == 'never'")
    return flow


def inside() -> Flow:
    flow = Flow("old-inside")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Well?", options=["wait", "go"], timeout="2h", on_timeout="default")
        return {"end": reply.decision}

    return flow


FLOWS = [
    gated(None), gated("cancel"), gated("default"), gated("escalate:role:lead"), gated("branch:late"),
    inside(),
]  # fmt: skip


@pytest.mark.covers("HOLD-TIME-05")
async def test_deadlines_of_an_older_store_are_kept_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The check refuses `decision == 'never'` today; the runs in the store were started with it.
    monkeypatch.setattr(builder, "require_valid", lambda *_: None)
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(STORE.read_bytes()))
    clock = FakeClock()
    async with Holdfast(f"sqlite:{path}", clock=clock) as hf:
        worker = Worker(*FLOWS, on=hf)
        await worker.run_until_idle()
        before = {hold.flow: hold for hold in await (await hf.service()).holds()}
        assert len(before) == len(FLOWS), "nothing has happened yet"
        clock.advance(timedelta(hours=2))
        await worker.run_until_idle()
        rows = {hold.flow: hold for hold in await (await hf.service()).holds(open_only=False)}
        ended = {
            hold.flow: (hold.status, (await (await hf.service()).get(hold.run)).status)
            for hold in rows.values()
        }
        assert ended == {
            "old-none": (HoldStatus.expired, "failed"),
            "old-cancel": (HoldStatus.cancelled, "cancelled"),
            "old-default": (HoldStatus.resolved, "completed"),
            "old-escalate": (HoldStatus.pending, "pending_input"),
            "old-branch": (HoldStatus.expired, "completed"),
            "old-inside": (HoldStatus.resolved, "completed"),
        }
        handed_on = rows["old-escalate"]
        assert (handed_on.assignee, handed_on.escalation_count) == ("role:lead", 1)
        said = {
            "old-default": ("decision", "yes"),
            "old-branch": ("late", True),
            "old-inside": ("end", "wait"),
        }
        for flow in FLOWS:
            if flow.name in said:
                result = await flow.resume(rows[flow.name].run, on=hf)
                name, value = said[flow.name]
                assert result.state[name] == value
        await worker.close()
