from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.errors import BlobMissingError, StoreUnavailableError
from holdfast.store.blob.local import LocalBlobs
from holdfast.store.sql.sqlite.store import IN_ROW
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.record import Refusal, Side
from holdfast.types.status import RunStatus

pytestmark = pytest.mark.anyio

DATA = b"blob" * 1000
DIGEST = sha256(DATA).digest()
LARGE = b"x" * (IN_ROW + 1)
LARGE_DIGEST = sha256(LARGE).digest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def test_blob_comes_back_when_it_was_put_twice(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    await blobs.put(DIGEST, DATA)
    (path,) = _files(tmp_path)
    before = path.stat().st_mtime_ns
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST) == DATA
    assert _files(tmp_path) == [path]
    assert path.stat().st_mtime_ns == before
    assert path.name == DIGEST.hex()


@pytest.mark.parametrize("damage", [b"", b"other", DATA[:-1] + b"!"])
async def test_damaged_file_is_found_out_when_read(tmp_path: Path, damage: bytes) -> None:
    blobs = LocalBlobs(tmp_path)
    await blobs.put(DIGEST, DATA)
    _files(tmp_path)[0].write_bytes(damage)
    with pytest.raises(BlobMissingError, match="damaged"):
        await blobs.get(DIGEST)


async def test_truncated_file_is_repaired_when_the_blob_is_put_again(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    await blobs.put(DIGEST, DATA)
    _files(tmp_path)[0].write_bytes(b"short")
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST) == DATA


@pytest.mark.covers("RS-FILE-3")
async def test_blob_is_gone_when_it_was_deleted_and_deleting_again_is_no_error(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    await blobs.put(DIGEST, DATA)
    await blobs.delete(DIGEST)
    await blobs.delete(DIGEST)
    assert not blobs.has_now(DIGEST)
    with pytest.raises(BlobMissingError, match="gone"):
        await blobs.get(DIGEST)


async def test_nothing_stays_under_the_name_when_the_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = LocalBlobs(tmp_path)

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreUnavailableError):
        await blobs.put(DIGEST, DATA)
    assert _files(tmp_path) == []


async def test_file_and_folder_are_flushed_in_that_order_before_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    await LocalBlobs(tmp_path / "blobs").put(DIGEST, DATA)
    name = DIGEST.hex()
    assert flushed[:2] == ["blobs", tmp_path.name], "the new folder's own name"
    assert flushed[2].startswith(name)
    assert flushed[2].endswith(".tmp")
    assert flushed[3:] == [name[:2]]


@pytest.mark.covers("CORE-CKPT-03")
async def test_large_blob_lives_in_a_file_beside_the_database(kit: StoreKit, tmp_path: Path) -> None:
    small = LARGE[:-1]
    await kit.store.put_blob(sha256(small).digest(), len(small), small)
    assert not (tmp_path / "runs.db-blobs").exists()
    await kit.store.put_blob(LARGE_DIGEST, len(LARGE), LARGE)
    assert [path.name for path in _files(tmp_path / "runs.db-blobs")] == [LARGE_DIGEST.hex()]
    assert await kit.store.blob(LARGE_DIGEST) == (len(LARGE), LARGE)
    assert await kit.store.blob(sha256(small).digest()) == (len(small), small)


async def test_large_blob_is_collected_with_its_file_only_when_nothing_refers_to_it(
    kit: StoreKit, tmp_path: Path
) -> None:
    lease = await kit.claimed()
    await kit.store.put_blob(LARGE_DIGEST, len(LARGE), LARGE)
    later = kit.clock.now() + 1
    assert await kit.store.condemn_blobs(older_than=later, limit=10) == [LARGE_DIGEST]
    naming = kit.record(1, side=Side(blobs=[LARGE_DIGEST]))
    assert (await kit.settle(lease, naming)).refusal is Refusal.put_blobs_again
    # Put again between the collector's two steps: it must survive the second.
    await kit.store.put_blob(LARGE_DIGEST, len(LARGE), LARGE)
    await kit.store.drop_blobs([LARGE_DIGEST])
    await kit.written(lease, naming)
    assert await kit.store.condemn_blobs(older_than=later, limit=10) == []
    assert await kit.store.blob(LARGE_DIGEST) == (len(LARGE), LARGE)
    await kit.store.park(lease, status=RunStatus.waiting, inbox_seen=0, ready_at=None)
    assert await kit.store.delete_run(lease.run)
    assert await kit.store.condemn_blobs(older_than=later, limit=10) == [LARGE_DIGEST]
    await kit.store.drop_blobs([LARGE_DIGEST])
    assert await kit.store.blob(LARGE_DIGEST) is None
    assert _files(tmp_path / "runs.db-blobs") == []


async def test_large_blob_is_written_again_when_the_collector_took_its_file_meanwhile(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.store.put_blob(LARGE_DIGEST, len(LARGE), LARGE)
    await kit.store.condemn_blobs(older_than=kit.clock.now() + 1, limit=10)
    real = LocalBlobs.put
    puts: list[bytes] = []

    async def put(blobs: LocalBlobs, digest: bytes, data: bytes) -> None:
        await real(blobs, digest, data)
        puts.append(digest)
        if len(puts) == 1:
            await kit.store.drop_blobs([digest])

    monkeypatch.setattr(LocalBlobs, "put", put)
    await kit.store.put_blob(LARGE_DIGEST, len(LARGE), LARGE)
    assert puts == [LARGE_DIGEST] * 2
    assert await kit.store.blob(LARGE_DIGEST) == (len(LARGE), LARGE)
