"""Maps of flows: tolerated failures, minimum successes, index and key of an item, and no join of items."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, FlowInvalidError, Holdfast, quorum

pytestmark = pytest.mark.anyio


def mapped(calls: list[int], bad: set[int], **options: Any) -> Flow:
    flow = Flow("tolerant", effect="pure")

    async def body(item: int) -> int:
        calls.append(item)
        if item in bad:
            raise ValueError(f"item {item}")
        return item

    flow.map("each", over="items", body=body, into="out", concurrency=1, **options)
    return flow


@pytest.mark.covers("USERS-MAP-FAILURES")
@pytest.mark.parametrize(
    "options", [{"tolerated_failures": 2}, {"tolerated_failures": "40%"}, {"min_successes": 3}]
)
async def test_failures_that_are_tolerated_are_among_the_results(
    hf: Holdfast, options: dict[str, Any]
) -> None:
    result = await mapped([], {1, 3}, **options).run({"items": [0, 1, 2, 3, 4]}, on=hf)
    out = result.expect().state["out"]
    assert [o if isinstance(o, int) else o["failed"] for o in out] == [0, "item 1", 2, "item 3", 4]


@pytest.mark.covers("USERS-MAP-FAILURES")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tolerated_failures": 1}, "item 3 (2 of 5 items failed; 1 may)"),
        ({"tolerated_failures": "20%"}, "item 3 (2 of 5 items failed; 20% may)"),
        ({"min_successes": 4}, "item 3 (2 of 5 items failed; 4 must succeed)"),
    ],
)
async def test_one_failure_too_many_fails_the_run_and_a_resume_repeats_only_that_item(
    hf: Holdfast, options: dict[str, Any], why: str
) -> None:
    calls: list[int] = []
    bad = {1, 3}
    flow = mapped(calls, bad, **options)
    result = await flow.run({"items": [0, 1, 2, 3, 4]}, on=hf)
    assert result.error is not None
    assert result.error.message == why
    bad.clear()
    result = await flow.resume(result.run_id, on=hf)
    out = result.expect().state["out"]
    assert [o if isinstance(o, int) else o["failed"] for o in out] == [0, "item 1", 2, 3, 4]
    assert calls == [0, 1, 2, 3, 3, 4]


@pytest.mark.covers("USERS-MAP-FAILURES")
async def test_too_few_items_are_a_failure_of_the_map(hf: Holdfast) -> None:
    result = await mapped([], set(), min_successes=3).run({"items": [0, 1]}, on=hf)
    assert result.error is not None
    assert result.error.message == "map node 'each': there are 2 items, and 3 must succeed"


@pytest.mark.covers("USERS-MAP-FAILURES")
async def test_a_map_that_is_routed_continues_after_too_many_failures(hf: Holdfast) -> None:
    flow = mapped([], {1}, tolerated_failures=0, on_failure="route:mend")

    @flow.node
    async def mend() -> dict[str, Any]:
        return {"out": []}

    assert (await flow.run({"items": [1, 2]}, on=hf)).expect().state["out"] == []


@pytest.mark.covers("USERS-MAP-FAILURES")
async def test_a_function_gets_the_index_and_the_key_of_its_item(hf: Holdfast) -> None:
    flow = Flow("keys", effect="pure")

    async def body(item: dict[str, Any], index: int, key: str, ctx: Context) -> Any:
        return [item["n"], index, key, ctx.node]

    flow.map("each", over="items", body=body, into="out", item_key="order.id")
    items = [{"n": 1, "order": {"id": "a"}}, {"n": 2, "order": {"id": "b"}}]
    assert (await flow.run({"items": items}, on=hf)).expect().state["out"] == [
        [1, 0, "a", "body"],
        [2, 1, "b", "body"],
    ]
    result = await flow.run({"items": [{"n": 1}]}, on=hf)
    assert result.error is not None
    assert "key of item 0" in result.error.message or "has no key" in result.error.message


@pytest.mark.covers("USERS-MAP-JOIN", "USERS-MAP-FAILURES")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"join": "any"}, "not about its items"),
        ({"join": quorum(2)}, "not about its items"),
        ({"tolerated_failures": -1}, "tolerated_failures=-1 is neither a count nor a share"),
        ({"tolerated_failures": "200%"}, "tolerated_failures='200%' is neither"),
        ({"min_successes": 0.5}, "min_successes=0.5 is not a number of items"),
        ({"tolerated_failures": 1, "on_item_failure": "collect"}, "collects every failure"),
        ({"item_key": "a +"}, "item_key"),
    ],
)
def test_options_of_a_map_that_mean_nothing_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(FlowInvalidError, match=why.replace("(", r"\(")):
        mapped([], set(), **options).compile()
