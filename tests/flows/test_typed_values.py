"""What no handler returned (answers, results of maps and sub-flows, inputs of children) fits the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import pytest

from holdfast import Flow, Holdfast, Result, RunStatus
from tests.flows.conftest import node
from tests.flows.places import Place, answer

pytestmark = [pytest.mark.anyio, pytest.mark.covers("G-10")]


async def assert_misfit(hf: Holdfast, result: Result, at: str, *words: str) -> None:
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert (result.error.code, result.error.type, result.failed_node) == ("state_mismatch", "StateError", at)
    for word in words:
        assert word in result.error.message
    replayed = await (await hf.service()).replay(result.run_id)
    assert replayed.same, replayed.difference


@dataclass
class Verdict:
    decision: Literal["yes", "no"] | None = None


async def test_node_fails_when_the_answer_to_a_hold_does_not_fit_its_field(hf: Holdfast) -> None:
    flow = Flow("asks", state=Verdict, effect="pure")
    flow.hold("ask", prompt="Well?", type="freeform")
    node(flow, "after")
    flow.edge("ask", "after")
    waiting = await flow.run({}, on=hf)
    await answer(hf, waiting, "perhaps")
    result = await flow.resume(waiting.run_id, on=hf)
    await assert_misfit(hf, result, "ask", "the answer to 'ask' does not fit", "decision", "perhaps")
    fits = await flow.run({}, on=hf)
    await answer(hf, fits, "yes")
    result = await flow.resume(fits.run_id, on=hf)
    assert result.completed
    assert (await (await hf.service()).replay(result.run_id)).same


@dataclass
class Counts:
    items: list[Any] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    total: int = 0


def mapping(result: Any, **options: Any) -> Flow:
    flow = Flow("maps", state=Counts, effect="pure")
    flow.map("each", over="items", body=lambda item: result, into="out", **options)
    return flow


async def test_map_fails_when_its_results_do_not_fit_their_field(hf: Holdfast) -> None:
    result = await mapping("text").run({"items": [1, 2]}, on=hf)
    await assert_misfit(hf, result, "each", "what the items of 'each' came to", "out")
    assert (await mapping(7).run({"items": [1, 2]}, on=hf)).state.out == [7, 7]


async def test_results_that_do_not_fit_take_the_way_of_the_failure(hf: Holdfast) -> None:
    flow = mapping("text", on_failure="route:mend")
    node(flow, "mend", {"total": -1})
    result = await flow.run({"items": [1]}, on=hf)
    assert result.completed
    assert result.state.total == -1
    assert (await (await hf.service()).replay(result.run_id)).same


def nesting(given: str, update: dict[str, Any]) -> Flow:
    child = Flow("child", state=Counts, effect="pure")
    node(child, "deep", update)
    flow = Flow("nests", effect="pure")
    flow.subflow("sub", child, inputs={"total": given}, outputs={"got": "state.total"})
    return flow


async def test_sub_flow_fails_when_its_input_does_not_fit_its_state(hf: Holdfast) -> None:
    result = await nesting("'many'", {}).run({}, on=hf)
    await assert_misfit(hf, result, "sub", "the input of 'sub' does not fit", "total")
    assert (await nesting("3", {}).run({}, on=hf)).state["got"] == 3


async def test_map_fails_when_an_item_does_not_fit_the_state_of_its_flow(hf: Holdfast) -> None:
    child = Flow("child", state=Counts, effect="pure")
    node(child, "deep", {"total": 1})
    flow = Flow("maps", effect="pure")
    node(flow, "a")
    flow.map("each", over="items", body=child, into="out")
    flow.edge("a", "each")
    result = await flow.run({"items": [{"total": 1}, {"total": "x"}]}, on=hf)
    await assert_misfit(hf, result, "each", "item 1 of 'each'", "total")


@dataclass
class Wants:
    got: int = 0


async def test_sub_flow_fails_when_what_it_gives_back_does_not_fit(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    node(child, "deep", {"total": "many"})
    flow = Flow("nests", state=Wants, effect="pure")
    flow.subflow("sub", child, inputs={}, outputs={"got": "state.total"})
    result = await flow.run({}, on=hf)
    await assert_misfit(hf, result, "sub", "what 'sub' came to", "got")


T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    city: str = ""


@dataclass(frozen=True)
class Box(Generic[T]):
    item: T | None = None


@dataclass
class Shipment:
    box: Box[Address] = field(default_factory=Box)
    decision: str = ""


async def test_generic_record_is_kept_by_the_store(place: Place) -> None:
    flow = Flow("ships", state=Shipment, effect="pure")

    @flow.node
    def pack() -> dict[str, Any]:
        return {"box": Box(Address("Oslo"))}

    flow.hold("ask", prompt="To {{box.item.city}}?", options=["yes", "no"])
    flow.chain(pack, "ask")
    waiting = await flow.run({}, on=await place.hf())
    assert waiting.holds[0].prompt == "To Oslo?"
    await answer(await place.hf(), waiting, "yes")
    result = await flow.resume(waiting.run_id, on=await place.hf())
    assert result.expect().state == Shipment(Box(Address("Oslo")), "yes")
