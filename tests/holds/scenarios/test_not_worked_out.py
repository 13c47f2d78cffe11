"""What could not be worked out when a hold was opened: seen in its history, and nobody's by accident."""

from __future__ import annotations

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import NotAssignedError
from holdfast.holds.preparation import HoldPreparation
from holdfast.holds.timing.reschedule import change_calendar
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.runs.hold_preparation import Preparer
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.terms import operator
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio

OFFICE = {"zone": "UTC", "hours": {"mon-sun": "00:00-24:00"}}


@pytest.mark.covers("EX-12", "HI-1")
async def test_deadline_that_has_no_calendar_is_reported_and_counted_once_there_is_one(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana", timeout="4bh", on_timeout="cancel")
    assert row.expires_at is None
    (_, warned) = await firm.holds.history(operator(), row.id)
    assert warned.action == "warned"
    assert "there is no calendar 'default'" in str(warned.data)
    assert await Calendars(firm.holds.store).find("default") is None
    _, (moved,) = await change_calendar(firm.holds.store, "default", "default", OFFICE, by="user:ada")
    assert (moved.id, moved.expires_at) == (row.id, row.created_at + 4 * 3600 * 1_000_000)


class Broken:
    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return True

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        raise RuntimeError("the rules are away")


@pytest.mark.covers("AS-10")
async def test_hold_whose_rules_could_not_be_asked_is_for_admins(anyio_backend: str) -> None:
    async with Holdfast("memory:") as hf:
        (await hf.service()).runtime.preparer = Preparer(HoldPreparation(policies=Broken()))
        flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt="Pay?", options=["yes", "no"], assignee="user:dana")
        (hold,) = (await flow.run({}, on=hf)).holds
        assert (hold.assignee_type, hold.assignee_reason) == ("unrouted", "the rules are away")
        with pytest.raises(NotAssignedError):
            await (await hf.holds()).resolve(person("dana"), hold.id, "yes")


@pytest.mark.covers("HOLD-AUTH-08", "HI-1")
@pytest.mark.parametrize("directory", [None, "store"])
async def test_exclusion_of_a_starter_who_is_not_known_is_reported(
    directory: str | None, anyio_backend: str
) -> None:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["yes", "no"], approval={"exclude": ["initiator"]})
    async with Holdfast("memory:", directory=directory) as hf:
        holds = await hf.holds()
        (nameless,) = (await flow.run({}, on=hf)).holds
        (_, warned) = await holds.history(operator(), nameless.id)
        assert "the starter of the run is not known" in str(warned.data)
        (known,) = (await flow.run({}, on=hf, started_by="user:dana")).holds
        assert [each.action for each in await holds.history(operator(), known.id)] == ["created"]
