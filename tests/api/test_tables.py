"""The tables that the runtime proposal lists, asked with nothing but SQL, on both databases."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.projector import LARGEST, MOST, Projector
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.store.sql.sqlite import migrate
from holdfast.types.ids import checkpoint_id
from tests.api.conftest import Server, serving
from tests.api.flows import refund
from tests.runtime.people import until
from tests.services import postgres
from tests.storage.canary import ring
from tests.unit.store.sqlite_files import plain

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-SEED-06", "R-64")]

CHECKPOINTS = (
    "id", "run_id", "flow_id", "status", "node_states", "completed_node_ids", "original_input",
    "pending_input_context", "version", "created_at", "updated_at",
)  # fmt: skip

Asked = Callable[[str], list[dict[str, Any]]]


class Shop:
    """A server with a worker, its database, and one way to ask that."""

    def __init__(self, server: Server, ask: Asked, *, is_sqlite: bool) -> None:
        self.server = server
        self.ask = ask
        self.is_sqlite = is_sqlite

    async def project(self, which: Any = "holds") -> None:
        """All that is committed. The feed of PostgreSQL ends before the oldest open transaction of the whole
        server, also of other tests: that it is empty does not mean that all was seen."""
        projector = Projector(await self.server.hf.service(), which)
        (last,) = self.ask("SELECT max(pos) AS pos FROM feed")

        async def seen() -> bool:
            while await projector.sweep():
                pass
            return await projector.service.store.projected_to() >= last["pos"]

        await until(seen)

    async def started(self, thread: str = "t-1") -> str:
        body = {"flow": "refund", "input": {"order": "o\0-1", "amount": 30}, "thread": thread}
        return str((await self.server.json("POST", "/v1/runs", 201, json=body))["id"])

    async def waits(self, run: str) -> str:
        async def asked() -> Any:
            return (await self.server.json("GET", f"/v1/runs/{run}"))["metadata"]["checkpoint_id"]

        return str(await until(asked))

    async def over(self, run: str, status: str = "completed") -> None:
        async def ended() -> bool:
            return bool((await self.server.json("GET", f"/v1/runs/{run}"))["status"] == status)

        await until(ended)


def on_file(path: Path) -> Asked:
    def ask(sql: str) -> list[dict[str, Any]]:
        with plain(path) as raw:
            cursor = raw.execute(sql)
            rows = [(cursor.get_description(), row) for row in cursor]
        return [{column[0]: _opened(v) for column, v in zip(names, row, strict=True)} for names, row in rows]

    return ask


def _opened(value: Any) -> Any:
    """SQLite has neither JSON nor instants: both are text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        return json.loads(value)
    if isinstance(value, str) and value[-1:] == "Z":
        return datetime.fromisoformat(value)
    return value


def on_server(schema: str) -> Asked:
    def ask(sql: str) -> list[dict[str, Any]]:
        within = sql.replace("FROM ", f"FROM {schema}.")
        result = postgres.execute(f"SELECT to_jsonb(found)::text FROM ({within}) AS found")
        return [json.loads(str(row)) for (row,) in result]

    return ask


