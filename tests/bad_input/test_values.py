"""Values that a store could not give back exactly, wherever a flow may hand one over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.checkpoint import envelope, size_limit
from holdfast.errors import InputError, ValueNotStorableError, ValueTooLargeError
from holdfast.runs import record_codec
from holdfast.types.status import RunStatus
from tests.bad_input.messages import (
    Odd,
    assert_failed,
    assert_refused,
    assert_told,
    containing_itself,
    nested,
)

pytestmark = pytest.mark.anyio

HALF = "half a pair: \ud800"
Work = Callable[[Any, Context], Awaitable[Any]]


def flow_of(work: Work, **options: Any) -> Flow:
    flow = Flow("odd", effect="pure")
    flow.node(id="odd", **options)(work)
    return flow


BAD = {
    "object": (Odd, "Odd"),
    "object in a list": (lambda: [1, {"a": Odd()}], "Odd"),
    "function": (lambda: print, "builtin_function"),
    "half a character": (lambda: HALF, "surrogate"),
    "half a character as a key": (lambda: {HALF: 1}, "surrogate"),
    "itself": (containing_itself, "contains itself"),
    "too deep": (lambda: nested(200), "nested more than 64"),
}


@pytest.fixture(params=list(BAD))
def bad(request: pytest.FixtureRequest) -> tuple[Callable[[], Any], str]:
    return BAD[request.param]


@pytest.mark.covers("CORE-BAD-05", "CORE-BAD-20")
async def test_node_fails_when_it_returns_a_value_that_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, _ctx: Context) -> Any:
        return {"field": make()}

    assert_failed(await flow_of(work).run(on=hf), "odd", ValueNotStorableError, "field", why)


@pytest.mark.covers("CORE-BAD-05")
async def test_node_fails_when_its_output_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, _ctx: Context) -> Any:
        return [make()]

    assert_failed(await flow_of(work).run(on=hf), "odd", ValueNotStorableError, "odd", why)


@pytest.mark.covers("CORE-BAD-05")
async def test_run_is_not_created_when_its_input_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, _ctx: Context) -> None:
        raise AssertionError("it ran")

    with pytest.raises(ValueNotStorableError) as caught:
        await flow_of(work).run({"field": make()}, on=hf)
    assert_refused(caught.value, "field", why)


@pytest.mark.covers("CORE-BAD-05")
async def test_node_fails_when_an_artifact_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, ctx: Context) -> None:
        ctx.artifact("report", make())

    assert_failed(await flow_of(work).run(on=hf), "odd", ValueNotStorableError, "report", why)


@pytest.mark.covers("CORE-BAD-05")
async def test_node_fails_when_the_result_of_a_pure_step_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, ctx: Context) -> None:
        await ctx.step("first", lambda: 1, effect="pure")
        await ctx.step("look", make, effect="pure")

    assert_failed(await flow_of(work).run(on=hf), "odd", ValueNotStorableError, "'look'", why)


@pytest.mark.covers("CORE-BAD-05")
async def test_person_is_asked_when_the_result_of_an_effect_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, _why = bad
    paid: list[int] = []
    flow = Flow("odd")

    def pay() -> Any:
        paid.append(1)
        return make()

    @flow.script
    async def odd(_s: Any, ctx: Context) -> None:
        await ctx.step("pay", pay)

    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert "odd" in result.holds[0].prompt
    assert (await flow.resume(result.run_id, on=hf)).waiting
    assert paid == [1]


@pytest.mark.covers("CORE-BAD-05")
async def test_node_fails_when_it_emits_what_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, ctx: Context) -> None:
        ctx.emit("fine")
        ctx.emit(make())
        await asyncio.sleep(0)

    result = await flow_of(work).run(on=hf)
    assert_failed(result, "odd", ValueNotStorableError, "emits", why)
    events = await (await hf.service()).events(result.run_id)
    assert [event.data["data"] for event in events if event.type == "node.emitted"] == ["fine"]


@pytest.mark.covers("CORE-BAD-05")
async def test_sync_node_fails_when_it_emits_what_cannot_be_stored(hf: Holdfast) -> None:
    flow = Flow("odd", effect="pure")

    @flow.node
    def odd(_s: Any, ctx: Context) -> None:
        ctx.emit(Odd())

    assert_failed(await flow.run(on=hf), "odd", ValueNotStorableError, "emits", "Odd")


@pytest.mark.covers("CORE-BAD-05")
async def test_node_fails_when_the_context_of_a_question_cannot_be_stored(
    hf: Holdfast, bad: tuple[Callable[[], Any], str]
) -> None:
    make, why = bad

    async def work(_s: Any, ctx: Context) -> None:
        await ctx.ask("Go on?", context={"what": make()})

    result = await flow_of(work).run(on=hf)
    assert_failed(result, "odd", ValueNotStorableError, "ctx.ask", why)
    assert not result.holds


@pytest.mark.covers("CORE-BAD-05")
async def test_map_fails_when_the_result_of_an_item_cannot_be_stored(hf: Holdfast) -> None:
    flow = Flow("odd", effect="pure")
    flow.map("each", over="items", body=lambda item: HALF if item == 2 else item, into="found")
    result = await flow.run({"items": [1, 2, 3]}, on=hf)
    assert result.failed
    assert result.error is not None
    assert_told(result.error.message, "surrogate")


@pytest.mark.covers("CORE-BAD-05")
async def test_external_node_asks_a_person_when_its_result_cannot_be_stored(hf: Holdfast) -> None:
    """It has happened, and what it came to is not known: like any effect in doubt."""
    paid: list[int] = []
    flow = Flow("odd")

    @flow.node(effect="external")
    async def pay(_s: Any) -> dict[str, Any]:
        paid.append(1)
        return {"receipt": HALF}

    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert paid == [1]


@pytest.mark.covers("CORE-BAD-05")
@pytest.mark.parametrize(
    "misuse",
    [
        lambda ctx: ctx.artifact(5, "value"),
        lambda ctx: ctx.emit("text", kind=5),
        lambda ctx: ctx.spent(tokens=1.5),
        lambda ctx: ctx.spent(cost=float("nan")),
        lambda ctx: ctx.step(5, lambda: 1, effect="pure"),
        lambda ctx: ctx.step("name", "no function", effect="pure"),
        lambda ctx: ctx.step("name", lambda: 1, effect="harmless"),
        lambda ctx: ctx.ask(5),
        lambda ctx: ctx.ask(HALF),
        lambda ctx: ctx.ask("Who?", assignee=5),
        lambda ctx: ctx.ask("What?", options=[5]),
        lambda ctx: ctx.ask("What?", options=["yes"] * 2),
        lambda ctx: ctx.ask("When?", timeout="soon"),
        lambda ctx: ctx.ask("When?", timeout=-1),
    ],
)
async def test_node_fails_when_its_context_is_given_nonsense(
    hf: Holdfast, misuse: Callable[..., Any]
) -> None:
    """Each would otherwise be a record that nobody can read."""

    async def work(_s: Any, ctx: Context) -> None:
        found = misuse(ctx)
        if found is not None:
            await found

    result = await flow_of(work).run(on=hf)
    assert result.failed
    assert result.failed_node == "odd"
    assert result.error is not None
    codes = {"invalid_input", "answer_invalid", "expression_invalid"}
    assert result.error.code in codes, result.error


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.covers("CORE-BAD-05")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(HALF), "half a pair: ?"),
        (_Mute(), "cannot be read"),
        (ValueError("x" * 100_000), "characters"),
    ],
    ids=["half a character", "without words", "endless"],
)
async def test_run_fails_in_words_that_can_be_stored_when_an_error_has_none(
    hf: Holdfast, error: Exception, text: str
) -> None:
    async def work(_s: Any, _ctx: Context) -> None:
        raise error

    result = await flow_of(work).run(on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.type == type(error).__name__
    assert text in result.error.message
    assert len(result.error.message) < 20_000


# ---------------------------------------------------------------------- too large


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """The real limit is 256 MB; nothing else differs."""
    limit = 200_000
    monkeypatch.setattr(size_limit, "MAX_SIZE", limit)
    monkeypatch.setattr(size_limit, "MAX_EMITTED", limit)
    for fn in (envelope.pack_envelope, envelope.encode_body, record_codec.spill):
        monkeypatch.setitem(fn.__kwdefaults__, "limit", limit)
    return limit


LARGE: dict[str, Callable[[Context], Any]] = {
    "a field": lambda _ctx: {"field": "x" * 300_000},
    "a list in a field": lambda _ctx: {"field": [i * 1.5 for i in range(40_000)]},
    "an output": lambda _ctx: b"x" * 300_000,
    "an artifact": lambda ctx: ctx.artifact("field", "x" * 300_000),
    "what it emits": lambda ctx: ctx.emit({"field": "x" * 300_000}),
    "a step's result": lambda ctx: ctx.step("field", lambda: "x" * 300_000, effect="pure"),
}


@pytest.mark.covers("CORE-BAD-06", "CORE-BAD-20")
@pytest.mark.parametrize("what", list(LARGE))
async def test_node_fails_with_size_and_limit_when_a_value_is_too_large(
    hf: Holdfast, small_limit: int, what: str
) -> None:
    async def work(_s: Any, ctx: Context) -> Any:
        found = LARGE[what](ctx)
        return await found if asyncio.iscoroutine(found) else found

    result = await flow_of(work).run(on=hf)
    assert_failed(result, "odd", ValueTooLargeError, f"{small_limit:,}", "encoded bytes")


@pytest.mark.covers("CORE-BAD-06")
async def test_node_fails_when_it_adds_too_much_to_a_list_at_once(hf: Holdfast, small_limit: int) -> None:
    flow = Flow("odd", effect="pure", reducers={"log": "append"})

    @flow.node
    async def odd(_s: Any) -> dict[str, Any]:
        return {"log": ["x" * 100_000 for _ in range(3)]}

    assert_failed(await flow.run(on=hf), "odd", ValueTooLargeError, f"{small_limit:,}", "several steps")


@pytest.mark.covers("CORE-BAD-06")
async def test_run_is_not_created_when_its_input_is_too_large(hf: Holdfast, small_limit: int) -> None:
    async def work(_s: Any, _ctx: Context) -> None:
        raise AssertionError("it ran")

    with pytest.raises(ValueTooLargeError) as caught:
        await flow_of(work).run({"field": "x" * 300_000}, on=hf)
    assert_refused(caught.value, f"{small_limit:,}", "reference")


# ---------------------------------------------------------------------- how a run is started


@pytest.mark.covers("CORE-BAD-20")
@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"run_id": "refund-17"}, "UUID"),
        ({"run_id": 17}, "text"),
        ({"tenant": 17}, "tenant"),
        ({"tenant": ""}, "tenant is empty"),
        ({"lane": HALF}, "lane"),
        ({"idempotency_key": 17}, "idempotency_key"),
        ({"priority": "high"}, "priority"),
        ({"priority": 2**70}, "priority"),
        ({"mode": "careless"}, "barrier, strict, exit"),
    ],
    ids=str,
)
async def test_run_is_not_created_when_an_option_means_nothing(
    hf: Holdfast, options: dict[str, Any], part: str
) -> None:
    async def work(_s: Any, _ctx: Context) -> None:
        raise AssertionError("it ran")

    with pytest.raises(InputError) as caught:
        await flow_of(work).run(on=hf, **options)
    assert_refused(caught.value, part)
