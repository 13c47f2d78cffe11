"""Files while their hold is open, and when it is over."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from holdfast import Flow
from holdfast.checkpoint.codec import pack
from holdfast.checkpoint.registry import EMPTY
from holdfast.checkpoint.spill import spill
from holdfast.errors import StoreUnavailableError
from holdfast.holds.forms.attached_files import files_of, release_unused_files
from holdfast.runs.collect_blobs import collect_blobs
from holdfast.types.hold import HoldRow
from tests.holds.actions.scene import DANA, Scene
from tests.holds.forms.signed import PDF, asks, contract

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-FORM-03", "HOLD-SEC-14")
async def test_file_is_kept_while_its_hold_is_open_and_let_go_when_that_ends_without_it(scene: Scene) -> None:
    service = await scene.hf.service()
    row = await asks(scene)
    used = await scene.holds.attach(DANA, row.id, "contract", "used.pdf", PDF)
    await scene.holds.attach(DANA, row.id, "contract", "unused.pdf", PDF + b"?")
    scene.clock.advance(days=40)
    assert await collect_blobs(service) == 0
    await scene.holds.resolve(DANA, row.id, decision="approve", response_data={"contract": used})
    scene.clock.advance(days=40)
    assert await collect_blobs(service) == 1
    assert [each.file for each in await scene.holds.files(DANA, row.id)] == [used]
    assert (await scene.goes_on(row)).state["read"] == PDF
    assert await release_unused_files(service.store) == 0


@pytest.mark.covers("HOLD-FORM-03")
async def test_files_of_a_hold_that_was_withdrawn_are_collected(scene: Scene) -> None:
    service = await scene.hf.service()
    row = await asks(scene)
    await scene.holds.attach(DANA, row.id, "contract", "unused.pdf", PDF)
    await service.cancel(row.run, reason="over")
    await scene.flow.resume(row.run, on=scene.hf)
    scene.clock.advance(days=2)
    assert await collect_blobs(service) == 1
    assert not await files_of(service.store, row.run)


async def signs(scene: Scene, content: bytes) -> HoldRow:
    """A run that was answered with this file, and is over."""
    row = await asks(scene)
    reference = await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", content)
    await scene.holds.resolve(DANA, row.id, decision="approve", response_data={"contract": reference})
    assert (await scene.goes_on(row)).state["read"] == content
    return row


@pytest.mark.covers("HOLD-FORM-03")
async def test_file_that_decided_a_hold_stays_when_its_run_is_pruned(scene: Scene) -> None:
    service, row = await scene.hf.service(), await signs(scene, PDF)
    assert await service.prune(row.run, keep=1)
    scene.clock.advance(days=2)
    await collect_blobs(service)
    assert (await scene.holds.read_file(DANA, row.id, sha256(PDF).hexdigest()))[1] == PDF


@pytest.mark.covers("HOLD-FORM-03")
async def test_fork_reads_the_file_that_its_source_was_answered_with_when_that_is_gone(scene: Scene) -> None:
    service, row = await scene.hf.service(), await signs(scene, PDF)
    answered = next(
        each for each in await service.store.checkpoint_records(row.run, limit=50) if each.node == "sign"
    )
    forked = await service.fork(row.run, answered.seq)
    again = await service.fork(forked.id, 0)
    assert await service.store.delete_run(row.run)
    assert await service.store.delete_run(forked.id)
    scene.clock.advance(days=2)
    await collect_blobs(service)
    assert (await scene.flow.resume(again.id, on=scene.hf)).state["read"] == PDF


@pytest.mark.covers("HOLD-SEC-14", "CP-15")
async def test_content_without_a_note_is_garbage_when_attaching_breaks_off(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, row = await scene.hf.service(), await asks(scene)

    async def breaks(change: Any) -> Any:
        raise StoreUnavailableError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(scene.holds.store, "change_hold", breaks)
        with pytest.raises(StoreUnavailableError):
            await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF)
    assert not await scene.holds.files(DANA, row.id)
    scene.clock.advance(days=2)
    assert await collect_blobs(service) == 1


@pytest.mark.covers("HOLD-FORM-03")
async def test_file_that_two_holds_of_a_run_have_stays_when_one_ends_without_it(scene: Scene) -> None:
    flow = scene.flow = Flow("twice", effect="pure")
    for name in ("first", "second"):
        flow.hold(name, prompt=name, sections=contract(), assignee="user:dana@acme")
    result = await flow.run({}, on=scene.hf)
    one, two = result.holds
    for hold in (one, two):
        await scene.holds.attach(DANA, hold.id, "contract", "contract.pdf", PDF)
    await scene.holds.resolve(DANA, one.id, decision="reject")
    scene.clock.advance(days=2)
    assert await collect_blobs(await scene.hf.service()) == 0
    (kept,) = await scene.holds.files(DANA, two.id)
    assert (await scene.holds.read_file(DANA, two.id, kept.file["sha256"]))[1] == PDF


@pytest.mark.covers("HOLD-FORM-03")
@pytest.mark.parametrize("large", [False, True])
async def test_file_with_the_bytes_of_a_value_of_its_run_takes_nothing_down(
    scene: Scene, large: bool
) -> None:
    value = "large" * 20_000 if large else "".join(chr(33 + n * n % 90) for n in range(70_000))
    flow = scene.flow = Flow("large", effect="pure")
    flow.hold("sign", prompt="Signed?", sections=contract(), assignee="user:dana@acme")
    result = await flow.run({"value": value}, on=scene.hf)
    row = await scene.row(result.holds[0].id)
    _, (blob,) = spill(pack(value, EMPTY, "value"))
    await scene.holds.attach(DANA, row.id, "contract", "record", blob.data)
    await scene.holds.resolve(DANA, row.id, decision="reject")
    scene.clock.advance(days=2)
    await collect_blobs(await scene.hf.service())
    assert (await scene.goes_on(row)).state["value"] == value