@pytest.fixture(params=["sqlite", "pg"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    if request.param == "sqlite":
        address, ask = f"sqlite:{tmp_path / 's.db'}", on_file(tmp_path / "s.db")
    else:
        schema = f"t_{secrets.token_hex(4)}"
        address, ask = postgres.with_setting(postgres.database(), schema=schema), on_server(schema)
    async with Holdfast(address) as hf, serving(hf) as server, Worker(refund(), on=hf):
        yield Shop(server, ask, is_sqlite=request.param == "sqlite")


async def test_browser_that_closes_and_returns_is_seen_in_every_listed_column(shop: Shop) -> None:
    run = await shop.started()
    hold = await shop.waits(run)
    await shop.project()
    (waiting,) = shop.ask(f"SELECT {', '.join(CHECKPOINTS)} FROM checkpoints WHERE status = 'pending_input'")
    assert (waiting["id"], waiting["run_id"], waiting["flow_id"]) == (hold, run, "refund")
    assert waiting["node_states"]["check"]["status"] == "success"
    assert waiting["completed_node_ids"] == ["check"]
    assert waiting["original_input"] == {"order": "o\ufffd-1", "amount": 30}
    asked = waiting["pending_input_context"]
    assert (asked["node_id"], asked["prompt"], asked["request_id"]) == ("approve", "Refund 30?", hold)
    assert waiting["version"] == "1.0"
    instant = datetime.fromisoformat(str(waiting["created_at"]))
    assert abs(instant - datetime.now(UTC)) < timedelta(minutes=5)
    assert datetime.fromisoformat(asked["timestamp"])

    await shop.server.json("POST", f"/v1/runs/{run}/input", json={"content": "approve"})
    await shop.over(run)
    await shop.project()
    (said,) = shop.ask("SELECT * FROM run_input_events WHERE type = 'answer'")
    assert (said["run_id"], said["checkpoint_id"]) == (run, hold)
    assert said["content"]["decision"] == "approve"
    assert said["created_by"]
    assert said["created_at"]
    assert said["consumed"] in (True, 1)
    (ended,) = shop.ask("SELECT * FROM checkpoints WHERE status = 'completed'")
    assert ended["completed_node_ids"] == ["check", "approve", "pay"]
    assert ended["node_states"]["pay"]["output_data"]["paid"] == 30
    (row,) = shop.ask("SELECT * FROM plain_runs WHERE status = 'completed'")
    assert (row["id"], row["flow_id"], row["thread_id"]) == (run, "refund", "t-1")
    assert row["input"]["amount"] == 30
    assert row["output"]["state"]["paid"] == 30
    assert row["created_at"] <= row["updated_at"] <= row["ended_at"] or row["ended_at"]


async def test_chunks_of_a_stream_have_the_numbers_that_the_stream_has(shop: Shop) -> None:
    run = await shop.started()
    hold = await shop.waits(run)
    await shop.server.json("POST", f"/v1/runs/{run}/input", json={"content": "approve"})
    await shop.over(run)
    await shop.project()
    chunks = shop.ask("SELECT * FROM stream_chunks ORDER BY sequence")
    result = (await shop.server.json("GET", f"/v1/runs/{run}/events?limit=500"))["items"]
    kinds = {each["number"]: each["type"] for each in result}
    # All of them together are the whole stream, without a gap.
    assert sum(chunk["events"] for chunk in chunks) == len(result)
    assert [c["sequence"] for c in chunks] == sorted({c["sequence"] for c in chunks})
    for chunk in chunks:
        known = {"approval": "hold.opened", "checkpoint_created": "checkpoint.created"}
        expected = known.get(chunk["event"], chunk["event"])
        if expected not in ("attempt", "substep"):
            assert kinds[chunk["sequence"]] == expected
    (approval,) = [chunk["data"] for chunk in chunks if chunk["event"] == "approval"]
    assert approval.pop("is_resumed") in (False, 0)
    assert approval == {"entity_id": "approve", "prompt": "Refund 30?", "checkpoint_id": hold}
    saved = [chunk["data"] for chunk in chunks if chunk["event"] == "checkpoint_created"]
    assert [each["status"] for each in saved].count("pending_input") == 1


@pytest.mark.parametrize("view", ["checkpoints", "stream_chunks"])
async def test_one_run_is_found_without_reading_the_journal_of_all_others(tmp_path: Path, view: str) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        await hf.open()
    found = on_file(tmp_path / "s.db")(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE run_id = 'x'")
    plan = [str(row["detail"]) for row in found]
    assert not {"SCAN r", "SCAN j", "SCAN e"} & set(plan), plan
    assert "SEARCH j USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan


@pytest.mark.parametrize("view", ["checkpoints", "stream_chunks"])
async def test_one_run_is_found_by_its_id_and_its_keys_on_a_server(view: str) -> None:
    schema = f"t_{secrets.token_hex(4)}"
    async with Holdfast(postgres.with_setting(postgres.database(), schema=schema)) as hf:
        await hf.open()
    connection = await asyncpg.connect(postgres.database())
    try:
        # So few rows are read faster than any index.
        await connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        run = UUID(int=7)
        rows = await connection.fetch(f"EXPLAIN SELECT * FROM {schema}.{view} WHERE run_id = '{run}'")
    finally:
        await connection.close()
    plan = "\n".join(str(row[0]) for row in rows)
    assert "Index Scan using runs_as_uuid" in plan
    assert "Index Cond: ((key >= (r.key << 32)) AND (key <= ((r.key << 32) |" in plan


async def test_threads_count_their_runs(shop: Shop) -> None:
    for thread in ("t-1", "t-1", "t-2"):
        await shop.waits(await shop.started(thread))
    found = {row["id"]: row for row in shop.ask("SELECT * FROM threads WHERE tenant_id = 'default'")}
    assert {name: (row["runs"], row["pending_input_runs"]) for name, row in found.items()} == {
        "t-1": (2, 2),
        "t-2": (1, 1),
    }


@pytest.mark.covers("R-64-http")
async def test_every_checkpoint_is_whole_where_that_is_asked_for(shop: Shop) -> None:
    run = await shop.started()
    await shop.waits(run)
    listed = (await shop.server.json("GET", f"/v1/runs/{run}/checkpoints?limit=100"))["items"]
    before = shop.ask("SELECT * FROM checkpoints ORDER BY seq DESC")
    assert [row["status"] for row in before] == [each["status"] for each in listed]
    assert all(row["node_states"] is None for row in before)
    # The interface folds them at once, whatever was written for SQL.
    for each in listed:
        detail = await shop.server.json("GET", f"/v1/runs/{run}/checkpoints/{each['id']}")
        assert detail["original_input"]["amount"] == 30
        assert set(detail["completed_node_ids"]) == set(detail["node_states"]) <= {"check"}
    await shop.project("every")
    rows = shop.ask("SELECT * FROM checkpoints ORDER BY seq DESC")
    assert [row["id"] for row in rows] == [each["id"] for each in listed]
    assert all(row["node_states"] is not None for row in rows)


async def test_id_that_sql_makes_is_the_one_that_the_api_knows(shop: Shop) -> None:
    run = await shop.started()
    await shop.waits(run)
    for row in shop.ask("SELECT id, run_id, seq FROM checkpoints WHERE status = 'active'"):
        if shop.is_sqlite:
            assert row["id"] is None, "SQLite has no SHA-256: an id comes with the projection"
        else:
            assert str(UUID(row["id"])) == checkpoint_id(row["run_id"], row["seq"])


async def test_large_value_is_reported_by_its_size(tmp_path: Path) -> None:
    flow = Flow("large", effect="pure")
    flow.node(id="only")(lambda s: {"text": "x" * (LARGEST + 1)})
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        result = await flow.run({"n": 1}, on=hf)
        service = await hf.service()
        await Projector(service).sweep()
        (row,) = await service.store.projections(result.run_id)
    states = json.loads(row.node_states or "")
    assert states["only"]["output_data"]["omitted_bytes"] > LARGEST
    assert len(row.node_states or "") < 1000


async def test_many_large_values_are_reported_by_their_size_when_there_is_no_room_for_all(
    tmp_path: Path,
) -> None:
    flow = Flow("wide", effect="pure")
    nodes = [flow.node(id=f"n{number}")(lambda s: {"text": "x" * (LARGEST - 100)}) for number in range(24)]
    for first, second in pairwise(nodes):
        flow.edge(first, second)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        result = await flow.run({}, on=hf)
        service = await hf.service()
        await Projector(service).sweep()
        (row,) = await service.store.projections(result.run_id)
    states = json.loads(row.node_states or "")
    assert "text" in states["n0"]["output_data"]
    assert states["n23"]["output_data"]["omitted_bytes"] < LARGEST
    assert len(row.node_states or "") < MOST + 24 * 1000


async def test_encrypted_store_shows_names_and_no_content(tmp_path: Path) -> None:
    flow = Flow("secret", effect="pure")
    flow.node(id="only")(lambda s: {"answer": "canary"})
    address, ask = f"sqlite:{tmp_path / 's.db'}", on_file(tmp_path / "s.db")
    async with Holdfast(address) as hf:
        await flow.run({"word": "canary"}, on=hf)
        await Projector(await hf.service()).sweep()
    assert "canary" in str(ask("SELECT * FROM checkpoints"))
    async with Holdfast(address, keys=ring()) as hf:
        await flow.run({"word": "canary"}, on=hf)
        service = await hf.service()
        await Projector(service).sweep()
        await reencrypt(service)
    shown = [ask(f"SELECT * FROM {view}") for view in ("checkpoints", "plain_runs", "stream_chunks")]
    assert "canary" not in str(shown)
    ended = [row for row in shown[0] if row["status"] == "completed"]
    assert [row["completed_node_ids"] for row in ended] == [["only"], ["only"]]


async def test_store_that_has_grown_begins_with_what_comes_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("old", effect="pure")
    flow.node(id="only")(lambda s: {"n": 1})
    address, ask = f"sqlite:{tmp_path / 's.db'}", on_file(tmp_path / "s.db")
    # As if the tables of the proposal had come last, in a store with a run.
    late = sorted(migrate.migrations(), key=lambda each: each.name == "proposal")
    after = [msgspec.structs.replace(each, number=n) for n, each in enumerate(late, 1)]
    before = after[:-1]
    monkeypatch.setattr(migrate, "migrations", lambda: before)
    async with Holdfast(address) as hf:
        await flow.run({}, on=hf)
    monkeypatch.setattr(migrate, "migrations", lambda: after)
    async with Holdfast(address) as hf:
        projector = Projector(await hf.service())
        assert not await projector.sweep()
        await flow.run({}, on=hf)
        assert await projector.sweep()
    ended = ask("SELECT * FROM checkpoints WHERE status = 'completed' ORDER BY created_at")
    assert [row["node_states"] is None for row in ended] == [True, False]


async def test_failure_is_shown_whole_and_nothing_is_written_where_that_is_not_wanted(tmp_path: Path) -> None:
    flow = Flow("failing", effect="pure")
    first = flow.node(id="first")(lambda s: {"n": 1})

    @flow.node
    async def breaks(s: Any) -> dict[str, Any]:
        raise ValueError("it does not go on")

    flow.edge(first, breaks)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        result = await flow.run({}, on=hf)
        service = await hf.service()
        await Projector(service, "none").serve()
        assert await service.store.projections(result.run_id) == []
        await Projector(service).sweep()
        rows = await service.store.projections(result.run_id)
    states = json.loads(rows[-1].node_states or "")
    assert (states["first"]["status"], states["breaks"]["status"]) == ("success", "fail")
    assert "it does not go on" in states["breaks"]["error"]["message"]
    assert rows[-1].output is None
