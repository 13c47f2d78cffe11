"""What nodes are given, what they may change, and how changes meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, Flag
from typing import Annotated, Any

import pytest

from holdfast import Context, Flow, Holdfast, append, avg, reducer, sum_
from holdfast.testing.conformance.flows import add
from tests.flows.conftest import node

pytestmark = pytest.mark.anyio


@pytest.mark.covers("G-8", "P7")
async def test_input_stays_as_it_was_when_the_caller_changes_it_later(hf: Holdfast) -> None:
    flow = Flow("frozen", effect="pure")
    node(flow, "a", {"x": 1})
    given = {"deep": {"list": [1, 2]}}
    result = await flow.run(given, on=hf)
    given["deep"]["list"].append(3)
    assert result.state["deep"] == {"list": [1, 2]}
    again = await flow.resume(result.run_id, on=hf)
    assert again.state["deep"] == {"list": [1, 2]}


@pytest.mark.covers("G-8", "P7")
@pytest.mark.parametrize("spoil", [
    lambda s: s["deep"]["list"].append(3),
    lambda s: s["deep"].update(x=1),
    lambda s: s["deep"]["list"].__setitem__(0, 9),
])  # fmt: skip
async def test_node_cannot_change_the_state_in_place_when_it_reaches_into_it(
    hf: Holdfast, spoil: Any
) -> None:
    flow = Flow("deep", effect="pure")
    add(flow, "a", lambda s: spoil(s))
    result = await flow.run({"deep": {"list": [1, 2]}}, on=hf)
    assert result.failed
    assert result.state["deep"] == {"list": [1, 2]}


@pytest.mark.covers("G-9", "P8")
@pytest.mark.parametrize(
    ("name", "first", "updates", "expected"),
    [
        ("append", [1], [2, [3, 4]], [1, 2, 3, 4]),
        ("concat", "a", ["b", "c"], "abc"),
        ("concat", [1], [[2], [3]], [1, 2, 3]),
        ("merge", {"a": {"b": 1}}, [{"a": {"c": 2}}, {"a": {"b": 3}}], {"a": {"b": 3, "c": 2}}),
        ("sum", 1, [2, 3], 6),
        ("max", 1, [3, 2], 3),
        ("min", 3, [1, 2], 1),
        ("avg", 0, [0, 9], 3.0),
        ("last", 1, [2, 3], 3),
        ("first", 1, [2, 3], 1),
        ("longest", "aa", ["bb", "ccc"], "ccc"),
        ("longest", [1, 2], [[3, 4]], [1, 2]),
    ],
)
async def test_reducer_meets_the_value_that_is_there_when_nodes_update_it(
    hf: Holdfast, name: str, first: Any, updates: list[Any], expected: Any
) -> None:
    flow = Flow("reduce", effect="pure", reducers={"v": name})
    flow.chain(*[node(flow, f"n{i}", {"v": update}) for i, update in enumerate(updates)])
    result = await flow.run({"v": first}, on=hf)
    assert result.expect().state["v"] == expected


@pytest.mark.covers("G-9")
@pytest.mark.parametrize(
    "name", ["append", "concat", "merge", "sum", "max", "min", "avg", "last", "first", "longest"]
)
async def test_first_write_sets_when_there_is_no_value_yet(hf: Holdfast, name: str) -> None:
    flow = Flow("first", effect="pure", reducers={"v": name})
    node(flow, "a", {"v": [7] if name == "append" else 7})
    result = await flow.run({}, on=hf)
    assert result.expect().state["v"] == ([7] if name == "append" else 7)


@pytest.mark.covers("P8")
async def test_mean_is_over_all_branches_when_they_join(hf: Holdfast) -> None:
    flow = Flow("mean", effect="pure", reducers={"m": "avg"})
    node(flow, "a", {"m": 1})
    for name, value in (("l", 2), ("r", 6)):
        node(flow, name, {"m": value})
        flow.edge("a", name)
    add(flow, "j", lambda s: {"seen": s["m"]})
    flow.edge("l", "j")
    flow.edge("r", "j")
    result = await flow.run({}, on=hf)
    assert result.expect().state == {"m": 3.0, "seen": 3.0}


async def test_mean_begins_anew_when_the_value_is_deleted(hf: Holdfast) -> None:
    from holdfast import DELETE

    flow = Flow("anew", effect="pure", reducers={"m": "avg"})
    node(flow, "a", {"m": 100})
    node(flow, "gone", {"m": DELETE})
    node(flow, "b", {"m": 2})
    node(flow, "c", {"m": 4})
    flow.chain("a", "gone", "b", "c")
    result = await flow.run({"m": 50}, on=hf)
    assert result.expect().state["m"] == 3.0


@dataclass
class Typed:
    log: Annotated[list[str], append]
    total: Annotated[int, sum_] = 0
    mean: Annotated[float, avg] = 0.0
    both: Annotated[str, reducer(lambda old, new: f"{old}+{new}")] = "x"


@pytest.mark.covers("G-9", "D-26", "CORE-FLOW-05")
async def test_reducers_of_the_state_type_are_used_when_it_declares_them(hf: Holdfast) -> None:
    flow = Flow("typed", state=Typed, effect="pure")

    @flow.node
    async def one(_s: Typed) -> dict[str, Any]:
        return {"log": ["one"], "total": 2, "mean": 4.0, "both": "y"}

    @flow.node
    async def two(s: Typed) -> dict[str, Any]:
        assert s.both == "x+y"
        return {"log": "two", "total": 3, "both": "z"}

    flow.edge(one, two)
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state == Typed(["one", "two"], 5, 2.0, "x+y+z")


@pytest.mark.covers("D-26")
async def test_custom_reducer_is_not_called_again_when_the_run_is_read(hf: Holdfast) -> None:
    calls: list[Any] = []

    def joined(old: str, new: str) -> str:
        calls.append((old, new))
        return old + new

    flow = Flow("custom", effect="pure", reducers={"v": joined})
    node(flow, "a", {"v": "b"})
    result = await flow.run({"v": "a"}, on=hf)
    assert result.expect().state["v"] == "ab"
    assert (await flow.resume(result.run_id, on=hf)).state["v"] == "ab"
    assert calls == [("a", "b")]


@pytest.mark.covers("G-12")
async def test_output_becomes_an_artifact_when_it_is_no_update(hf: Holdfast) -> None:
    flow = Flow("promote", effect="pure")
    add(flow, "text", lambda _s: "plain")
    add(flow, "named", lambda _s: [1, 2], output_as="numbers")
    add(flow, "whole", lambda _s: {"a": 1}, output_as="dict")
    node(flow, "quiet")
    flow.chain("text", "named", "whole", "quiet")
    result = await flow.run({"x": 1}, on=hf)
    assert result.expect().artifacts == {"text": "plain", "numbers": [1, 2], "dict": {"a": 1}}
    assert result.state == {"x": 1}


@pytest.mark.covers("G-12")
async def test_explicit_artifact_wins_when_the_node_returns_an_output_too(hf: Holdfast) -> None:
    flow = Flow("explicit", effect="pure")

    @flow.node
    async def both(ctx: Context) -> str:
        ctx.artifact("report", {"pages": 2})
        return "not promoted"

    result = await flow.run({}, on=hf)
    assert result.expect().artifacts == {"report": {"pages": 2}}


@pytest.mark.covers("G-12")
async def test_router_promotes_nothing_when_it_chooses(hf: Holdfast) -> None:
    flow = Flow("router", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.router("a", lambda: "b", ["b"])
    result = await flow.run({}, on=hf)
    assert result.expect().artifacts == {}


@pytest.mark.covers("G-9", "P8")
async def test_artifact_reducer_is_used_when_branches_write_one_artifact(hf: Holdfast) -> None:
    flow = Flow("parts", effect="pure", reducers={"artifacts.parts": "append", "artifacts.n": "sum"})
    node(flow, "a")
    for name in ("l", "r"):

        async def work(ctx: Context) -> None:
            ctx.artifact("parts", [ctx.node])
            ctx.artifact("n", 1)

        flow.node(id=name)(work)
        flow.edge("a", name)
    add(flow, "j", lambda _s: 5, output_as="n")
    flow.edge("l", "j")
    flow.edge("r", "j")
    result = await flow.run({}, on=hf)
    assert result.expect().artifacts == {"parts": ["l", "r"], "n": 7}


@pytest.mark.covers("SAFE-BUDGET-01")
@pytest.mark.parametrize("spent", [{"tokens": -1}, {"cost": -0.5}])
async def test_node_cannot_give_back_what_others_have_spent(hf: Holdfast, spent: dict[str, Any]) -> None:
    flow = Flow("cost", effect="pure")

    @flow.node
    async def one(ctx: Context) -> None:
        ctx.spent(**spent)

    result = await flow.run({}, on=hf)
    assert result.error is not None
    assert "none is below 0" in result.error.message


@pytest.mark.covers("G-13", "P5")
async def test_totals_count_on_when_a_run_is_resumed(hf: Holdfast) -> None:
    flow = Flow("cost", effect="pure")

    @flow.node
    async def one(ctx: Context) -> None:
        ctx.spent(tokens=10, cost=0.5)

    flow.hold("ask", prompt="?", options=["yes"])

    @flow.node
    async def two(ctx: Context) -> None:
        ctx.spent(tokens=5, cost=0.25)

    flow.chain(one, "ask", two)
    result = await flow.run({}, on=hf)
    assert result.totals["tokens"] == 10
    await (await hf.service()).answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert (result.totals["tokens"], result.totals["cost"], result.totals["steps"]) == (15, 0.75, 3)
    assert result.totals["duration"] > 0


async def test_list_kept_by_a_subflow_stays_when_the_parent_goes_on_appending(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    node(child, "c")
    flow = Flow("alias", effect="pure", reducers={"log": "append"})
    node(flow, "a", {"log": ["a"]})
    node(flow, "b", {"log": ["b"]})
    flow.subflow("sub", child)
    node(flow, "d", {"log": ["d"]})
    flow.chain("a", "b", "sub", "d")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "b", "d"]
    assert result.artifacts["sub"] == {"log": ["a", "b"]}


class Level(Enum):
    low = 1
    high = 2


class Rights(Flag):
    read = 1
    write = 2


class Size(Enum):
    small = 1


@dataclass
class Levels:
    level: Level = Level.low
    rights: Rights = Rights.read
    seen: Annotated[list[Level], append] = field(default_factory=list[Level])
    by_level: dict[Level, tuple[Level, ...]] = field(default_factory=dict[Level, tuple[Level, ...]])


@pytest.mark.covers("G-8")
async def test_enums_of_numbers_stay_what_they_are_when_the_state_declares_them(hf: Holdfast) -> None:
    flow = Flow("levels", Levels, effect="pure")
    node(flow, "a", {"level": Level.high, "rights": Rights.read | Rights.write, "seen": [Level.high]})
    node(flow, "b", {"seen": Level.low, "by_level": {Level.low: (Level.high,)}})
    flow.edge("a", "b")
    result = await flow.run({"seen": [Level.low]}, on=hf)
    again = await flow.resume(result.expect().run_id, on=hf)
    assert again.state == Levels(
        Level.high,
        Rights.read | Rights.write,
        [Level.low, Level.high, Level.low],
        {Level.low: (Level.high,)},
    )


@pytest.mark.covers("G-8")
async def test_member_of_another_enum_is_refused_when_it_has_the_same_number(hf: Holdfast) -> None:
    flow = Flow("sizes", Levels, effect="pure")
    node(flow, "a", {"level": Size.small})
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert "'level' does not fit" in result.error.message
