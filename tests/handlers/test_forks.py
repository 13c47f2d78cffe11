"""`os.fork` in user code: the child never becomes a second worker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.model.user_code.threads import run_in_thread
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Forks:
    """Each way in which a child can leave the code that forked it."""

    def __init__(self) -> None:
        self.child = 0

    def fork(self) -> bool:
        """Whether this is the child."""
        self.child = os.fork()
        return self.child == 0

    async def returns(self) -> dict[str, bool]:
        self.fork()
        return {"done": True}

    async def raises(self) -> dict[str, bool]:
        if self.fork():
            raise ValueError("in the child")
        return {"done": True}

    async def exits(self) -> dict[str, bool]:
        if self.fork():
            sys.exit(0)
        return {"done": True}

    async def waits(self) -> dict[str, bool]:
        if self.fork():
            await asyncio.sleep(0)
        return {"done": True}

    async def waits_long(self) -> dict[str, bool]:
        if self.fork():
            await asyncio.sleep(0.01)
        return {"done": True}

    def returns_from_thread(self) -> dict[str, bool]:
        self.fork()
        return {"done": True}

    def raises_in_thread(self) -> dict[str, bool]:
        if self.fork():
            raise ValueError("in the child")
        return {"done": True}

    def exits_in_thread(self) -> dict[str, bool]:
        if self.fork():
            sys.exit(0)
        return {"done": True}


WAYS = [name for name in vars(Forks) if not name.startswith("_") and name != "fork"]


@pytest.mark.covers("SAFE-HANDLER-05")
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_run_goes_on_once_when_its_code_forks(way: str, beside: bool, tmp_path: Path) -> None:
    forks, seen = Forks(), tmp_path / "seen"
    work: Callable[..., Any] = getattr(forks, way)
    flow = Flow("forks", effect="pure")
    flow.node(id="work")(work)

    @flow.node
    async def after() -> None:
        with seen.open("a") as file:
            file.write(f"{os.getpid()}\n")

    flow.edge("work", after)
    if beside:

        @flow.node
        async def other() -> None:
            await asyncio.sleep(0.01)

        flow.start("work", other)
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
        result = await flow.run(on=hf)
        assert result.completed
        assert result.state["done"] is True
        _, status = os.waitpid(forks.child, 0)  # noqa: ASYNC222
        assert os.WIFEXITED(status)
        assert seen.read_text() == f"{os.getpid()}\n"
        assert (await flow.run(on=hf)).completed
        os.waitpid(forks.child, 0)  # noqa: ASYNC222


def test_plain_functions_run_in_the_child_of_a_fork_after_they_ran_in_its_parent() -> None:
    """The threads of the parent do not exist in the child: one that is idle there never begins."""
    assert asyncio.run(run_in_thread(lambda: 1)) == 1
    child = os.fork()
    if child == 0:
        try:
            os._exit(asyncio.run(asyncio.wait_for(run_in_thread(lambda: 7), HANG)))
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
