"""Enums and records of a flow's own types mean on a cluster what they mean to the built-in workers: the
workflow, which has no code of the flow, decides conditions and renders questions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, IntEnum, IntFlag, StrEnum

import msgspec
import pytest

pytest.importorskip("temporalio")

from holdfast import Flow, Holdfast
from holdfast.checkpoint.registry import TypeRegistry
from holdfast.drivers.temporal.payloads import RecordRegistry, Wire, enums_of
from tests.deadlines import HANG
from tests.temporal.runs import assert_same, run, settled, workers

pytestmark = pytest.mark.anyio


class Tier(StrEnum):
    gold = "G"


class Size(str, Enum):  # noqa: UP042  (its text is another one than that of a StrEnum)
    small = "S"


class Level(IntEnum):
    low = 1


class Rights(IntFlag):
    read = 1
    write = 2


class Colour(Enum):
    red = (255, 0, 0)


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int = 3


@dataclass(frozen=True)
class Customer:
    name: str
    size: Size = Size.small
    since: date = date(2020, 1, 2)


@dataclass
class Cart:
    customers: tuple[Customer, ...]
    paid: list[None] = field(default_factory=list)


@dataclass
class Order:
    customer: Customer = field(default_factory=lambda: Customer("Ann"))
    tier: Tier = Tier.gold
    size: Size = Size.small
    level: Level = Level.low
    rights: Rights = Rights.read | Rights.write
    colour: Colour = Colour.red
    point: Point = field(default_factory=lambda: Point(1))
    decision: str = ""
    way: str = ""


def kinds() -> Flow[Order]:
    flow = Flow("kinds", state=Order)

    @flow.node(effect="pure")
    async def begin(s: Order) -> None: ...

    shown = {
        name: f"{{{{{name}}}}}" for name in Order.__dataclass_fields__ if name not in ("decision", "way")
    }
    # What it has for JSON is known to its code alone.
    plain = {name: text for name, text in shown.items() if name != "colour"}
    ask = flow.hold("ask", prompt=" ".join(shown.values()), context=plain, options=["yes"])

    @flow.node(effect="pure")
    async def equal(s: Order) -> dict[str, str]:
        return {"way": "equal"}

    @flow.node(effect="pure")
    async def different(s: Order) -> dict[str, str]:
        return {"way": "different"}

    flow.edge(begin, ask)
    is_equal = "tier == 'G' && size == 'S' && level > 0 && customer.size in ['S'] && rights > 2"
    flow.edge(ask, equal, when=is_equal)
    flow.edge(ask, different, otherwise=True)
    return flow


@pytest.mark.covers("TD-6", "TD-45")
async def test_enums_and_records_are_compared_and_shown_as_by_the_built_in_workers(
    sqlite: str, engine: str
) -> None:
    flow, seen = kinds(), list[tuple[str, object, str]]()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf, Order())
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        done = await settled(flow, hf, waiting.run_id)
        seen.append((waiting.holds[0].prompt, waiting.holds[0].context, done.state.way))
        await assert_same(hf, waiting.run_id)
    async with Holdfast("memory:") as here:
        waiting = await flow.run(Order(), on=here)
        await (await here.service()).answer(waiting.holds[0].id, "yes")
        done = await flow.resume(waiting.run_id, on=here)
        seen.append((waiting.holds[0].prompt, waiting.holds[0].context, done.state.way))
    assert seen[0] == seen[1]
    assert seen[0][2] == "equal"
    assert "object at" not in seen[0][0]


@pytest.mark.covers("TD-20")
async def test_doubt_about_an_item_names_it_with_its_value(sqlite: str, engine: str) -> None:
    flow = Flow("paying", state=Cart)

    async def pay(item: Customer) -> None:
        await asyncio.sleep(HANG)

    flow.map("each", over="customers", body=pay, into="paid", effect="external", timeout=0.2)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf, Cart((Customer("Ann"), Customer("Bob"))))
        async with asyncio.timeout(HANG):
            while len(holds := await (await hf.service()).holds(waiting.run_id)) < 2:
                await (await hf.open()).wait_change(0.1)
        facts = [msgspec.json.decode(hold.context) for hold in holds]
        assert {each["place"]: each["item"]["name"] for each in facts} == {"each[0]": "Ann", "each[1]": "Bob"}
        asked = sorted(hold.prompt for hold in holds)
        what = '{"name":"Bob","since":"2020-01-02","size":"S"}'
        assert asked[1].startswith(f"Did node 'each[1]' (item {what}) take effect?")
        await assert_same(hf, waiting.run_id)


def test_enum_is_made_again_with_its_members_and_stored_as_the_same_bytes() -> None:
    known = TypeRegistry(Tier, Size, Level, Rights, Colour)
    there = RecordRegistry(enums_of(known))
    values = (Tier.gold, Size.small, Level.low, Rights.read | Rights.write, Colour.red)
    raw = Wire(known).dump(values)
    read = Wire(there).read(raw)
    assert read[:4] == (Tier.gold, Size.small, Level.low, 3)
    # Its members are no plain data: they are compared with each other alone.
    assert read[4] == Wire(there).read(Wire(known).dump(Colour.red))
    assert [f"{each}" for each in read[:3]] == [f"{each}" for each in values[:3]]
    assert Wire(there).dump(read) == raw
