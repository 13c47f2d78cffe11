"""A store that an earlier release wrote is opened, keeps all that it had, and goes on."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from holdfast import Holdfast, Worker
from holdfast.store.open import open_store
from holdfast.store.rows import RunFilter, RunRow
from holdfast.testing.clock import FakeClock
from holdfast.types.audit import GENESIS
from holdfast.types.clock import MICROS
from holdfast.types.hold import Due, HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from tests.upgrade.questions import asking_flow

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CORE-STORE-09")]

FILE = Path(__file__).parent / "golden" / "stores" / "schema5.db.gz"
DANA = (("user", "dana@acme.example"),)


@pytest.fixture
def address(tmp_path: Path) -> str:
    (tmp_path / "old.db").write_bytes(gzip.decompress(FILE.read_bytes()))
    return f"sqlite:{tmp_path / 'old.db'}"


async def found(address: str) -> dict[str, tuple[RunRow, HoldRow]]:
    """Each run with its hold, by the name that it was given."""
    store = await open_store(address)
    runs = await store.list_runs(RunFilter(), after=None, limit=9)
    pairs = {run.thread or "": (run, (await store.holds(run=run.id))[0]) for run in runs}
    await store.close()
    return pairs


async def test_old_holds_keep_what_they_were_and_what_became_of_them(address: str) -> None:
    rows = {name: hold for name, (_, hold) in (await found(address)).items()}
    assert {name: row.status for name, row in rows.items()} == {
        "waits": HoldStatus.pending,
        "answered": HoldStatus.resolved,
        "ended": HoldStatus.resolved,
        "cancelled": HoldStatus.cancelled,
    }
    for row in rows.values():
        assert (row.prompt, row.tenant, row.flow, row.priority) == (
            "Refund 250?",
            "default",
            "asking",
            "normal",
        )
        assert [option.id for option in row.options or ()] == ["approve", "reject"]
        assert (row.assignee, row.assignee_type) == ("user:Dana@Acme.example", "user")
        assert row.assignee_value == "dana@acme.example"
        assert row.expires_at == row.created_at + 2 * 24 * 3600 * MICROS
        assert (row.original_timeout, row.expiry_action) == (2 * 24 * 3600 * MICROS, "cancel")
    assert (rows["answered"].resolved_by, rows["answered"].resumed_at) == ("user:ada", None)
    assert rows["ended"].resumed_at == rows["ended"].resolved_at
    assert (rows["cancelled"].closed_by, rows["cancelled"].resolution) == ("system:engine", None)


async def test_old_holds_are_in_inboxes_and_fall_due(address: str) -> None:
    rows = {name: hold for name, (_, hold) in (await found(address)).items()}
    store = await open_store(address)
    inbox = HoldFilter(tenant="default", assignees=DANA, status=(HoldStatus.pending,))
    listed = await store.list_holds(inbox, order=HoldOrder.inbox)
    assert [row.id for row, _ in listed] == [rows["waits"].id]
    deadline = rows["waits"].expires_at
    assert deadline is not None
    assert await store.next_due_hold() == deadline
    assert await store.next_timer() is None, "a deadline is no timer of the run any more"
    assert [row.id for row in await store.due_holds(Due.expiry, now=deadline, limit=9)] == [rows["waits"].id]
    resume = await store.due_holds(Due.resume, now=deadline, limit=9)
    assert [row.id for row in resume] == [rows["answered"].id]
    assert await store.audit_head("default") == (0, GENESIS), "the chain begins with what is done from now on"
    await store.close()


async def test_old_runs_go_on_with_the_answers_of_then_and_of_now(address: str) -> None:
    pairs = await found(address)
    async with Holdfast(address) as hf:
        service = await hf.service()
        flow = asking_flow()
        await service.answer(pairs["waits"][1].id, "reject")
        for name, done in (("waits", "reject"), ("answered", "approve")):
            result = (await flow.resume(pairs[name][0].id, on=hf)).expect()
            assert result.state["done"] == done
            (hold,) = await service.holds(pairs[name][0].id, open_only=False)
            assert hold.resumed_at is not None


async def test_old_deadline_is_kept_by_the_sweep(address: str) -> None:
    pairs = await found(address)
    run, hold = pairs["waits"]
    clock = FakeClock(datetime.fromtimestamp(hold.created_at // MICROS, UTC) + timedelta(days=3))
    async with Holdfast(address, clock=clock) as hf:
        await Worker(asking_flow(), on=hf).run_until_idle()
        service = await hf.service()
        assert (await service.get(run.id)).status is RunStatus.cancelled
        (expired,) = await service.holds(run.id, open_only=False)
        assert expired.status is HoldStatus.cancelled
        assert expired.closed_by == "system:expiry"


async def test_old_row_that_is_not_whole_does_not_keep_the_store_shut(address: str) -> None:
    """Imported history was not looked at so closely then."""
    file = apsw.Connection(address.removeprefix("sqlite:"))
    file.execute("UPDATE holds SET resolution = NULL, resolved_at = NULL WHERE status = 'resolved'")
    file.execute("UPDATE holds SET resolved_by = 'somebody' WHERE status = 'pending'")
    file.close()
    rows = {name: hold for name, (_, hold) in (await found(address)).items()}
    assert (rows["ended"].resolution, rows["ended"].resolved_by) == (b"{}", "user:ada")
    assert rows["ended"].resolved_at == rows["ended"].created_at
    assert (rows["waits"].status, rows["waits"].resolved_by) == (HoldStatus.pending, None)
