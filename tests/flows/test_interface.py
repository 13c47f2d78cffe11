from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdfast import Flow, Holdfast
from holdfast.checkpoint.json_view import SCHEMA
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio
NAMES = {
    "id", "graphId", "runId", "nodeId", "timestamp", "state", "nodeResults", "visitedNodes", "skippedNodes",
    "pendingEdges",
}  # fmt: skip
PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "checkpoint.schema.json"


def problems(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """As much of JSON Schema as our own schema uses."""
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
    }
    kind = schema.get("type")
    if kind is not None and not isinstance(value, kinds[kind]):
        return [f"{where} is {type(value).__name__}, not {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} is {value!r}"]
    found: list[str] = []
    if kind == "array":
        for i, item in enumerate(value):
            found += problems(item, schema["items"], f"{where}[{i}]")
    if kind == "object":
        known = schema.get("properties", {})
        found += [f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value]
        for name, part in value.items():
            extra = schema.get("additionalProperties", True)
            if name in known:
                found += problems(part, known[name], f"{where}.{name}")
            elif isinstance(extra, dict):
                found += problems(part, extra, f"{where}.{name}")
            elif not extra:
                found.append(f"{where} has {name}")
    return found


@pytest.mark.covers("CORE-IFACE-04")
async def test_published_schema_is_the_one_in_the_code() -> None:
    assert json.loads(PUBLISHED.read_text()) == SCHEMA


@pytest.mark.covers("CORE-IFACE-01", "CORE-IFACE-02", "CORE-IFACE-04")
async def test_every_checkpoint_fits_the_published_schema_when_a_run_waits_and_ends(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    await service.answer(result.holds[0].id, "reject", comment="no")
    run = (await flow.resume(result.run_id, on=hf)).expect().run_id
    for meta in await service.checkpoints(run, limit=0):
        reply = json.loads(json.dumps((await service.checkpoint(meta.id)).as_interface(), allow_nan=False))
        assert problems(reply, SCHEMA) == []
        assert reply["id"] == meta.id
        assert reply["runId"] == run
        assert reply["timestamp"] == meta.at // 1000
        assert UUID(reply["id"]).version == 4
    last = (await service.latest(run)).as_interface()
    assert set(last) == NAMES
    assert set(last["state"]) == {"input", "scratch", "artifacts", "diagnostics"}
    assert last["visitedNodes"] == ["assess", "approve", "refuse"]
    assert last["skippedNodes"] == ["pay"]
    assert last["nodeResults"]["approve"]["effectClass"] == "human"
    assert last["nodeResults"]["assess"] == {
        "effectClass": "read",
        "output": {"risk": 0.5},
        "durationMs": last["nodeResults"]["assess"]["durationMs"],
    }
    assert last["state"]["input"] == GIVEN
    assert last["state"]["scratch"]["receipt"] == "none"
    assert "memorySnapshot" not in last


async def test_interface_is_json_when_the_state_holds_more_than_json_knows(bare_hf: Holdfast) -> None:
    hf = bare_hf
    flow = Flow("odd", effect="pure")

    async def write() -> dict[str, Any]:
        return {
            "when": datetime(2026, 1, 2, tzinfo=UTC),
            "price": Decimal("1.10"),
            "raw": b"\x00\xff",
            "nan": float("nan"),
            "pair": (1, 2),
            "by_number": {1: "one"},
            "some": frozenset({3, 1}),
            "big": 2**80,
        }

    flow.node()(write)
    run = (await flow.run({}, on=hf)).expect().run_id
    result = (await (await hf.service()).latest(run)).as_interface()
    scratch = json.loads(json.dumps(result, allow_nan=False))["state"]["scratch"]
    assert scratch == {
        "when": "2026-01-02T00:00:00+00:00",
        "price": "1.10",
        "raw": "AP8=",
        "nan": "nan",
        "pair": [1, 2],
        "by_number": {"1": "one"},
        "some": [1, 3],
        "big": 2**80,
    }
