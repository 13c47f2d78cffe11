"""Post-mortem reports: every node in order, what it changed, what failed and how that was handled."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Prices, Retry, Scripted, tool, tool_call
from holdfast.checkpoint.visit import Visit
from holdfast.errors import InputError, NotDone
from holdfast.reports.formats import render
from holdfast.reports.html import to_html
from holdfast.reports.markdown import to_markdown
from holdfast.reports.postmortem import Postmortem, build_postmortem
from tests.flows.places import Place
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


async def examined(hf: Holdfast, run: str, **options: Any) -> Postmortem:
    return await build_postmortem(await hf.service(), run, **options)


def chapter(postmortem: Postmortem, label: str) -> Visit:
    return next(c for c in postmortem.chapters if isinstance(c, Visit) and c.label == label)


def handled(postmortem: Postmortem) -> list[tuple[str, str, str]]:
    return [(trouble.node, trouble.error, trouble.handled) for trouble in postmortem.troubles]


class Page(HTMLParser):
    """As much of a browser as it takes: which tags there are, what they fetch, what they say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action", "data")]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def rough() -> Flow:
    """Everything that can go wrong and be handled, then something that cannot."""
    flow = Flow("rough", effect="read")
    calls: list[str] = []

    @flow.node(on_failure="skip")
    async def enrich(s: dict[str, Any]) -> None:
        raise ValueError("no <b>data</b> | for `you`")

    @flow.node(on_failure="route:mend")
    async def risky(s: dict[str, Any]) -> None:
        raise KeyError("lost")

    @flow.node()
    async def mend(s: dict[str, Any]) -> dict[str, Any]:
        return {"mended": True}

    @flow.node(retry=Retry(2, delay=0.001))
    async def flaky(s: dict[str, Any]) -> dict[str, Any]:
        calls.append("flaky")
        if len(calls) == 1:
            raise ConnectionError("away")
        return {"order": {**s["order"], "paid": True}, "log": "x"}

    @flow.node()
    async def broken(s: dict[str, Any]) -> None:
        raise RuntimeError("<script>alert(1)</script> it is over")

    flow.start(enrich)
    flow.edge(enrich, risky)
    flow.edge(mend, flaky)
    flow.edge(flaky, broken)
    return flow


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_tells_each_failure_and_how_it_was_handled(hf: Holdfast) -> None:
    run = (await rough().run({"order": {"id": 7, "paid": False}}, on=hf)).run_id
    result = await examined(hf, run)

    assert [c.label for c in result.chapters if isinstance(c, Visit)] == [
        "enrich",
        "risky",
        "mend",
        "flaky",
        "broken",
    ]
    found = handled(result)
    assert [(node, error.partition(":")[0]) for node, error, _ in found] == [
        ("enrich", "ValueError"),
        ("risky", "KeyError"),
        ("flaky", "ConnectionError"),
        ("broken", "RuntimeError"),
    ]
    assert "skipped" in found[0][2]
    assert "took risky->mend:failed" in found[1][2]
    assert "as attempt 2" in found[2][2]
    assert "not handled" in found[3][2]
    assert [t.ended for t in result.troubles] == [False, False, False, True]
    (paid, log) = chapter(result, "flaky").changes
    assert [(part.path, part.before, part.after) for part in paid.parts] == [
        ("state.order.paid", False, True)
    ]
    assert (log.path, log.after) == ("state.log", "x")


@pytest.mark.covers("TOOL-TIME-07")
async def test_markdown_has_every_part_and_no_markup_of_the_runs_own(hf: Holdfast) -> None:
    run = (await rough().run({"order": {"id": 7, "paid": False}}, on=hf)).run_id
    text = await hf.postmortem(run)

    assert text.startswith("# Post-mortem of rough, run ")
    assert "The run failed after" in text
    assert "at broken: RuntimeError" in text
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "## The graph",
        "## What went wrong, and how it was handled",
        "## Every node in order (5 visits)",
        "## Workers and the journal",
        "## Input",
        "## State",
    ]
    assert "✗ broken" in text
    assert "### 4. flaky: success" in text
    assert "~ state.order.paid  false → true" in text
    assert "\\<script>" in text
    assert "no \\<b>data\\</b> \\| for \\`you\\`" in text


