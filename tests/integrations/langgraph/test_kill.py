"""A process that runs a graph is killed between and within its writes; another one finishes the thread."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from holdfast.integrations.langgraph import HoldfastSaver
from tests.services import prefork

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
RUNS = {"before_put": (3, 4), "after_put": (3,), "before_put_writes": (4,), "after_put_writes": (3,)}
"""How often nodes run in all, by the point of the kill. Before a put, the writes may be on their way."""
SOAKED = ("before_put", "after_put")
POINTS = [pytest.param(name, marks=[pytest.mark.soak] if name in SOAKED else []) for name in RUNS]


class MortalSaver(HoldfastSaver):
    """Kills its process at the nth time that a point is reached."""

    point, left = "", 0

    def _reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        self._reach("before_put")
        done = await super().aput(*args, **kwargs)
        self._reach("after_put")
        return done

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self._reach("before_put_writes")
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


def die(folder: str, point: str, nth: int) -> None:
    with MortalSaver.open(f"sqlite:{folder}/threads.db", lease="1s") as saver:
        assert isinstance(saver, MortalSaver)
        saver.point, saver.left = point, nth
        graph_of(saver, f"{folder}/effects").invoke({"lines": []}, CONFIG, durability="sync")


@pytest.mark.covers("IN-5", "IN-12", "IN-23")
@pytest.mark.parametrize("point", POINTS)
def test_a_thread_is_finished_by_another_process_after_a_kill(point: str, tmp_path: Path) -> None:
    process = prefork.started(die, (str(tmp_path), point, 3))
    process.join()
    assert process.exitcode == -signal.SIGKILL
    effects = str(tmp_path / "effects")
    # The claim of the dead process expires.
    with HoldfastSaver.open(f"sqlite:{tmp_path}/threads.db", on_conflict="wait:30s") as saver:
        result = graph_of(saver, effects).invoke(None, CONFIG, durability="sync")
        assert result["lines"] == ["a", "b", "c"]
        steps = [each.metadata.get("step") for each in saver.list(CONFIG)]
        assert steps == [3, 2, 1, 0, -1]
    # A node whose writes were stored does not run again, also if its checkpoint was not.
    ran = (tmp_path / "effects").read_text().split()
    assert sorted(set(ran)) == ["a", "b", "c"]
    assert len(ran) in RUNS[point]
