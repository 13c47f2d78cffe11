"""The checkpoint table of the wrapper's documents, asked with nothing but SQL, is what the API says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.hold import Option
from holdfast.types.record import HoldClosed, Side
from tests.api.conftest import serving
from tests.services import mariadb, postgres
from tests.storage.canary import ring
from tests.unit.store.sqlite_files import plain

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-8")]

COLUMNS = (
    "id", "execution_id", "core_id", "tenant_id", "flow_name", "instance_key", "node_id", "block_index",
    "checkpoint_type", "status", "priority", "prompt", "options", "assignee_raw", "assignee_type",
    "assignee_resolved", "context", "expires_at", "expiry_action", "escalation_target", "notification_sent",
    "reminder_count", "reminder_interval_m", "resolution", "resolved_by", "resolved_at", "created_at",
    "updated_at", "resumed_at", "hitl_message_id", "state_s3_key",
)  # fmt: skip
JSON = ("options", "context", "assignee_resolved", "resolution")
INSTANTS = ("expires_at", "resolved_at", "created_at", "updated_at", "resumed_at")
ASK = f"SELECT {', '.join(COLUMNS)} FROM {{schema}}mod_scaicore_checkpoints ORDER BY status"


@pytest.fixture(params=["sqlite", "pg", "mariadb_"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Any]:
    """An address, and how its database is asked."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 's.db'}", lambda: _on_file(tmp_path / "s.db")
    if request.param == "mariadb_":
        address = mariadb.emptied("tables")
        return address, lambda: mariadb.execute(ASK.format(schema=""), address)
    schema = f"t_{token_hex(4)}"
    address = postgres.with_setting(postgres.database(), schema=schema)
    return address, lambda: postgres.execute(ASK.format(schema=f"{schema}."))


def _on_file(path: Path) -> list[tuple[Any, ...]]:
    with plain(path) as raw:
        return list(raw.execute(ASK.format(schema="")))


def _plain(name: str, value: Any) -> Any:
    """Of any database, as JSON has it."""
    if value is None:
        return None
    if name in JSON and isinstance(value, str | bytes):
        return json.loads(value)
    if name in INSTANTS:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    return int(value) if name == "notification_sent" else value


async def _asked(hf: Holdfast) -> list[str]:
    """One hold of each status."""
    kit = StoreKit(None)  # type: ignore[arg-type]
    kit.store = (await hf.service()).store
    lease = await kit.claimed(instance_key="shop ž", deployment=None)
    now = kit.store.now()
    holds = [
        kit.new_hold(
            1, ordinal=n, prompt="Rückzahlung?", options=(Option("yes", "Ja"), Option("no", "Nein")),
            assignee="user:ada@acme", assignee_type="user", assignee_value="ada@acme",
            assignee_reason="" if n else "by a rule", context='{"order": "ž"}'.encode(), block=n,
            created_at=now + n, expires_at=now + 10**9 + n, expiry_action="escalate",
            escalation_target="group:leads", reminder_interval=30, state_key=f"p/v1/ž/{n}",
        )
        for n in range(4)
    ]  # fmt: skip
    await kit.written(lease, kit.record(1, side=Side(holds=holds)))
    assert await kit.decide(holds[1].id, b'{"decision": "yes"}', "user:ada@acme") is not None
    closed = [HoldClosed(holds[2].id, "expired", "late"), HoldClosed(holds[3].id, "cancelled", "no need")]
    await kit.written(lease, kit.record(2, side=Side(close_holds=closed)))
    return [hold.id for hold in holds]


async def test_view_says_what_the_api_says_in_every_status(place: tuple[str, Any]) -> None:
    address, ask = place
    async with Holdfast(address) as hf, serving(hf) as server:
        holds = await _asked(hf)
        shown = [await server.json("GET", f"/v1/checkpoints/{hold}") for hold in holds]
    found = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in ask()}
    assert sorted(row["status"] for row in found.values()) == ["cancelled", "expired", "pending", "resolved"]
    for expected in shown:
        row = found[expected["id"]]
        assert row.pop("state_s3_key") == f"p/v1/ž/{expected['block_index']}"
        assert "p/v1/" not in json.dumps(expected), "the API never says where the state is"
        for name, value in row.items():
            assert _plain(name, value) == _plain(name, expected[name]), (name, expected["status"])


async def test_view_has_no_json_of_what_is_encrypted(place: tuple[str, Any]) -> None:
    address, ask = place
    async with Holdfast(address, keys=ring()) as hf:
        await _asked(hf)
    for row in ask():
        shown = dict(zip(COLUMNS, row, strict=True))
        assert [shown[name] for name in ("options", "context", "resolution")] == [None] * 3
        assert "Rück" not in (shown["prompt"] or "")
