"""What each answer to a hold would lead to: found in memory, and nothing is done outside."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, TypedDict

import pytest

from holdfast import END, Context, Flow, Holdfast
from holdfast.errors import HoldDecidedError, InputError, StateError
from holdfast.runs.preview import preview
from holdfast.runs.preview.outcome import PreviewEntry
from holdfast.runs.preview.preview import HoldPreview, preview_hold
from holdfast.runs.preview.run_change import preview_change
from holdfast.runs.preview.stop_effects import STUCK
from holdfast.store.rows import RunFilter
from holdfast.types.hold import HoldRow
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


class Claim(TypedDict, total=False):
    amount: int
    answer: str
    text: str


def claims(ledger: Path) -> Flow[Any]:
    """Everything that happens outside writes a line to the ledger."""

    def outside(what: str) -> None:
        with ledger.open("a") as file:
            file.write(what + "\n")

    flow = Flow[Any]("claims", state=Claim)

    @flow.node(effect="pure")
    def read_letter(state: Claim) -> dict[str, Any]:
        return {"amount": 90}

    flow.hold(
        "approve", prompt="Pay {{amount}}?", options=["pay", "mail", "ask", "wait", "end"], bind="answer"
    )

    @flow.node(effect="pure")
    def compute(state: Claim) -> dict[str, Any]:
        return {"text": f"paid {state['amount']}"}

    @flow.node(idempotency_key="pay-{{amount}}")
    def pay(state: Claim) -> dict[str, Any]:
        outside("pay")
        return {}

    @flow.node
    def notify(state: Claim) -> dict[str, Any]:
        outside("notify")
        return {}

    @flow.script
    async def write(state: Claim, ctx: Context) -> dict[str, Any]:
        text = await ctx.step("compose", str.upper, "hello", effect="pure")
        await ctx.step("send", outside, text)
        return {}

    flow.hold("second", prompt="Really?", options=["yes", "no"], assignee="group:finance", bind="text")
    flow.timer("pause", "3d")
    flow.edge("read_letter", "approve")
    for option, node in {"pay": "compute", "mail": "write", "ask": "second", "wait": "pause"}.items():
        flow.edge("approve", node, when=f"answer == '{option}'")
    flow.edge("approve", END, when="answer == 'end'")
    flow.edge("compute", "pay")
    flow.edge("pay", "notify")
    return flow


async def asked(hf: Holdfast, flow: Flow[Any]) -> HoldRow:
    result = await flow.run({}, on=hf)
    service = await hf.service()
    return (await service.holds(result.run_id))[0]


def kinds(found: HoldPreview, option: str) -> list[tuple[str, str]]:
    return [(entry.kind, entry.node) for entry in entries(found, option)]


def entries(found: HoldPreview, option: str) -> list[PreviewEntry]:
    return next(each.entries for each in found.options if each.option == option)


def texts(found: HoldPreview) -> dict[str, list[str]]:
    return {each.option: [entry.text for entry in each.entries] for each in found.options}


async def rows_of(hf: Holdfast) -> list[Any]:
    store = await hf.open()
    runs = await store.list_runs(RunFilter(), after=None, limit=100)
    records = [await store.read(run.id, first=0, last=run.head) for run in runs]
    return [runs, records, await store.holds(limit=100), await store.inbox_heads([run.id for run in runs])]


@pytest.mark.covers("WEB-PREVIEW")
async def test_a_breakpoint_on_the_way_is_a_pause_and_no_question_to_a_person(hf: Holdfast) -> None:
    flow = Flow[Any]("stops")
    flow.hold("approve", prompt="Pay?", options=["pay"])
    flow.node(id="pay", breakpoint=True)(lambda _s: {})
    flow.edge("approve", "pay")
    found = await (await hf.service()).preview(await asked(hf, flow))
    assert texts(found) == {"pay": ["Pauses at the breakpoint before pay."]}


@pytest.mark.covers("WEB-PREVIEW")
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_each_option_is_followed_to_its_next_questions_and_effects(tmp_path: Path, store: str) -> None:
    ledger = tmp_path / "ledger"
    address = "memory:" if store == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        hold = await asked(hf, claims(ledger))
        before = await rows_of(hf)
        found = await (await hf.service()).preview(hold)
        assert [each.option for each in found.options] == ["pay", "mail", "ask", "wait", "end"]
        assert kinds(found, "pay") == [("step", "compute"), ("effect", "pay")]
        effect = entries(found, "pay")[-1]
        assert (effect.effect, effect.key, effect.then) == ("external", "pay-90", ["notify"])
        assert kinds(found, "mail") == [("effect", "write")]
        assert (entries(found, "mail")[0].step, entries(found, "mail")[0].effect) == ("send", "external")
        assert kinds(found, "ask") == [("question", "second")]
        question = entries(found, "ask")[0]
        assert (question.assignee, question.options) == ("group:finance", ["yes", "no"])
        assert question.text == "Asks group:finance: Really?"
        assert kinds(found, "wait") == [("sleep", "pause")]
        assert entries(found, "wait")[0].until is not None
        assert kinds(found, "end") == [("end", "")]
        assert entries(found, "end")[0].status == "completed"
        # Nothing happened outside, and nothing was stored.
        assert not ledger.exists()
        assert await rows_of(hf) == before


@pytest.mark.covers("WEB-PREVIEW")
async def test_recorded_sub_steps_answer_and_the_next_one_stops(tmp_path: Path) -> None:
    done: list[str] = []
    flow = Flow[Any]("ask inside")

    @flow.script
    async def talk(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        first = await ctx.step("fetch", lambda: done.append("fetch") or 7)
        reply = await ctx.ask(f"{first} of them?", options=["yes", "no"])
        if reply.decision == "yes":
            await ctx.step("order", done.append, "order")
        return {"found": first}

    async with Holdfast("memory:") as hf:
        hold = await asked(hf, flow)
        found = await (await hf.service()).preview(hold)
        assert [(e.kind, e.step) for e in entries(found, "yes")] == [("effect", "order")]
        assert kinds(found, "no") == [("end", "")]
        assert done == ["fetch"]


@pytest.mark.covers("WEB-PREVIEW")
async def test_parallel_branches_are_each_followed_to_their_end(tmp_path: Path) -> None:
    done: list[str] = []
    flow = Flow[Any]("split")
    flow.hold("go", prompt="Go?", options=["yes", "no"])

    for name in ("left", "right"):

        @flow.node(id=name)
        def effect(state: dict[str, Any], name: str = name) -> dict[str, Any]:
            done.append(name)
            return {}

    @flow.node(effect="pure")
    async def slow(state: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.05)
        return {}

    for name in ("left", "right", "slow"):
        flow.edge("go", name)
    async with Holdfast("memory:") as hf:
        hold = await asked(hf, flow)
        found = await (await hf.service()).preview(hold)
        assert set(kinds(found, "yes")) == {("effect", "left"), ("effect", "right"), ("step", "slow")}
        assert not done


async def test_a_process_without_the_code_says_where_it_ends(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        hold = await asked(hf, claims(tmp_path / "ledger"))
    async with Holdfast(address) as hf:
        found = await (await hf.service()).preview(hold)
        assert kinds(found, "pay") == [("unknown", "compute")]
        assert "no code of this node is loaded here" in entries(found, "pay")[0].text
        assert kinds(found, "ask") == [("question", "second")]
        assert kinds(found, "end") == [("end", "")]


async def test_what_a_form_still_needs_is_named(tmp_path: Path) -> None:
    flow = Flow[Any]("form")
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    }
    flow.hold("fill", prompt="How much?", options=["ok"], schema=schema, bind="answer")
    async with Holdfast("memory:") as hf:
        hold = await asked(hf, flow)
        service = await hf.service()
        missing = await service.preview(hold)
        assert kinds(missing, "ok") == [("unknown", "")]
        assert "amount" in entries(missing, "ok")[0].text
        filled = await service.preview(hold, data={"amount": 3})
        assert kinds(filled, "ok") == [("end", "")]


async def test_only_missing_fields_that_decide_what_happens_are_named(tmp_path: Path) -> None:
    flow = Flow[Any]("booking")
    fields = [
        {"type": "input", "field": name, "kind": "text", "required": True} for name in ("account", "tax")
    ]
    options = {"type": "decision", "options": ["book", "split", "check"]}
    flow.hold("ask", prompt="Book it?", sections=[*fields, options])

    @flow.node(effect="write")
    def book(state: dict[str, Any]) -> None: ...

    @flow.node(effect="write")
    def split(state: dict[str, Any]) -> None: ...

    @flow.node(effect="pure")
    def check(state: dict[str, Any]) -> None: ...

    flow.edge("ask", book, when="decision == 'book'")
    flow.edge("ask", split, when="decision == 'split' and tax == 'half'")
    flow.edge("ask", check, when="decision == 'check'")
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
        hold = await asked(hf, flow)
        # A condition of the flow reads one of the two: the other one is not named.
        found = texts(await (await hf.service()).preview(hold))
        assert found["book"] == ["Depends on tax."]

        plain = Flow[Any]("plain")
        plain.hold(
            "ask", prompt="Book it?", sections=[*fields, {"type": "decision", "options": ["book", "check"]}]
        )
        plain.node(effect="write")(book)
        plain.node(effect="pure")(check)
        plain.edge("ask", "book", when="decision == 'book'")
        plain.edge("ask", "check", when="decision == 'check'")
        found = texts(await (await hf.service()).preview(await asked(hf, plain)))
        assert found["book"] == ["Runs book (write). The preview ends here: its result is not known."]
        # Code may read any of them.
        assert found["check"] == ["Runs check.", "Depends on account, tax."]


async def test_decided_holds_and_unknown_options_are_refused(tmp_path: Path) -> None:
    async with Holdfast("memory:") as hf:
        flow = claims(tmp_path / "ledger")
        hold = await asked(hf, flow)
        service = await hf.service()
        with pytest.raises(InputError, match="not one of the answers"):
            await service.preview(hold, decision="perhaps")
        decided = await service.answer(hold.id, "end")
        with pytest.raises(HoldDecidedError):
            await service.preview(decided)


async def test_large_values_are_read_where_they_are(tmp_path: Path) -> None:
    flow = Flow[Any]("large")

    @flow.node(effect="pure")
    def fetch(state: dict[str, Any]) -> dict[str, Any]:
        return {"text": "x" * 3_000_000, "parts": ["y" * 300_000]}

    flow.hold("go", prompt="Go?", options=["yes"])

    @flow.node(effect="pure")
    def measure(state: dict[str, Any]) -> dict[str, Any]:
        return {"length": len(state["text"]) + len(state["parts"][0])}

    flow.hold("sure", prompt="{{length}} characters?", options=["yes"])
    flow.chain("fetch", "go", "measure", "sure")
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
        hold = await asked(hf, flow)
        found = await (await hf.service()).preview(hold)
        assert entries(found, "yes")[-1].text == "Asks a person: 3300000 characters?"


async def test_an_endless_loop_is_followed_for_a_while_and_told_in_few_lines(tmp_path: Path) -> None:
    flow = Flow[Any]("counts")
    flow.hold("ask", prompt="Count?", options=["go"], bind="answer")

    @flow.node(effect="pure")
    def count(state: dict[str, Any]) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    @flow.node(effect="pure")
    def look(state: dict[str, Any]) -> dict[str, Any]:
        return {}

    flow.chain("ask", "count", "look")
    flow.loop("look", "count", when="n > 0", max=1_000_000)
    async with Holdfast(f"sqlite:{tmp_path / 'holdfast.db'}") as hf:
        hold = await asked(hf, flow)
        found = entries(await (await hf.service()).preview(hold), "go")
    assert len(found) < 110
    assert [entry.text for entry in found[:3]] == ["Runs count.", "Runs look.", "Runs count."]
    assert found[-2].text.endswith("more steps without outside effects.")
    assert (
        found[-1].text == "The preview ends here: it has more than the 2000 records that a preview follows."
    )


async def test_effects_after_many_steps_are_told_and_of_very_many_the_first(tmp_path: Path) -> None:
    body = Flow[Any]("body")

    @body.node(effect="pure")
    def weigh(state: dict[str, Any]) -> dict[str, Any]:
        return {}

    @body.node
    def send(state: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("sent in a preview")

    body.chain("weigh", "send")
    flow = Flow[Any]("sends")
    flow.hold("ask", prompt="Send?", options=["go"], bind="answer")

    @flow.node(effect="pure")
    def collect(state: dict[str, Any]) -> dict[str, Any]:
        return {"parcels": list(range(230))}

    flow.map("parcels_sent", over="parcels", body=body, into="sent", concurrency=230)
    flow.chain("ask", "collect", "parcels_sent")
    async with Holdfast(f"sqlite:{tmp_path / 'holdfast.db'}") as hf:
        hold = await asked(hf, flow)
        found = entries(await (await hf.service()).preview(hold), "go")
    assert sum(entry.kind == "effect" for entry in found) == 200
    assert "Runs 131 more steps without outside effects." in [entry.text for entry in found]
    assert found[-1].text == "30 more effects, questions and failures are not shown."


@pytest.mark.covers("WEB-PREVIEW")
@pytest.mark.parametrize("kind", ["node", "step"])
async def test_code_that_never_returns_costs_previews_two_threads_and_not_one_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(preview, "PATIENCE", 0.2)
    release, inside = threading.Event(), list[int]()

    def stay() -> None:
        inside.append(1)
        release.wait(HANG)

    flow: Flow[Any] = Flow("stuck")
    ask = flow.hold("ask", prompt="Go on?", options=["yes"])
    if kind == "node":

        @flow.node(effect="pure")
        def work(_s: dict[str, Any]) -> None:
            stay()

    else:

        @flow.node(effect="pure")
        async def work(_s: dict[str, Any], ctx: Context) -> None:
            await ctx.step("stays", stay, effect="pure")

    flow.chain(ask, "work")
    flow.start(ask)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        hold = await asked(hf, flow)
        service = await hf.service()
        try:
            for _ in range(5):
                found = await preview_hold(service, hold)
            assert len(inside) == 2
            assert STUCK in str(texts(found))
        finally:
            release.set()


@pytest.mark.covers("WB-34")
async def test_a_fork_with_another_state_is_followed_along_its_new_way(hf: Holdfast, tmp_path: Path) -> None:
    """Its pure nodes run, its questions are asked with the new values, and nothing happens outside."""
    ledger = tmp_path / "ledger"
    flow = claims(ledger)
    hold = await asked(hf, flow)
    service = await hf.service()
    row = await service.get(hold.run)

    async def way(patch: dict[str, Any], at: int | None = None) -> list[str]:
        found = await preview_change(service, row, "fork", at=at, patch={"scratch": patch}, actor=None)
        return [entry.text for entry in found.way]

    before = await rows_of(hf)
    assert await way({"amount": 7}) == ["Asks a person: Pay 7?"]
    assert await way({"amount": 7}, at=0) == ["Runs read_letter.", "Asks a person: Pay 90?"]
    assert (await preview_change(service, row, "fork", actor=None)).way == []
    with pytest.raises(InputError, match="changes no state"):
        await preview_change(service, row, "cancel", patch={"scratch": {"amount": 7}}, actor=None)
    with pytest.raises(StateError):
        await way({"amount": "much"})
    assert not ledger.exists()
    assert await rows_of(hf) == before


@pytest.mark.covers("WB-34")
async def test_a_fork_previews_the_branch_that_its_state_leads_to(hf: Holdfast) -> None:
    flow, done = Flow[Any]("sizes", effect="pure"), list[str]()
    flow.node(id="measure")(lambda _s: {"amount": 50})
    flow.node(id="check")(lambda _s: {})
    flow.node(id="pay_small", effect="external", idempotency_key="small")(lambda _s: done.append("small"))
    flow.node(id="pay_big", effect="external", idempotency_key="big-{{amount}}")(
        lambda _s: done.append("big")
    )
    flow.edge("measure", "check")
    flow.edge("check", "pay_big", when="amount > 100")
    flow.edge("check", "pay_small", otherwise=True)
    result = await flow.run({}, on=hf)
    service = await hf.service()
    row = await service.get(result.run_id)

    async def way(at: int) -> list[tuple[str, str, str]]:
        patch = {"scratch": {"amount": 500}}
        found = await preview_change(service, row, "fork", at=at, patch=patch, actor=None)
        return [(entry.kind, entry.node, entry.key) for entry in found.way]

    assert await way(1) == [("step", "check", ""), ("effect", "pay_big", "big-500")]
    # At this record the branch was chosen already: another amount does not change it.
    assert await way(2) == [("effect", "pay_small", "small")]
    assert done == ["small"]
