"""Blobs on a real S3 server: tenants, conditions, large objects, settings, and answers that go wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import pytest

from holdfast.errors import (
    BlobDamagedError,
    BlobForbiddenError,
    BlobMissingError,
    SettingsError,
    StoreUnavailableError,
)
from holdfast.store.blob import s3
from holdfast.store.blob.objects import open_blobs
from holdfast.store.blob.s3 import open_s3
from tests.proxy.proxy import Proxy
from tests.services.s3 import BUCKET, KEYS, S3Server

pytestmark = pytest.mark.anyio

DATA = b"blob" * 500_000
DIGEST = sha256(DATA).digest()
NAME = DIGEST.hex()


@pytest.mark.covers("BS-1")
async def test_each_tenant_has_its_own_objects_under_its_own_prefix(s3_server: S3Server, prefix: str) -> None:
    blobs = s3_server.blobs(prefix)
    for tenant in ("acme", "b/../c", ".."):
        await blobs.of(tenant).put(DIGEST, DATA)
    assert not await blobs.of("other").has(DIGEST)
    assert not await blobs.of("b").has(DIGEST)
    assert await blobs.of("b/../c").get(DIGEST) == DATA
    assert await blobs.of("acme").get_key(f"{prefix}/v1/acme/{NAME[:2]}/{NAME}") == DATA
    # Operators see all of them, and garbage is collected for all.
    assert len([digest async for digest in blobs.list()]) == 3
    await blobs.delete(DIGEST)
    assert [digest async for digest in blobs.list()] == []


@pytest.mark.covers("BS-4")
async def test_marker_is_written_once_for_all_tenants(
    s3_server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, keys = s3.obstore.put_async, list[str]()

    async def counted(store: Any, path: str, *given: Any, **options: Any) -> Any:
        keys.append(path)
        return await put(store, path, *given, **options)

    monkeypatch.setattr(s3.obstore, "put_async", counted)
    blobs = s3_server.blobs(prefix)
    for tenant in ("a", "b", "a"):
        await blobs.of(tenant).put(DIGEST, DATA)
    assert len([key for key in keys if key.endswith(s3.MARKER)]) == 1
    assert len(keys) == 4


@pytest.mark.covers("BS-1")
async def test_key_of_another_tenant_is_refused_before_any_request(prefix: str) -> None:
    nowhere = open_s3(f"s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:9", **KEYS)
    with pytest.raises(BlobForbiddenError, match="another tenant"):
        await nowhere.of("acme").get_key(f"{prefix}/v1/other/{NAME[:2]}/{NAME}")


@pytest.mark.covers("BS-2")
async def test_existing_object_of_another_size_is_replaced_and_reported(
    s3_server: S3Server, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    blobs = s3_server.blobs(prefix).of("t")
    await blobs.replace(DIGEST, b"cut off")
    with caplog.at_level(logging.WARNING, "holdfast.store.s3"):
        await blobs.put(DIGEST, DATA)
    assert "had 7 bytes instead of 2000000" in caplog.text
    assert await blobs.get(DIGEST) == DATA


@pytest.mark.covers("BS-2")
async def test_large_object_is_sent_and_read_in_parts(
    s3_server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "MULTIPART", 6 << 20)
    monkeypatch.setattr(s3, "PART", 5 << 20)
    blobs = s3_server.blobs(prefix).of("t")
    data = bytes(range(256)) * (12 << 12)
    digest = sha256(data).digest()
    await blobs.put(digest, data)
    await blobs.put(digest, data)
    assert await blobs.get(digest) == data


@pytest.mark.covers("BS-3")
async def test_read_is_repeated_once_when_the_content_does_not_fit(
    s3_server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = s3_server.blobs(prefix).of("t")
    await blobs.put(DIGEST, DATA)
    read, answers = blobs._read, [DATA[:10], None]

    async def broken_once(key: str) -> bytes | None:
        whole = await read(key)
        return answers.pop(0) or whole

    monkeypatch.setattr(blobs, "_read", broken_once)
    assert await blobs.get(DIGEST) == DATA
    answers[:] = [DATA[:10], DATA[:11]]
    with pytest.raises(BlobDamagedError) as caught:
        await blobs.get(DIGEST)
    assert caught.value.code == "blob_damaged"


@pytest.mark.covers("BS-4", "PLATFORM-BAD-02")
async def test_missing_object_proves_nothing_where_the_marker_cannot_be_read(
    s3_server: S3Server, prefix: str
) -> None:
    await s3_server.blobs(prefix).of("t").put(DIGEST, DATA)
    other = sha256(b"other").digest()
    with pytest.raises(BlobMissingError):
        await s3_server.blobs(prefix).of("t").get(other)
    with pytest.raises(StoreUnavailableError, match="marker"):
        await s3_server.blobs(f"{prefix}-wrong").of("t").get(DIGEST)
    with pytest.raises(StoreUnavailableError, match="marker"):
        await s3_server.blobs(f"{prefix}-wrong").of("t").has(DIGEST)


@asynccontextmanager
async def answering(status: str) -> AsyncIterator[str]:
    """A server that answers everything with one status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0
        )
        await reader.readexactly(length)
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@pytest.mark.covers("BS-5", "PLATFORM-S3-01", "PLATFORM-BAD-02")
@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Slow Down"])
async def test_run_would_wait_when_the_server_fails(
    s3_server: S3Server, prefix: str, short_times: None, status: str
) -> None:
    async with answering(status) as place:
        blobs = s3_server.blobs(prefix, place=place).of("t")
        for asked in (blobs.put(DIGEST, DATA), blobs.get(DIGEST), blobs.delete(DIGEST)):
            with pytest.raises(StoreUnavailableError) as caught:
                await asked
            assert caught.value.retryable
            assert place not in str(caught.value)


