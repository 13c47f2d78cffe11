"""The way a flow is written in Python, and what it lowers to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import pytest

from holdfast.errors import FlowInvalidError
from holdfast.frontends.python import FlowBuilder, Retry, all_of, any_of, quorum
from holdfast.model.graph import END, START, EdgeKind, InDoubt, JoinKind, NodeKind
from holdfast.model.reducer_marks import append
from holdfast.types.status import Effect


class Context:
    """Stands for the real one, which is known by its name."""


@dataclass
class Refund:
    order_id: str
    customer: str
    amount: int
    risk: float | None = None
    receipt: str | None = None


def refund_flow() -> FlowBuilder:
    refund = FlowBuilder("refund", state=Refund)

    @refund.node(effect="read")
    async def assess(s: Refund) -> dict:
        return {"risk": 0.5}

    approve = refund.hold(
        "approve",
        prompt="Refund {{amount}} to {{customer}}?",
        options=["approve", "reject"],
        assignee="group:finance",
        timeout="2d",
        on_timeout="escalate:role:cfo",
    )

    @refund.node(effect="external", idempotency_key="refund-{{order_id}}", retry=Retry(3))
    async def pay(s: Refund, ctx: Context) -> dict:
        return {"receipt": "r-1"}

    refund.start(assess)
    refund.edge(assess, approve, when="amount > 100")
    refund.edge(assess, pay, otherwise=True)
    refund.edge(approve, pay, when="decision == 'approve'")
    return refund


def edges(flow: FlowBuilder) -> dict[str, EdgeKind]:
    return {edge.id: edge.kind for edge in flow.compile().graph.edges}


@pytest.mark.covers("CORE-FLOW-01")
def test_flow_lowers_the_example_of_the_design_without_a_problem():
    flow = refund_flow()
    program = flow.compile()
    assert flow.problems() == []
    assert [node.id for node in program.graph.nodes] == ["assess", "approve", "pay"]
    assert edges(flow) == {
        "assess->approve": EdgeKind.when,
        "assess->pay": EdgeKind.otherwise,
        "approve->pay": EdgeKind.when,
    }
    assert program.graph.spec.start == ("assess",)
    hold = program.graph.nodes[1].hold
    assert hold is not None
    assert (hold.timeout, hold.on_timeout) == (2 * 86_400_000_000, "escalate:role:cfo")
    assert hold.options is not None
    assert next((o.id, o.label, o.variant) for o in hold.options) == ("approve", "approve", "secondary")
    pay = program.graph.nodes[2]
    assert (pay.retry.attempts, pay.idempotency_key) == (3, "refund-{{order_id}}")
    assert program.handlers["pay"].takes == ("state", "ctx")


def test_node_stays_callable_as_the_plain_function():
    flow = FlowBuilder("plain")

    @flow.node(effect="pure")
    def double(s):
        """Twice."""
        return {"n": s["n"] * 2}

    @flow.node
    async def later(s):
        return s

    assert double({"n": 2}) == {"n": 4}
    assert asyncio.run(later(3)) == 3
    assert (double.id, double.__name__, double.__doc__) == ("double", "double", "Twice.")
    assert double == "double"


@pytest.mark.parametrize(
    ("fn", "takes"),
    [
        (lambda: None, ()),
        (lambda s: None, ("state",)),
        (lambda ctx: None, ("ctx",)),
        (lambda ctx, s: None, ("ctx", "state")),
        (lambda s, ctx, extra=1: None, ("state", "ctx")),
    ],
)
def test_handler_takes_what_its_parameters_name(fn, takes):
    flow = FlowBuilder("takes")
    flow.node(id="n", effect="pure")(fn)
    assert flow.compile().handlers["n"].takes == takes


def test_context_is_known_by_its_annotation():
    flow = FlowBuilder("takes")

    @flow.node(effect="pure")
    def n(state, where: Context):
        return None

    assert flow.compile().handlers["n"].takes == ("state", "ctx")


def test_handler_knows_whether_it_is_a_coroutine():
    flow = FlowBuilder("kinds", effect="pure")

    @flow.node
    def a():
        return None

    @flow.node
    async def b():
        return None

    flow.chain(a, b)
    handlers = flow.compile().handlers
    assert (handlers["a"].is_async, handlers["b"].is_async) == (False, True)


def test_policies_are_lowered_with_durations_in_microseconds():
    flow = FlowBuilder("policies", effect="pure")

    @flow.node(
        timeout="30s",
        retry=Retry(4, backoff="linear", delay="250ms", cap="5s", jitter=0.2, retry_on=[OSError, "busy"]),
        on_failure="skip",
        checkpoint="both",
        output_as="report",
        memory="snapshot",
    )
    def work(s):
        return None

    program = flow.compile()
    node = program.graph.nodes[0]
    assert node.timeout == 30_000_000
    assert (node.retry.attempts, node.retry.delay, node.retry.cap) == (4, 250_000, 5_000_000)
    assert node.retry.retry_on == ("class:OSError", "busy")
    assert program.handlers["work"].retry_on == (OSError,)
    assert (node.on_failure, node.checkpoint, node.output_as, node.memory) == (
        "skip",
        "both",
        "report",
        "snapshot",
    )


def test_joins_are_lowered_from_names_and_from_helpers():
    flow = FlowBuilder("joins", effect="pure")
    for name in ("a", "b", "c"):
        flow.node(id=name)(lambda: None)
    for name, join in {
        "all": all_of(timeout="1m"),
        "any": "any",
        "first": any_of(cancel_losers=True),
        "two": quorum(2, timeout="5s", cancel_losers=True),
    }.items():
        target = flow.node(id=name, join=join)(lambda: None)
        for source in ("a", "b", "c"):
            flow.edge(source, target)
    joins = {node.id: node.join for node in flow.compile().graph.nodes}
    assert joins["a"].kind is JoinKind.all
    assert (joins["all"].kind, joins["all"].timeout) == (JoinKind.all, 60_000_000)
    assert joins["any"].kind is JoinKind.any
    assert joins["first"].cancel_losers
    assert (joins["two"].kind, joins["two"].count, joins["two"].timeout) == (JoinKind.quorum, 2, 5_000_000)


def test_undeclared_nodes_have_the_class_that_the_flow_sets():
    flow = FlowBuilder("classes", effect="read")
    flow.node(id="plain")(lambda: None)
    flow.node(id="told", effect="write")(lambda: None)
    hold = flow.hold("ask", prompt="?")
    flow.chain("plain", "told", hold)
    classes = {node.id: node.effect for node in flow.compile().graph.nodes}
    assert classes == {"plain": Effect.read, "told": Effect.write, "ask": Effect.human}


def test_probe_makes_itself_the_in_doubt_policy():
    def was_sent():
        return True

    flow = FlowBuilder("doubt")
    flow.node(id="send", probe=was_sent)(lambda: None)
    program = flow.compile()
    assert program.graph.nodes[0].in_doubt is InDoubt.probe
    assert program.handlers["send"].probe is was_sent


def test_router_gives_each_target_an_edge_and_looks_up_handles_and_ids():
    flow = FlowBuilder("routes", effect="pure")
    a, b, c = (flow.node(id=name)(lambda: None) for name in "abc")
    flow.router(a, lambda s: [b, c], targets=[b, "c", END])
    program = flow.compile()
    (router,) = program.routers["a"]
    assert router.choices == {None: (), "b": ("a->b",), "c": ("a->c",), END: (f"a->{END}",)}
    assert router.choices[b] == ("a->b",)
    assert not router.boolean
    assert set(edges(flow).values()) == {EdgeKind.chosen}


def test_branch_shares_one_edge_between_keys_of_the_same_arm():
    flow = FlowBuilder("arms", effect="pure")
    a, b, c = (flow.node(id=name)(lambda: None) for name in "abc")
    flow.branch(a, lambda s: 1, {1: b, 2: b, "x": c})
    (router,) = flow.compile().routers["a"]
    assert router.choices == {1: ("a->b",), 2: ("a->b",), "x": ("a->c",)}


def test_callable_condition_becomes_a_boolean_router_of_its_edge():
    flow = FlowBuilder("conditions", effect="pure")
    a, b = (flow.node(id=name)(lambda: None) for name in "ab")
    flow.edge(a, b, when=lambda s, ctx: s["n"] > 1)
    program = flow.compile()
    (router,) = program.routers["a"]
    assert router.boolean
    assert router.choices[True] == ("a->b",)
    assert router.takes == ("state", "ctx")


def test_loop_edge_serves_its_cap():
    flow = FlowBuilder("loop", effect="pure")
    a, b = (flow.node(id=name)(lambda: None) for name in "ab")
    flow.chain(a, b)
    flow.loop(b, a, when="n < 3", max=5, on_limit="continue")
    loop = flow.compile().graph.edges[1]
    assert (loop.loop, loop.on_limit, loop.kind) == (5, "continue", EdgeKind.when)
    assert flow.compile().graph.spec.start == ("a",)


def test_failure_route_reroute_and_timeout_branch_become_edges():
    flow = FlowBuilder("ways", effect="pure")
    flow.node(id="work", on_failure="route:repair")(lambda: None)
    flow.node(id="repair")(lambda: None)

    @flow.guardrail(on_violation="reroute", reroute="repair")
    def safe(s):
        return None

    flow.hold("ask", prompt="?", timeout="1h", on_timeout="branch:repair")
    flow.chain("work", safe, "ask")
    kinds = edges(flow)
    assert kinds["work->repair:failed"] is EdgeKind.failure
    assert kinds["safe->repair:rerouted"] is EdgeKind.chosen
    assert kinds["ask->repair:expired"] is EdgeKind.chosen


def test_map_over_a_function_is_a_graph_of_one_node_that_takes_the_item():
    flow = FlowBuilder("fan", effect="pure")

    async def fetch(item, ctx):
        return item

    flow.map("each", over="urls", body=fetch, into="pages", concurrency=3, effect="read", timeout="5s")
    program = flow.compile()
    node = program.graph.nodes[0]
    assert node.kind is NodeKind.map
    assert node.map is not None
    assert (node.map.body, node.map.concurrency) == ("each.item", 3)
    child = program.children["each.item"]
    assert child.handlers["fetch"].takes == ("item", "ctx")
    assert (child.graph.nodes[0].effect, child.graph.nodes[0].timeout) == (Effect.read, 5_000_000)
    assert program.at("each.item") is child


def test_subflow_brings_its_graph_types_and_code():
    flow = FlowBuilder("outer", effect="pure")
    flow.subflow(
        "refund",
        refund_flow(),
        inputs={"order_id": "id", "customer": "who", "amount": "sum"},
        outputs={"receipt": "state.receipt"},
    )
    program = flow.compile()
    assert program.graph.spec.subgraphs[0].name == "refund"
    assert program.code["refund/pay"] == program.children["refund"].code["pay"]
    assert "receipt" in program.schema.fields  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [lambda: 1, lambda ctx: 1, lambda item: 1])
def test_map_over_a_function_is_known_as_the_body_of_an_item_whatever_it_takes(body):
    flow = FlowBuilder("fan", effect="pure")
    flow.map("each", over="urls", body=body, into="pages")
    program = flow.compile()
    assert (program.is_item, program.children["each.item"].is_item) == (False, True)


def test_flow_starts_at_every_node_without_incoming_edges_when_start_is_not_called():
    flow = FlowBuilder("starts", effect="pure")
    a, b, c = (flow.node(id=name)(lambda: None) for name in "abc")
    flow.edge(a, c)
    flow.edge(b, c)
    assert flow.compile().graph.spec.start == ("a", "b")


def test_edge_from_the_start_is_a_start():
    flow = FlowBuilder("starts", effect="pure")
    a, b = (flow.node(id=name)(lambda: None) for name in "ab")
    flow.edge(START, a)
    flow.chain(a, b, END)
    assert flow.compile().graph.spec.start == ("a",)


def test_second_edge_between_two_nodes_gets_an_id_of_its_own():
    flow = FlowBuilder("twice", effect="pure")
    a, b = (flow.node(id=name)(lambda: None) for name in "ab")
    flow.edge(a, b, when="x > 1")
    flow.edge(a, b, when="y > 1")
    assert list(edges(flow)) == ["a->b", "a->b#2"]


def test_compile_answers_the_same_program_until_something_is_declared():
    flow = FlowBuilder("cache", effect="pure")
    a = flow.node(id="a")(lambda: None)
    first = flow.compile()
    assert flow.compile() is first
    flow.chain(a, flow.node(id="b")(lambda: None))
    assert [node.id for node in flow.compile().graph.nodes] == ["a", "b"]


@pytest.mark.covers("CORE-FLOW-05")
def test_reducers_come_from_the_state_and_from_the_flow():
    @dataclass
    class Notes:
        log: Annotated[list[str], append]

    typed = FlowBuilder("typed", Notes, effect="pure", reducers={"artifacts.report": "concat"})
    typed.node(id="a")(lambda: None)
    free = FlowBuilder("free", effect="pure", reducers={"log": append})
    free.node(id="a")(lambda: None)
    assert typed.compile().graph.spec.reducers == {"log": "append", "artifacts.report": "concat"}
    assert free.compile().schema.ops({"log": "x"}, {}) == [("scratch", "log", "append", "x")]


@pytest.mark.covers("CORE-VALID-01")
def test_compile_lists_every_error_at_once():
    flow = FlowBuilder("broken", mode="fast")
    flow.node(id="a", timeout="soon", retry=Retry(0), effect="loud")(lambda one, two: None)
    flow.edge("a", "missing")
    with pytest.raises(FlowInvalidError) as caught:
        flow.compile()
    rules = {problem.rule for problem in caught.value.facts["problems"]}
    assert {"duration", "retry-attempts", "effect", "signature", "edge-target", "mode"} <= rules
    for rule in rules - {"effect-undeclared"}:
        assert f"[{rule}]" in str(caught.value)
