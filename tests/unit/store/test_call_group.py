from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.sql.postgres.call_group import CallGroup

pytestmark = pytest.mark.anyio


class Sent:
    """What was sent, group by group. A group waits for `go` before it is answered."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.groups: list[list[int]] = []
        self.go, self.began = asyncio.Event(), asyncio.Event()
        self._fault = fault

    async def __call__(self, given: Sequence[int]) -> list[int]:
        self.groups.append(list(given))
        self.began.set()
        await self.go.wait()
        if self._fault is not None and 13 in given:
            raise self._fault
        return [each * 2 for each in given]


async def outcomes(group: CallGroup[int, int], sent: Sent, *given: int) -> list[object]:
    calls = [asyncio.ensure_future(group.call(each)) for each in given]
    await asyncio.sleep(0)
    sent.go.set()
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def test_calls_made_while_one_is_under_way_are_the_next_group() -> None:
    sent = Sent()
    group = CallGroup(sent)
    first = asyncio.ensure_future(group.call(1))
    await sent.began.wait()
    assert await outcomes(group, sent, 2, 3, 4) == [4, 6, 8]
    assert await first == 2
    assert await group.call(5) == 10
    assert sent.groups == [[1], [2, 3, 4], [5]]


async def test_large_calls_are_in_groups_of_their_own() -> None:
    sent = Sent()
    group = CallGroup(sent, lambda given: given << 20)
    assert await outcomes(group, sent, 1, 2, 9, 1, 3) == [2, 4, 18, 2, 6]
    assert sent.groups == [[1, 2], [9], [1, 3]]


async def test_a_call_that_fails_does_not_fail_those_sent_with_it() -> None:
    fault = StoreError("a bad value")
    sent = Sent(fault)
    assert await outcomes(CallGroup(sent), sent, 1, 13, 2) == [2, fault, 4]
    assert sent.groups == [[1, 13, 2], [1], [13], [2]]


async def test_a_value_that_cannot_be_sent_is_the_fault_of_its_call() -> None:
    fault = StoreUnavailableError("the driver refused a value")
    fault.__cause__ = ValueError("no text")
    sent = Sent(fault)
    assert await outcomes(CallGroup(sent), sent, 1, 13) == [2, fault]


async def test_no_call_is_repeated_after_a_lost_connection() -> None:
    fault = StoreUnavailableError("the server is away")
    sent = Sent(fault)
    assert await outcomes(CallGroup(sent), sent, 1, 13, 2) == [fault] * 3
    assert sent.groups == [[1, 13, 2]]


async def test_a_cancelled_caller_leaves_its_call_in_the_group() -> None:
    sent = Sent()
    group = CallGroup(sent)
    calls = [asyncio.ensure_future(group.call(each)) for each in (1, 2)]
    await sent.began.wait()
    calls[0].cancel()
    sent.go.set()
    assert await calls[1] == 4
    assert sent.groups == [[1, 2]]
    assert await group.call(3) == 6


def test_a_loop_that_ends_leaves_no_caller_of_another_loop_behind() -> None:
    sent, group = list[Sent](), CallGroup[int, int](lambda given: sent[-1](given))

    async def left_behind() -> None:
        sent.append(Sent())
        call = asyncio.ensure_future(group.call(1))
        await sent[-1].began.wait()
        assert not call.done()

    async def next_loop() -> int:
        sent.append(Sent())
        sent[-1].go.set()
        return await group.call(2)

    asyncio.run(left_behind())
    assert asyncio.run(next_loop()) == 4
