"""`hf.effect`: one effect without a flow, found again by its key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    EffectInDoubtError,
    EffectRejectedError,
    EffectWaitingError,
    HoldExpiredError,
    Holdfast,
    InputError,
    KeyReusedError,
    NotDone,
    OutcomeUnknownError,
    Retry,
    RunBusyError,
    VersionMismatchError,
    Worker,
)
from holdfast.app.effect_function import effect_of
from holdfast.errors import (
    HoldfastError,
    RunCancelledError,
    RunExistsError,
    SettingsError,
    ValueNotStorableError,
)
from holdfast.runs import create
from holdfast.testing.clock import FakeClock

pytestmark = [pytest.mark.anyio, pytest.mark.covers("USERS-EFFECT")]


@pytest.fixture
async def memory(anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:") as opened:
        yield opened


async def answer(hf: Holdfast, error: HoldfastError, decision: str, **more: Any) -> None:
    await (await hf.service()).answer(str(error.facts["hold"]), decision, **more)


async def test_a_call_with_the_same_key_returns_the_recorded_result_exactly(hf: Holdfast) -> None:
    calls: list[str] = []

    @hf.effect(key="charge-{{order}}")
    async def charge(order: str, amount: Decimal, *more: int, currency: str = "EUR") -> dict[str, Any]:
        calls.append(order)
        return {"paid": amount, "at": datetime(2026, 11, 17, tzinfo=UTC), "pair": (1, [more]), 5: None}

    first = await charge("A17", Decimal("2.50"), 7)
    again = await charge("A17", Decimal("2.50"), 7, currency="EUR")
    assert first == again == {
        "paid": Decimal("2.50"), "at": datetime(2026, 11, 17, tzinfo=UTC), "pair": (1, [(7,)]), 5: None
    }  # fmt: skip
    assert calls == ["A17"]
    with pytest.raises(KeyReusedError, match="other arguments"):
        await charge("A17", Decimal("9.99"), 7)
    await charge("A18", Decimal("9.99"))
    assert calls == ["A17", "A18"]


async def test_a_plain_function_is_called_beside_a_running_loop_and_without_one(hf: Holdfast) -> None:
    calls: list[str] = []

    @hf.effect(key=lambda to, text: f"{to}/{len(text)}")
    def send(to: str, text: str) -> list[str]:
        """Sends a text."""
        calls.append(to)
        return [to, text]

    assert send("dana", "hello") == ["dana", "hello"]
    assert await asyncio.to_thread(send, "dana", "hello") == ["dana", "hello"]
    assert (send.__name__, send.__doc__, len(calls)) == ("send", "Sends a text.", 1)


async def test_an_effect_waits_for_approval_and_happens_once_after_it(hf: Holdfast) -> None:
    calls: list[str] = []

    @hf.effect(key="{{order}}", hold="Refund {{amount}} for {{order}}?")
    async def refund(order: str, amount: int) -> int:
        calls.append(order)
        return amount

    for _ in range(2):
        with pytest.raises(EffectWaitingError) as waiting:
            await refund("A17", 250)
    holds = await (await hf.service()).holds()
    assert [(hold.id, hold.prompt) for hold in holds] == [
        (waiting.value.facts["hold"], "Refund 250 for A17?")
    ]
    assert json.loads(holds[0].context)["arguments"] == {"order": "A17", "amount": 250}
    assert calls == []
    await answer(hf, waiting.value, "approve")
    assert [await refund("A17", 250), await refund("A17", 250)] == [250, 250]
    assert calls == ["A17"]


async def test_a_rejected_effect_is_never_done(memory: Holdfast) -> None:
    @memory.effect(key="{{order}}", hold={"options": ["approve", "later", "reject"], "timeout": "1d"})
    def refund(order: str) -> None:
        raise AssertionError(order)

    with pytest.raises(EffectWaitingError) as waiting:
        refund("A17")
    await answer(memory, waiting.value, "later")
    for _ in range(2):
        with pytest.raises(EffectRejectedError, match="'later'"):
            refund("A17")


async def test_an_approval_that_did_not_come_in_time_is_asked_for_again(anyio_backend: str) -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:

        @hf.effect(key="{{order}}", hold={"timeout": "1h"})
        async def refund(order: str) -> str:
            return order

        with pytest.raises(EffectWaitingError) as first:
            await refund("A17")
        clock.advance(hours=2)
        await (await hf.service()).runtime.sweep_holds()
        with pytest.raises(HoldExpiredError):
            await refund("A17")
        with pytest.raises(EffectWaitingError) as second:
            await refund("A17")
        assert first.value.facts["hold"] != second.value.facts["hold"]
        await answer(hf, second.value, "approve")
        assert await refund("A17") == "A17"


async def test_a_call_that_waits_gets_the_result_when_the_person_answers(memory: Holdfast) -> None:
    @memory.effect(key="{{order}}", hold=True, wait=None)
    async def refund(order: str) -> str:
        return order

    call = asyncio.ensure_future(refund("A17"))
    service = await memory.service()
    run = effect_of(refund).run_of("A17")  # type: ignore[union-attr]
    while await service.store.get_run(run) is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    async for event in service.stream(run):
        if event.type == "hold.opened":
            break
    await service.answer((await service.holds())[0].id, "approve")
    assert await call == "A17"


async def test_an_error_that_proves_nothing_becomes_a_question(hf: Holdfast) -> None:
    calls: list[str] = []

    @hf.effect(key="{{order}}")
    async def charge(order: str) -> str:
        calls.append(order)
        raise ConnectionError("connection lost")

    with pytest.raises(EffectInDoubtError) as first:
        await charge("A17")
    assert isinstance(first.value.__cause__, ConnectionError)
    with pytest.raises(EffectInDoubtError) as again:
        await charge("A17")
    assert again.value.facts == first.value.facts
    await answer(hf, first.value, "happened", data={"value": "r-1"})
    assert [await charge("A17"), await charge("A17")] == ["r-1", "r-1"]
    assert calls == ["A17"]


async def test_an_effect_that_did_not_happen_runs_again_after_the_answer(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}")
    async def charge(order: str) -> int:
        calls.append(order)
        if len(calls) == 1:
            raise ConnectionError("connection lost")
        return len(calls)

    with pytest.raises(EffectInDoubtError) as doubt:
        await charge("A17")
    await answer(memory, doubt.value, "not_happened")
    assert await charge("A17") == 2


async def test_an_effect_without_a_result_that_ran_again_returns_none(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}")
    async def charge(order: str) -> None:
        calls.append(order)
        if len(calls) == 1:
            raise ConnectionError("connection lost")

    with pytest.raises(EffectInDoubtError) as doubt:
        await charge("A17")
    await answer(memory, doubt.value, "not_happened")
    assert [await charge("A17"), await charge("A17")] == [None, None]
    assert len(calls) == 2


async def test_an_error_that_proves_that_nothing_happened_is_raised_and_the_next_call_tries_again(
    memory: Holdfast,
) -> None:
    calls: list[str] = []

    class Declined(Exception):
        pass

    @memory.effect(key="{{order}}", retry=Retry(1, retry_on=[Declined]))
    async def charge(order: str) -> int:
        calls.append(order)
        if len(calls) == 1:
            raise Declined("no money")
        if len(calls) == 2:
            raise NotDone("closed")
        return len(calls)

    with pytest.raises(Declined, match="no money"):
        await charge("A17")
    with pytest.raises(NotDone):
        await charge("A17")
    assert [await charge("A17"), await charge("A17")] == [3, 3]


async def test_the_outcome_stays_unknown_in_every_call_where_the_policy_is_to_fail(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}", in_doubt="fail")
    async def charge(order: str) -> None:
        calls.append(order)
        raise ConnectionError("connection lost")

    for _ in range(3):
        with pytest.raises(OutcomeUnknownError):
            await charge("A17")
    assert calls == ["A17"]


async def test_an_effect_that_may_be_repeated_is_retried_by_the_next_call(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}", in_doubt="retry", retry=Retry(2, delay="1ms"))
    async def put(order: str) -> int:
        calls.append(order)
        if len(calls) < 4:
            raise ConnectionError("connection lost")
        return len(calls)

    with pytest.raises(ConnectionError):
        await put("A17")
    assert len(calls) == 2
    assert await put("A17") == 4


async def test_a_probe_finds_out_whether_it_happened(memory: Holdfast) -> None:
    world: dict[str, str] = {}

    def look(order: str) -> str | None:
        return world.get(order)

    @memory.effect(key="{{order}}", probe=look)
    async def charge(order: str) -> str:
        world[order] = f"receipt of {order}"
        raise ConnectionError("connection lost")

    assert await charge("A17") == "receipt of A17"


async def test_an_effect_that_took_too_long_is_in_doubt(memory: Holdfast) -> None:
    @memory.effect(key="{{order}}", timeout="10ms", secrets=["card"])
    async def charge(order: str, card: str) -> None:
        await asyncio.Event().wait()

    with pytest.raises(EffectInDoubtError) as doubt:
        await charge("A17", "4111")
    assert doubt.value.__cause__ is None
    with pytest.raises(KeyReusedError):
        await charge("A17", "4222")


async def test_a_result_that_cannot_be_recorded_is_in_doubt_and_names_why(memory: Holdfast) -> None:
    @memory.effect(key="{{order}}")
    async def charge(order: str) -> Any:
        return object()

    with pytest.raises(EffectInDoubtError) as doubt:
        await charge("A17")
    assert isinstance(doubt.value.__cause__, ValueNotStorableError)


async def test_arguments_that_are_not_recorded_come_from_the_caller(memory: Holdfast) -> None:
    class Shop:
        def __init__(self) -> None:
            self.calls: list[str] = []

        @memory.effect(key="{{order}}", ignore=["client"])
        def charge(self, client: object, order: str) -> str:
            self.calls.append(order)
            return f"{type(client).__name__} {order}"

    shop = Shop()
    assert shop.charge(object(), "A17") == shop.charge(object(), "A17") == "object A17"
    assert shop.calls == ["A17"]
    with pytest.raises(ValueNotStorableError, match="ignore="):
        shop.charge(None, object())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Receipt:
    number: int


async def test_types_of_the_signature_are_recorded_as_they_are(memory: Holdfast) -> None:
    @memory.effect(key="{{given.number}}")
    async def pay(given: Receipt) -> Receipt:
        return Receipt(given.number + 1)

    assert await pay(Receipt(1)) == await pay(Receipt(1)) == Receipt(2)


async def test_a_key_that_another_process_runs_is_refused_where_that_is_declared(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    started, finish = asyncio.Event(), asyncio.Event()

    async def charge(order: str) -> str:
        started.set()
        await finish.wait()
        return order

    async with Holdfast(address) as one, Holdfast(address) as other:
        first = asyncio.ensure_future(one.effect(key="{{order}}")(charge)("A17"))
        await started.wait()
        with pytest.raises(RunBusyError, match="another process"):
            await other.effect(key="{{order}}", on_conflict="refuse")(charge)("A17")
        second = asyncio.ensure_future(one.effect(key="{{order}}")(charge)("A17"))
        await asyncio.sleep(0)
        finish.set()
        assert await first == await second == "A17"


async def test_a_cancelled_call_and_a_cancelled_run_are_not_done_again(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}", hold=True)
    async def charge(order: str) -> None:
        calls.append(order)

    with pytest.raises(EffectWaitingError) as waiting:
        await charge("A17")
    service = await memory.service()
    await service.cancel(str(waiting.value.facts["run"]))
    for _ in range(2):
        with pytest.raises(RunCancelledError):
            await charge("A17")
    assert calls == []


async def test_a_fork_of_a_call_does_not_repeat_its_effect(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}")
    async def charge(order: str) -> None:
        calls.append(order)

    await charge("A17")
    effect = effect_of(charge)
    assert effect is not None
    forked = await effect.flow.fork(effect.run_of("A17"), 0, on=memory)
    assert forked.failed
    assert "another key" in forked.error.message  # type: ignore[union-attr]
    assert calls == ["A17"]


async def test_a_worker_runs_what_was_approved(memory: Holdfast) -> None:
    calls: list[str] = []

    @memory.effect(key="{{order}}", hold=True)
    async def charge(order: str) -> str:
        calls.append(order)
        return order

    with pytest.raises(EffectWaitingError) as waiting:
        await charge("A17")
    await answer(memory, waiting.value, "approve")
    effect = effect_of(charge)
    assert effect is not None
    await Worker(effect.flow, on=memory).run_until_idle()
    assert calls == ["A17"]
    assert await charge("A17") == "A17"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "{{nothing}}"}, "parameters"),
        ({"key": ""}, "1 to 255"),
        ({"key": "charge-{order}"}, "not replaced. Write {{order}}"),
        ({"key": lambda order: 5}, "must be text"),
        ({"key": "{{order}}", "ignore": ["client"]}, "does not take"),
        ({"key": "{{order}}", "hold": {"options": ["yes"]}}, "'approve'"),
        ({"key": "{{order}}", "on_conflict": "x"}, "refuse"),
        ({"key": "{{order}}", "wait": "soon"}, "wait is"),
        ({"key": "{{order}}", "effect": "dangerous"}, "effect"),
        ({"key": "{{order}}", "in_doubt": "probe"}, "probe="),
        ({"key": "{{order}}", "probe": 3}, "probe is 3"),
        ({"key": 5}, "key is 5"),
        ({"key": "{{order}}", "tenant": None}, "tenant is None"),
        ({"key": "{{order}}", "hold": 5}, "asks 5"),
        ({"key": "{{order}}", "secrets": ["crad"]}, "hides 'crad'"),
        ({"key": "{{order}}\ud800"}, "surrogate"),
    ],
)
async def test_a_wrong_declaration_says_what_to_write(
    memory: Holdfast, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        memory.effect(**options)(_sample)("A17")


def _sample(order: str) -> str:
    return order


async def test_a_question_does_not_show_secret_arguments(memory: Holdfast) -> None:
    asked = memory.effect(key="pay", hold="Pay with {{order}}?", secrets=["order"])(_sample)
    with pytest.raises(EffectWaitingError) as waiting:
        asked("4111")
    (hold,) = await (await memory.service()).holds(str(waiting.value.facts["run"]))
    assert "4111" not in hold.prompt


async def test_a_judge_that_is_not_there_is_refused(memory: Holdfast) -> None:
    asked = memory.effect(key="{{order}}", hold={"prompt": "Pay?", "shadow": "nobody"})(_sample)
    with pytest.raises(SettingsError, match="no judge here"):
        asked("A17")


async def test_a_schedule_of_an_effect_is_refused(memory: Holdfast) -> None:
    with pytest.raises(InputError, match="started by calls"):
        await (await memory.schedules()).put("hourly", "effect.pay", every="1h")


async def test_one_name_is_one_function(memory: Holdfast) -> None:
    memory.effect(key="{{order}}", name="pay")(_sample)
    with pytest.raises(InputError, match="name="):
        memory.effect(key="{{order}}", name="pay")(answer)
    with pytest.raises(InputError, match="name="):
        memory.effect(key="{{order}}")(lambda order: order)
    with pytest.raises(InputError, match="generator"):

        @memory.effect(key="x")
        def stream() -> Any:
            yield 1


async def test_a_changed_question_does_not_change_one_that_is_open(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        with pytest.raises(EffectWaitingError):
            hf.effect(key="{{order}}", name="pay", hold="Pay?")(_sample)("A17")
    async with Holdfast(address) as hf:
        # The text belongs to the call; who is asked, and the answers, belong to the version.
        with pytest.raises(EffectWaitingError):
            hf.effect(key="{{order}}", name="pay", hold="Really pay?")(_sample)("A17")
        assert [hold.prompt for hold in await (await hf.service()).holds()] == ["Pay?"]
    async with Holdfast(address) as hf:
        with pytest.raises(VersionMismatchError):
            hf.effect(key="{{order}}", name="pay", hold={"assignee": "user:dana"})(_sample)("A17")


async def test_a_run_that_no_call_has_started_does_not_stand_for_a_key(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[str] = []

    @hf.effect(key="pay-{{order}}")
    async def pay(order: str) -> None:
        paid.append(order)

    program, service = effect_of(pay).flow.program(), await hf.service()  # type: ignore[union-attr]
    given = {"key": "pay-A1", "arguments": {"order": "A1"}}
    for options in ({}, {"idempotency_key": "pay-A1"}, {"idempotency_key": "pay-A1", "tenant": "acme"}):
        with pytest.raises(InputError, match="started by calls of the effect 'pay' only"):
            await service.create(program, given, **options)
    # One that an earlier version let in.
    monkeypatch.setattr(create, "_require_call_of_effect", lambda *_: None)
    row, _ = await service.create(program, given, idempotency_key="pay-A1")
    with pytest.raises(RunExistsError, match=row.id):
        await pay("A1")
    assert paid == []


async def test_a_key_of_an_argument_that_is_null_or_empty_is_refused(hf: Holdfast) -> None:
    calls: list[Any] = []

    @hf.effect(key="charge-{{order}}-{{more.id}}")
    async def charge(order: str | None, more: dict[str, Any]) -> str:
        calls.append(order)
        return "done"

    for order, more in ((None, {"id": 1}), ("A", {"id": None}), ("", {"id": 1}), ("A", {"id": " "})):
        with pytest.raises(InputError, match=r"charge.*is empty"):
            await charge(order, more)
    assert calls == []
    assert await charge("A", {"id": 0}) == "done"
