"""Every form of an exported run that was ever released is still imported (house rule 9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.runs.transfer.archive import VERSION
from holdfast.types.status import RunStatus

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
