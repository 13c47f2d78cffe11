"""One suite for every place that large values can be: the folder and S3."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.errors import BlobMissingError
from holdfast.store.blob.local import LocalBlobs
from holdfast.store.blob.objects import ListedObjects
from tests.services.s3 import server

pytestmark = [pytest.mark.anyio, pytest.mark.covers("BS-1")]

DATA = b"blob" * 500_000
DIGEST = sha256(DATA).digest()
OTHER = b"other"
OTHER_DIGEST = sha256(OTHER).digest()


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, prefix: str) -> ListedObjects:
    return LocalBlobs(tmp_path / "blobs") if request.param == "folder" else server().blobs(prefix).of("t")


async def test_blob_comes_back_when_it_was_put_twice(blobs: ListedObjects) -> None:
    await blobs.put(DIGEST, DATA)
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST) == DATA
    assert await blobs.has(DIGEST)


async def test_blob_is_listed_once_when_it_was_put_twice(blobs: ListedObjects) -> None:
    for _ in range(2):
        await blobs.put(DIGEST, DATA)
        await blobs.put(OTHER_DIGEST, OTHER)
    assert sorted([digest async for digest in blobs.list()]) == sorted([DIGEST, OTHER_DIGEST])


async def test_blob_is_missing_when_it_was_deleted_and_deleting_again_is_no_error(
    blobs: ListedObjects,
) -> None:
    await blobs.put(DIGEST, DATA)
    await blobs.put(OTHER_DIGEST, OTHER)
    await blobs.delete(DIGEST)
    await blobs.delete(DIGEST)
    assert not await blobs.has(DIGEST)
    with pytest.raises(BlobMissingError):
        await blobs.get(DIGEST)
    assert await blobs.get(OTHER_DIGEST) == OTHER


async def test_blob_of_another_size_is_replaced_when_it_is_put_again(blobs: ListedObjects) -> None:
    await blobs.replace(DIGEST, DATA[:-7])
    with pytest.raises(BlobMissingError, match="damaged"):
        await blobs.get(DIGEST)
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST) == DATA


async def test_one_of_many_writers_is_enough_when_they_put_the_same_blob(blobs: ListedObjects) -> None:
    await asyncio.gather(*(blobs.put(DIGEST, DATA) for _ in range(8)))
    assert await blobs.get(DIGEST) == DATA
    assert [digest async for digest in blobs.list()] == [DIGEST]


async def test_damaged_blob_is_noticed_when_it_is_read(blobs: ListedObjects) -> None:
    await blobs.replace(DIGEST, DATA[:-1] + b"!")
    with pytest.raises(BlobMissingError, match="damaged"):
        await blobs.get(DIGEST)
