"""A refund that waits for an approval, on an instance with rules."""

from __future__ import annotations

import json
from typing import Any

from holdfast import Flow, Holdfast, Result
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.terms import operator


def refund(*, yes: str = "approve", **hold: Any) -> Flow:
    """`yes`: the option that pays."""
    flow = Flow("refund", effect="pure")
    given: dict[str, Any] = {
        "prompt": "Refund {{amount}} to {{customer}}?",
        "options": ["approve", "reject"],
        "assignee": "group:finance",
        "context": {"amount": "{{amount}}", "note": "{{note}}"},
    }
    gate = flow.hold("gate", **{**given, **hold})

    @flow.node
    async def pay() -> dict[str, Any]:
        return {"paid": True}

    @flow.node
    async def refuse() -> dict[str, Any]:
        return {"paid": False}

    flow.start(gate)
    flow.edge(gate, pay, when=f"decision == '{yes}'")
    flow.edge(gate, refuse, otherwise=True)
    return flow


def given(amount: int, **more: Any) -> dict[str, Any]:
    return {"amount": amount, "customer": "c-9", "note": "", **more}


async def hold_of(hf: Holdfast, run: str) -> HoldRow:
    (row,) = await (await hf.open()).holds(run=run)  # type: ignore[arg-type]
    return row


async def said(hf: Holdfast, result: Result) -> dict[str, Any]:
    row = await hold_of(hf, result.run_id)
    return json.loads(row.resolution or b"{}")


async def actions(hf: Holdfast, hold: str) -> list[str]:
    """What the audit has of it."""
    store = await hf.open()
    row = await store.hold(HoldId(hold))
    assert row is not None
    return [each.action for each in await store.audit(row.tenant, hold=hold)]


async def decide(hf: Holdfast, hold: str, decision: str, **more: Any) -> HoldRow:
    service = await hf.holds()
    return (await service.resolve(operator("user:dana"), hold, decision=decision, **more)).row