@pytest.mark.covers("BS-5", "PLATFORM-S3-01")
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_refused_credentials_are_named_and_not_retried(
    s3_server: S3Server, prefix: str, short_times: None, status: str
) -> None:
    async with answering(status) as place:
        with pytest.raises(BlobForbiddenError, match="credentials") as caught:
            await s3_server.blobs(prefix, place=place).of("t").put(DIGEST, DATA)
        assert (caught.value.code, caught.value.retryable) == ("blob_forbidden", False)


@pytest.mark.covers("BS-6")
async def test_wrong_secret_is_refused_by_the_server(s3_server: S3Server, prefix: str) -> None:
    wrong = open_s3(s3_server.address(prefix), access_key_id="holdfast", secret_access_key="wrong")
    with pytest.raises(BlobForbiddenError):
        await wrong.of("t").put(DIGEST, DATA)


@pytest.mark.covers("BS-5", "PLATFORM-S3-01", "PLATFORM-BAD-02")
async def test_slow_cut_and_partial_answers_lose_nothing(
    s3_server: S3Server, prefix: str, short_times: None
) -> None:
    async with Proxy(s3_server.place) as proxy:
        blobs = s3_server.blobs(prefix, place=proxy.address).of("t")
        proxy.delay(0.02)
        await blobs.put(DIGEST, DATA)
        proxy.clear()
        # The answer breaks off in the middle: the request is repeated.
        proxy.cut_after(500_000, "down")
        assert await blobs.get(DIGEST) == DATA
        # The upload breaks off in the middle: nothing partial is ever read.
        other = DATA[::-1] + b"!"
        proxy.cut_after(300_000, "up")
        await blobs.put(sha256(other).digest(), other)
        assert await blobs.get(sha256(other).digest()) == other
        proxy.refuse()
        proxy.cut()
        with pytest.raises(StoreUnavailableError):
            await blobs.get(DIGEST)
        proxy.clear()
        proxy.swallow()
        with pytest.raises(StoreUnavailableError):
            await blobs.get(DIGEST)
        proxy.clear()
        assert await blobs.get(DIGEST) == DATA


@pytest.mark.covers("BS-6")
@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("s3://bucket/p?endpoint=http://storage.example", "https://"),
        ("s3://bucket/p?endpoint=ftp://127.0.0.1", "https://"),
        ("s3://key:secret@bucket/p", "credentials"),
        ("s3:///p", "no bucket"),
        ("s3://bucket/p?regoin=eu", "'regoin'"),
        ("s3://bucket/p?sse=ROT13", "'ROT13'"),
        ("gs://bucket", "neither s3:// nor file:"),
    ],
)
def test_address_that_cannot_be_right_is_refused(address: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_blobs(address)
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.covers("BS-6")
async def test_server_side_encryption_is_asked_for(s3_server: S3Server, prefix: str) -> None:
    blobs = s3_server.blobs(prefix, sse="AES256").of("t")
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST) == DATA
