"""An instance with holds of several people, one of them decided with a form, under skills, and reassigned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, KeyRing, StaticKeys
from holdfast.checkpoint.keys import new_scope, with_scope
from holdfast.holds.service import HoldService
from holdfast.types.hold import HoldRow
from holdfast.types.terms import operator
from tests.cli.conftest import cli, logs

__all__ = ["cli", "logs"]

SECTIONS: Any = [
    {"type": "context", "title": "Why", "content": "Order {{order}} <b>broke</b>"},
    {"type": "input", "field": "amount", "kind": "integer", "default": "{{amount}}", "max": 500},
    {"type": "decision", "options": ["approve", "reject"]},
]


def a_flow() -> Flow:
    flow = Flow("refund")
    flow.start(
        flow.hold(
            "approve", prompt="Refund {{order}}: “naïve” \u200bvalue?", sections=SECTIONS, into="paid",
            assignee="user:dana@acme", context={"customer": "{{customer}}"},
        )
    )  # fmt: skip
    return flow


async def decide(hf: Holdfast) -> HoldRow:
    """One of three holds, decided among acts on the others."""
    flow = a_flow()
    await (await hf.skills()).publish("refunds", "1.0.0", instructions="Be kind.", tools=["pay"])
    await hf.deploy("desk", flow, skills=["refunds@^1"])
    given = {"order": "A17", "amount": 250, "customer": {"name": "Åsa", "score": 0.1}}
    before, hold, after = [
        (await flow.run(given, on=hf, deployment="desk", started_by="user:agent@acme")).holds[0]
        for _ in range(3)
    ]
    store = await hf.open()
    service, boss = HoldService(store), operator("user:boss@acme")
    await service.comment(boss, before.id, "Not this one.")
    await service.reassign(boss, hold.id, "user:sam@acme")
    await service.resolve(boss, before.id, {"decision": "reject", "response_data": {"amount": 1}})
    said = {"decision": "approve", "response_data": {"amount": 240}, "comment": "Within limits."}
    await service.resolve(operator("user:sam@acme"), hold.id, said)
    await service.cancel(boss, after.id, reason="ordered twice")
    found = await store.hold(hold.id)
    assert found is not None
    return found


def a_ring() -> KeyRing:
    return StaticKeys(with_scope(None, "*", new_scope(datetime.now(UTC))))


@pytest.fixture(params=["memory", "sqlite", "encrypted"])
async def hf(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'e.db'}"
    keys = a_ring() if request.param == "encrypted" else None
    async with Holdfast(address, keys=keys) as opened:
        yield opened
