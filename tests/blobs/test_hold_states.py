"""The state of a run that asks a person, as an object in S3 that the checkpoint table names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from holdfast import Context, Flow, Holdfast, RunSettings
from holdfast.app.loader import load_flow
from holdfast.checkpoint.json_view import SCHEMA
from holdfast.errors import StoreUnavailableError
from holdfast.runs.collect_blobs import collect_orphans
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.store.rows import RunFilter
from holdfast.testing.crashpoints import EXIT_CODE, environment
from holdfast.types.ids import RunId
from tests.crash.stores import address_on
from tests.services import mariadb, postgres, prefork
from tests.services.s3 import BUCKET, KEYS, S3Server
from tests.storage.canary import ring, turned
from tests.unit.store.sqlite_files import plain

pytestmark = [pytest.mark.anyio, pytest.mark.covers("BS-7")]

ASK = "SELECT id, tenant_id, execution_id, state_s3_key FROM {schema}mod_scaicore_checkpoints"
LARGE = "large " * 300_000
FLOW = """
from holdfast import Flow

refund = Flow("refund", effect="pure")

@refund.node
async def price(s):
    return {"amount": 500}

refund.edge(price, refund.hold("ask", prompt="Pay?", options=["yes", "no"]))
"""


def refund_flow() -> Flow:
    flow = Flow("refund", effect="pure")

    async def price(_s: Any) -> dict[str, Any]:
        return {"amount": 500, "name": "Łódź", "text": LARGE}

    async def confirm(_s: Any, ctx: Context) -> dict[str, Any]:
        return {"confirmed": (await ctx.ask("Sure?", options=["yes", "no"])).decision}

    first = flow.node(id="price")(price)
    ask = flow.hold("ask", prompt="Pay?", options=["yes", "no"])
    flow.edge(first, ask)
    flow.edge(ask, flow.node(id="confirm")(confirm))
    return flow


def table(address: str) -> list[tuple[Any, ...]]:
    """The checkpoint table, asked with nothing but SQL."""
    if address.startswith("sqlite:"):
        with plain(Path(address.removeprefix("sqlite:"))) as raw:
            return list(raw.execute(ASK.format(schema="")))
    if address.startswith("mariadb:"):
        return mariadb.execute(ASK.format(schema=""), address)
    return postgres.execute(ASK.format(schema=f"{address.partition('schema=')[2]}."))


def bucket(server: S3Server) -> S3Store:
    """As another program opens it."""
    return S3Store(BUCKET, endpoint=server.endpoint, client_options={"allow_http": True}, **KEYS)


async def content(server: S3Server, key: str) -> bytes:
    return bytes(await (await obstore.get_async(bucket(server), key)).bytes_async())


async def stored(server: S3Server, prefix: str, tenant: str = "default") -> list[str]:
    found = obstore.list(bucket(server), f"{prefix}/v1/{tenant}/holds/")
    return [each["path"] async for batch in found for each in batch]


async def answer(hf: Holdfast, run: str) -> None:
    service = await hf.service()
    (hold,) = await service.holds(RunId(run))
    await service.answer(hold.id, "yes")


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
async def test_row_names_the_object_with_the_state_of_the_suspended_run(
    s3_server: S3Server, prefix: str, tmp_path: Path, store: str
) -> None:
    import jsonschema_rs

    address = address_on(store, tmp_path)
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        flow = refund_flow()
        waiting = await flow.run({"order": 7}, on=hf, tenant="acme")
        assert waiting.status == "pending_input"
        ((hold, tenant, run, key),) = table(address)
        assert key == f"{prefix}/v1/acme/holds/{run}/{hold}"
        assert (tenant, run) == ("acme", waiting.run_id)
        state = json.loads(await content(s3_server, key))
        jsonschema_rs.validator_for(SCHEMA).validate(state)
        assert (state["id"], state["runId"], state["nodeId"]) == (hold, run, "ask")
        assert state["state"]["scratch"] == {"order": 7, "amount": 500, "name": "Łódź", "text": LARGE}
        assert state["visitedNodes"] == ["price"]
        service = await hf.service()
        assert state == (await service.checkpoint(hold)).as_interface() == await service.hold_state(hold)
        # A question that a handler asks has its state, too.
        await answer(hf, waiting.run_id)
        await flow.resume(waiting.run_id, on=hf)
        (later,) = [row for row in table(address) if row[0] != hold]
        assert json.loads(await content(s3_server, later[3]))["visitedNodes"] == ["price", "ask"]
        await answer(hf, waiting.run_id)
        assert (await flow.resume(waiting.run_id, on=hf)).state["confirmed"] == "yes"


async def test_question_of_a_first_node_has_its_state_and_so_has_a_fork(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    address = address_on("sqlite", tmp_path)
    flow = Flow("first", effect="pure")
    flow.hold("ask", prompt="Go?", options=["yes"])
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        service = await hf.service()
        waiting = await flow.run({"order": 7}, on=hf)
        await service.fork(waiting.run_id, 0, patch={"scratch": {"order": 8}})
        rows = table(address)
        states = [json.loads(await content(s3_server, key)) for *_, key in rows]
    assert sorted(state["state"]["scratch"]["order"] for state in states) == [7, 8]
    assert [state["runId"] for state in states] == [run for _, _, run, _ in rows]


@pytest.mark.parametrize("how", ["setting", "folder"])
async def test_row_names_no_object_where_none_is_wanted_or_blobs_are_not_in_s3(
    s3_server: S3Server, prefix: str, tmp_path: Path, how: str
) -> None:
    address, settings = address_on("sqlite", tmp_path), RunSettings(state_blobs=how == "folder")
    objects = f"file:{tmp_path}/blobs" if how == "folder" else s3_server.blobs(prefix)
    async with Holdfast(address, objects=objects, settings=settings) as hf:
        assert (await refund_flow().run({}, on=hf)).status == "pending_input"
        ((hold, _, _, key),) = table(address)
        assert key is None
        assert await (await hf.service()).hold_state(hold) is None
    assert await stored(s3_server, prefix) == []


async def test_state_of_an_encrypted_store_is_encrypted_and_re_encrypted(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    address, blobs = address_on("sqlite", tmp_path), s3_server.blobs(prefix)
    keys = ring()
    async with Holdfast(address, objects=blobs, keys=keys) as hf:
        assert (await refund_flow().run({}, on=hf)).status == "pending_input"
        ((hold, _, _, key),) = table(address)
        data = await content(s3_server, key)
        for word in (b"price", b"scratch", b"large"):
            assert word not in data
        state = await (await hf.service()).hold_state(hold)
        assert state is not None
        assert state["state"]["scratch"]["amount"] == 500
    async with Holdfast(address, objects=blobs, keys=turned(keys)) as hf:
        service = await hf.service()
        await reencrypt(service)
        assert await content(s3_server, key) != data
        assert await service.hold_state(hold) == state
        again = await content(s3_server, key)
        await reencrypt(service)
        assert await content(s3_server, key) == again


async def test_object_is_deleted_with_its_run(s3_server: S3Server, prefix: str, tmp_path: Path) -> None:
    async with Holdfast(address_on("sqlite", tmp_path), objects=s3_server.blobs(prefix)) as hf:
        service = await hf.service()
        waiting = [await refund_flow().run({}, on=hf) for _ in range(2)]
        assert len(await stored(s3_server, prefix)) == 2
        # What a row names is no orphan, whatever its age.
        assert await collect_orphans(service, grace=-3600) == 0
        await service.cancel(waiting[0].run_id)
        await refund_flow().resume(waiting[0].run_id, on=hf)
        await service.delete(waiting[0].run_id)
        (left,) = await stored(s3_server, prefix)
        assert waiting[1].run_id in left


async def test_question_is_not_asked_until_its_state_is_stored(
    s3_server: S3Server, prefix: str, tmp_path: Path, short_times: None
) -> None:
    """A row without its object would be a state that is lost."""
    address, flow = address_on("sqlite", tmp_path), refund_flow()
    nowhere = s3_server.blobs(prefix, place="127.0.0.1:9")
    async with Holdfast(address, objects=nowhere, settings=RunSettings(patience=0.0)) as hf:
        with pytest.raises(StoreUnavailableError, match="blob store"):
            await flow.run({}, on=hf)
        assert table(address) == []
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        store = (await hf.service()).store
        (row,) = await store.list_runs(RunFilter(), after=None, limit=1)
        await store.expire_leases([row])
        await flow.resume(row.id, on=hf)
        ((*_, key),) = table(address)
        assert await stored(s3_server, prefix) == [key]


async def test_process_that_dies_after_the_put_leaves_no_row_and_its_orphan_is_collected(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "flows.py").write_text(FLOW)
    address = f"sqlite:{tmp_path}/s.db"
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE": address,
        "HOLDFAST_BLOBS": s3_server.address(prefix), "HOLDFAST_LEASE": "1s",
        "AWS_ACCESS_KEY_ID": KEYS["access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"],
    }  # fmt: skip
    words = ["run", "flows.py", "--json"]
    for _ in range(2):
        crash = environment("after_blob_put", 1)
        dead = prefork.run("holdfast", words, cwd=tmp_path, env={**env, **crash})
        assert dead.returncode == EXIT_CODE, dead.stderr
    assert table(address) == []
    assert len(await stored(s3_server, prefix)) == 2
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        service = await hf.service()
        rows = await service.store.list_runs(RunFilter(), after=None, limit=9)
        await service.store.expire_leases(rows)
        await service.cancel(rows[0].id)
        flow = load_flow(str(tmp_path / "flows.py"))
        for row in rows:
            await flow.resume(row.id, on=hf)
        ((_, _, run, key),) = table(address)
        assert run == rows[1].id
        assert await collect_orphans(service, grace=3600) == 0
        assert await collect_orphans(service, grace=-3600) == 1
        assert await stored(s3_server, prefix) == [key]
