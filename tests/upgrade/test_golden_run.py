"""Every form of an exported run that was ever released is still imported (rule 9 of the style)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import holdfast
from holdfast import Holdfast
from holdfast.checkpoint import TypeRegistry
from holdfast.errors import SchemaTooNewError
from holdfast.model.position import STEP_RETRY, STEP_WOKE
from holdfast.model.record_bodies import ATTEMPT_REASONS, AttemptBody
from holdfast.runs.driver.repair import DAMAGED, FELL_BACK
from holdfast.runs.record_codec import RecordCodec
from holdfast.runs.run_view import machine_wait
from holdfast.runs.transfer.archive import VERSION
from holdfast.types.record import Kind, Record
from holdfast.types.status import RunStatus

SOURCE = Path(holdfast.__file__).parent

FOLDER = Path(__file__).parent / "golden" / "runs"
FILES = sorted(FOLDER.glob("form*.hfrun"))

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-36")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_exported_run_of_any_released_form_is_read_without_its_code(path: Path) -> None:
    data = await asyncio.to_thread(path.read_bytes)
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row = await service.import_run(data)
        assert (row.status, row.flow, row.head, row.event_seq) == (RunStatus.pending_input, "refund", 2, 9)
        assert [meta.node for meta in await service.checkpoints(row.id)] == ["approve", "assess", ""]
        picture = await service.latest(row.id)
        assert picture.state["risk"] == 0.5
        (hold,) = await service.holds(row.id)
        assert hold.prompt == "Refund 250 to c-9?"
        assert [event.number for event in await service.events(row.id)] == list(range(1, row.event_seq + 1))
        deaths = [death.worker for death in await service.store.deaths(row.id)]
        assert deaths == (["worker-1", "worker-3"] if path.stem == "form3" else [])
        # What was decided then is decided today.
        found = await service.replay(row.id)
        assert found.same, found.difference


def test_form_that_is_written_now_has_a_file() -> None:
    assert [path.stem for path in FILES] == [f"form{number}" for number in range(1, VERSION + 1)]


@pytest.mark.covers("TOOL-VER-06")
async def test_migrated_run_is_read_with_the_graphs_of_both_its_versions() -> None:
    data = await asyncio.to_thread((FOLDER / "migrated.hfrun").read_bytes)
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row = await service.import_run(data)
        assert (row.status, row.migrated) == (RunStatus.completed, 3)
        early, late = await service.checkpoint(row.id, 2), await service.checkpoint(row.id, 3)
        assert (sorted(early.visits), sorted(late.visits)) == (["gate", "look"], ["approve", "peek"])
        (moved,) = [event for event in await service.events(row.id) if event.type == "run.migrated"]
        assert moved.data["renamed"] == {"gate": "approve", "look": "peek"}
        assert (await service.replay(row.id)).same


@pytest.mark.covers("USERS-STEP-RETRY", "USERS-CHILD-CALL", "USERS-EVENT-WAIT")
async def test_run_with_a_retried_step_a_child_and_a_wait_for_an_event_is_read_as_it_was() -> None:
    data = await asyncio.to_thread((FOLDER / "waits.hfrun").read_bytes)
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row = await service.import_run(data)
        assert (row.status, row.flow) == (RunStatus.pending_input, "golden-waits")
        types = [event.type for event in await service.events(row.id)]
        assert [types.count(each) for each in ("node.step_retried", "node.step_woke")] == [1, 1]
        (hold,) = await service.holds(row.id)
        wait = machine_wait(hold)
        assert (wait.event, wait.key, wait.until is not None) == ("payment.received", "A17", True)
        assert (await service.replay(row.id)).same


async def test_attempt_for_a_reason_that_is_not_known_is_refused_and_not_applied() -> None:
    codec = RecordCodec(TypeRegistry())
    record = Record(3, Kind.attempt, 0, 1, "pay", 1, 2, "", "", "retry", False, 0, b"", b"")
    codec.encode(record, AttemptBody("of_a_later_release"), 1)
    with pytest.raises(SchemaTooNewError, match="of_a_later_release") as refused:
        codec.decode(record)
    assert "upgrade" in str(refused.value.hint)


def test_every_reason_of_an_attempt_that_is_written_is_known() -> None:
    """A reason that is not listed could be written, and not be read again."""
    written = re.compile(r'(?:AttemptBody|restart)\((?:decision, execution, )?"([a-z_]+)"')
    found = {reason for path in SOURCE.rglob("*.py") for reason in written.findall(path.read_text("utf-8"))}
    assert len(found) > 20
    assert found | {STEP_RETRY, STEP_WOKE, FELL_BACK, DAMAGED} <= ATTEMPT_REASONS
