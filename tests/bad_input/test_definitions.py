"""Flows that cannot be: every slip is reported at once, with its place and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Retry, quorum
from holdfast.errors import FlowInvalidError
from tests.bad_input.messages import assert_told

pytestmark = pytest.mark.anyio


@dataclass
class Order:
    amount: int = 0
    customer: str = ""


def line(*names: str, state: Any = Order) -> Flow:
    flow = Flow("order", state=state, effect="pure")
    for name in names:
        flow.node(id=name)(lambda s: None)
    return flow


def unknown_target(flow: Flow) -> None:
    flow.edge("a", "pai")


def unknown_source(flow: Flow) -> None:
    flow.edge("asses", "b")


def unknown_start(flow: Flow) -> None:
    flow.start("first")


def unknown_loop(flow: Flow) -> None:
    flow.loop("b", "nowhere", max=3)


def unknown_router_target(flow: Flow) -> None:
    flow.router("a", lambda s: "b", ["b", "cancle"])


def unknown_branch_arm(flow: Flow) -> None:
    flow.branch("a", lambda s: True, {True: "b", False: "refuse"})


def unknown_failure_route(flow: Flow) -> None:
    flow.node(id="pay", on_failure="route:nobody")(lambda s: None)


def same_name_twice(flow: Flow) -> None:
    flow.node(id="a")(lambda s: None)


PLACES: dict[str, tuple[Callable[[Flow], None], tuple[str, ...]]] = {
    "the target of an edge": (unknown_target, ("'pai'", "edge")),
    "the source of an edge": (unknown_source, ("'asses'", "edge")),
    "the start": (unknown_start, ("'first'",)),
    "the target of a loop": (unknown_loop, ("'nowhere'",)),
    "a target of a router": (unknown_router_target, ("'cancle'",)),
    "an arm of a branch": (unknown_branch_arm, ("'refuse'",)),
    "the route of a failure": (unknown_failure_route, ("'nobody'", "node 'pay'")),
    "a node of the same name": (same_name_twice, ("'a'",)),
}


@pytest.mark.covers("CORE-BAD-01", "CORE-BAD-02")
@pytest.mark.parametrize("where", list(PLACES))
async def test_flow_is_refused_when_a_name_is_unknown(hf: Holdfast, where: str) -> None:
    slip, parts = PLACES[where]
    flow = line("a", "b")
    flow.edge("a", "b")
    slip(flow)
    with pytest.raises(FlowInvalidError) as caught:
        await flow.run({}, on=hf)
    assert_told(str(caught.value), "flow 'order'", *parts)
    assert [problem for problem in caught.value.facts["problems"] if problem.severity == "error"]  # type: ignore[attr-defined]


@pytest.mark.covers("CORE-BAD-04")
async def test_flow_is_refused_when_a_cycle_has_no_cap(hf: Holdfast) -> None:
    flow = line("draft", "review", "publish")
    flow.start("draft")
    flow.chain("draft", "review", "publish")
    flow.edge("review", "draft", when="amount > 3")
    with pytest.raises(FlowInvalidError) as caught:
        await flow.run({}, on=hf)
    assert_told(str(caught.value), "draft", "review", "loop(")
    assert "publish" not in str(caught.value)


@pytest.mark.covers("CORE-BAD-04")
@pytest.mark.parametrize("cap", [0, -1])
async def test_flow_is_refused_when_the_cap_of_a_loop_is_none(hf: Holdfast, cap: int) -> None:
    flow = line("draft", "review")
    flow.start("draft")
    flow.edge("draft", "review")
    flow.loop("review", "draft", max=cap)
    with pytest.raises(FlowInvalidError) as caught:
        await flow.run({}, on=hf)
    assert_told(str(caught.value), "review->draft")


SLIPS: dict[str, tuple[Callable[[Flow], Any], tuple[str, ...]]] = {
    "a condition": (lambda f: f.edge("a", "b", when="amount >"), ("'a->b'", "column")),
    "a condition with a call": (lambda f: f.edge("a", "b", when="len(customer) > 3"), ("'a->b'", "column")),
    "a template": (lambda f: f.hold("ask", prompt="Refund {{amount?"), ("'ask'", "never closed")),
    "a template with code": (lambda f: f.hold("ask", prompt="{{amount * 2}}"), ("'ask'", "expected a path")),
    "an idempotency key": (
        lambda f: f.node(id="pay", effect="external", idempotency_key="k-{{ordre}}")(lambda s: None),
        ("'pay'", "'ordre'"),
    ),
    "a timeout": (lambda f: f.node(id="slow", timeout="soon")(lambda s: None), ("'slow'", "'soon'", "30m")),
    "a negative timeout": (lambda f: f.node(id="slow", timeout=-5)(lambda s: None), ("'slow'", "negative")),
    "a retry's delay": (
        lambda f: f.node(id="slow", retry=Retry(delay="1 parsec"))(lambda s: None),
        ("'slow'", "retry delay", "1 parsec"),
    ),
    "the timeout of a hold": (
        lambda f: f.hold("ask", prompt="?", timeout="P1M"),
        ("'ask'", "no fixed length"),
    ),
    "an effect": (
        lambda f: f.node(id="slow", effect="harmless")(lambda s: None),
        ("'slow'", "'harmless'", "pure"),
    ),
    "a quorum": (lambda f: f.node(id="slow", join=quorum(0))(lambda s: None), ("'slow'",)),
    "an option": (lambda f: f.hold("ask", prompt="?", options=[17]), ("'ask'", "17", "option")),
    "options of the same id": (lambda f: f.hold("ask", prompt="?", options=["y", "y"]), ("'ask'", "y")),
    "a handler's parameters": (
        lambda f: f.node(id="slow")(lambda one, two, three: None),
        ("'slow'", "cannot be called"),
    ),
}


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize("what", list(SLIPS))
async def test_flow_is_refused_with_the_place_when_something_cannot_be_read(hf: Holdfast, what: str) -> None:
    slip, parts = SLIPS[what]
    flow = line("a", "b")
    slip(flow)
    with pytest.raises(FlowInvalidError) as caught:
        await flow.run({}, on=hf)
    assert_told(str(caught.value), *parts)


async def test_every_slip_is_reported_when_there_are_several(hf: Holdfast) -> None:
    flow = line("a", "b")
    for slip, _ in SLIPS.values():
        slip(flow)
    flow.edge("a", "pai")
    with pytest.raises(FlowInvalidError) as caught:
        await flow.run({}, on=hf)
    assert_told(
        str(caught.value), "'pai'", "'soon'", "1 parsec", "'harmless'", "never closed", "column", "17"
    )


async def test_nothing_is_stored_when_a_flow_is_refused(hf: Holdfast) -> None:
    from holdfast.store.rows import RunFilter

    flow = line("a")
    flow.edge("a", "b")
    for _ in range(2):
        with pytest.raises(FlowInvalidError):
            await flow.run({}, on=hf)
    assert await (await hf.service()).list(RunFilter()) == []
