"""Guards of nodes and edges: the same four things that a guardrail node does, around any node (G-29)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, FlowInvalidError, Guard, Holdfast, Result, RunStatus, Violation
from holdfast.model.graph import NodeKind
from tests.flows.conftest import node, visits_of
from tests.flows.places import Place, answer, told

pytestmark = pytest.mark.anyio

State = dict[str, Any]


def no_card(s: State) -> Violation | None:
    if "4111" in s.get("text", ""):
        return Violation("a card number", replace={"text": s["text"].replace("4111", "****")})
    return None


async def no_mail(s: State) -> Violation | None:
    if "@" in s.get("text", ""):
        return Violation("an address", replace={"text": s["text"].replace("@", " at ")})
    return None


def writer(log: list[str], **options: Any) -> Flow:
    """write -> publish, with `review` for what was refused."""
    flow = Flow("guarded", effect="pure")

    @flow.node(**options.get("write", {}))
    async def write(s: State) -> State:
        log.append("write")
        return {"text": s["draft"]}

    @flow.node(**options.get("publish", {}))
    async def publish(s: State) -> State:
        log.append(s["text"])
        return {"published": s["text"]}

    flow.edge(write, publish, **options.get("edge", {}))
    if options.get("review"):
        node(flow, "review", {"reviewed": True})
    return flow


def placed(where: str, **policy: Any) -> dict[str, Any]:
    """The same check before `publish`, behind `write` or on the edge between them."""
    return {
        "input": {"publish": {"guard": Guard(input=[no_card], **policy)}},
        "output": {"write": {"guard": Guard(output=[no_card], **policy)}},
        "edge": {"edge": {"guard": Guard(no_card, **policy)}},
    }[where]


RAILS = {"input": "publish__guard_input", "output": "write__guard_output", "edge": "write->publish__guard"}
everywhere = pytest.mark.parametrize("where", RAILS)
BAD, GOOD = {"draft": "card 4111"}, {"draft": "hello"}


async def notes(house: Holdfast, result: Result, name: str) -> dict[str, Any]:
    (done,) = [e for e in await told(house, result, "node.completed", "node.failed") if e.node == name]
    return done.data["notes"]


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-19")
async def test_a_guard_blocks_with_a_code_and_an_event_when_a_check_objects(
    house: Holdfast, where: str
) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where)).run(BAD, on=house)
    assert result.failed
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("guardrail_violation", "a card number")
    assert log == ["write"]
    (failed,) = await told(house, result, "node.failed")
    assert failed.node == RAILS[where]
    assert failed.data["notes"] == {
        "guardrail": RAILS[where], "passed": False, "action": "block", "reason": "a card number",
    }  # fmt: skip
    (ended,) = await told(house, result, "run.failed")
    assert ended.data["error"]["code"] == "guardrail_violation"


@everywhere
@pytest.mark.covers("G-29")
async def test_a_guard_lets_pass_what_no_check_objects_to(house: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where)).run(GOOD, on=house)
    assert result.completed
    assert log == ["write", "hello"]
    assert await notes(house, result, RAILS[where]) == {"guardrail": RAILS[where], "passed": True}


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-20")
async def test_a_guard_reroutes_when_a_check_objects(house: Holdfast, where: str) -> None:
    log: list[str] = []
    policy = placed(where, on_violation="reroute", reroute="review")
    result = await writer(log, review=True, **policy).run(BAD, on=house)
    assert result.completed
    assert log == ["write"]
    assert result.state["reviewed"] is True
    passed = await writer(log, review=True, **policy).run(GOOD, on=house)
    assert "reviewed" not in passed.state
    assert passed.state["published"] == "hello"


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-21")
async def test_a_guard_warns_and_goes_on_when_a_check_objects(house: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where, on_violation="warn")).run(BAD, on=house)
    assert result.completed
    assert log == ["write", "card 4111"]
    assert (await notes(house, result, RAILS[where]))["reason"] == "a card number"


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-22")
async def test_a_guard_replaces_what_it_objects_to_when_it_sanitizes(house: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where, on_violation="sanitize")).run(BAD, on=house)
    assert result.completed
    assert log == ["write", "card ****"]


async def test_checks_of_a_sanitizing_guard_see_what_those_before_them_replaced(house: Holdfast) -> None:
    log: list[str] = []
    guard = Guard(input=[no_card, no_mail], on_violation="sanitize")
    flow = writer(log, publish={"guard": guard})
    result = await flow.run({"draft": "4111 me@home"}, on=house)
    assert result.state["published"] == "**** me at home"


async def test_a_sanitizing_guard_fails_the_run_when_it_has_nothing_to_put_in_place(house: Holdfast) -> None:
    log: list[str] = []
    guard = Guard(input=[lambda s: Violation("bad")], on_violation="sanitize")
    result = await writer(log, publish={"guard": guard}).run(GOOD, on=house)
    assert result.error is not None
    assert result.error.code == "guardrail_violation"
    assert log == ["write"]


@pytest.mark.parametrize(
    ("policy", "reason"), [("block", "a card number"), ("warn", "a card number; an address")]
)
async def test_a_guard_tells_the_first_objection_or_as_a_warning_all(
    house: Holdfast, policy: str, reason: str
) -> None:
    guard = Guard(output=[no_card, no_mail], on_violation=policy)
    result = await writer([], write={"guard": guard}).run({"draft": "4111 me@home"}, on=house)
    assert (await notes(house, result, "write__guard_output"))["reason"] == reason


async def test_a_blocked_run_goes_on_from_the_check_when_it_is_resumed(house: Holdfast) -> None:
    log: list[str] = []
    allowed: list[bool] = []
    flow = writer(log, publish={"guard": Guard(input=[lambda: bool(allowed) or Violation("not yet")])})
    blocked = await flow.run(GOOD, on=house)
    assert blocked.failed
    allowed.append(True)
    result = await flow.resume(blocked.run_id, on=house)
    assert result.completed
    assert log == ["write", "hello"]


async def test_a_blocked_run_goes_on_in_a_fork_when_its_state_is_mended(house: Holdfast) -> None:
    log: list[str] = []
    flow = writer(log, **placed("input"))
    blocked = await flow.run(BAD, on=house)
    result = await flow.resume(blocked.run_id, patch={"scratch": {"text": "mended"}}, on=house)
    assert result.completed
    assert log == ["write", "mended"]


async def test_a_check_may_take_the_context_or_nothing(house: Holdfast) -> None:
    seen: list[str] = []

    async def by_context(ctx: Context) -> bool:
        seen.append(ctx.run_id)
        return True

    def by_nothing() -> None:
        seen.append("nothing")

    log: list[str] = []
    result = await writer(log, publish={"guard": Guard(input=[by_context, by_nothing])}).run(GOOD, on=house)
    assert result.completed
    assert seen == [result.run_id, "nothing"]


async def test_a_check_that_passed_is_not_asked_again_when_the_worker_dies_behind_it(place: Place) -> None:
    asked: list[str] = []
    log: list[str] = []
    guard = Guard(input=[lambda s: asked.append(s["text"])])
    flow = writer(log, publish={"guard": guard, "effect": "external"})
    run = await place.crash(flow, GOOD, "after_intent")
    house = await place.house()
    assert (await flow.resume(run, on=house)).status is RunStatus.pending_input
    await answer(house, run, "not_happened")
    result = await flow.resume(run, on=house)
    assert result.completed
    assert asked == ["hello"]
    assert log == ["write", "hello"]


# Around joins, loops, routers and other ways in.


def diamond(**join: Any) -> Flow:
    flow = Flow("diamond", effect="pure")
    for name in ("left", "right"):
        node(flow, name, {name: 1})
    node(flow, "begin")
    flow.edge("begin", "left")
    flow.edge("begin", "right")

    @flow.node(**join)
    async def meet(s: State) -> State:
        return {"sum": s.get("left", 0) + s.get("right", 0)}

    flow.edge("left", meet)
    flow.edge("right", meet)
    return flow


async def test_branches_meet_before_the_checks_of_a_guarded_join(house: Holdfast) -> None:
    seen: list[int] = []

    def both(s: State) -> None:
        seen.append(s["left"] + s["right"])

    result = await diamond(guard=Guard(input=[both], output=[both])).run(on=house)
    assert result.state["sum"] == 2
    assert seen == [2, 2]
    assert await visits_of(house, result.run_id, "meet__guard_input") == 1


async def test_the_join_policy_of_a_guarded_node_moves_to_its_checks(house: Holdfast) -> None:
    flow = diamond(guard=Guard(input=[lambda: True]), join="any")
    spec = flow.program().graph
    joins = {n.id: str(n.join.kind) for n in spec.nodes}
    assert (joins["meet__guard_input"], joins["meet"]) == ("any", "all")
    result = await flow.run(on=house)
    assert result.completed
    assert await visits_of(house, result.run_id, "meet") == 1


async def test_branches_behind_a_guarded_fork_merge_as_without_the_guard(house: Holdfast) -> None:
    flow = Flow("fork", effect="pure")
    node(flow, "begin", {"x": 0}, guard=Guard(output=[lambda: True]))
    node(flow, "left", {"x": 1})
    node(flow, "right", {"x": 2})
    node(flow, "meet")
    flow.edge("begin", "left")
    flow.edge("begin", "right")
    flow.edge("left", "meet", guard=Guard(lambda: True))
    flow.edge("right", "meet")
    result = await flow.run(on=house)
    assert result.state["x"] == 2  # the later in the flow's order, though its way is the shorter one


async def test_a_loop_passes_the_checks_of_its_nodes_in_every_round(house: Holdfast) -> None:
    flow = Flow("loop", effect="pure")
    seen: list[tuple[str, int]] = []

    def note(where: str) -> Any:
        return lambda s: seen.append((where, s["n"]))

    @flow.node(guard=Guard(input=[note("in")], output=[note("out")]))
    async def count(s: State) -> State:
        return {"n": s["n"] + 1}

    node(flow, "end", {"done": True})
    flow.loop(count, count, when="n < 3", max=5)
    flow.edge(count, "end", when="n >= 3")
    result = await flow.run({"n": 0}, on=house)
    assert result.state == {"n": 3, "done": True}
    assert seen == [("in", 0), ("out", 1), ("in", 1), ("out", 2), ("in", 2), ("out", 3)]


async def test_a_loop_stops_at_the_round_that_a_guard_blocks(house: Holdfast) -> None:
    flow = Flow("loop", effect="pure")

    @flow.node(guard=Guard(output=[lambda s: s["n"] < 2 or Violation("too many")]))
    async def count(s: State) -> State:
        return {"n": s["n"] + 1}

    node(flow, "again")
    node(flow, "end")
    flow.edge(count, "again", when="n < 9")
    flow.edge(count, "end", otherwise=True)
    flow.loop("again", count, max=20)
    result = await flow.run({"n": 0}, on=house)
    assert result.error is not None
    assert result.error.message == "too many"
    assert await visits_of(house, result.run_id, "count") == 2


@pytest.mark.parametrize("kind", ["router", "branch", "when"])
async def test_code_that_chooses_sees_the_state_that_a_guard_left(house: Holdfast, kind: str) -> None:
    flow = Flow("choose", effect="pure")
    guard = Guard(output=[no_card], on_violation="sanitize")
    node(flow, "write", {"text": "4111"}, guard=guard)
    node(flow, "clean", {"went": "clean"}, guard=Guard(input=[lambda: True]))
    node(flow, "dirty", {"went": "dirty"}, guard=Guard(input=[lambda: True]))

    def chosen(s: State) -> str:
        return "dirty" if "4111" in s["text"] else "clean"

    if kind == "router":
        flow.router("write", chosen, ["clean", "dirty"])
    elif kind == "branch":
        flow.branch("write", chosen, {"clean": "clean", "dirty": "dirty"})
    else:
        flow.edge("write", "clean", when=lambda s: chosen(s) == "clean", guard=Guard(lambda: True))
        flow.edge("write", "dirty", otherwise=True)
    result = await flow.run(on=house)
    assert result.state["went"] == "clean"


async def test_failure_routes_and_reroutes_land_on_the_checks_of_their_target(house: Holdfast) -> None:
    flow = Flow("ways", effect="pure")
    seen: list[str] = []
    node(flow, "repair", {"repaired": True}, guard=Guard(input=[lambda: seen.append("checked")]))

    @flow.node(on_failure="route:repair", guard=Guard(output=[lambda: seen.append("output")]))
    async def broken() -> None:
        raise ValueError("no")

    node(flow, "after", {"after": True})
    flow.edge(broken, "after")
    result = await flow.run(on=house)
    assert result.state == {"repaired": True}
    assert seen == ["checked"]

    other = Flow("rerouted", effect="pure")
    node(
        other, "write", {"text": "4111"}, guard=Guard(output=[no_card], on_violation="reroute", reroute="fix")
    )
    node(other, "fix", {"fixed": True}, guard=Guard(input=[lambda: seen.append("again")]))
    node(other, "after", {"after": True})
    other.edge("write", "after")
    rerouted = await other.run(on=house)
    assert rerouted.state == {"text": "4111", "fixed": True}
    assert seen == ["checked", "again"]


async def test_a_timer_a_map_and_a_sub_flow_can_be_guarded(house: Holdfast) -> None:
    child = Flow("child", effect="pure")
    node(child, "inner", {"text": "4111"}, guard=Guard(output=[no_card], on_violation="sanitize"))
    flow = Flow("kinds", effect="pure")
    seen: list[Any] = []

    async def double(item: int) -> int:
        return item * 2

    flow.map("each", over="numbers", body=double, into="doubled",
             guard=Guard(input=[lambda s: s["numbers"] != [] or Violation("none")],
                         output=[lambda s: seen.append(s["doubled"])]))  # fmt: skip
    flow.subflow("sub", child, outputs={"text": "state.text"}, guard=Guard(output=[no_card]))
    flow.timer("rest", 0, guard=Guard(output=[lambda: seen.append("rested")]))
    flow.chain("each", "sub", "rest")
    result = await flow.run({"numbers": [1, 2]}, on=house)
    assert result.completed
    assert seen == [[2, 4], "rested"]
    assert result.state["text"] == "****"


def asking(seen: list[str]) -> Flow:
    flow = Flow("asking", effect="pure")
    guard = Guard(output=[lambda s: s["decision"] != "no" or Violation("refused")])
    flow.hold("gate", prompt="Ship?", options=["yes", "no"], timeout="2h", on_timeout="branch:late",
              guard=guard)  # fmt: skip
    node(flow, "ship", {"end": "shipped"})
    node(flow, "late", {"end": "late"}, guard=Guard(input=[lambda: seen.append("late")]))
    flow.branch("gate", lambda s: s["decision"], {"yes": "ship"})
    return flow


@pytest.mark.parametrize(("said", "error"), [("yes", None), ("no", "refused")])
async def test_the_answer_to_a_guarded_hold_is_checked(place: Place, said: str, error: str | None) -> None:
    flow = asking([])
    house = await place.house()
    waiting = await flow.run(on=house)
    await answer(house, waiting, said)
    result = await flow.resume(waiting.run_id, on=house)
    assert (result.error.message if result.error else None) == error
    assert result.state.get("end") == (None if error else "shipped")


async def test_the_branch_of_a_timeout_lands_on_the_checks_of_its_target(place: Place) -> None:
    seen: list[str] = []
    flow = asking(seen)
    waiting = await flow.run(on=await place.house())
    place.clock.advance(hours=2)
    result = await flow.resume(waiting.run_id, on=await place.house())
    assert result.state["end"] == "late"
    assert seen == ["late"]


async def test_a_guard_that_reroutes_goes_before_code_that_chooses(house: Holdfast) -> None:
    flow = Flow("both", effect="pure")
    policy = Guard(output=[no_card], on_violation="reroute", reroute="review")

    @flow.node(guard=policy)
    async def write(s: State) -> State:
        return {"text": s["draft"]}

    node(flow, "review", {"end": "review"})
    node(flow, "long", {"end": "long"})
    node(flow, "short", {"end": "short"})
    flow.branch(write, lambda s: len(s["text"]) > 5, {True: "long", False: "short"})
    ends = [(await flow.run(given, on=house)).state["end"] for given in (BAD, GOOD)]
    assert ends == ["review", "short"]


# What a guard is lowered to, and what is wrong with it.


def rules(flow: Flow) -> list[str]:
    return [problem.rule for problem in flow.problems() if problem.severity == "error"]


async def test_a_guarded_flow_has_the_same_fingerprint_and_code_in_every_compile() -> None:
    options = {**placed("input"), **placed("output"), **placed("edge")}
    one, other = writer([], **options).program(), writer([], **options).program()
    assert (one.version, one.code_digest) == (other.version, other.code_digest)
    kinds = [(n.id, n.kind) for n in one.graph.nodes]
    assert kinds == [
        ("write", NodeKind.task),
        ("write__guard_output", NodeKind.guardrail),
        ("publish__guard_input", NodeKind.guardrail),
        ("publish", NodeKind.task),
        ("write->publish__guard", NodeKind.guardrail),
    ]


async def test_the_code_of_a_flow_changes_with_a_check_and_its_graph_does_not() -> None:
    one = writer([], publish={"guard": Guard(input=[no_card])}).program()
    other = writer([], publish={"guard": Guard(input=[no_mail])}).program()
    assert one.version == other.version
    assert one.code_digest != other.code_digest


async def test_a_flow_is_refused_when_a_guard_needs_an_id_that_is_taken() -> None:
    flow = writer([], publish={"guard": Guard(input=[no_card])})
    node(flow, "publish__guard_input")
    assert rules(flow) == ["guard-id"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"publish": {"guard": Guard()}}, "guard"),
        ({"publish": {"guard": Guard(no_card)}}, "guard"),
        ({"publish": {"guard": no_card}}, "guard"),
        ({"edge": {"guard": Guard(input=[no_card])}}, "guard"),
        ({"edge": {"guard": Guard()}}, "guard"),
        ({"edge": {"guard": no_card}}, "guard"),
        ({"edge": {"guard": Guard("no_card")}}, "guard"),  # type: ignore[arg-type]
        ({"edge": {"guard": Guard(no_card, effect="write")}}, "guard"),
        ({"edge": {"guard": Guard(no_card, on_violation="shout")}}, "on-violation"),
        ({"edge": {"guard": Guard(no_card, on_violation="reroute")}}, "reroute"),
        ({"edge": {"guard": Guard(lambda a, b, c: None)}}, "signature"),
        ({"publish": {"guard": Guard(input=[no_mail, lambda s, ctx: None])}}, "guard"),
        (
            {"write": {"guard": Guard(output=[no_card])}, "edge": {"when": "output == 1"}},
            "guard-condition",
        ),
    ],
)
async def test_a_flow_is_refused_when_a_guard_is_wrong(options: dict[str, Any], rule: str) -> None:
    assert rules(writer([], **options)) == [rule]


async def test_a_flow_is_refused_when_a_guard_reroutes_to_what_is_not_there() -> None:
    guard = Guard(no_card, on_violation="reroute", reroute="nowhere")
    with pytest.raises(FlowInvalidError, match="nowhere"):
        writer([], edge={"guard": guard}).program()


async def test_a_walk_is_refused_when_it_has_guards() -> None:
    flow = Flow("walk", effect="pure", traversal="walk")
    node(flow, "one", guard=Guard(input=[no_card]))
    assert rules(flow) == ["guard-walk"]
