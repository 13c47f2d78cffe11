"""Somebody who may write to the bucket puts other content where an object was: no reader believes it."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import obstore
import pytest

from holdfast import Holdfast
from holdfast.errors import BlobDamagedError, StoreError
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.types.ids import RunId
from tests.blobs.test_hold_states import answer, bucket, content, refund_flow, table
from tests.crash.stores import address_on
from tests.services.s3 import S3Server
from tests.storage.canary import ring

pytestmark = [pytest.mark.anyio, pytest.mark.covers("BS-7")]

BROKEN = (b"", b'{"id": "cut o', b"[1]", b"\xff\xfe", b"[" * 100_000, b"\xc1HF\x01garbage")


@pytest.mark.parametrize("data", BROKEN, ids=["empty", "cut", "list", "bytes", "deep", "encrypted"])
async def test_state_that_cannot_be_read_is_damaged(
    s3_server: S3Server, prefix: str, tmp_path: Path, data: bytes
) -> None:
    address = address_on("sqlite", tmp_path)
    async with Holdfast(address, objects=s3_server.blobs(prefix)) as hf:
        await refund_flow().run({}, on=hf)
        ((hold, _, _, key),) = table(address)
        await obstore.put_async(bucket(s3_server), key, data)
        with pytest.raises(BlobDamagedError):
            await (await hf.service()).hold_state(hold)


@pytest.mark.parametrize("keys", [None, "keys"])
async def test_state_of_another_hold_is_damaged(
    s3_server: S3Server, prefix: str, tmp_path: Path, keys: Any
) -> None:
    address = address_on("sqlite", tmp_path)
    async with Holdfast(address, objects=s3_server.blobs(prefix), keys=keys and ring()) as hf:
        await refund_flow().run({"order": 1}, on=hf)
        await refund_flow().run({"order": 2}, on=hf, tenant="acme")
        (first, _, _, mine), (_, _, _, other) = sorted(table(address), key=lambda row: row[1] != "default")
        await obstore.put_async(bucket(s3_server), mine, await content(s3_server, other))
        with pytest.raises(BlobDamagedError):
            await (await hf.service()).hold_state(first)


async def test_plain_state_in_an_encrypted_store_is_damaged(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    address = address_on("sqlite", tmp_path)
    async with Holdfast(address, objects=s3_server.blobs(prefix), keys=ring()) as hf:
        await refund_flow().run({}, on=hf)
        ((hold, _, _, key),) = table(address)
        service = await hf.service()
        state = await service.hold_state(hold)
        assert state is not None
        state["state"]["scratch"]["amount"] = 1
        await obstore.put_async(bucket(s3_server), key, json.dumps(state).encode())
        with pytest.raises(BlobDamagedError):
            await service.hold_state(hold)
        # A new key does not make it genuine.
        await reencrypt(service)
        with pytest.raises(BlobDamagedError):
            await service.hold_state(hold)


async def test_state_from_before_there_were_keys_is_encrypted_with_its_hold(
    s3_server: S3Server, prefix: str, tmp_path: Path
) -> None:
    address, blobs = address_on("sqlite", tmp_path), s3_server.blobs(prefix)
    async with Holdfast(address, objects=blobs) as hf:
        await refund_flow().run({}, on=hf)
        ((hold, _, _, key),) = table(address)
        state = await (await hf.service()).hold_state(hold)
    async with Holdfast(address, objects=blobs, keys=ring()) as hf:
        service = await hf.service()
        assert await service.hold_state(hold) == state
        await reencrypt(service)
        assert b"scratch" not in await content(s3_server, key)
        assert await service.hold_state(hold) == state


@pytest.mark.parametrize("keys", [None, "keys"])
@pytest.mark.parametrize("data", [b"\xc1HF\x01garbage", b"\xc1HF", b"other", b""])
async def test_run_resumes_with_no_other_value(
    s3_server: S3Server, prefix: str, tmp_path: Path, data: bytes, keys: Any
) -> None:
    address, flow = address_on("sqlite", tmp_path), refund_flow()
    async with Holdfast(address, objects=s3_server.blobs(prefix), keys=keys and ring()) as hf:
        run = (await flow.run({"noise": secrets.token_hex(2_000_000)}, on=hf)).run_id
        await answer(hf, run)
    found = obstore.list(bucket(s3_server), f"{prefix}/v1/default/")
    paths = [each["path"] async for batch in found for each in batch if "/holds/" not in each["path"]]
    assert paths
    for path in paths:
        await obstore.put_async(bucket(s3_server), path, data)
    async with Holdfast(address, objects=s3_server.blobs(prefix), keys=keys and ring()) as hf:
        with pytest.raises(StoreError, match=r"damaged|missing|instead of|key"):
            await flow.resume(run, on=hf)
        row = await (await hf.open()).get_run(RunId(run))
        assert row is not None
        assert row.status != "completed"
