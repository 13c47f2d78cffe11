"""Files that are not, or not quite, what export_run wrote: refused with a reason, and nothing is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.errors import CheckpointCorruptError, InputError, SchemaTooNewError
from holdfast.runs.transfer import archive
from holdfast.runs.transfer.archive import MAGIC, Archive, pack, unpack
from holdfast.types.ids import new_run_id
from tests.flows.moves import NOTHING, a_file, contents

pytestmark = pytest.mark.covers("D-36")


@pytest.mark.anyio
async def test_damaged_file_is_refused_and_nothing_changes(bare_hf: Holdfast) -> None:
    data = await a_file()
    service = await bare_hf.service()
    ends = [*range(0, len(data), 97), len(data) - 1]
    bad = [data[:end] for end in ends]
    places = [*range(0, len(data), 89), len(data) - 1]
    bad += [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in places]
    bad += [data + b"\0", data + data, data[:-41], b"", b"{}", MAGIC, MAGIC + b"\1"]
    for file in bad:
        with pytest.raises((CheckpointCorruptError, InputError)):
            await service.import_run(file)
    assert await contents(service) == NOTHING
    assert (await service.import_run(data)).read_only


@pytest.mark.anyio
async def test_file_that_lacks_a_part_or_has_one_twice_is_refused(bare_hf: Holdfast) -> None:
    data = await a_file()
    service = await bare_hf.service()
    parts = _parts(data)
    assert b"".join([data[:9], *parts]) == data
    for number, part in enumerate(parts):
        for instead in ([], [part, part]):
            with pytest.raises(CheckpointCorruptError):
                await service.import_run(
                    b"".join([data[:9], *parts[:number], *instead, *parts[number + 1 :]])
                )
    assert await contents(service) == NOTHING


def _parts(data: bytes) -> list[bytes]:
    """As they lie in the file: kind, length, content, digest."""
    found, at = list[bytes](), 9
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at + 1 : at + 9], "big") + 32
        found.append(data[at:end])
        at = end
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("given", [None, "text", 7, {}, ["x"]])
async def test_what_is_no_bytes_is_refused_by_name(bare_hf: Holdfast, given: Any) -> None:
    with pytest.raises(InputError, match=f"not {type(given).__name__}"):
        await (await bare_hf.service()).import_run(given)


@pytest.mark.anyio
async def test_file_of_a_newer_form_is_refused_and_nothing_changes(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(archive, "VERSION", 9)
        patched.setattr(archive, "__version__", "9.1")
        data = await a_file()
    service = await bare_hf.service()
    with pytest.raises(SchemaTooNewError, match=r"format 9 \(written by Holdfast 9\.1\)"):
        await service.import_run(data)
    assert await contents(service) == NOTHING


def _with_run(**changed: Any) -> Callable[[Archive], Archive]:
    def change(given: Archive) -> Archive:
        run = msgspec.structs.replace(given.history.run, **changed)
        return msgspec.structs.replace(given, history=msgspec.structs.replace(given.history, run=run))

    return change


def _with(**how: Callable[[list[Any]], list[Any]]) -> Callable[[Archive], Archive]:
    def change(given: Archive) -> Archive:
        changed = {name: make(getattr(given.history, name)) for name, make in how.items()}
        return msgspec.structs.replace(given, history=msgspec.structs.replace(given.history, **changed))

    return change


def _each(**changed: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda rows: [msgspec.structs.replace(row, **changed) for row in rows]


FORGED: dict[str, Callable[[Archive], Archive]] = {
    "id": _with_run(id="../../etc"),
    "lease": _with_run(worker="w", lease_until=2**60),
    "ready": _with_run(ready_at=0),
    "head": _with_run(head=99),
    "far head": _with_run(head=2**40, horizon=2**40),
    "version": _with_run(version="g1-" + "0" * 32),
    "flow": _with_run(flow="other"),
    "huge": _with_run(created_at=2**63),
    "few events": _with_run(event_seq=1),
    "no records": _with(records=lambda rows: []),
    "a gap": _with(records=lambda rows: [rows[0], *rows[2:]]),
    "no beginning": _with(records=lambda rows: [msgspec.structs.replace(rows[0], kind=6), *rows[1:]]),
    "event numbers": _with(records=_each(event_from=1)),
    "negative events": _with(records=_each(events=-1)),
    "foreign hold": _with(holds=_each(run=new_run_id())),
    "late hold": _with(holds=_each(seq=99)),
    "hold twice": _with(holds=lambda rows: rows * 2),
    "no hold id": _with(holds=_each(id="x")),
    "graph": lambda given: msgspec.structs.replace(given, graph=b"{}"),
    "no graph": lambda given: msgspec.structs.replace(given, graph=b"\xff"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("how", FORGED)
async def test_forged_file_with_right_digests_is_refused_when_it_is_no_run(
    bare_hf: Holdfast, how: str
) -> None:
    data = await a_file()
    assert pack(unpack(data)) == data
    forged = pack(FORGED[how](unpack(data)))
    service = await bare_hf.service()
    with pytest.raises(CheckpointCorruptError):
        await service.import_run(forged)
    assert await contents(service) == NOTHING


def test_rows_that_cannot_be_read_are_damage() -> None:
    out = bytearray(MAGIC + b"\1")
    archive._add(out, ord("r"), b"\xc1")
    archive._add(out, ord("z"), archive.sha256(out).digest())
    with pytest.raises(CheckpointCorruptError, match="part 1"):
        unpack(bytes(out))
