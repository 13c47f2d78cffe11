"""What a review found at the inbox: letters in somebody's fingers that were taken for keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.types.terms import operator
from tests.holds.inbox.inboxes import FORM, ask, screens

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-01")]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def hf(anyio_backend: str, clock: FakeClock) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:", clock=clock) as hf:
        yield hf


async def test_a_caller_who_is_cut_off_while_typing_decides_nothing_by_what_they_go_on_to_type(
    hf: Holdfast,
) -> None:
    async with AsyncExitStack() as stack:
        first = await ask(hf, sections=FORM)
        second = await ask(hf)
        seen = await screens(stack)(hf)
        await seen.press("enter", "1", "enter", "12")
        body = {"decision": "reject", "response_data": {"why": "no"}}
        await (await hf.holds()).resolve(operator("user:sam@acme"), first, body)
        await seen.others()
        assert "Enter continues" in " ".join(seen.lines())

        await seen.press("u", "j", "1", "1", "enter")
        assert seen.state.prompt is None
        row = await (await hf.holds()).get(operator(), second)
        assert (row.placed, str(row.status)) == (None, "pending")
        await seen.press("u")
        assert not seen.state.open
