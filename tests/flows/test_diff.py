"""Two moments side by side: checkpoints, branches, runs, versions."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.checkpoint.diff_result import Diff, NodeDiff
from holdfast.drawing import Highlight, to_svg
from holdfast.reports.diff_picture import diff_picture
from tests.flows.places import answer
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


def kinds(found: Diff) -> dict[str, str]:
    return {node.node: node.kind for node in found.nodes}


def paths(node: NodeDiff) -> dict[str, str]:
    return {change.path: change.kind for change in node.all}


def node(found: Diff, name: str) -> NodeDiff:
    return next(node for node in found.nodes if node.node == name)


async def completed(hf: Holdfast, flow: Flow, decision: str = "approve") -> str:
    result = await flow.run(GIVEN, on=hf)
    await answer(hf, result, decision)
    return (await flow.resume(result.run_id, on=hf)).run_id


@pytest.mark.covers("TOOL-TIME-01")
async def test_two_checkpoints_of_a_run_differ_by_what_happened_between_them(hf: Holdfast) -> None:
    run = await completed(hf, refund_flow())
    service = await hf.service()
    early = next(m for m in await service.checkpoints(run) if m.node == "assess")

    found = await service.diff(early.id, run)

    assert found.relation == "same"
    assert (found.a.seq, found.b.status) == (early.seq, "completed")
    changed = {change.path: (change.kind, change.after) for change in found.state.shown}
    assert changed["receipt"] == ("changed", "r-250")
    assert "risk" not in changed
    assert kinds(found) == {"approve": "changed", "pay": "added"}
    assert paths(node(found, "approve"))["outcome"] == "changed"
    (asked,) = node(found, "approve").asked
    assert (asked.kind, asked.after["decision"]) == ("added", "approve")
    assert found.same_nodes == 1
    assert found.spent[1].steps == found.spent[0].steps + 2
    assert (await service.diff(run, f"{run}@{found.b.seq}")).same


@pytest.mark.covers("TOOL-TIME-02")
async def test_two_branches_differ_from_where_they_part(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await completed(hf, flow)
    service = await hf.service()
    seq = next(m.seq for m in await service.checkpoints(run) if m.node == "assess")
    one = await flow.fork(run, seq, patch={"scratch": {"customer": "zoe"}}, on=hf)
    await answer(hf, one, "reject")
    await flow.resume(one.run_id, on=hf)
    deep = await service.fork(one.run_id, 0)

    found = await service.diff(run, one.run_id)
    assert found.relation == "branches"
    assert found.parted is not None
    assert (found.parted.run, found.parted.seq, found.parted.node) == (run, seq, "assess")
    assert "assess" not in kinds(found)
    (asked,) = [c for c in node(found, "approve").asked if c.path.endswith("decision")]
    assert (asked.before, asked.after) == ("approve", "reject")
    assert any("customer" in change.path for change in found.state.shown)
    far = await service.diff(run, deep.id)
    assert far.parted == found.parted
    assert (await service.diff(one.run_id, deep.id)).parted.run == one.run_id  # type: ignore[union-attr]


@pytest.mark.covers("TOOL-TIME-02")
async def test_two_runs_with_no_common_past_differ_by_input_and_route(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await completed(hf, flow)
    small = (await flow.run({**GIVEN, "amount": 20}, on=hf)).expect().run_id
    service = await hf.service()

    found = await service.diff(small, run)
    assert (found.relation, found.parted) == ("runs", None)
    assert [(c.path, c.before, c.after) for c in found.input.shown] == [("amount", 20, 250)]
    assert kinds(found)["approve"] == "added"
    assert any("approve" in edge for edge in found.edges[1])
    assert found.skipped[0] == ["approve"]


def scripted(risk: float, *, tool: str = "search") -> Flow:
    flow = Flow("scripted")

    @flow.script(effect="read")
    async def look(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        found = await ctx.step(tool, lambda: {"risk": risk}, effect="read")
        await ctx.step("note", lambda: "noted", effect="read")
        ctx.spent(tokens=int(risk * 100), cost=risk)
        return {"seen": found["risk"]}

    flow.start(look)
    return flow


@pytest.mark.covers("TOOL-TIME-01")
async def test_tool_calls_and_costs_are_compared_by_name_and_place(hf: Holdfast) -> None:
    one = (await scripted(0.25).run({}, on=hf)).expect().run_id
    two = (await scripted(0.75).run({}, on=hf)).expect().run_id
    other = (await scripted(0.25, tool="fetch").run({}, on=hf)).expect().run_id
    service = await hf.service()

    found = node(await service.diff(one, two), "look")
    assert [(c.path, c.before, c.after) for c in found.calls] == [("search#0.value.risk", 0.25, 0.75)]
    assert {"tokens", "cost", "output.seen"} <= paths(found).keys()
    calls = {c.path: c.kind for c in node(await service.diff(one, other), "look").calls}
    assert calls == {"search#0": "removed", "fetch#0": "added"}
    spent = (await service.diff(one, two)).spent
    assert (spent[0].tokens, spent[1].tokens, spent[1].cost) == (25, 75, 0.75)


@pytest.mark.covers("TOOL-TIME-01")
async def test_calls_with_a_key_are_compared_by_it_and_not_by_the_time_they_took(hf: Holdfast) -> None:
    async def run(amount: int, micros: int) -> str:
        flow = Flow("keyed")

        @flow.script(effect="read")
        async def act(s: dict[str, Any], ctx: Context) -> None:
            shown = {"text": f"refunded {amount}", "micros": micros}
            await ctx.step(f"refund({amount})", lambda: shown, effect="read", key="tool/0")

        flow.start(act)
        return (await flow.run({}, on=hf)).expect().run_id

    one, two, again = await run(250, 7), await run(80, 7), await run(250, 9)
    service = await hf.service()
    calls = node(await service.diff(one, two), "act").calls
    place = "refund(80) [tool/0]"
    assert [(c.path, c.before, c.after) for c in calls] == [
        (f"{place}.name", "refund(250)", "refund(80)"),
        (f"{place}.value.text", "refunded 250", "refunded 80"),
    ]
    assert (await service.diff(one, again)).same


def mapped() -> Flow:
    async def twice(item: int) -> int:
        if item == 13:
            raise ValueError("unlucky")
        return 2 * item

    flow = Flow("mapped", effect="pure")
    flow.map("all", over="rows", body=twice, into="made", on_item_failure="collect")
    return flow


@pytest.mark.covers("TOOL-TIME-01", "TOOL-TIME-03")
async def test_items_of_a_map_are_compared_one_by_one_and_drawn_together(hf: Holdfast) -> None:
    flow = mapped()
    one = (await flow.run({"rows": [1, 2]}, on=hf)).expect().run_id
    two = (await flow.run({"rows": [1, 13, 3]}, on=hf)).expect().run_id
    service = await hf.service()

    found = await service.diff(one, f"{two}@3")
    assert found.b.seq == 3
    found = await service.diff(one, two)
    inside = await service.find(f"{two}@all.1[1]/twice")
    assert await service.find(f"{two}@all[1]") == inside
    assert (await service.checkpoint(two, inside[1])).node == "twice"
    assert inside[1] < (await service.find(f"{two}@twice"))[1]
    assert kinds(found) == {"all": "changed", "all.1[1]/twice": "changed", "all.1[2]/twice": "added"}
    changed = node(found, "all.1[1]/twice")
    assert paths(changed)["error"] == "added"
    assert changed.outcome == ("success", "fail")
    picture = await diff_picture(service, found)
    outer = next(n for n in picture.nodes if n.id == "all")
    assert outer.mark is Highlight.changed
    assert next(n for n in outer.inside.nodes if n.id == "twice").mark is Highlight.changed  # type: ignore[union-attr]


@pytest.mark.covers("TOOL-TIME-02", "TOOL-TIME-03")
async def test_versions_are_laid_over_each_other_in_the_picture(hf: Holdfast) -> None:
    def versioned(last: str) -> Flow:
        flow = Flow("versioned")
        first = flow.node(id="first", effect="pure")(lambda s: {"n": 1})
        flow.start(first)
        flow.edge(first, flow.node(id=last, effect="pure")(lambda s: {"n": 2}))
        return flow

    one = (await versioned("old").run({}, on=hf)).expect().run_id
    two = (await versioned("new").run({}, on=hf)).expect().run_id
    service = await hf.service()

    found = await service.diff(one, two)
    assert found.a.version != found.b.version
    assert kinds(found) == {"first": "changed", "old": "removed", "new": "added"}
    picture = await diff_picture(service, found)
    marks = {n.id: n.mark for n in picture.nodes if n.label}
    assert marks == {"first": Highlight.changed, "old": Highlight.removed, "new": Highlight.added}
    lines = {(e.source, e.target): e.mark for e in picture.edges}
    assert (lines["first", "old"], lines["first", "new"]) == (Highlight.removed, Highlight.added)
    assert "<svg" in to_svg(picture)


@pytest.mark.covers("TOOL-TIME-03")
async def test_diff_as_json_is_safe_and_bounded(hf: Holdfast) -> None:
    flow = Flow("big")
    flow.start(flow.node(id="a", effect="pure")(lambda s: {"text": "x" * s["size"], "raw": b"\x01"}))
    one = (await flow.run({"size": 1}, on=hf)).expect().run_id
    two = (await flow.run({"size": 100_000}, on=hf)).expect().run_id
    service = await hf.service()

    reply = (await service.diff(one, two)).as_json()
    text = next(c for c in reply["state"]["shown"] if c["path"] == "text")
    assert text["before"] == "x"
    assert (text["after"]["large"], text["after"]["length"]) == ("text", 100_000)
    assert reply["same"] is False


@pytest.mark.covers("TOOL-TIME-02")
async def test_story_of_a_fork_has_its_sources_chapters_whole(hf: Holdfast) -> None:
    flow = scripted(0.5)
    run = (await flow.run({}, on=hf)).expect().run_id
    service = await hf.service()
    made = await service.fork(run, (await service.get(run)).head)
    story = await service.story(made.id)
    (chapter,) = story.visits
    assert chapter.run == run
    assert [call.name for call in chapter.calls] == ["search", "note"]
