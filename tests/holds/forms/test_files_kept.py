"""Files over the life of a store: encrypted, under newer keys, carried elsewhere."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.holds.service import HoldService
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from tests.holds.actions.scene import DANA, Scene
from tests.holds.forms.signed import asks
from tests.storage.canary import CANARY, ring, turned

pytestmark = pytest.mark.anyio

CONTENT = b"%PDF-1.7 " + CANARY.encode() * 80_000
NAME = f"{CANARY}.pdf"


async def signs(hf: Holdfast) -> tuple[Scene, HoldRow]:
    """Decided with a file, and not yet gone on with."""
    scene = Scene(hf, FakeClock(), await hf.holds())
    row = await asks(scene)
    file = await scene.holds.attach(DANA, row.id, "contract", NAME, CONTENT)
    await scene.holds.resolve(DANA, row.id, decision="approve", response_data={"contract": file})
    return scene, row


async def content(holds: HoldService, row: HoldRow) -> bytes:
    return (await holds.read_file(DANA, row.id, sha256(CONTENT).hexdigest()))[1]


def traces(folder: Path) -> list[str]:
    """The files that show what was attached: by its words, or by its hash."""
    digest = sha256(CONTENT)
    words = (CANARY.encode(), digest.digest(), digest.hexdigest().encode())
    found = [(path, path.name.encode() + path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    return [path.name for path, kept in found if any(word in kept for word in words)]


@pytest.mark.covers("HOLD-FORM-03", "HOLD-SEC-14")
async def test_nothing_of_a_file_is_in_the_clear_in_an_encrypted_store(tmp_path: Path) -> None:
    keys = ring()
    async with Holdfast(f"sqlite:{tmp_path / 'holds.db'}", keys=keys) as hf:
        scene, row = await signs(hf)
        assert await content(scene.holds, row) == CONTENT
    assert traces(tmp_path) == []
    newer = turned(keys)
    async with Holdfast(f"sqlite:{tmp_path / 'holds.db'}", keys=newer) as hf:
        assert (await reencrypt(await hf.service())).blobs
        assert await content(await hf.holds(), row) == CONTENT
        assert (await scene.flow.resume(row.run, on=hf)).state["read"] == CONTENT


@pytest.mark.covers("HOLD-FORM-03")
async def test_file_goes_with_its_run_to_another_store(tmp_path: Path) -> None:
    async with Holdfast("memory:") as here, Holdfast(f"sqlite:{tmp_path / 'there.db'}") as there:
        scene, row = await signs(here)
        assert (await scene.flow.resume(row.run, on=here)).state["read"] == CONTENT
        parcel = await (await here.service()).export_run(row.run)
        service = await there.service()
        await service.import_run(parcel)
        there.register(scene.flow.compile())
        await there.service()
        answered = next(
            each for each in await service.store.checkpoint_records(row.run, limit=50) if each.node == "sign"
        )
        forked = await service.fork(row.run, answered.seq)
        assert (await scene.flow.resume(forked.id, on=there)).state["read"] == CONTENT
