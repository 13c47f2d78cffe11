"""A small firm whose people have an id and an address each, under a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import Holdfast, Person, Registrar
from holdfast.testing.clock import FakeClock
from tests.holds.scenarios.firm import Channel, Firm


@pytest.fixture
async def firm(anyio_backend: str) -> AsyncIterator[Firm]:
    clock, channel = FakeClock(), Channel()
    async with Holdfast("memory:", clock=clock, directory="store", channels=[channel]) as hf:
        people = Registrar(await hf.open())
        for name in ("dana", "sam", "kim", "bob"):
            await people.put_person("default", Person(id=name, email=f"{name}@acme"))
        await people.put_group("default", "board", ["dana", "kim"])
        await people.put_group("default", "finance", ["dana", "sam"])
        yield Firm(hf, clock, people, channel, await hf.holds())
