"""Guards around joins, loops, routers and holds: the ways into a node and on from it (G-29)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Guard, Holdfast, Violation
from tests.flows.conftest import node, visits_of
from tests.flows.places import Place, answer

pytestmark = [pytest.mark.anyio, pytest.mark.covers("G-29")]

State = dict[str, Any]
BAD, GOOD = {"draft": "card 4111"}, {"draft": "hello"}


def no_card(s: State) -> Violation | None:
    if "4111" in s.get("text", ""):
        return Violation("a card number", replace={"text": s["text"].replace("4111", "****")})
    return None


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


async def test_branches_meet_before_the_checks_of_a_guarded_join(hf: Holdfast) -> None:
    seen: list[int] = []

    def both(s: State) -> None:
        seen.append(s["left"] + s["right"])

    result = await diamond(guard=Guard(input=[both], output=[both])).run(on=hf)
    assert result.state["sum"] == 2
    assert seen == [2, 2]
    assert await visits_of(hf, result.run_id, "meet__guard_input") == 1


async def test_the_join_policy_of_a_guarded_node_moves_to_its_checks(hf: Holdfast) -> None:
    flow = diamond(guard=Guard(input=[lambda: True]), join="any")
    spec = flow.program().graph
    joins = {n.id: str(n.join.kind) for n in spec.nodes}
    assert (joins["meet__guard_input"], joins["meet"]) == ("any", "all")
    result = await flow.run(on=hf)
    assert result.completed
    assert await visits_of(hf, result.run_id, "meet") == 1


async def test_branches_merge_in_the_same_order_as_without_their_guards(hf: Holdfast) -> None:
    flow = Flow("fork", effect="pure")
    clean = {"on_violation": "sanitize"}
    node(flow, "begin", guard=Guard(output=[no_card]))
    node(flow, "left", {"text": "4111"}, guard=Guard(output=[no_card], **clean))
    node(flow, "right", {"text": "right"})
    node(flow, "meet")
    flow.edge("begin", "left")
    flow.edge("begin", "right")
    flow.edge("left", "meet", guard=Guard(lambda: Violation("left", replace={"text": "left"}), **clean))
    flow.edge("right", "meet")
    result = await flow.run(on=hf)
    assert result.state["text"] == "right"  # the later in the flow's order, though its way is the shorter


async def test_a_loop_passes_the_checks_of_its_nodes_in_every_round(hf: Holdfast) -> None:
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
    result = await flow.run({"n": 0}, on=hf)
    assert result.state == {"n": 3, "done": True}
    assert seen == [("in", 0), ("out", 1), ("in", 1), ("out", 2), ("in", 2), ("out", 3)]


async def test_a_loop_stops_at_the_round_that_a_guard_blocks(hf: Holdfast) -> None:
    flow = Flow("loop", effect="pure")

    @flow.node(guard=Guard(output=[lambda s: s["n"] < 2 or Violation("too many")]))
    async def count(s: State) -> State:
        return {"n": s["n"] + 1}

    node(flow, "again")
    node(flow, "end")
    flow.edge(count, "again", when="n < 9")
    flow.edge(count, "end", otherwise=True)
    flow.loop("again", count, max=20)
    result = await flow.run({"n": 0}, on=hf)
    assert result.error is not None
    assert result.error.message == "too many"
    assert await visits_of(hf, result.run_id, "count") == 2


@pytest.mark.parametrize("kind", ["router", "branch", "when"])
async def test_code_that_chooses_sees_the_state_that_a_guard_left(hf: Holdfast, kind: str) -> None:
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
    result = await flow.run(on=hf)
    assert result.state["went"] == "clean"


async def test_failure_routes_and_reroutes_land_on_the_checks_of_their_target(hf: Holdfast) -> None:
    flow = Flow("ways", effect="pure")
    seen: list[str] = []
    node(flow, "repair", {"repaired": True}, guard=Guard(input=[lambda: seen.append("checked")]))

    @flow.node(on_failure="route:repair", guard=Guard(output=[lambda: seen.append("output")]))
    async def broken() -> None:
        raise ValueError("no")

    node(flow, "after", {"after": True})
    flow.edge(broken, "after")
    result = await flow.run(on=hf)
    assert result.state == {"repaired": True}
    assert seen == ["checked"]

    other = Flow("rerouted", effect="pure")
    node(
        other, "write", {"text": "4111"}, guard=Guard(output=[no_card], on_violation="reroute", reroute="fix")
    )
    node(other, "fix", {"fixed": True}, guard=Guard(input=[lambda: seen.append("again")]))
    node(other, "after", {"after": True})
    other.edge("write", "after")
    rerouted = await other.run(on=hf)
    assert rerouted.state == {"text": "4111", "fixed": True}
    assert seen == ["checked", "again"]


async def test_a_timer_a_map_and_a_sub_flow_can_be_guarded(hf: Holdfast) -> None:
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
    result = await flow.run({"numbers": [1, 2]}, on=hf)
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
    hf = await place.hf()
    waiting = await flow.run(on=hf)
    await answer(hf, waiting, said)
    result = await flow.resume(waiting.run_id, on=hf)
    assert (result.error.message if result.error else None) == error
    assert result.state.get("end") == (None if error else "shipped")


async def test_the_branch_of_a_timeout_lands_on_the_checks_of_its_target(place: Place) -> None:
    seen: list[str] = []
    flow = asking(seen)
    waiting = await flow.run(on=await place.hf())
    assert seen == []
    place.clock.advance(hours=2)
    result = await flow.resume(waiting.run_id, on=await place.hf())
    assert result.state["end"] == "late"
    assert seen == ["late"]


async def test_a_guard_that_reroutes_goes_before_code_that_chooses(hf: Holdfast) -> None:
    flow = Flow("both", effect="pure")
    policy = Guard(output=[no_card], on_violation="reroute", reroute="review")

    @flow.node(guard=policy)
    async def write(s: State) -> State:
        return {"text": s["draft"]}

    node(flow, "review", {"end": "review"})
    node(flow, "long", {"end": "long"})
    node(flow, "short", {"end": "short"})
    flow.branch(write, lambda s: len(s["text"]) > 5, {True: "long", False: "short"})
    ends = [(await flow.run(given, on=hf)).state["end"] for given in (BAD, GOOD)]
    assert ends == ["review", "short"]
