"""A process that runs an agent is killed at each of its steps; another one finishes the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed; `make partners` runs these tests")

from holdfast import Holdfast, RunStatus
from holdfast.telemetry import arm
from holdfast.testing.clock import FakeClock
from tests.crash.stores import address_on
from tests.flows.places import COLD
from tests.integrations.notes import Notes
from tests.integrations.openai_agents.shop import LOOK, PAY, Talk, a_talk, an_agent
from tests.services import prefork

RUN = "00000000-0000-4000-8000-00000000a9e2"
PLAIN = [
    ("after_substep", 1),
    ("after_substep", 2),
    ("after_intent", 1),
    ("after_substep", 3),
    ("after_substep", 4),
]
"""The model's first answer, the tool that reads, the tool that pays, and the model's second answer."""
ASKED = [
    ("after_substep", 2),
    ("after_substep", 3),
    ("before_park", 1),
    ("after_park", 1),
    ("after_answer", 1),
    ("after_intent", 1),
    ("after_substep", 4),
    ("after_substep", 5),
    ("after_handler", 1),
]
"""The same with an approval: also the SDK's state, the hold and its answer."""
SHORT = {("sqlite", "after_substep", 3, False), ("postgres", "after_intent", 1, True)}
"""Part of the tests without the soak: each process imports the framework, which takes seconds."""
KILLS = [
    pytest.param(store, *point, asked, marks=[] if (store, *point, asked) in SHORT else [pytest.mark.soak])
    for store in ("sqlite", "postgres")
    for asked, points in ((False, PLAIN), (True, ASKED))
    for point in points
]


async def finished(hf: Holdfast, notes: Notes, *, approval: bool, start: bool = False) -> Talk:
    """Resumes the run until it is complete; a person approves, and says what is known of unknown outcomes."""
    flow = a_talk(an_agent(notes, [LOOK, PAY], approval=approval))
    result = await (flow.run({}, on=hf, run_id=RUN) if start else flow.resume(RUN, on=hf))
    for _ in range(4):
        if result.status is not RunStatus.pending_input:
            break
        (hold,) = result.holds
        if hold.type == "approval":
            assert "pay A17 250" not in notes.lines
            await (await hf.service()).answer(hold.id, "approve")
        else:
            happened = "pay A17 250" in notes.lines
            await (await hf.service()).answer(
                hold.id,
                "happened" if happened else "not_happened",
                data={"value": "paid 250"} if happened else None,
            )
        result = await flow.resume(RUN, on=hf)
    assert result.completed, result
    return result.state


def die(address: str, folder: str, point: str, nth: int, asked: bool) -> None:
    async def main() -> None:
        async with Holdfast(address, clock=FakeClock(), settings=COLD) as hf:
            arm(point, nth=nth)
            await finished(hf, Notes(Path(folder)), approval=asked, start=True)

    asyncio.run(main())


@pytest.mark.covers("IN-5", "IN-61", "IN-62")
@pytest.mark.parametrize(("store", "point", "nth", "asked"), KILLS)
def test_a_run_is_finished_by_another_process_after_a_kill(
    store: str, point: str, nth: int, asked: bool, tmp_path: Path
) -> None:
    address, notes = address_on(store, tmp_path), Notes(tmp_path)
    process = prefork.started(die, (address, str(tmp_path), point, nth, asked))
    process.join()
    assert process.exitcode not in (0, 1)

    async def finish() -> Talk:
        clock = FakeClock()
        clock.advance(seconds=31)  # the lease of the dead process
        async with Holdfast(address, clock=clock, settings=COLD) as hf:
            return await finished(hf, notes, approval=asked)

    state = asyncio.run(finish())
    assert state.answer.endswith("paid 250")
    assert notes.lines.count("pay A17 250") == 1
    # An answer of the model that was recorded is not asked for again.
    assert notes.lines.count("model") <= 3
