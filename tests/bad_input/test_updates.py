"""What handlers and routers do to the state that they may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Outcome, Violation
from holdfast.errors import ExpressionError, InputError, RoutingError, StateError, StateMutationError
from tests.bad_input.messages import assert_failed, assert_refused, assert_told

pytestmark = pytest.mark.anyio


@dataclass
class Order:
    amount: int = 0
    items: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


def flow_of(work: Callable[..., Any], **options: Any) -> Flow:
    flow = Flow("order", state=Order, effect="pure")
    flow.node(id="work", **options)(work)
    return flow


UPDATES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "an unknown field": ({"amuont": 4}, ("'amuont'", "did you mean 'amount'?")),
    "text for a number": ({"amount": "four"}, ("'amount'", "expected `int`", "got `str`")),
    "a number for a list": ({"items": 4}, ("'items'", "expected `array`")),
    "a wrong item": ({"items": ["a", 5]}, ("'items'", "expected `str`")),
    "a name that is no text": ({5: 4}, ("5",)),
}


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize("what", list(UPDATES))
async def test_node_fails_when_its_update_does_not_fit(hf: Holdfast, what: str) -> None:
    update, parts = UPDATES[what]
    result = await flow_of(lambda s: update).run({"amount": 7}, on=hf)
    assert_failed(result, "work", StateError, *parts)
    assert result.state.amount == 7


async def test_input_is_refused_with_every_reason_when_it_does_not_fit(hf: Holdfast) -> None:
    with pytest.raises(StateError) as caught:
        await flow_of(lambda s: None).run({"amount": "four", "itmes": []}, on=hf)
    assert_refused(caught.value, "'amount'", "'itmes'", "did you mean 'items'?")
    with pytest.raises(StateError) as caught:
        await flow_of(lambda s: None).run([1, 2], on=hf)
    assert_refused(caught.value, "list", "Order")


def assign(s: Order) -> None:
    s.amount = 5


def assign_async(s: Order) -> None:
    s.items = ["a"]


def add(s: Order) -> None:
    s.items.append("a")


def put(s: Order) -> None:
    s.tags["a"] = "b"


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize("mutate", [assign, assign_async, add, put])
@pytest.mark.parametrize("is_async", [True, False])
async def test_node_fails_when_it_changes_the_state_in_place(
    hf: Holdfast, mutate: Callable[[Order], None], is_async: bool
) -> None:
    async def work(s: Order) -> None:
        mutate(s)

    result = await flow_of(work if is_async else mutate).run({"items": ["x"], "tags": {"k": "v"}}, on=hf)
    assert_failed(result, "work", StateMutationError, "return")
    assert (result.state.amount, result.state.items, result.state.tags) == (0, ["x"], {"k": "v"})


async def test_list_of_the_caller_is_untouched_when_a_node_returns_it_and_changes_it(hf: Holdfast) -> None:
    mine = ["a"]
    flow = flow_of(lambda s: {"items": mine})

    def later(s: Order) -> dict[str, Any]:
        mine.append("b")
        return {"amount": len(s.items)}

    flow.node(id="later")(later)
    flow.edge("work", "later")
    result = await flow.run({}, on=hf)
    assert result.completed
    assert (result.state.items, result.state.amount) == (["a"], 1)


@pytest.mark.covers("CORE-BAD-01")
@pytest.mark.parametrize("choice", ["pai", 5, ["b", "pai"], {"b": 1}])
async def test_run_fails_when_a_router_names_an_unknown_target(hf: Holdfast, choice: Any) -> None:
    flow = flow_of(lambda s: {"amount": 1})
    flow.node(id="b")(lambda s: None)
    flow.router("work", lambda s: choice, ["b"])
    result = await flow.run({}, on=hf)
    assert_failed(result, "work", RoutingError, "'work'", "may choose", "'b'")


async def test_run_fails_when_a_branch_has_no_arm_for_the_key(hf: Holdfast) -> None:
    flow = flow_of(lambda s: None)
    flow.node(id="b")(lambda s: None)
    flow.branch("work", lambda s: "third", {"first": "b", "second": "b"})
    assert_failed(await flow.run({}, on=hf), "work", RoutingError, "'third'", "'first'", "'second'")


OUTCOMES: dict[str, tuple[Outcome, type[InputError]]] = {
    "a status that is no text": (Outcome(status=5), InputError),  # type: ignore[arg-type]
    "a label that is no text": (Outcome(label=5), InputError),  # type: ignore[arg-type]
    "one text for a list of suggestions": (Outcome(suggested="b"), InputError),
    "a suggestion that is no text": (Outcome(suggested=[5]), InputError),  # type: ignore[list-item]
    "an update that is no mapping": (Outcome(update=[1]), StateError),  # type: ignore[arg-type]
    "an update that does not fit": (Outcome(update={"amount": "x"}), StateError),
}


@pytest.mark.parametrize("what", list(OUTCOMES))
async def test_node_fails_when_its_outcome_means_nothing(hf: Holdfast, what: str) -> None:
    outcome, kind = OUTCOMES[what]
    assert_failed(await flow_of(lambda s: outcome).run({}, on=hf), "work", kind)


@pytest.mark.covers("CORE-BAD-20")
async def test_effect_does_not_happen_when_its_idempotency_key_cannot_be_made(hf: Holdfast) -> None:
    paid: list[int] = []
    flow = Flow("order")

    @flow.node(effect="external", idempotency_key="pay-{{order.id}}")
    async def pay(_s: Any, _ctx: Context) -> None:
        paid.append(1)

    result = await flow.run({"order": {}}, on=hf)
    assert_failed(
        result, "pay", ExpressionError, "idempotency key of node 'pay'", "{{order.id}}", "it has no value"
    )
    assert paid == []
    mended = await flow.resume(result.run_id, patch={"scratch": {"order": {"id": "A17"}}}, on=hf)
    assert mended.completed
    assert paid == [1]


async def test_map_fails_when_there_is_no_list_to_go_over(hf: Holdfast) -> None:
    flow = Flow("order", effect="pure")
    flow.map("each", over="items", body=lambda item: item, into="found")
    for given, problem in (({}, "has no value"), ({"items": 5}, "not a list")):
        result = await flow.run(given, on=hf)
        assert result.failed_node == "each"
        assert result.error is not None
        assert_told(result.error.message, "'each'", "'items'", problem)


COMBINED: dict[str, tuple[str, Any, Any]] = {
    "a list added to a number": ("append", 5, ["x"]),
    "a number added to a text": ("sum", "a", 1),
    "a text against a number": ("max", 1, "z"),
    "the mean of a text": ("avg", 1, "z"),
}


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize("what", list(COMBINED))
async def test_node_fails_when_a_reducer_cannot_combine_its_update(hf: Holdfast, what: str) -> None:
    reducer, old, new = COMBINED[what]
    flow = Flow("sums", effect="pure", reducers={"total": reducer})
    flow.node(id="add")(lambda s: {"total": new})
    result = await flow.run({"total": old}, on=hf)
    assert_failed(result, "add", StateError, "'total'")
    assert result.state["total"] == old


async def test_node_fails_when_a_reducer_cannot_combine_its_artifact(hf: Holdfast) -> None:
    flow = Flow("sums", effect="pure", reducers={"artifacts.total": "sum"})
    flow.node(id="one")(lambda s, ctx: ctx.artifact("total", "x"))
    flow.node(id="two")(lambda s, ctx: ctx.artifact("total", 1))
    flow.edge("one", "two")
    assert_failed(await flow.run({}, on=hf), "two", StateError, "'total'")


async def test_node_fails_when_its_own_reducer_raises(hf: Holdfast) -> None:
    def broken(_old: Any, _new: Any) -> Any:
        raise ZeroDivisionError("in the reducer")

    flow = Flow("sums", effect="pure", reducers={"total": broken})
    flow.node(id="add")(lambda s: {"total": 1})
    result = await flow.run({"total": 1}, on=hf)
    assert (result.failed_node, result.error and result.error.type) == ("add", "ZeroDivisionError")


ODD_BUT_FINE = [{1: 2}, {(1, 2): {3: "x"}}, 1 + 2j, frozenset({1}), b"\xff\x00", 10**5000, [10**30, {1: 1}]]


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize("value", ODD_BUT_FINE, ids=lambda value: type(value).__name__)
async def test_question_is_asked_when_the_state_holds_what_json_does_not_know(
    hf: Holdfast, value: Any
) -> None:
    flow = Flow("asking", effect="pure")
    flow.hold(
        "ask",
        prompt="About {{it}}",
        context={"it": "{{it}}", "all": "x{{it}}"},
        options=["y"],
    )
    waiting = await flow.run({"it": value}, on=hf)
    (hold,) = waiting.holds
    assert hold.prompt.startswith("About ")
    await (await hf.service()).answer(hold.id, "y")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.completed
    assert result.state["it"] == value


async def test_node_fails_when_its_guardrail_puts_nonsense_instead(hf: Holdfast) -> None:
    flow = Flow("guarded", effect="pure")

    @flow.guardrail(on_violation="sanitize")
    async def clean(_s: Any) -> Violation:
        return Violation("no", replace=["not", "fields"])  # type: ignore[arg-type]

    assert_failed(await flow.run({}, on=hf), "clean", StateError, "'clean'", "not a mapping")
