from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CORE-TEST-01")]


async def _until_asleep(clock: FakeClock, sleepers: int = 1) -> None:
    while clock.sleeping < sleepers:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_clock_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock()
    before = clock.now()
    assert clock.now() == before
    clock.advance(hours=25)
    clock.advance(timedelta(seconds=1))
    assert clock.now() - before == (25 * 3600 + 1) * MICROS
    assert clock.monotonic() == 25 * 3600 + 1


async def test_clock_refuses_to_go_back() -> None:
    with pytest.raises(ValueError, match="back"):
        FakeClock().advance(seconds=-1)


async def test_sleeper_wakes_when_the_time_has_passed_it_and_not_before() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(60))
    await _until_asleep(clock)
    clock.advance(seconds=59)
    await asyncio.sleep(0.01)
    assert not task.done()
    clock.advance(seconds=1)
    await asyncio.wait_for(task, HANG)


async def test_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(60))
    await _until_asleep(clock)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleeping == 0


async def test_sleeper_on_another_thread_wakes_when_this_one_advances() -> None:
    clock = FakeClock()
    thread = threading.Thread(target=lambda: asyncio.run(clock.sleep(3600)))
    thread.start()
    await _until_asleep(clock)
    clock.advance(hours=1)
    await asyncio.to_thread(thread.join, HANG)
    assert not thread.is_alive()


async def test_automatic_clock_moves_to_each_sleeper_in_turn() -> None:
    clock = FakeClock(auto=True)
    start = clock.now()
    woken: list[tuple[str, int]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, (clock.now() - start) // MICROS))

    await asyncio.wait_for(asyncio.gather(sleeper("late", 7200), sleeper("early", 60)), HANG)
    assert woken == [("early", 60), ("late", 7200)]
