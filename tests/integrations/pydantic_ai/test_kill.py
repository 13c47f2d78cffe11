"""A process that runs an agent is killed at each of its steps; another one finishes the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Holdfast, RunStatus
from holdfast.telemetry import arm
from holdfast.testing.clock import FakeClock
from tests.crash.stores import address_on
from tests.flows.places import COLD
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import LOOK, PAY, Talk, a_talk, an_agent
from tests.services import prefork

RUN = "00000000-0000-4000-8000-00000000a9e1"
POINTS = [
    ("after_substep", 1),
    ("after_substep", 2),
    ("after_intent", 1),
    ("after_substep", 3),
    ("after_substep", 4),
]
"""The model's first answer, the tool that reads, the tool that pays, and the model's second answer."""
SHORT = {("sqlite", "after_substep", 3), ("postgres", "after_intent", 1)}
"""Part of make test: each process imports the framework, which takes seconds."""
KILLS = [
    pytest.param(store, *point, marks=[] if (store, *point) in SHORT else [pytest.mark.soak])
    for store in ("sqlite", "postgres")
    for point in POINTS
]


def die(address: str, folder: str, point: str, nth: int) -> None:
    async def main() -> None:
        async with Holdfast(address, clock=FakeClock(), settings=COLD) as hf:
            flow = a_talk(an_agent(Notes(Path(folder)), [LOOK, PAY]))
            arm(point, nth=nth)
            await flow.run({}, on=hf, run_id=RUN)

    asyncio.run(main())


@pytest.mark.covers("IN-5", "IN-57")
@pytest.mark.parametrize(("store", "point", "nth"), KILLS)
def test_a_run_is_finished_by_another_process_after_a_kill(
    store: str, point: str, nth: int, tmp_path: Path
) -> None:
    address, notes = address_on(store, tmp_path), Notes(tmp_path)
    process = prefork.started(die, (address, str(tmp_path), point, nth))
    process.join()
    assert process.exitcode not in (0, 1)
    before = notes.lines

    async def finish() -> Talk:
        clock = FakeClock()
        clock.advance(seconds=31)  # the lease of the dead process
        async with Holdfast(address, clock=clock, settings=COLD) as hf:
            flow = a_talk(an_agent(notes, [LOOK, PAY]))
            result = await flow.resume(RUN, on=hf)
            if result.status is RunStatus.pending_input:
                # Whether it was called is not known: a person says so, and it is not called in silence.
                assert point == "after_intent" or notes.lines.count("pay A17 250") == 1
                (hold,) = result.holds
                happened = "pay A17 250" in notes.lines
                answer = "happened" if happened else "not_happened"
                await (await hf.service()).answer(
                    hold.id, answer, data={"value": "paid 250"} if happened else None
                )
                result = await flow.resume(RUN, on=hf)
            assert result.completed, result
            return result.state

    state = asyncio.run(finish())
    assert state.answer.endswith("paid 250")
    assert notes.lines.count("pay A17 250") == 1
    # An answer of the model that was recorded is not asked for again.
    assert len(notes.lines) - len(before) <= 4
    assert notes.lines.count("model") <= 3
