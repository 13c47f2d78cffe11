"""A process that runs a graph is killed between and within its writes; another one finishes the thread, or
the run that the graph is."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from holdfast import Holdfast
from holdfast.errors import RunBusyError
from holdfast.integrations.langgraph import HoldfastSaver, graph_flow
from holdfast.runs.driver.settings import RunSettings
from holdfast.types.ids import RunId
from tests.services import postgres, prefork

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
RUNS = {"before_put": (3, 4), "after_put": (3,), "before_put_writes": (4,), "after_put_writes": (3, 4)}
"""How often nodes run in all, by the point of the kill. Before a put, the writes may be on their way."""
SOAKED = ("before_put", "after_put")
POINTS = [pytest.param(name, marks=[pytest.mark.soak] if name in SOAKED else []) for name in RUNS]


class MortalSaver(HoldfastSaver):
    """Kills its process at the nth time that a point is reached."""

    point, left = "", 0
    dying = False

    def _reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        # LangGraph ends the step beside the writes: the next node would run before the kill.
        if self.dying:
            await asyncio.Event().wait()
        self._reach("before_put")
        done = await super().aput(*args, **kwargs)
        self._reach("after_put")
        return done

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self._reach("before_put_writes")
        self.dying = (self.point, self.left) == ("after_put_writes", 1)
        await super().aput_writes(*args, **kwargs)
        self._reach("after_put_writes")


def graph_of(saver: HoldfastSaver, effects: str) -> Any:
    from langgraph.graph import START, StateGraph

    from holdfast.testing.conformance.langgraph_ownership import Lines

    def node(name: str) -> Any:
        def run(_state: Any) -> dict[str, list[str]]:
            with Path(effects).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
            return {"lines": [name]}

        return run

    builder: Any = StateGraph(Lines)
    for name, before in (("a", START), ("b", "a"), ("c", "b")):
        builder.add_node(name, node(name))
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


def address_of(store: str, folder: Path) -> str:
    if store == "sqlite":
        return f"sqlite:{folder}/threads.db"
    return postgres.with_setting(postgres.database(), schema=f"kill_{secrets.token_hex(4)}")


def die(address: str, effects: str, point: str, nth: int) -> None:
    with MortalSaver.open(address, lease="1s") as saver:
        assert isinstance(saver, MortalSaver)
        saver.point, saver.left = point, nth
        graph_of(saver, effects).invoke({"lines": []}, CONFIG, durability="sync")


@pytest.mark.covers("IN-5", "IN-12", "IN-23")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_thread_is_finished_by_another_process_after_a_kill(store: str, point: str, tmp_path: Path) -> None:
    effects, address = str(tmp_path / "effects"), address_of(store, tmp_path)
    process = prefork.started(die, (address, effects, point, 3))
    process.join()
    assert process.exitcode == -signal.SIGKILL
    # The claim of the dead process expires.
    with HoldfastSaver.open(address, on_conflict="wait:30s") as saver:
        result = graph_of(saver, effects).invoke(None, CONFIG, durability="sync")
        assert result["lines"] == ["a", "b", "c"]
        steps = [each.metadata.get("step") for each in saver.list(CONFIG)]
        assert steps == [3, 2, 1, 0, -1]
    # A node whose writes were stored does not run again, also if its checkpoint was not.
    ran = (tmp_path / "effects").read_text().split()
    assert sorted(set(ran)) == ["a", "b", "c"]
    assert len(ran) in RUNS[point]
    if point == "after_put_writes":
        # The third write is that of the second node; the node after it may have begun beside the write.
        assert ran.count("a") == ran.count("b") == 1


# ---------------------------------------------------------------------- a graph as a flow

SETTINGS = RunSettings(lease_ttl=1.0, lease_margin=0.05, poll=0.05)
RUN = "5f0c3a52-6d0e-4a55-8a0e-2f5f4f1f7a01"
ASKED = {
    "hold_not_open": 1,  # the interrupt is stored, its hold is not
    "hold_open": 1,
    "answer_not_stored": 2,  # the node has the answer, its writes are lost
    "answer_stored": 1,
}
"""How often the node behind the question has the answer, by the point of the kill."""


class MortalAsker(HoldfastSaver):
    """Kills its process around the writes of an interrupt, and of the task that was given the answer."""

    point = ""
    dying = False

    async def aput(self, *given: Any) -> Any:
        # LangGraph ends the step beside the writes: the next node would run before the kill.
        if self.dying:
            await asyncio.Event().wait()
        return await super().aput(*given)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        channels = {channel for channel, _ in writes}
        answered = "lines" in channels and any("yes" in str(value) for _, value in writes)
        if answered and self.point == "answer_not_stored":
            os.kill(os.getpid(), signal.SIGKILL)
        self.dying = answered and self.point == "answer_stored"
        await super().aput_writes(config, writes, task_id, task_path)
        if (self.point, True) in (
            ("hold_not_open", "__interrupt__" in channels),
            ("answer_stored", answered),
        ):
            os.kill(os.getpid(), signal.SIGKILL)


def refund_flow(saver: HoldfastSaver, effects: str) -> Any:
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    from holdfast.testing.conformance.langgraph_ownership import Lines

    def note(line: str) -> str:
        with Path(effects).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return line

    builder: Any = StateGraph(Lines)
    builder.add_node("look", lambda _state: {"lines": [note("look")]})
    builder.add_node("ask", lambda _state: {"lines": [note(f"said:{interrupt('Refund?')}")]})
    builder.add_node("pay", lambda _state: {"lines": [note("pay")]})
    for before, name in ((START, "look"), ("look", "ask"), ("ask", "pay")):
        builder.add_edge(before, name)
    return graph_flow("refund", builder.compile(checkpointer=saver))


async def advance(address: str, effects: str, point: str) -> Any:
    """Starts or resumes the run, and answers what it asks."""
    async with Holdfast(address, settings=SETTINGS) as hf:
        saver = MortalAsker(hf, lease="1s")
        saver.point = point
        flow = refund_flow(saver, effects)
        service = await hf.service()
        if point:
            result = await flow.run({"lines": []}, on=hf, run_id=RUN)
        else:
            result = await resumed_after_lease(hf, flow)
        if point == "hold_open":
            os.kill(os.getpid(), signal.SIGKILL)
        for hold in result.holds:
            await service.answer(hold.id, "yes")
            result = await flow.resume(RUN, on=hf)
        await saver.aclose()
        return result.state["lines"], result.completed, len(await service.holds(RunId(RUN), open_only=False))


async def resumed_after_lease(hf: Holdfast, flow: Any) -> Any:
    store = await hf.open()
    while True:
        try:
            return await flow.resume(RUN, on=hf)
        except RunBusyError:  # the lease of the dead process has not expired
            await store.wait_change(0.05)


def advance_and_die(address: str, effects: str, point: str) -> None:
    asyncio.run(advance(address, effects, point))


@pytest.mark.covers("IN-5", "IN-30", "IN-32")
@pytest.mark.parametrize("point", list(ASKED))
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_graph_that_asks_is_finished_by_another_process_after_a_kill(
    store: str, point: str, tmp_path: Path
) -> None:
    effects, address = str(tmp_path / "effects"), address_of(store, tmp_path)
    process = prefork.started(advance_and_die, (address, effects, point))
    process.join()
    assert process.exitcode == -signal.SIGKILL
    lines, completed, holds = asyncio.run(advance(address, effects, ""))
    assert completed
    assert lines == ["look", "said:yes", "pay"]
    assert holds == 1  # asked once, whatever happened
    ran = (tmp_path / "effects").read_text().split()
    assert (ran.count("look"), ran.count("said:yes"), ran.count("pay")) == (1, ASKED[point], 1)
