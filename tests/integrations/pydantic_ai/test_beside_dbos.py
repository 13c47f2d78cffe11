"""One agent under the framework's integration with DBOS and under ours: the messages are the same."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.toolsets import DynamicToolset

from holdfast import Flow, Holdfast
from holdfast.integrations.pydantic_ai import HoldfastDurability
from holdfast.telemetry import arm
from holdfast.testing.clock import FakeClock
from tests.flows.places import COLD
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import LOOK, PAY, a_model
from tests.services import prefork

pytest.importorskip("dbos", reason="dbos is not installed; `make partners` runs this file")
if importlib.util.find_spec("pysqlite3"):
    # DBOS needs a newer SQLite than some Pythons carry.
    newer: Any = importlib.import_module("pysqlite3")
    sys.modules["sqlite3"], sys.modules["sqlite3.dbapi2"] = newer, newer.dbapi2
DBOS = importlib.import_module("dbos").DBOS
DBOSDurability = importlib.import_module("pydantic_ai.durable_exec.dbos").DBOSDurability

RUN = "00000000-0000-4000-8000-00000000db05"
EFFECTS = {"look": "read", "stock": "read"}
QUESTION = "Order A17 came broken."
TURNS = (
    [LOOK, ToolCallPart("stock", {"item": "telescope"}, "c-stock")],
    [ToolCallPart("pay", {"order": "A17", "amount": -1}, "c-wrong")],
    [PAY],
)


def an_agent(notes: Notes, durability: Any) -> Agent:
    """With tools of its own, a dynamic set of tools, and a call that the model has to repeat."""
    chosen: FunctionToolset[None] = FunctionToolset()

    @chosen.tool_plain
    def stock(item: str) -> dict[str, Any]:
        notes.add("stock")
        return {"item": item, "count": 3, "shelves": ["a", "b"]}

    agent = Agent(
        a_model(notes, *TURNS),
        name="support",
        instructions="Be brief.",
        toolsets=[DynamicToolset(lambda _: chosen, id="chosen")],
        capabilities=[durability],
    )

    @agent.tool_plain
    def look(order: str) -> dict[str, Any]:
        notes.add("look")
        return {"order": order, "paid": 250}

    @agent.tool_plain
    async def pay(order: str, amount: int) -> str:
        if amount < 0:
            raise ModelRetry("The amount is above 0.")
        notes.add(f"pay {order} {amount}")
        return f"paid {amount}"

    return agent


def plain(messages: list[ModelMessage]) -> list[Any]:
    """Without the times, and the ids that each engine gives its runs."""
    return _without(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        left = {"timestamp", "run_id", "conversation_id"}
        return {name: _without(each) for name, each in value.items() if name not in left}
    return [_without(each) for each in value] if isinstance(value, list) else value


@dataclass
class Messages:
    found: list[Any] = field(default_factory=list)


def a_flow(agent: Agent) -> Flow[Messages]:
    flow = Flow("talk", state=Messages)

    @flow.script
    async def talk() -> dict[str, Any]:
        return {"found": plain((await agent.run(QUESTION)).all_messages())}

    flow.start(talk)
    return flow


@pytest.fixture
def expected(tmp_path: Path) -> Iterator[list[Any]]:
    """What a workflow of DBOS finds."""
    folder = tmp_path / "dbos"
    folder.mkdir()
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


def die(address: str, folder: str, nth: int) -> None:
    async def main() -> None:
        async with Holdfast(address, clock=FakeClock(), settings=COLD) as hf:
            agent = an_agent(Notes(Path(folder)), HoldfastDurability(effects=EFFECTS))
            arm("after_substep", nth=nth)
            await a_flow(agent).run({}, on=hf, run_id=RUN)

    asyncio.run(main())


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