@pytest.mark.covers("TOOL-TIME-08")
async def test_html_is_one_file_with_its_drawing_and_nothing_that_runs(hf: Holdfast) -> None:
    run = (await rough().run({"order": {"id": 7, "paid": False}}, on=hf)).run_id
    text = await hf.postmortem(run, "html")

    page = Page(text)
    assert page.open == []
    assert "svg" in page.tags
    assert not {"script", "img", "link", "iframe", "object", "form", "b"} & set(page.tags)
    assert [place for place in page.fetched if not place.startswith("#")] == []
    assert "<script>alert(1)</script> it is over" in page.said
    assert "What went wrong, and how it was handled" in page.said
    assert "prefers-color-scheme" in text
    assert "@media print" in text
    with pytest.raises(InputError, match="unknown format 'pdf'"):
        await render(await hf.service(), run, "pdf")


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_tells_who_was_asked_who_decided_and_how_long_it_took(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    waiting = await hf.postmortem(result.run_id)
    assert "(not answered yet)" in waiting
    assert "The run is waiting for input" in waiting
    service = await hf.service()
    await service.answer(result.holds[0].id, "approve", comment="a good customer", by="user:ann")
    await flow.resume(result.run_id, on=hf)

    reply = await examined(hf, result.run_id)
    ((node, question),) = reply.questions
    assert (node, question.decision, question.by) == ("approve", "approve", "user:ann")
    assert question.ended_at is not None
    assert reply.waited.people == question.ended_at - question.asked_at
    text = to_markdown(reply)
    assert "user:ann decided 'approve' after" in text
    assert "(a good customer)" in text
    assert chapter(reply, "pay").changes[0].path == "state.receipt"


def careful() -> Flow:
    flow = Flow("careful")

    @flow.script(effect="read")
    async def think(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.step("search", lambda: ["a", "b"], effect="read")
        try:
            await ctx.step("fetch", _away, effect="read")
        except Exception as error:
            ctx.emit(str(error))
        ctx.spent(tokens=120, cost=0.5)
        return {"seen": 2}

    @flow.node(effect="external")
    async def send(s: dict[str, Any]) -> dict[str, Any]:
        return {"sent": True}

    flow.start(think)
    flow.edge(think, send)
    return flow


def _away() -> None:
    raise ConnectionError("fetch is away")


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_lists_tool_calls_costs_and_live_output(hf: Holdfast) -> None:
    result = await examined(hf, (await careful().run({}, on=hf)).expect().run_id)
    think = chapter(result, "think")
    assert [(call.name, call.error is None) for call in think.calls] == [("search", True), ("fetch", False)]
    assert (think.tokens, result.spent.tokens, result.spent.cost, think.emitted) == (120, 120, 0.5, 1)
    text = to_markdown(result)
    assert 'search (read): ["a","b"]' in text
    assert "fetch (read): failed:" in text
    assert "Nothing went wrong." in text


async def test_entities_in_texts_of_a_run_stay_as_they_are_written(hf: Holdfast) -> None:
    flow = Flow("entities", effect="pure")

    @flow.node
    def fail(s: dict[str, Any]) -> None:
        raise ValueError("Pay &#x202e;00.01 &amp; go")

    result = await examined(hf, (await flow.run({}, on=hf)).run_id)
    # A reader of Markdown would turn them into characters that are not seen.
    assert r"Pay \&#x202e;00.01 \&amp; go" in to_markdown(result)


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_of_an_agent_counts_what_its_calls_cost(hf: Holdfast) -> None:
    @tool(effect="read")
    async def look(place: str) -> str:
        """Looks."""
        return f"nothing at {place}"

    flow = Flow("agent")
    model = Scripted(tool_call("look", place="home"), "nothing there", prices=Prices(input="2", output="10"))
    flow.start(flow.agent("assistant", model=model, tools=[look]))
    result = (await flow.run({"prompt": "Where is it?"}, on=hf)).expect()

    text = await examined(hf, result.run_id)
    assert text.spent.tokens == result.totals["tokens"] > 0
    assert text.spent.cost == pytest.approx(result.totals["cost"])
    names = [call.name for call in chapter(text, "assistant").calls]
    assert names.count("model") == 2
    assert 'look(place="home")' in names


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_tells_of_a_crash_a_doubt_and_who_settled_it(place: Place) -> None:
    flow = careful()
    run = await place.crash(flow, {})
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    service = await hf.service()
    await service.answer(result.holds[0].id, "happened", by="user:ann")
    (await flow.resume(run, on=hf)).expect()

    text = await examined(hf, run)
    assert any("claimed the run while send was running" in remark.text for remark in text.remarks)
    assert ("send", "user:ann decided 'happened'") in [(node, how) for node, _, how in handled(text)]
    assert "Did node 'send' take effect?" in Page(to_html(text)).said


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_tells_that_a_failed_run_was_repaired_and_resumed(hf: Holdfast) -> None:
    fails = [True]
    flow = Flow("mended", effect="read")

    @flow.node()
    async def work(s: dict[str, Any]) -> dict[str, Any]:
        if fails:
            raise NotDone("not yet")
        return {"done": True}

    flow.start(work)
    run = (await flow.run({}, on=hf)).run_id
    failed = await (await hf.service()).get(run)
    fails.clear()
    (await flow.resume(run, on=hf)).expect()
    result = await examined(hf, run)
    assert result.status == "completed"
    assert failed.ended_at is not None
    assert result.troubles[0].at <= failed.ended_at, "when it failed, not when it was resumed"
    ((node, error, how),) = handled(result)
    assert (node, error) == ("work", "NotDone: not yet")
    assert how == "the run failed, and was resumed: run again as attempt 2"
    assert chapter(result, "work").outcome == "success"


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_of_a_fork_begins_where_its_source_did(hf: Holdfast) -> None:
    flow = careful()
    source = (await flow.run({}, on=hf)).expect().run_id
    service = await hf.service()
    seq = next(m.seq for m in await service.checkpoints(source) if m.node == "think")
    made = await flow.fork(source, seq, patch={"scratch": {"seen": 9}}, on=hf)
    assert made.waiting is True or made.completed
    result = await examined(hf, made.run_id)
    assert [c.name for c in chapter(result, "think").calls] == ["search", "fetch"]
    assert f"{source} after record {seq}, with scratch: seen changed" in to_markdown(result)
