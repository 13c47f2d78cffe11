"""Runs over HTTP: searched with words, counted, changed many at once; breakpoints continued."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.errors import InputError
from holdfast.runs.preview.run_change import UNSERVED
from holdfast.runs.run_query import read_run_query
from holdfast.store.rows import RunFilter
from holdfast.types.fleet import WorkerRow
from holdfast.types.status import RunStatus
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio
MINUTE = 60_000_000


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


def test_words_become_a_filter() -> None:
    text = "status:failed,waiting_for_input flow:claims by:me key:A1 created<2d took>1h at:breakpoint tim out"
    found = read_run_query(text, RunFilter(tenant="acme"), me="user:dana", now=10_000 * MINUTE)
    assert found == RunFilter(
        tenant="acme",
        status=(RunStatus.failed, RunStatus.pending_input),
        flow="claims",
        started_by="user:dana",
        instance_key="A1",
        created_after=(10_000 - 2 * 24 * 60) * MINUTE,
        took_over=60 * MINUTE,
        at_breakpoint=True,
        text="tim out",
        shown_at=10_000 * MINUTE,
    )


@pytest.mark.parametrize(
    "text", ["status:broken", "took:1h", "created<soon", "at:night", "flow>2", "flow:a flow:b"]
)
def test_wrong_word_is_named(text: str) -> None:
    with pytest.raises(InputError, match=text.split(":")[0].split("<")[0].split(">")[0]):
        read_run_query(text, RunFilter(), me="user:dana", now=0)


async def three_runs(hall: Hall) -> dict[str, str]:
    """One completed, one failed, one that waits."""
    done, broken = Flow[Any]("done", effect="pure"), Flow[Any]("broken", effect="pure")

    @done.node
    def fine(state: dict[str, Any]) -> None: ...

    @broken.node
    def fails(state: dict[str, Any]) -> None:
        raise ValueError("no such account")

    runs = {flow.name: (await flow.run({}, on=hall.hf)).run_id for flow in (done, broken)}
    hold = await hall.asks()
    return {**runs, "refund": (await hall.ask("ada", "GET", f"/v1/holds/{hold}"))["run"]}


@pytest.mark.covers("WB-64")
async def test_runs_are_found_and_counted_by_words(hall: Hall) -> None:
    runs = await three_runs(hall)

    async def found(words: str) -> set[str]:
        page = await hall.ask("ada", "GET", "/v1/runs", params={"q": words})
        counted = await hall.ask("ada", "GET", "/v1/runs/count", params={"q": words})
        assert counted["count"] == sum(counted["by_status"].values()) == len(page["items"])
        return {run["flow"] for run in page["items"]}

    assert await found("status:failed") == {"broken"}
    assert await found("error:account") == {"broken"}
    assert await found("ref") == {"refund"}
    assert await found(runs["done"][:6]) == {"done"}
    assert await found("created<1h took<1d") == {"done", "broken", "refund"}
    assert await found("created>1h") == set()
    counted = await hall.ask("ada", "GET", "/v1/runs/count")
    assert counted["by_status"] == {"completed": 1, "failed": 1, "pending_input": 1}
    assert (await hall.ask("eve", "GET", "/v1/runs/count"))["count"] == 0
    refused = await hall.ask("ada", "GET", "/v1/runs", params={"q": "status:broken"}, status=422)
    assert "unknown status 'broken'" in refused["detail"]


@pytest.mark.covers("WB-64")
async def test_many_runs_are_cancelled_or_retried_each_with_its_result(hall: Hall) -> None:
    runs = await three_runs(hall)
    every = [*runs.values(), "00000000-0000-4000-8000-000000000000"]
    body = {"runs": every, "action": "cancel", "reason": "test"}
    preview = await hall.ask("ada", "POST", "/v1/runs/bulk", json=body)
    assert (preview["preview"], preview["done"]) == (True, 1)
    assert preview["left_out"] == {"run_ended": 2, "run_not_found": 1}
    assert (await hall.ask("ada", "GET", f"/v1/runs/{runs['refund']}"))["status"] == "pending_input"
    other = await hall.ask("ada", "POST", "/v1/runs/bulk", json={**body, "action": "retry"})
    assert {each["run"]: each["code"] for each in other["items"] if not each["done"]} == {
        runs["refund"]: "run_status",  # it only waits
        **{run: "run_ended" for name, run in runs.items() if name not in ("refund", "broken")},
        every[-1]: "run_not_found",
    }

    done = await hall.ask("ada", "POST", "/v1/runs/bulk", json={**body, "preview": False})
    assert [item["run"] for item in done["items"] if item["done"]] == [runs["refund"]]
    again = {"runs": every, "action": "retry", "preview": False}
    retried = await hall.ask("ada", "POST", "/v1/runs/bulk", json=again)
    assert [item["run"] for item in retried["items"] if item["done"]] == [runs["broken"]]
    others = await hall.ask("eve", "POST", "/v1/runs/bulk", json={**body, "preview": False})
    assert others["left_out"] == {"run_not_found": 4}
    await hall.ask("vera", "POST", "/v1/runs/bulk", json=body, status=403)


@pytest.mark.covers("WB-64")
async def test_breakpoints_are_continued_by_flow_by_run_or_by_name(hall: Hall) -> None:
    flow = Flow[Any]("steps", effect="pure")

    @flow.node(breakpoint=True)
    def first(state: dict[str, Any]) -> None: ...

    @flow.node(breakpoint=True)
    def second(state: dict[str, Any]) -> None: ...

    flow.chain("first", "second")
    runs = [(await flow.run({}, on=hall.hf)).run_id for _ in range(3)]
    path = "/v1/breakpoints/continue"
    assert len((await hall.ask("ada", "GET", "/v1/runs", params={"q": "at:breakpoint"}))["items"]) == 3
    seen = await hall.ask("ada", "POST", path, json={"flow": "steps", "preview": True})
    assert (seen["preview"], seen["done"]) == (True, 3)
    one = await hall.ask("ada", "POST", path, json={"run": runs[0]})
    assert one["done"] == 1
    assert (await flow.resume(runs[0], on=hall.hf)).status == "pending_input"
    # Without any later stop.
    named = [item["hold"] for item in seen["items"]][1:2]
    assert (await hall.ask("ada", "POST", path, json={"holds": named, "clear": True}))["done"] == 1
    assert (await flow.resume(runs[1], on=hall.hf)).completed
    gone = await hall.ask("ada", "POST", path, json={"holds": [*named, "nothing"]})
    assert (gone["done"], gone["left_out"]) == (1, {"hold_not_found": 1})
    # A question with an answer of that name is none of them.
    question = await hall.asks(options=["continue", "stop"])
    refused = await hall.ask("ada", "POST", path, json={"holds": [question]})
    assert (refused["done"], refused["left_out"]) == (0, {"hold_not_found": 1})
    assert (await hall.ask("dana", "GET", f"/v1/holds/{question}"))["status"] == "pending"
    rest = await hall.ask("ada", "POST", path, json={"flow": "steps"})
    assert rest["done"] == 2
    await hall.ask("ada", "POST", path, json={"flow": "steps", "run": runs[0]}, status=422)
    assert (await hall.ask("eve", "POST", path, json={"flow": "steps"}))["done"] == 0


@pytest.mark.covers("WB-65")
async def test_a_change_of_a_run_is_said_beforehand(hall: Hall) -> None:
    flow = Flow[Any]("claims")

    @flow.node(effect="pure")
    def read(state: dict[str, Any]) -> dict[str, Any]:
        return {"amount": 5}

    @flow.node(idempotency_key="pay-{{amount}}")
    def pay(state: dict[str, Any]) -> None: ...

    @flow.node
    def mail(state: dict[str, Any]) -> None: ...

    flow.hold("sure", prompt="Sure?", options=["yes", "no"])
    flow.chain("read", "pay", "mail", "sure")
    run = (await flow.run({}, on=hall.hf)).run_id
    path = f"/v1/runs/{run}/preview"
    before = await hall.ask("ada", "GET", f"/v1/runs/{run}")

    fork = await hall.ask("ada", "POST", path, json={"action": "fork", "seq": 1})
    assert fork["run_again"] == ["pay", "mail"]
    assert fork["repeated_effects"] == [
        {"node": "pay", "effect": "external", "guarded": True},
        {"node": "mail", "effect": "external", "guarded": False},
    ]
    assert (fork["withdrawn"], fork["asked_again"]) == ([], ["Sure?"])
    assert fork["text"][0] == "A new run starts from record 1. This run is not changed."
    assert "May happen outside once more (no key guards them): mail." in fork["text"]
    # What had begun there is no effect that happens once more: a person is asked about it, once.
    (begun,) = [
        each["seq"]
        for each in (await hall.ask("ada", "GET", f"/v1/runs/{run}/records"))["items"]
        if (each["kind"], each["name"]) == ("intent", "mail")
    ]
    inside = await hall.ask("ada", "POST", path, json={"action": "fork", "seq": begun})
    assert (inside["in_doubt"], inside["run_again"], inside["repeated_effects"]) == (["mail"], [], [])
    assert "Asks whether it took effect, before it runs again: mail." in inside["text"]
    new = (await hall.ask("ada", "POST", f"/v1/runs/{run}/fork", json={"seq": begun}, status=201))["id"]
    assert (await flow.resume(new, on=hall.hf)).status == "pending_input"
    (asked,) = (await hall.ask("ada", "GET", f"/v1/holds?run={new}"))["items"]
    assert asked["type"] == "in_doubt"
    rewind = await hall.ask("ada", "POST", path, json={"action": "rewind", "seq": 1})
    assert rewind["withdrawn"] == ["Sure?"]
    assert rewind["text"][0].endswith("and replaces this one, which is cancelled.")
    cancel = await hall.ask("ada", "POST", path, json={"action": "cancel"})
    assert (cancel["withdrawn"], cancel["repeated_effects"]) == (["Sure?"], [])
    # With another state: what the new run does. Only who may fork has code run with a state of their own.
    edited = {"action": "fork", "seq": 1, "patch": {"scratch": {"amount": 7}}}
    way = (await hall.ask("ada", "POST", path, json=edited))["way"]
    assert [(each["kind"], each["node"], each["key"]) for each in way] == [("effect", "pay", "pay-7")]
    await hall.ask("vera", "POST", path, json=edited, status=403)
    await hall.ask("vera", "POST", path, json={"action": "fork", "seq": 1})
    await hall.ask("ada", "POST", path, json={**edited, "patch": {"nowhere": {}}}, status=422)

    # A run that no worker has, and that none would take: nothing would happen after a Resume.
    queued = await flow.submit({}, on=hall.hf)
    version = (await hall.ask("ada", "GET", f"/v1/runs/{queued}"))["version"]
    store = (await hall.hf.service()).store
    for versions, left in (({}, [UNSERVED]), ({version: "claims"}, [])):
        row = WorkerRow(
            name="w", incarnation="w", host="h", pid=1, release="1", started_at=1, until=0, versions=versions
        )
        await store.put_worker(row, 60_000_000)
        found = await hall.ask("ada", "POST", f"/v1/runs/{queued}/preview", json={"action": "resume"})
        assert [each for each in found["text"] if each == UNSERVED] == left

    assert await hall.ask("ada", "GET", f"/v1/runs/{run}") == before
    await hall.ask("ada", "POST", path, json={"action": "fork", "seq": 999}, status=422)
    await hall.ask("ada", "POST", path, json={"action": "cancel", "seq": 1}, status=422)
    await hall.ask("eve", "POST", path, json={"action": "cancel"}, status=404)
    await hall.ask("ada", "POST", f"/v1/runs/{run}/cancel", json={})
    await flow.resume(run, on=hall.hf)
    await hall.ask("ada", "POST", path, json={"action": "cancel"}, status=409)
    rewind = await hall.ask("ada", "POST", path, json={"action": "rewind", "seq": 1})
    assert rewind["text"][0].endswith("and replaces this one, which stays cancelled.")


@pytest.mark.covers("WB-33-logs")
async def test_a_step_is_shown_with_everything_that_is_recorded(hall: Hall) -> None:
    flow = Flow[Any]("steps")

    @flow.node(effect="pure")
    def read(state: dict[str, Any]) -> dict[str, Any]:
        return {"text": f"letter {state['number']}"}

    @flow.script
    async def work(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.log.info("looks up %s", "A1")
        ctx.emit("thinking")
        await ctx.step("fetch", lambda: {"found": 3}, effect="read")
        raise ValueError("no such account")

    flow.chain("read", "work")
    run = (await flow.run({"number": 7}, on=hall.hf)).run_id
    items = (await hall.ask("ada", "GET", f"/v1/runs/{run}/timeline"))["items"]
    seqs = {item["node"]: item["seq"] for item in items}
    first = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{seqs['read']}")
    assert (first["input"], first["state"]) == ({"number": 7}, "done")
    assert [(each["path"], each["after"]) for each in first["changes"]] == [("state.text", "letter 7")]
    failed = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{seqs['work']}")
    assert failed["input"] == {"number": 7, "text": "letter 7"}
    assert [(each["name"], each["value"], each["effect"]) for each in failed["calls"]] == [
        ("fetch", {"found": 3}, "read")
    ]
    assert [(each["kind"], each["data"]) for each in failed["emitted"]] == [
        ("log", {"level": "info", "text": "looks up A1"}),
        ("text", "thinking"),
    ]
    assert failed["said"] == "thinking"
    assert failed["error_detail"]["message"] == "no such account"
    assert 'raise ValueError("no such account")' in failed["traceback"]
    assert "in work" in failed["traceback"].splitlines()[0]
    (span,) = failed["spans"]
    assert (span["number"], span["term"], span["traceback"]) == (1, 1, failed["traceback"])
    await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/0", status=404)
    await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/first", status=422)
    await hall.ask("eve", "GET", f"/v1/runs/{run}/steps/1", status=404)


@pytest.mark.covers("WB-33-traceback", "WB-65")
async def test_each_attempt_of_a_step_has_its_time_its_worker_and_its_error(hall: Hall) -> None:
    flow = Flow[Any]("tries")
    calls: list[int] = []

    @flow.node(effect="pure", retry=3)
    async def work(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        calls.append(1)
        ctx.emit(f"try {len(calls)}")
        if len(calls) % 3:
            raise ValueError(f"try {len(calls)} failed")
        return {"done": True}

    @flow.node(effect="pure")
    def ends(state: dict[str, Any]) -> None:
        raise KeyError("nothing here")

    flow.chain("work", "ends")
    run = (await flow.run({}, on=hall.hf)).run_id
    await flow.resume(run, on=hall.hf)
    items = (await hall.ask("ada", "GET", f"/v1/runs/{run}/timeline"))["items"]
    seqs = {item["node"]: item["seq"] for item in items}
    step = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{seqs['work']}")
    assert [
        (each["number"], each["reason"], (each["error"] or {}).get("message")) for each in step["spans"]
    ] == [
        (1, "", "try 1 failed"),
        (2, "retry", "try 2 failed"),
        (3, "retry", None),
    ]
    assert all(each["ended_at"] >= each["started_at"] for each in step["spans"])
    assert "in work" in step["spans"][0]["traceback"]
    assert step["spans"][2]["traceback"] == ""
    assert [each["data"] for each in step["emitted"]] == ["try 1", "try 2", "try 3"]
    last = (await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{seqs['ends']}"))["spans"]
    assert [each["term"] for each in last] == [1, 2]
    # The first attempt ended when it failed, and not when the failed run was retried.
    records = (await hall.ask("ada", "GET", f"/v1/runs/{run}/records?first=2"))["items"]
    failed, resumed = [each for each in records if each["name"] == "ends" and each["kind"] != "end"][:2]
    assert (failed["kind"], failed["outcome"], resumed["kind"]) == ("step", "fail", "attempt")
    assert last[0]["ended_at"] == failed["at"]
    assert last[1]["started_at"] == resumed["at"]
    visit = items[-1]
    (stood,) = visit["waits"]
    assert (stood["kind"], stood["since"], stood["until"]) == ("failed", failed["at"], resumed["at"])
    assert [each["seq"] for each in visit["retries"]] == [resumed["seq"]]
    past = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{failed['seq']}?past=true")
    assert (len(past["spans"]), past["state"], past["attempts"]) == (1, "failed", 1)
    ended = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{failed['seq'] + 1}?past=true")
    assert (ended["node"], ended["state"], ended["attempts"]) == ("ends", "failed", 1)
    # A fork has its own records, and knows those of its source as theirs.
    fork = (await hall.ask("ada", "POST", f"/v1/runs/{run}/fork", json={"seq": seqs["work"]}, status=201))[
        "id"
    ]
    await flow.resume(fork, on=hall.hf)
    brought, own = (await hall.ask("ada", "GET", f"/v1/runs/{fork}/timeline"))["items"]
    assert (brought["node"], brought["run"]) == ("work", run)
    assert (own["node"], own["run"]) == ("ends", fork)
    assert (await hall.ask("ada", "GET", f"/v1/runs/{fork}/steps/{own['seq']}"))["node"] == "ends"
    forks = await hall.ask("ada", "GET", f"/v1/runs?forked_from={run}")
    assert [each["id"] for each in forks["items"]] == [fork]
    assert [bool(each["worker"]) for each in last] == [False, True]


@pytest.mark.covers("WB-65", "WB-65-timeline")
async def test_a_timeline_has_pages_folds_what_is_inside_of_maps_and_marks_records(hall: Hall) -> None:
    inner = Flow[Any]("weigh", effect="pure")

    @inner.node
    async def weigh(state: dict[str, Any]) -> dict[str, Any]:
        if state["item"] == 3:
            raise ValueError("too heavy")
        return {"weight": 1}

    flow = Flow[Any]("weighs", effect="pure")

    @flow.node
    def read(state: dict[str, Any]) -> dict[str, Any]:
        return {"lines": [{"item": number} for number in range(5)]}

    flow.map("weighed", over="lines", body=inner, into="weights")
    flow.chain("read", "weighed")
    run = (await flow.run({}, on=hall.hf)).run_id
    path = f"/v1/runs/{run}/timeline"
    whole = await hall.ask("ada", "GET", path)
    assert len(whole["items"]) == 7
    assert (whole["next"], whole["left_out"], whole["horizon"]) == (None, 0, 0)
    folded = await hall.ask("ada", "GET", path, params={"fold": "items"})
    assert [each["node"] for each in folded["items"]] == ["read", "weighed"]
    inside = folded["items"][1]["inside"]
    assert (inside["visits"], inside["items"], inside["failed"]) == (5, 5, 1)
    assert folded["items"][0]["inside"] is None
    # Read on from its head, only what was stopped without a record may have changed.
    since = {"since": whole["head"]}
    changed = (await hall.ask("ada", "GET", path, params=since))["items"]
    assert [(each["node"], each["state"]) for each in changed] == [("weighed", "stopped")]
    since["since"] = whole["items"][0]["seq"]
    assert (await hall.ask("ada", "GET", path, params=since))["items"] == whole["items"][1:]
    within = {"fold": "items", "within": inside["within"], "limit": 3}
    later = await hall.ask("ada", "GET", path, params=within)
    assert (len(later["items"]), later["left_out"]) == (3, 2)
    earlier = await hall.ask("ada", "GET", path, params={**within, "cursor": later["next"]})
    assert (len(earlier["items"]), earlier["next"]) == (2, None)
    scopes = [each["scope"] for each in (*earlier["items"], *later["items"])]
    assert scopes == [f"weighed.1[{number}]/" for number in range(5)]
    failed = [mark for mark in folded["marks"] if mark["kind"] == "failed"]
    assert failed[0]["node"] == "weighed.1[3]/weigh"
    settled = [visit for visit in whole["items"] if visit["seq"] >= 0]
    assert len(settled) == 6
    for visit in settled:
        step = await hall.ask("ada", "GET", f"/v1/runs/{run}/steps/{visit['seq']}")
        assert (step["node"], step["scope"]) == (visit["node"], visit["scope"])
    closed = (await hall.ask("ada", "GET", f"/v1/runs/{run}/graph"))["picture"]["nodes"]
    assert {each["label"]: each.get("inside", "") for each in closed if each["label"]} == {
        "read": "",
        "weighed": "closed",
    }
    opened = (await hall.ask("ada", "GET", f"/v1/runs/{run}/graph", params={"open": "weighed"}))["picture"]
    outer, inner_node = (
        next(n for n in opened["nodes"] if n["id"] == i) for i in ("weighed", "weighed/weigh")
    )
    assert outer["inside"] == "open"
    assert outer["x"] < inner_node["x"]
    assert inner_node["x"] + inner_node["width"] < outer["x"] + outer["width"]
    assert inner_node["y"] + inner_node["height"] < outer["y"] + outer["height"]
    taken = set(whole["edges"])
    assert {each["id"] for each in opened["edges"]} >= taken
    await hall.ask("eve", "GET", f"/v1/runs/{run}/graph", status=404)
    await hall.ask("ada", "GET", path, params={"cursor": "x"}, status=422)
    await hall.ask("eve", "GET", path, params={"fold": "items"}, status=404)


@pytest.mark.covers("USERS-CHILD-LINEAGE")
async def test_the_children_of_a_run_are_listed(hall: Hall) -> None:
    child, parent = Flow[Any]("child", effect="read"), Flow[Any]("parent", effect="read")
    child.node(id="work")(lambda: None)

    @parent.script
    async def call(ctx: Context) -> None:
        await ctx.call(child, {})

    run = (await parent.run(on=hall.hf)).expect().run_id
    (found,) = (await hall.ask("ada", "GET", f"/v1/runs?parent_run={run}"))["items"]
    assert (found["flow"], found["parent_run"]) == ("child", run)
