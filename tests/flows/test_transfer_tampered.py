"""A record that is not as it was written is neither taken out nor taken in."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest

from holdfast import Holdfast
from holdfast.errors import CheckpointCorruptError
from holdfast.runs.transfer.archive import pack, unpack
from tests.flows.moves import NOTHING, a_file, contents
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-36", "TOOL-CLI-18")]


async def test_a_changed_record_is_refused_when_the_files_own_digests_were_made_anew(
    bare_hf: Holdfast,
) -> None:
    parcel = unpack(await a_file())
    record = parcel.history.records[1]
    changed = msgspec.structs.replace(record, outcome="fail" if record.outcome != "fail" else "success")
    records = [parcel.history.records[0], changed, *parcel.history.records[2:]]
    history = msgspec.structs.replace(parcel.history, records=records)

    service = await bare_hf.service()
    with pytest.raises(CheckpointCorruptError, match="record 1 does not match its digest"):
        await service.import_run(pack(msgspec.structs.replace(parcel, history=history)))
    assert await contents(service) == NOTHING


async def test_a_run_with_a_damaged_record_is_not_exported(tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    async with Holdfast(f"sqlite:{file}") as hf:
        run = (await refund_flow().run(GIVEN, on=hf)).run_id
    with apsw.Connection(str(file)) as base:
        last = "(select max(key) from journal)"
        base.execute(f"update journal set payload = zeroblob(length(payload)) where key = {last}")
    async with Holdfast(f"sqlite:{file}") as hf:
        service = await hf.service()
        with pytest.raises(CheckpointCorruptError, match="is not exported: its record"):
            await service.export_run(run)
