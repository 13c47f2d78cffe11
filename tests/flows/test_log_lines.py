"""Lines of `ctx.log` are stored with the attempt that logged them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from holdfast import Context, Event, Flow, Holdfast, Retry, Secret
from holdfast.errors import SettingsError
from holdfast.runs.context import emit
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.events import reader_of
from holdfast.types.record import Kind
from tests.flows.places import Place, answer, kinds, told
from tests.flows.test_effects import Counting

pytestmark = pytest.mark.anyio


@dataclass
class Card:
    number: Annotated[str, Secret]


def lines(events: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.data["data"]["level"], event.data["data"]["text"])
        for event in events
        if event.data["kind"] == "log"
    ]


@pytest.mark.covers("WB-33-logs")
async def test_lines_of_a_node_are_stored_with_their_level_between_what_it_emits(hf: Holdfast) -> None:
    flow = Flow("logs")

    @flow.node(effect="read")
    async def work(ctx: Context) -> dict[str, Any]:
        ctx.log.debug("too fine")
        ctx.log.info("read %d rows", 3)
        ctx.emit("text")
        ctx.log.warning("%(left)d left", {"left": 2})
        try:
            raise ValueError("no such row")
        except ValueError:
            ctx.log.exception("one is broken")
        ctx.log.error("not %d a number", "text")
        ctx.log.info("half of a pair: \ud800")
        return {}

    result = await flow.run(on=hf)
    emitted = await told(hf, result, "node.emitted")
    found = lines(emitted)
    assert [event.data["kind"] for event in emitted[:3]] == ["log", "text", "log"]
    assert found[:2] == [("info", "read 3 rows"), ("warning", "2 left")]
    assert found[2][0] == "error"
    assert found[2][1].startswith("one is broken\nTraceback")
    assert found[2][1].endswith("ValueError: no such row")
    # What `logging` reports as an error of logging, and never raises.
    assert found[3] == ("error", "'not %d a number' ('text',)")
    assert found[4] == ("info", "half of a pair: \\ud800")
    records = await (await hf.open()).read(result.run_id)
    assert sum(record.kind == Kind.chunk for record in records) == 1


@pytest.mark.covers("WB-33-logs")
async def test_each_attempt_keeps_its_lines_when_it_fails(hf: Holdfast) -> None:
    flow = Flow("fails")

    @flow.node(effect="read", retry=Retry(2, delay=0))
    async def work(ctx: Context) -> dict[str, Any]:
        ctx.log.info("attempt %d begins", ctx.attempt)
        raise ValueError("never")

    result = await flow.run(on=hf)
    assert not result.completed
    emitted = await told(hf, result, "node.emitted")
    assert [(event.data["attempt"], event.data["data"]["text"]) for event in emitted] == [
        (1, "attempt 1 begins"),
        (2, "attempt 2 begins"),
    ]


@pytest.mark.covers("WB-33-logs")
async def test_lines_before_a_question_are_stored_once_and_shown_while_it_is_open(place: Place) -> None:
    flow = Flow("asks")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        async def think() -> int:
            ctx.log.info("inside")
            return 1

        ctx.log.info("before")
        ctx.emit("one")
        await ctx.step("think", think, effect="read")
        await ctx.ask("Well?", options=["yes"])
        ctx.emit("two")
        ctx.log.info("after")
        return {}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert [text for _, text in lines(await told(hf, result, "node.emitted"))] == ["before", "inside"]
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    emitted = await told(hf, result, "node.emitted")
    assert [text for _, text in lines(emitted)] == ["before", "inside", "after"]
    assert [event.data["data"] for event in emitted if event.data["kind"] == "text"] == ["one", "two"]
    assert "node.restarted" not in await kinds(hf, result)


@pytest.mark.covers("WB-33-logs")
async def test_threads_log_too_and_nothing_is_stored_after_the_end(hf: Holdfast) -> None:
    flow = Flow("threads")
    kept: list[Context] = []

    @flow.node(effect="read")
    def sync(ctx: Context) -> dict[str, Any]:
        ctx.log.info("from the thread of a sync node")
        return {}

    @flow.node(effect="read")
    async def beside(ctx: Context) -> dict[str, Any]:
        await asyncio.to_thread(ctx.log.info, "from a thread beside")
        kept.append(ctx)
        return {}

    flow.edge(sync, beside)
    result = await flow.run(on=hf)
    kept[0].log.info("after the end")
    await asyncio.to_thread(kept[0].log.info, "after the end")
    found = [text for _, text in lines(await told(hf, result, "node.emitted"))]
    assert found == ["from the thread of a sync node", "from a thread beside"]


@pytest.mark.covers("WB-33-logs")
async def test_an_attempt_stores_so_many_lines_and_bytes_and_a_reserve_of_warnings(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit, "MAX_LINES", 10)
    flow = Flow("loud")

    @flow.node(effect="read")
    async def work(ctx: Context) -> dict[str, Any]:
        ctx.log.info("x" * 20_000)
        for i in range(30):
            ctx.log.info("line %d", i)
        for i in range(30):
            ctx.log.error("error %d", i)
        return {}

    result = await flow.run(on=hf)
    found = [text for _, text in lines(await told(hf, result, "node.emitted"))]
    assert found[0] == f"{'x' * emit.LINE_BYTES} [11,808 more bytes]"
    assert found[1:10] == [f"line {i}" for i in range(9)]
    assert found[10].startswith("Later lines below warnings of this attempt are not stored: ")
    assert found[11:13] == ["error 0", "error 1"]
    assert found[13].startswith("Later lines of this attempt are not stored: ")
    assert len(found) == 14


@pytest.mark.covers("WB-33-logs")
@pytest.mark.parametrize(("level", "expected"), [("debug", ["fine", "coarse"]), ("error", []), ("off", [])])
async def test_the_lowest_stored_level_is_a_setting(
    place: Place, level: str, expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("levels")

    @flow.node(effect="read")
    async def work(ctx: Context) -> dict[str, Any]:
        ctx.log.debug("fine")
        ctx.log.warning("coarse")
        return {}

    hf = await place.hf(RunSettings(stored_log_level=level))
    with caplog.at_level(logging.INFO):
        result = await flow.run(on=hf)
    assert [text for _, text in lines(await told(hf, result, "node.emitted"))] == expected
    # The process logs as before, with the line of the flow's code.
    [logged] = [record for record in caplog.records if record.name == "holdfast.node"]
    assert (logged.getMessage(), logged.filename) == ("coarse", "test_log_lines.py")


async def test_a_level_that_does_not_exist_is_refused(place: Place) -> None:
    hf = await place.hf(RunSettings(stored_log_level="loud"))
    with pytest.raises(SettingsError, match="'loud'"):
        await hf.service()


@pytest.mark.covers("WB-33-logs")
async def test_lines_of_a_short_node_are_part_of_the_commit_of_its_step(hf: Holdfast) -> None:
    flow = Flow("commits")

    @flow.node(effect="read")
    async def quiet(ctx: Context) -> dict[str, Any]:
        return {}

    @flow.node(effect="write")
    async def loud(ctx: Context) -> dict[str, Any]:
        ctx.log.info("one")
        return {}

    flow.edge(quiet, loud)
    store = Counting(await hf.open())
    hf.register(flow.program())
    counted = Holdfast(store)  # pyright: ignore[reportArgumentType]
    assert (await flow.run(on=counted)).completed
    assert store.commits == [[Kind.step, Kind.intent], [Kind.chunk, Kind.step, Kind.end]]
    await counted.close()


@pytest.mark.covers("WB-33-logs")
async def test_secrets_are_masked_before_a_line_is_cut_and_stored(hf: Holdfast) -> None:
    flow = Flow("pays", state=Card)
    number = "4111-1111-1111-1111"

    @flow.node(effect="read")
    async def pay(s: Card, ctx: Context) -> dict[str, Any]:
        ctx.log.info("pays with %s", s.number)
        ctx.log.info("%s%s", "x" * (emit.LINE_BYTES - 8), s.number)
        return {}

    result = await flow.run(Card(number), on=hf)
    service = await hf.service()
    store, row = await hf.open(), await service.get(result.run_id)
    codec = (await reader_of(service, row)).codec
    stored = [codec.decode(each) for each in await store.read(result.run_id) if each.kind == Kind.chunk]
    first, second = [data["text"] for body in stored for _, data in body.items]
    assert first == "pays with ***"
    assert "4111" not in second
