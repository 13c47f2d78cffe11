"""A store that goes away in the middle of a run, in every way and at every moment: nothing is lost or done
twice, nothing outside happens that no checkpoint announced, and nobody has to do anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast, Worker
from holdfast.testing.crashpoints import armed
from tests.fleet.faults import FAULTS
from tests.fleet.long_outage import SETTINGS, Ledger, answered, asked, created, ended, judge, paying

pytestmark = pytest.mark.anyio

SECONDS = 0.7
# The moments of an effect and of a pause, by the crash point that lies there.
MOMENTS = {
    "before the intent": "lease_lost_before_commit",
    "between intent and handler": "after_intent",
    "after the handler": "after_handler",
    "at the park": "before_park",
}
MATRIX = [(kind, moment) for kind in FAULTS for moment in (*MOMENTS, "at the answer")]
# These with all tests, the others with the soak: a server takes its time.
QUICK = {
    ("cut", "before the intent"),
    ("cut", "after the handler"),
    ("cut", "at the answer"),
    ("swallowed", "between intent and handler"),
    ("killed", "after the handler"),
    ("full", "after the handler"),
    ("grown", "after the handler"),
    ("grown", "at the park"),
}


def _marks(kind: str, moment: str) -> tuple[pytest.MarkDecorator, ...]:
    slow = kind != "locked" and (kind, moment) not in QUICK
    return (pytest.mark.soak,) if slow else ()


@pytest.mark.covers("FLEET-DEGR-01", "FLEET-DEGR-02", "FLEET-DEGR-04", "R-41", "R-43", "D-33", "D-8")
@pytest.mark.parametrize(("kind", "moment"), [pytest.param(*each, marks=_marks(*each)) for each in MATRIX])
async def test_run_goes_on_by_itself_when_the_store_was_away_for_a_while(
    kind: str, moment: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(tmp_path)
    flow = paying(ledger)
    async with FAULTS[kind](tmp_path) as fault, Holdfast(fault.address, settings=SETTINGS) as hf:
        ledger.fault = fault
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0):
            if moment == "at the answer":
                run = await created(service, flow)
                hold = await asked(service, run)
                fault.strike(SECONDS)
            else:
                # The run is made before the point is armed: it has a commit of its own.
                with armed(MOMENTS[moment], hit=lambda: fault.strike(SECONDS)):
                    run = await created(service, flow)
                    hold = await asked(service, run)
            await answered(service, hold)
            await ended(service, run)
        assert fault.struck == 1
        await judge(hf, run, ledger)
    if moment in ("before the intent", "after the handler"):
        assert "checkpoint not written" in caplog.text
        assert ("disk is full" in caplog.text) is (kind in ("full", "grown"))
        assert "checkpoints are written again" in caplog.text
