"""One agent under the framework's integration with DBOS and under ours: the messages are the same."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.integrations.pydantic_ai import HoldfastDurability
from holdfast.testing.clock import FakeClock
from tests.flows.places import COLD
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.repeated_call import (
    EFFECTS,
    QUESTION,
    RUN,
    Messages,
    a_flow,
    an_agent,
    die,
    plain,
)
from tests.services import prefork

pytest.importorskip("dbos", reason="dbos is not installed; `make partners` runs this file")
if importlib.util.find_spec("pysqlite3"):
    # DBOS needs a newer SQLite than some Pythons carry.
    newer: Any = importlib.import_module("pysqlite3")
    sys.modules["sqlite3"], sys.modules["sqlite3.dbapi2"] = newer, newer.dbapi2
DBOS = importlib.import_module("dbos").DBOS
DBOSDurability = importlib.import_module("pydantic_ai.durable_exec.dbos").DBOSDurability


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """What a workflow of DBOS finds."""
    folder = tmp_path_factory.mktemp("dbos")
    DBOS(config={"name": "beside", "system_database_url": f"sqlite:///{folder / 'dbos.db'}"})
    agent = an_agent(Notes(folder), DBOSDurability())

    @DBOS.workflow()
    async def talk() -> list[Any]:
        return plain((await agent.run(QUESTION)).all_messages())

    DBOS.launch()
    try:
        yield asyncio.run(talk())
    finally:
        DBOS.destroy(destroy_registry=True)


@pytest.mark.covers("IN-57", "USERS-PYDANTIC")
def test_an_agent_has_the_same_messages_as_under_dbos(expected: list[Any], tmp_path: Path) -> None:
    async def ours() -> Messages:
        async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
            agent = an_agent(Notes(tmp_path), HoldfastDurability(effects=EFFECTS))
            return (await a_flow(agent).run({}, on=hf)).expect().state

    found = asyncio.run(ours()).found
    assert found == expected
    assert [each["kind"] for each in found] == ["request", "response"] * 4
    assert "paid 250" in str(found[-1])


@pytest.mark.covers("IN-57")
@pytest.mark.parametrize("nth", range(1, 13))
def test_an_agent_that_was_killed_has_the_same_messages_as_one_under_dbos(
    expected: list[Any], nth: int, tmp_path: Path
) -> None:
    address, notes = f"sqlite:{tmp_path / 'h.db'}", Notes(tmp_path)
    process = prefork.started(die, (address, str(tmp_path), nth))
    process.join()
    assert process.exitcode not in (0, 1)

    async def finish() -> Messages:
        clock = FakeClock()
        clock.advance(seconds=31)  # the lease of the dead process
        async with Holdfast(address, clock=clock, settings=COLD) as hf:
            agent = an_agent(notes, HoldfastDurability(effects=EFFECTS))
            flow = a_flow(agent)
            result = await flow.resume(RUN, on=hf)
            for hold in result.holds:
                # It died in a call that is not repeated in silence: a person says whether it was made.
                paid = {"value": "paid 250"} if "pay A17 250" in notes.lines else None
                answer = "happened" if paid else "not_happened"
                await (await hf.service()).answer(hold.id, answer, data=paid)
                result = await flow.resume(RUN, on=hf)
            return result.expect().state

    assert asyncio.run(finish()).found == expected
    assert notes.lines.count("pay A17 250") == 1
