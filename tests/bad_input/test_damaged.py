"""Records and blobs that went bad on the disk: named, left as they are, and no other run is touched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Result
from holdfast.errors import BlobMissingError, CheckpointCorruptError, StoreError
from holdfast.types.status import RunStatus
from tests.bad_input.conftest import good_flow
from tests.bad_input.messages import assert_refused
from tests.cli.conftest import Cli, given
from tests.unit.store.sqlite_files import plain, pragma

pytestmark = pytest.mark.anyio

FIRST_ROWS = "key & 4294967295"


class Disk:
    def __init__(self, file: Path) -> None:
        self.file = file

    def change(self, sql: str, *values: Any) -> None:
        with plain(self.file) as conn:
            conn.execute(sql, values)
            assert conn.changes() >= 1

    def payload(self, seq: int) -> bytes:
        with plain(self.file) as conn:
            ((raw,),) = conn.execute(f"SELECT payload FROM journal WHERE {FIRST_ROWS} = ?", (seq,))
        assert isinstance(raw, bytes)
        return raw

    def write(self, seq: int, payload: bytes) -> None:
        self.change(f"UPDATE journal SET payload = ? WHERE {FIRST_ROWS} = ?", payload, seq)

    def lose(self, seq: int) -> None:
        self.change(f"DELETE FROM journal WHERE {FIRST_ROWS} = ?", seq)

    def steps(self) -> list[int]:
        with plain(self.file) as conn:
            return [seq for (seq,) in conn.execute(f"SELECT {FIRST_ROWS} FROM journal WHERE node = 'pay'")]


@pytest.fixture
async def opened(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'd.db'}") as hf:
        yield hf


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "d.db")


def paying(value: Any = "R-17") -> Flow:
    """An effect, then a question: what was recorded of the effect must not be lost silently."""
    flow = Flow("paying")
    flow.node(id="pay", effect="external")(lambda s: {"receipt": value})
    flow.hold("approve", prompt="Go on?", options=["approve"])
    flow.edge("pay", "approve")
    return flow


async def answered(flow: Flow, hf: Holdfast) -> Result:
    result = await flow.run({}, on=hf)
    await (await hf.service()).answer(result.holds[0].id, "approve")
    return result


def flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit": flipped,
    "noise": lambda raw: bytes(255 - byte for byte in raw),
    "another version": lambda raw: bytes([0b0101_1110]) + raw[1:],
}
CUTS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda raw: raw[:-3],
    "only its head": lambda raw: raw[:1],
    "empty": lambda raw: b"",
    "too long": lambda raw: raw + b"\0",
}


async def assert_stops(hf: Holdfast, disk: Disk, damage: Callable[[bytes], bytes]) -> None:
    flow = paying()
    run = (await answered(flow, hf)).run_id
    seq = disk.steps()[-1]
    bad = damage(disk.payload(seq))
    disk.write(seq, bad)

    with pytest.raises(CheckpointCorruptError) as caught:
        await flow.resume(run, on=hf)
    assert_refused(caught.value, run, f"record {seq}", "digest", "Fork from an earlier checkpoint")
    service = await hf.service()
    row = await service.get(run)
    assert row.status is RunStatus.failed
    assert row.error is not None
    assert row.error.startswith("CheckpointCorruptError")
    assert disk.payload(seq) == bad
    with pytest.raises(CheckpointCorruptError):
        await service.latest(run)
    assert (await service.events(run))[-1].type == "run.damaged"
    assert (await good_flow().run({"n": 1}, on=hf)).completed
    assert pragma(disk.file, "integrity_check") == "ok"


@pytest.mark.covers("CORE-BAD-12", "CORE-BAD-20")
@pytest.mark.parametrize("damage", list(DAMAGES))
async def test_run_stops_and_names_the_record_when_it_was_changed(
    opened: Holdfast, disk: Disk, damage: str
) -> None:
    await assert_stops(opened, disk, DAMAGES[damage])


@pytest.mark.covers("CORE-BAD-13", "CORE-BAD-20")
@pytest.mark.parametrize("cut", list(CUTS))
async def test_run_stops_and_names_the_record_when_it_was_cut(opened: Holdfast, disk: Disk, cut: str) -> None:
    await assert_stops(opened, disk, CUTS[cut])


@pytest.mark.covers("CORE-BAD-13")
async def test_run_stops_when_a_record_is_gone(opened: Holdfast, disk: Disk) -> None:
    flow = paying()
    run = (await answered(flow, opened)).run_id
    disk.lose(disk.steps()[-1])
    with pytest.raises(CheckpointCorruptError) as caught:
        await flow.resume(run, on=opened)
    assert_refused(caught.value, run, "does not follow")
    assert (await (await opened.service()).get(run)).status is RunStatus.failed


@pytest.mark.covers("CORE-BAD-12")
async def test_run_stops_when_its_first_record_was_changed(opened: Holdfast, disk: Disk) -> None:
    flow = paying()
    run = (await answered(flow, opened)).run_id
    disk.write(0, flipped(disk.payload(0)))
    with pytest.raises(CheckpointCorruptError) as caught:
        await flow.resume(run, on=opened)
    assert_refused(caught.value, run)
    assert (await (await opened.service()).get(run)).status is RunStatus.failed


@pytest.mark.covers("CORE-BAD-12")
async def test_run_goes_on_when_the_record_was_repaired(opened: Holdfast, disk: Disk) -> None:
    flow = paying()
    run = (await answered(flow, opened)).run_id
    seq = disk.steps()[-1]
    good = disk.payload(seq)
    disk.write(seq, flipped(good))
    with pytest.raises(CheckpointCorruptError):
        await flow.resume(run, on=opened)
    disk.write(seq, good)
    result = await flow.resume(run, on=opened)
    assert result.completed
    assert result.state["receipt"] == "R-17"


# ---------------------------------------------------------------------- blobs

IN_ROW = 200_000
IN_FILE = 3_000_000
BLOB_CUTS: dict[str, Callable[[bytes], bytes | None]] = {
    "cut": lambda raw: raw[:1000],
    "empty": lambda raw: b"",
    "gone": lambda raw: None,
}


def noise(size: int) -> bytes:
    """Nothing that compression could make small."""
    import random

    return random.Random(17).randbytes(size)


class Blobs:
    """The one large value, wherever it lies."""

    def __init__(self, disk: Disk, *, in_file: bool) -> None:
        self._disk = disk
        folder = disk.file.with_name(f"{disk.file.name}-blobs")
        self._file = next(path for path in folder.rglob("*") if path.is_file()) if in_file else None

    def read(self) -> bytes:
        if self._file is not None:
            return self._file.read_bytes()
        with plain(self._disk.file) as conn:
            ((raw,),) = conn.execute("SELECT data FROM blobs WHERE data IS NOT NULL")
        assert isinstance(raw, bytes)
        return raw

    def write(self, data: bytes | None) -> None:
        if self._file is None:
            self._disk.change("UPDATE blobs SET data = ?", data)
        elif data is None:
            self._file.unlink()
        else:
            self._file.write_bytes(data)


async def assert_blob_missed(
    hf: Holdfast, disk: Disk, size: int, damage: Callable[[bytes], bytes | None]
) -> None:
    value = noise(size)
    flow = paying(value)
    run = (await answered(flow, hf)).run_id
    blobs = Blobs(disk, in_file=size == IN_FILE)
    good = blobs.read()
    blobs.write(damage(good))

    with pytest.raises(BlobMissingError) as caught:
        await flow.resume(run, on=hf)
    assert_refused(caught.value, "blob", "estore")
    assert (await (await hf.service()).get(run)).status is RunStatus.failed
    assert (await good_flow().run({"n": 1}, on=hf)).completed
    blobs.write(good)
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert result.state["receipt"] == value


@pytest.mark.covers("CORE-BAD-14", "CORE-BAD-20")
@pytest.mark.parametrize("size", [IN_ROW, IN_FILE], ids=["in a row", "in a file"])
async def test_run_stops_until_it_is_restored_when_a_blob_was_changed(
    opened: Holdfast, disk: Disk, size: int
) -> None:
    await assert_blob_missed(opened, disk, size, flipped)


@pytest.mark.covers("CORE-BAD-15", "CORE-BAD-20")
@pytest.mark.parametrize("size", [IN_ROW, IN_FILE], ids=["in a row", "in a file"])
@pytest.mark.parametrize("cut", list(BLOB_CUTS))
async def test_run_stops_until_it_is_restored_when_a_blob_was_cut_or_is_gone(
    opened: Holdfast, disk: Disk, size: int, cut: str
) -> None:
    await assert_blob_missed(opened, disk, size, BLOB_CUTS[cut])


# ---------------------------------------------------------------------- the command line, and the file itself


@pytest.mark.covers("CORE-BAD-12", "CORE-BAD-13")
@pytest.mark.parametrize("how", ["a flipped bit", "cut short"])
def test_command_line_tells_what_is_damaged_without_a_traceback(
    cli: Cli, refund: str, tmp_path: Path, how: str
) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]
    waits = cli("run", refund, "--input", given(250), "--json").json["id"]
    disk = Disk(tmp_path / ".holdfast" / "holdfast.db")
    with plain(disk.file) as conn:
        ((key,),) = conn.execute("SELECT MAX(key) FROM journal WHERE node = 'pay'")
        ((raw,),) = conn.execute("SELECT payload FROM journal WHERE key = ?", (key,))
        assert isinstance(raw, bytes)
        conn.execute("UPDATE journal SET payload = ? WHERE key = ?", ((DAMAGES | CUTS)[how](raw), key))
    said = cli("show", run)
    assert (said.code, "Traceback" in said.err) == (4, False)
    assert "does not match its digest" in said.err
    assert "assess" in said.out  # what can be read is shown
    assert cli("show", run, "--json").json["damaged"]
    assert cli("runs").code == 0
    assert cli("answer", waits, "approve", "--resume").code == 0


@pytest.mark.covers("CORE-BAD-18", "CORE-BAD-20")
@pytest.mark.parametrize("where", ["the first page", "the middle", "the end"])
async def test_resume_fails_with_a_typed_error_or_is_right_when_pages_of_the_file_were_overwritten(
    tmp_path: Path, where: str
) -> None:
    file = tmp_path / "pages.db"
    flow = paying()
    async with Holdfast(f"sqlite:{file}") as hf:
        run = (await answered(flow, hf)).run_id
    raw = bytearray(file.read_bytes())
    start = {"the first page": 200, "the middle": len(raw) // 2, "the end": len(raw) - 8192}[where]
    raw[start : start + 8192] = b"\xa5" * min(8192, len(raw) - start)
    file.write_bytes(raw)
    async with Holdfast(f"sqlite:{file}") as hf:
        try:
            result = await flow.resume(run, on=hf)
        except StoreError:  # and nothing else, least of all the driver's own
            return
    # Pages that nothing of this run needs may be gone without harm; the schema's may not.
    assert where != "the first page"
    assert result.completed
