"""Small flows with a known end: any store, any number of workers, and any crash must lead there.

They use no store and no clock directly, only `pure` nodes, and end without a person. Iterate
`FLOWS`; build a fresh `Flow` per run with `case.build()`, and compare with `case.state`, `case.artifacts`
(where given) and `case.error` (the code of the failure that the run must end with).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.app.flow import Flow
from holdfast.frontends.python import any_of, quorum
from holdfast.model.graph import WalkSpec
from holdfast.types.outcome import Outcome

State = Mapping[str, Any]
Work = Callable[[State], Any]


@dataclass(frozen=True)
class FlowCase:
    """One flow and its expected result."""

    name: str
    build: Callable[[], Flow]
    given: dict[str, Any]
    state: dict[str, Any] | None = None
    artifacts: dict[str, Any] | None = None
    error: str | None = None
    # How often each node settles, if that is guaranteed.
    visits: dict[str, int] = field(default_factory=dict[str, int])


FLOWS: list[FlowCase] = []


def _case(
    given: dict[str, Any], **expected: Any
) -> Callable[[Callable[[Flow], None]], Callable[[Flow], None]]:
    def keep(fill: Callable[[Flow], None]) -> Callable[[Flow], None]:
        settings = expected.pop("settings", {})

        def build() -> Flow:
            flow = Flow(fill.__name__, effect="pure", **settings)
            fill(flow)
            return flow

        FLOWS.append(FlowCase(fill.__name__, build, given, **expected))
        return fill

    return keep


def add(
    flow: Flow, name: str, work: Work | Mapping[str, Any] | None = None, *, pause: float = 0.0, **options: Any
) -> str:
    """A node that returns a fixed update, or `work` of the state."""

    async def handler(state: State) -> Any:
        if pause:
            await asyncio.sleep(pause)
        return work(state) if callable(work) else dict(work) if work is not None else None

    return flow.node(id=name, **options)(handler)


def trace(flow: Flow, *names: str, pause: Mapping[str, float] | None = None, **options: Any) -> list[str]:
    """Nodes that each append their own name to `log`."""
    slow = pause or {}
    return [add(flow, name, {"log": [name]}, pause=slow.get(name, 0.0), **options) for name in names]


def _more_than_five(state: State) -> bool:
    return state["n"] > 5


def _kind(state: State) -> str:
    return state["kind"]


def _b_and_d() -> list[str]:
    return ["b", "d"]


LOG: dict[str, Any] = {"reducers": {"log": "append"}}


@_case({"x": 1}, state={"x": 20}, visits={"one": 1, "two": 1})
def linear(flow: Flow) -> None:
    add(flow, "one", lambda s: {"x": s["x"] + 1})
    add(flow, "two", lambda s: {"x": s["x"] * 10})
    flow.edge("one", "two")


@_case({"log": ["base"]}, state={"log": ["base", "a", "l", "r", "j"]}, settings=LOG)
def diamond(flow: Flow) -> None:
    flow.chain(*trace(flow, "a", "l"))
    trace(flow, "r", "j")
    flow.edge("a", "r")
    flow.edge("l", "j")
    flow.edge("r", "j")


@_case({"log": []}, state={"log": ["a", "l", "r", "j"]}, settings=LOG)
def diamond_with_the_first_branch_slow(flow: Flow) -> None:
    trace(flow, "a", "l", "r", "j", pause={"l": 0.005})
    flow.edge("a", "l")
    flow.edge("a", "r")
    flow.edge("l", "j")
    flow.edge("r", "j")


@_case({"n": 10}, state={"n": 12}, artifacts={"l": "left", "r": "right"}, settings={"reducers": {"n": "sum"}})
def parallel_sum_and_artifacts(flow: Flow) -> None:
    add(flow, "a")
    add(flow, "l", {"n": 1})
    add(flow, "r", {"n": 1})
    add(flow, "left", lambda _s: "left", output_as="l")
    add(flow, "right", lambda _s: "right", output_as="r")
    add(flow, "j")
    for way in (("a", "l", "left", "j"), ("a", "r", "right", "j")):
        flow.chain(*way)


@_case({"who": ""}, state={"who": "r"})
def last_in_canonical_order_wins(flow: Flow) -> None:
    add(flow, "a")
    add(flow, "l", {"who": "l"}, pause=0.005)
    add(flow, "r", {"who": "r"})
    add(flow, "j")
    for way in (("a", "l", "j"), ("a", "r", "j")):
        flow.chain(*way)


@_case({"log": []}, state={"log": ["a", "b", "c", "d", "e", "f"]}, settings=LOG)
def step_that_reaches_a_join_by_two_ways(flow: Flow) -> None:
    trace(flow, "a", "b", "c", "d", "e", "f")
    for way in (("a", "b", "d", "f"), ("a", "c", "d"), ("b", "e", "f")):
        flow.chain(*way)


@_case({"log": []}, state={"log": ["s1", "s2", "s3", "j"]}, settings=LOG)
def several_starts(flow: Flow) -> None:
    trace(flow, "s1", "s2", "s3", "j", pause={"s1": 0.004})
    for name in ("s1", "s2", "s3"):
        flow.edge(name, "j")


@_case({"n": 7, "log": []}, state={"n": 7, "log": ["a", "big", "end"]}, settings=LOG)
def conditional_edges(flow: Flow) -> None:
    trace(flow, "a", "big", "small", "end")
    flow.edge("a", "big", when="n > 5")
    flow.edge("a", "small", otherwise=True)
    flow.edge("big", "end")
    flow.edge("small", "end")


@_case({"n": 1, "log": []}, state={"n": 1, "log": ["a", "small"]}, settings=LOG)
def callable_condition_with_otherwise(flow: Flow) -> None:
    trace(flow, "a", "big", "small")
    flow.edge("a", "big", when=_more_than_five)
    flow.edge("a", "small", otherwise=True)


@_case({"log": []}, state={"log": ["a", "c", "e"]}, settings=LOG)
def skip_cascade(flow: Flow) -> None:
    trace(flow, "a", "b", "c", "d", "e")
    flow.edge("a", "b", when="false")
    flow.edge("a", "c", otherwise=True)
    flow.edge("b", "d")
    flow.edge("d", "e")
    flow.edge("c", "e")


@_case({"kind": "y", "log": []}, state={"kind": "y", "log": ["a", "ya", "end"]}, settings=LOG)
def branch_by_key(flow: Flow) -> None:
    trace(flow, "a", "xa", "ya", "end")
    flow.branch("a", _kind, {"x": "xa", "y": "ya"})
    flow.edge("xa", "end")
    flow.edge("ya", "end")


@_case({"kind": "z"}, error="routing")
def branch_with_an_unknown_key(flow: Flow) -> None:
    trace(flow, "a", "xa")
    flow.branch("a", _kind, {"x": "xa"})


@_case({"log": []}, state={"log": ["a", "b", "d", "end"]}, settings=LOG)
def router_of_several(flow: Flow) -> None:
    trace(flow, "a", "b", "c", "d", "end")
    flow.router("a", _b_and_d, ["b", "c", "d"])
    for name in ("b", "c", "d"):
        flow.edge(name, "end")


@_case({"log": []}, state={"log": ["a", "quick", "j", "end"]}, settings=LOG)
def join_any_with_a_late_loser(flow: Flow) -> None:
    trace(flow, "a", "slow", "quick", "end", pause={"slow": 0.02, "end": 0.04})
    trace(flow, "j", join=any_of())
    for way in (("a", "slow", "j", "end"), ("a", "quick", "j")):
        flow.chain(*way)


@_case({"log": []}, state={"log": ["a", "b", "c", "j"]}, settings=LOG)
def join_quorum(flow: Flow) -> None:
    trace(flow, "a", "b", "c", "slow", pause={"slow": 0.03})
    trace(flow, "j", join=quorum(2, cancel_losers=True))
    for name in ("b", "c", "slow"):
        flow.chain("a", name, "j")


@_case({"log": []}, error="join_unsatisfied", settings=LOG)
def join_quorum_that_cannot_be_met(flow: Flow) -> None:
    trace(flow, "a", "b", "c")
    trace(flow, "j", join=quorum(2))
    flow.edge("a", "b")
    flow.edge("a", "c", when="false")
    flow.edge("b", "j")
    flow.edge("c", "j")


@_case({"n": 0}, state={"n": 3, "done": True}, visits={"up": 3, "end": 1})
def loop_until(flow: Flow) -> None:
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    add(flow, "end", {"done": True})
    flow.loop("up", "up", when="n < 3", max=10)
    flow.edge("up", "end")


@_case({"n": 0}, error="loop_limit", visits={"up": 5})
def loop_past_its_cap(flow: Flow) -> None:
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    add(flow, "end")
    flow.loop("up", "up", when="n < 100", max=4)
    flow.edge("up", "end")


@_case({"n": 0}, state={"n": 5, "done": True})
def loop_that_goes_on_at_its_cap(flow: Flow) -> None:
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    add(flow, "end", {"done": True})
    flow.loop("up", "up", max=4, on_limit="continue")
    flow.edge("up", "end")


@_case(
    {"i": 0, "j": 0, "log": []},
    state={"i": 2, "j": 3, "log": ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "end"]},
    settings=LOG,
    visits={"inner": 6, "outer": 2, "check": 2},
)
def nested_loops(flow: Flow) -> None:
    add(flow, "outer", lambda s: {"i": s["i"] + 1, "j": 0})
    add(flow, "inner", lambda s: {"j": s["j"] + 1, "log": [f"{s['i']}.{s['j'] + 1}"]})
    add(flow, "check")
    add(flow, "end", {"log": ["end"]})
    flow.chain("outer", "inner", "check", "end")
    flow.loop("inner", "inner", when="j < 3", max=3)
    flow.loop("check", "outer", when="i < 2", max=3)


@_case(
    {"n": 0, "log": []},
    state={"n": 3, "log": ["odd", "side", "even", "side", "odd", "side", "end"]},
    settings=LOG,
    visits={"top": 3, "odd": 2, "even": 1, "side": 3, "join": 3, "end": 1},
)
def loop_with_a_branch_and_a_join_inside(flow: Flow) -> None:
    add(flow, "top", lambda s: {"n": s["n"] + 1})
    add(flow, "odd", {"log": ["odd"]}, pause=0.002)
    add(flow, "even", {"log": ["even"]})
    add(flow, "side", {"log": ["side"]})
    add(flow, "join")
    add(flow, "end", {"log": ["end"]})
    flow.edge("top", "odd", when="n != 2")
    flow.edge("top", "even", otherwise=True)
    flow.edge("top", "side")
    for name in ("odd", "even", "side"):
        flow.edge(name, "join")
    flow.loop("join", "top", when="n < 3", max=5)
    flow.edge("join", "end")


@_case(
    {"n": 0, "log": []},
    state={"n": 2, "log": ["early", "end"]},
    settings=LOG,
    visits={"b": 1, "early": 1, "end": 1},
)
def loop_left_by_an_exit_in_its_middle(flow: Flow) -> None:
    add(flow, "a", lambda s: {"n": s["n"] + 1})
    add(flow, "b")
    trace(flow, "early", "late", "end")
    flow.edge("a", "early", when="n == 2")
    flow.edge("a", "b", otherwise=True)
    flow.loop("b", "a", when="n < 5", max=9)
    flow.edge("b", "late")
    flow.edge("early", "end")
    flow.edge("late", "end")


@_case({"n": 0, "log": []}, state={"n": 3, "log": ["side", "end"]}, settings=LOG, visits={"side": 1})
def loop_whose_side_exit_fires_each_time_round(flow: Flow) -> None:
    add(flow, "a", lambda s: {"n": s["n"] + 1})
    add(flow, "b")
    trace(flow, "side", "end")
    flow.edge("a", "b")
    flow.edge("a", "side")
    flow.loop("b", "a", when="n < 3", max=9)
    flow.edge("b", "end")


@_case({"items": [3, 1, 2]}, state={"items": [3, 1, 2], "out": [9, 1, 4]})
def map_in_order(flow: Flow) -> None:
    async def square(item: int) -> int:
        await asyncio.sleep(item / 1000)
        return item * item

    flow.map("each", over="items", body=square, into="out", concurrency=2)


@_case({"items": []}, state={"items": [], "out": [], "done": True})
def map_over_nothing(flow: Flow) -> None:
    async def never(item: int) -> int:
        raise AssertionError(item)

    flow.map("each", over="items", body=never, into="out")
    add(flow, "end", {"done": True})
    flow.edge("each", "end")


@_case({"items": "abc"}, error="node_failed")
def map_over_no_list(flow: Flow) -> None:
    async def never(item: int) -> int:
        return item

    flow.map("each", over="items", body=never, into="out")


@_case(
    {"items": [1, 2, 3]},
    state={"items": [1, 2, 3], "out": [1, {"failed": "two", "type": "ValueError"}, 3]},
)
def map_that_collects_failures(flow: Flow) -> None:
    async def not_two(item: int) -> int:
        if item == 2:
            raise ValueError("two")
        return item

    flow.map("each", over="items", body=not_two, into="out", on_item_failure="collect")


@_case(
    {"rows": [[1, 2], [3]]},
    state={"rows": [[1, 2], [3]], "out": [{"item": [1, 2], "sums": [2, 4]}, {"item": [3], "sums": [6]}]},
)
def nested_map(flow: Flow) -> None:
    async def double(item: int) -> int:
        return item * 2

    row = Flow("row", effect="pure")
    row.map("cells", over="item", body=double, into="sums", effect="pure")
    flow.map("rows", over="rows", body=row, into="out")


@_case({"a": 2, "b": 3}, state={"a": 2, "b": 3, "total": 25, "done": True})
def subflow_nested_twice(flow: Flow) -> None:
    inner = Flow("inner", effect="pure")
    add(inner, "square", lambda s: {"x": s["x"] * s["x"]})
    middle = Flow("middle", effect="pure")
    add(middle, "plus", lambda s: {"sum": s["left"] + s["right"]})
    middle.subflow("sq", inner, inputs={"x": "sum"}, outputs={"result": "state.x"})
    middle.edge("plus", "sq")
    flow.subflow("mid", middle, inputs={"left": "a", "right": "b"}, outputs={"total": "state.result"})
    add(flow, "end", {"done": True})
    flow.edge("mid", "end")


@_case({"log": []}, state={"log": ["a", "b", "mend", "end"]}, settings=LOG)
def failure_that_is_routed(flow: Flow) -> None:
    def broken(_s: State) -> Any:
        raise ValueError("broken")

    trace(flow, "a", "b", "never", "mend", "end")
    add(flow, "c", broken, on_failure="route:mend")
    flow.chain("a", "b", "c", "never", "end")
    flow.edge("mend", "end")


@_case({"log": []}, state={"log": ["a", "end"]}, settings=LOG)
def failure_that_is_skipped(flow: Flow) -> None:
    def broken(_s: State) -> Any:
        raise ValueError("broken")

    trace(flow, "a", "end")
    add(flow, "c", broken, on_failure="skip")
    flow.chain("a", "c", "end")


@_case({"log": []}, error="node_failed", settings=LOG, visits={"end": 0})
def failure_that_halts(flow: Flow) -> None:
    def broken(_s: State) -> Any:
        raise ValueError("broken")

    trace(flow, "a", "end")
    add(flow, "c", broken)
    flow.chain("a", "c", "end")


@_case(
    {"mean": 0, "best": 1, "text": "a", "deep": {"x": {"y": 1}}, "long": "aa"},
    state={"mean": 3.0, "best": 9, "text": "abc", "deep": {"x": {"y": 1, "z": 2}}, "long": "aa"},
    settings={
        "reducers": {"mean": "avg", "best": "max", "text": "concat", "deep": "merge", "long": "longest"}
    },
)
def reducers(flow: Flow) -> None:
    add(flow, "one", {"mean": 0, "best": 9, "text": "b", "deep": {"x": {"z": 2}}, "long": "bb"})
    add(flow, "two", {"mean": 9, "best": 3, "text": "c", "long": "b"})
    flow.edge("one", "two")


@_case(
    {"n": 0, "log": []},
    state={"n": 3, "log": ["work", "review", "work", "review", "work", "review", "ship"]},
    settings={**LOG, "traversal": "walk"},
)
def walk_by_labels(flow: Flow) -> None:
    add(flow, "work", lambda s: {"n": s["n"] + 1, "log": ["work"]})
    add(flow, "review", lambda s: Outcome(label="ok" if s["n"] > 2 else "again", update={"log": ["review"]}))
    add(flow, "ship", {"log": ["ship"]}, walk=WalkSpec(terminal=True))
    flow.start("work")
    flow.edge("work", "review")
    flow.edge("review", "ship", label="[O] Ok")
    flow.edge("review", "work", label="Again")


@_case(
    {"n": 0},
    state={"n": 2},
    settings={"traversal": "walk", "retry_target": "build"},
    visits={"build": 2, "test": 2, "exit": 2},
)
def walk_with_a_goal_gate(flow: Flow) -> None:
    add(flow, "build", lambda s: {"n": s["n"] + 1})
    add(flow, "test", lambda s: Outcome("success" if s["n"] > 1 else "fail"), walk=WalkSpec(goal_gate=True))
    add(flow, "exit", walk=WalkSpec(terminal=True))
    flow.start("build")
    flow.edge("build", "test")
    flow.edge("test", "exit", when="outcome == 'success'")
    flow.edge("test", "exit", when="outcome == 'fail'")
