"""A handler that blocks the event loop: it is named, and its neighbours resume on another worker."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, RunStatus, Worker
from holdfast.runs.driver.loop_watchdog import LoopWatchdog
from tests.deadlines import HANG

SETTINGS = RunSettings(lease_ttl=1.0, poll=0.02, grace=0.2)


class Scene:
    """Two runs on the first worker: one blocks its loop until `over`, the other waits there for ever."""

    def __init__(self) -> None:
        self.blocks, self.waits, self.over = threading.Event(), threading.Event(), threading.Event()
        self.done_by: list[str] = []
        self.first = 0

    def blocker(self) -> Flow:
        flow = Flow("blocker", effect="pure")

        @flow.node
        async def block() -> None:
            self.waits.wait(HANG)
            self.blocks.set()
            self.over.wait(HANG)

        return flow

    def neighbour(self) -> Flow:
        flow = Flow("neighbour", effect="pure")

        @flow.node
        async def work() -> None:
            here = threading.get_ident()
            self.first = self.first or here
            if here == self.first:
                self.waits.set()
                await asyncio.Event().wait()
            self.done_by.append("second")

        return flow


@pytest.mark.anyio
@pytest.mark.covers("SAFE-HANDLER-04")
async def test_neighbours_resume_on_another_worker_when_the_loop_is_blocked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene, address, ended = Scene(), f"sqlite:{tmp_path / 'h.db'}", threading.Event()
    blocker, neighbour = scene.blocker(), scene.neighbour()
    async with Holdfast(address, settings=SETTINGS) as hf:
        service = await hf.service()
        beside, _ = await service.create(neighbour.program(), {})
        bad, _ = await service.create(blocker.program(), {})
        stop = threading.Thread(target=first_worker, args=(address, (blocker, neighbour), scene, ended))
        stop.start()
        try:
            assert await asyncio.to_thread(scene.blocks.wait, HANG)
            async with Worker(blocker, neighbour, on=hf, name="second"), asyncio.timeout(HANG):
                while (await service.get(beside.id)).status is not RunStatus.completed:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                # The one that blocks keeps its lease: it may still finish.
                assert (await service.get(bad.id)).worker == "first"
                scene.over.set()
                while (await service.get(bad.id)).status is not RunStatus.completed:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            scene.over.set()
            ended.set()
            await asyncio.to_thread(stop.join, HANG)
    assert scene.done_by == ["second"]
    texts = [record.getMessage() for record in caplog.records]
    (named,) = [text for text in texts if "blocks the event loop" in text]
    assert f"node 'block' of run {bad.id}" in named
    assert "self.over.wait(HANG)" in named
    assert any("are not extended any more" in text for text in texts)
    assert any("runs again" in text for text in texts)


def first_worker(address: str, flows: tuple[Flow, ...], scene: Scene, ended: threading.Event) -> None:
    async def serve() -> None:
        async with Holdfast(address, settings=SETTINGS) as hf, Worker(*flows, on=hf, name="first"):
            await asyncio.to_thread(ended.wait, HANG)

    asyncio.run(serve())


class Loop:
    """Turns when it is told to."""

    def __init__(self) -> None:
        self.due: list[Callable[[], Any]] = []

    def call_soon_threadsafe(self, callback: Callable[[], Any]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        while self.due:
            self.due.pop()()


@pytest.mark.covers("SAFE-HANDLER-04")
def test_a_loop_that_answers_late_is_not_blocked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    loop: Any = Loop()
    watchdog = LoopWatchdog(loop, 30.0)
    assert watchdog.look(1.0) is None
    loop.turn()
    assert watchdog.look(2.0) is None
    loop.turn()
    assert watchdog.look(3.0) is None
    # The process was stopped for an hour: that is no blocked loop.
    found = watchdog.look(3603.0)
    assert found is not None
    assert found.seconds <= 2.0
    blocked = [watchdog.look(3603.0 + second) for second in range(1, 40)]
    assert blocked[-1] is not None
    assert blocked[-1].seconds > 30
    assert watchdog.blocks == {("", ""): 1}
    loop.turn()
    assert watchdog.look(3700.0) is None
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(";")[0] for text in texts] == [
        "code outside a node blocks the event loop, and with it every run of this process",
        "the event loop runs again",
    ]
