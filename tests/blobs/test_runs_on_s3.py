"""Runs whose large values are in S3: resumed elsewhere, killed after a put, encrypted, collected."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, StaticKeys
from holdfast.checkpoint.keys import new_scope, with_scope
from holdfast.checkpoint.spill import Blob
from holdfast.errors import BlobForbiddenError, StoreUnavailableError
from holdfast.runs.collect_blobs import collect_orphans
from holdfast.runs.store_identity import known_identity
from holdfast.store.blob import s3
from holdfast.store.blob.local import LocalBlobs
from holdfast.testing.crashpoints import EXIT_CODE, environment
from holdfast.types.ids import RunId
from holdfast.types.value import BlobRef
from tests.crash.stores import address_on
from tests.services import prefork
from tests.services.s3 import KEYS, S3Server, free_ports

pytestmark = pytest.mark.anyio

LARGE = 3_000_000  # more than a row takes, compressed too
TEXT = random.Random(1).randbytes(LARGE // 2).hex()
FLOW = f"""
import random
from holdfast import Flow

large = Flow("large", effect="pure")

@large.node
async def grow(s):
    return {{"text": random.Random(1).randbytes({LARGE} // 2).hex()}}

@large.node
async def measure(s):
    return {{"size": len(s["text"])}}

large.edge(grow, measure)
"""


def large_flow(*, asks: bool = True) -> Flow:
    flow = Flow("large", effect="pure")

    async def grow(_s: Any) -> dict[str, Any]:
        return {"text": TEXT}

    async def measure(s: Any) -> dict[str, Any]:
        return {"size": len(s["text"]), "text": ""}

    first, last = flow.node(id="grow")(grow), flow.node(id="measure")(measure)
    if asks:
        ask = flow.hold("ask", prompt="Go on?", options=["yes"])
        flow.edge(first, ask)
        flow.edge(ask, last)
    else:
        flow.edge(first, last)
    return flow


async def answer(hf: Holdfast, run: str) -> None:
    service = await hf.service()
    (hold,) = await service.holds(RunId(run))
    await service.answer(hold.id, "yes")


async def stored(server: S3Server, prefix: str, tenant: str) -> int:
    return len([digest async for digest in server.blobs(prefix).of(tenant).list()])


@pytest.mark.covers("PLATFORM-S3-01", "BS-1")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_run_resumes_in_another_process_with_its_value_from_s3(
    s3_server: S3Server, prefix: str, tmp_path: Path, store: str
) -> None:
    address = address_on(store, tmp_path)
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        waiting = await large_flow().run({}, on=hf, tenant="acme")
        assert waiting.status == "pending_input"
    assert await stored(s3_server, prefix, "acme") == 1
    assert await stored(s3_server, prefix, "other") == 0
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        flow = large_flow()
        await answer(hf, waiting.run_id)
        done = await flow.resume(waiting.run_id, on=hf)
        assert (done.status, done.state["size"]) == ("completed", LARGE)


@pytest.mark.covers("BS-8")
async def test_objects_are_collected_when_no_run_names_them(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    async with Holdfast(address_on("sqlite", tmp_path), objects=s3_server.blobs(prefix)) as hf:
        service = await hf.service()
        results = [await large_flow(asks=False).run({}, on=hf, tenant=tenant) for tenant in ("a", "b")]
        assert await service.collect_blobs(grace=-1) == 0
        for result in results:
            await service.delete(result.run_id)
        assert await service.collect_blobs(grace=-1) == 1
    assert [await stored(s3_server, prefix, tenant) for tenant in ("a", "b")] == [0, 0]


@pytest.mark.covers("BS-1")
async def test_encrypted_values_are_unreadable_in_the_bucket(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    ring = StaticKeys(with_scope(None, "*", new_scope(datetime.now(UTC))))
    blobs = s3_server.blobs(prefix)
    async with Holdfast(address_on("sqlite", tmp_path), objects=blobs, keys=ring) as hf:
        waiting = await large_flow().run({}, on=hf)
        (digest,) = [digest async for digest in blobs.list()]
        assert TEXT[:50].encode() not in await blobs.get(digest)
        await answer(hf, waiting.run_id)
        done = await large_flow().resume(waiting.run_id, on=hf)
        assert done.state["size"] == LARGE


@pytest.mark.covers("BS-8", "BS-6")
def test_process_that_dies_after_a_put_leaves_no_row_without_its_object(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    """The address and the credentials are those of the environment."""
    (tmp_path / "flows.py").write_text(FLOW)
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE": f"sqlite:{tmp_path}/s.db",
        "HOLDFAST_BLOBS": s3_server.address(prefix), "HOLDFAST_LEASE": "1s",
        "AWS_ACCESS_KEY_ID": KEYS["access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"],
    }  # fmt: skip
    words = ["run", "flows.py", "--json"]
    dead = prefork.run("holdfast", words, cwd=tmp_path, env={**env, **environment("after_blob_put", 1)})
    assert dead.returncode == EXIT_CODE, dead.stderr
    found = prefork.run("holdfast", ["doctor", "--deep", "--json"], cwd=tmp_path, env=env)
    assert "missing" not in found.stdout.replace("none missing", "")
    done = prefork.run("holdfast", words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert f'"size": {LARGE}' in done.stdout


@pytest.mark.covers("BS-6")
def test_doctor_finds_an_object_store_that_does_not_answer_before_a_run_needs_it(tmp_path: Path) -> None:
    [port] = free_ports(1)
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE": f"sqlite:{tmp_path}/s.db",
        "AWS_ACCESS_KEY_ID": KEYS["access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"],
    }  # fmt: skip
    (tmp_path / "flows.py").write_text(FLOW)
    assert prefork.run("holdfast", ["run", "flows.py", "--detach"], cwd=tmp_path, env=env).returncode == 0
    env["HOLDFAST_BLOBS"] = f"s3://none/here?endpoint=http://127.0.0.1:{port}"
    found = prefork.run("holdfast", ["doctor", "--json"], cwd=tmp_path, env=env)
    [blobs] = [each for each in json.loads(found.stdout)["findings"] if each["check"] == "blobs"]
    assert (found.returncode, blobs["state"]) == (1, "fail")


def doctor_on(blobs: str, tmp_path: Path, *options: str, secret: str = "") -> dict[str, Any]:
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE": f"sqlite:{tmp_path}/s.db",
        "AWS_ACCESS_KEY_ID": KEYS["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": secret or KEYS["secret_access_key"], "HOLDFAST_BLOBS": blobs,
    }  # fmt: skip
    said = prefork.run("holdfast", ["doctor", "--json", *options], cwd=tmp_path, env=env)
    [found] = [each for each in json.loads(said.stdout)["findings"] if each["check"] == "blobs"]
    return found


@pytest.mark.covers("BS-6")
async def test_doctor_reports_a_wrong_address_with_its_fix_and_writes_nothing_there(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    """A marker there would say that every value is lost: runs would fail that have to wait."""
    blobs = s3_server.blobs(prefix)
    async with Holdfast(f"sqlite:{tmp_path}/s.db", objects=blobs) as hf:
        assert (await large_flow().run({}, on=hf)).status == "pending_input"
    right, wrong = s3_server.address(prefix), s3_server.address(f"{prefix}-other")
    assert doctor_on(right, tmp_path)["state"] == "ok"
    no_bucket = right.replace("s3://holdfast/", "s3://no-such-bucket/")
    for address in (wrong, no_bucket):
        for options in ((), ("--deep",)):
            found = doctor_on(address, tmp_path, *options)
            assert (found["state"], "HOLDFAST_BLOBS" in found["todo"]) == ("fail", True), found
    assert not await s3_server.blobs(f"{prefix}-other").is_taken(None)
    refused = doctor_on(right, tmp_path, secret="wrong")
    assert (refused["state"], "credentials" in refused["todo"]) == ("fail", True), refused


@pytest.mark.covers("BS-6")
async def test_doctor_changes_nothing_in_a_store_whose_blob_store_was_never_used(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE": f"sqlite:{tmp_path}/s.db"}
    (tmp_path / "flows.py").write_text(FLOW)
    assert prefork.run("holdfast", ["run", "flows.py", "--detach"], cwd=tmp_path, env=env).returncode == 0
    assert doctor_on(s3_server.address(prefix), tmp_path)["state"] == "ok"
    no_bucket = s3_server.address(prefix).replace("s3://holdfast/", "s3://no-such-bucket/")
    assert doctor_on(no_bucket, tmp_path)["state"] == "fail"
    async with Holdfast(f"sqlite:{tmp_path}/s.db") as hf:
        assert await known_identity((await hf.service()).store) is None


@pytest.mark.covers("BS-8")
@pytest.mark.parametrize("place", ["folder", "s3"])
async def test_orphans_are_deleted_when_no_row_names_them(
    s3_server: S3Server, prefix: str, tmp_path: Path, place: str
) -> None:
    blobs = s3_server.blobs(prefix) if place == "s3" else LocalBlobs(tmp_path / "blobs")
    orphan = b"orphan" * 300_000
    await blobs.put(sha256(orphan).digest(), orphan)
    async with Holdfast(address_on("sqlite", tmp_path), objects=blobs) as hf:
        result = await large_flow(asks=False).run({}, on=hf)
        service = await hf.service()
        assert await collect_orphans(service, grace=3600) == 0
        assert await collect_orphans(service, grace=-3600, dry_run=True) == 1
        assert len([digest async for digest in blobs.list()]) == 2
        assert await collect_orphans(service, grace=-3600) == 1
        assert result.status == "completed"
        assert len([digest async for digest in blobs.list()]) == 1


@pytest.mark.covers("BS-8")
async def test_prefix_of_another_store_is_refused_and_nothing_there_is_deleted(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    """What one store does not name would be garbage to it, and is a value of the other."""
    async with Holdfast(f"sqlite:{tmp_path}/a.db", objects=s3_server.blobs(prefix)) as hf:
        assert (await large_flow(asks=False).run({}, on=hf)).status == "completed"
    settings = RunSettings(patience=0.0)
    async with Holdfast(f"sqlite:{tmp_path}/b.db", objects=s3_server.blobs(prefix), settings=settings) as hf:
        with pytest.raises(BlobForbiddenError, match="belongs to another store"):
            await collect_orphans(await hf.service(), grace=-3600)
        with pytest.raises(BlobForbiddenError, match="belongs to another store"):
            await large_flow(asks=False).run({}, on=hf)
    assert await stored(s3_server, prefix, "default") == 1
    # Its own store still writes there, also in another process.
    async with Holdfast(f"sqlite:{tmp_path}/a.db", objects=s3_server.blobs(prefix)) as hf:
        assert await collect_orphans(await hf.service(), grace=-3600) == 0
        assert (await large_flow(asks=False).run({}, on=hf, tenant="b")).status == "completed"


@pytest.mark.covers("BS-4")
async def test_worker_with_a_wrong_address_marks_nothing_there_and_its_runs_wait(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    """With a marker there, every value at the right place would count as lost."""
    store, settings = f"sqlite:{tmp_path}/a.db", RunSettings(patience=0.0)
    async with Holdfast(store, objects=s3_server.blobs(prefix)) as hf:
        waiting = await large_flow().run({}, on=hf)
    wrong = s3_server.blobs(f"{prefix}-other")
    async with Holdfast(store, objects=wrong, settings=settings) as hf:
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="this store has marked another one"):
                await large_flow(asks=False).run({}, on=hf)
    assert not await s3_server.blobs(f"{prefix}-other").is_taken(None)
    async with Holdfast(store, objects=s3_server.blobs(prefix)) as hf:
        await answer(hf, waiting.run_id)
        assert (await large_flow().resume(waiting.run_id, on=hf)).status == "completed"


@pytest.mark.covers("BS-4")
@pytest.mark.usefixtures("short_times")
async def test_first_value_that_cannot_be_stored_leaves_the_place_to_be_marked_later(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    store, settings = f"sqlite:{tmp_path}/a.db", RunSettings(patience=0.0)
    (port,) = free_ports(1)
    away = s3.open_s3(f"s3://bucket/p?endpoint=http://127.0.0.1:{port}", **KEYS)
    async with Holdfast(store, objects=away, settings=settings) as hf:
        with pytest.raises(StoreUnavailableError):
            await large_flow(asks=False).run({}, on=hf)
    async with Holdfast(store, objects=s3_server.blobs(prefix)) as hf:
        assert (await large_flow(asks=False).run({}, on=hf)).status == "completed"


@pytest.mark.covers("BS-8")
async def test_tenants_are_listed_once_for_many_objects_that_are_collected(
    s3_server: S3Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, real = list[str](), s3.obstore.list_with_delimiter_async

    async def counted(store: Any, path: str, **options: Any) -> Any:
        lists.append(path)
        return await real(store, path, **options)

    monkeypatch.setattr(s3.obstore, "list_with_delimiter_async", counted)
    blobs = s3_server.blobs(prefix)
    async with Holdfast(address_on("sqlite", tmp_path), objects=blobs) as hf:
        service = await hf.service()
        for tenant, letter in (("a", b"1"), ("b", b"2"), ("c", b"3")):
            data = letter * LARGE
            put = service.runtime.blobs.of(tenant).put
            await put([Blob(BlobRef(sha256(data).digest(), len(data)), data)])
        assert await service.collect_blobs(grace=-1) == 3
    assert len(lists) == 1
    assert [digest async for digest in blobs.list()] == []
