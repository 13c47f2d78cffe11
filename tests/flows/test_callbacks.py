"""`ctx.callback`: another system completes a place of a script with a token, once, and with nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, RunStatus, Worker
from holdfast.errors import (
    CallbackExpiredError,
    CallbackFailedError,
    CallbackNotFoundError,
    CallbackUsedError,
    HeartbeatMissedError,
    InputError,
    RateLimitedError,
    StepFailedError,
    WaitTimeoutError,
)
from holdfast.holds.actions.rate_limit import Pace
from holdfast.holds.callbacks import Callbacks
from holdfast.holds.links.keys import LinkKeys
from holdfast.runs.run_view import shown_run
from holdfast.store.protocols import Store
from tests.flows.places import RUN, Place

pytestmark = pytest.mark.anyio

BUILD = Flow("build", effect="read")
SENT: list[str] = []


@BUILD.script
async def build(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    callback = await ctx.callback("built", timeout="1d", heartbeat=s.get("heartbeat"))
    await ctx.step("order", SENT.append, callback.token, effect="external")
    try:
        return {"built": await callback.result()}
    except HeartbeatMissedError:
        return {"built": "silent"}
    except WaitTimeoutError:
        return {"built": "late"}
    except CallbackFailedError as error:
        return {"built": f"failed: {error.facts['data']}"}


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


async def callbacks(hf: Holdfast) -> Callbacks:
    return Callbacks((await hf.holds()).ctx)


async def built(place: Place, run: str) -> Any:
    return (await BUILD.resume(run, on=await place.hf())).expect().state["built"]


@pytest.mark.covers("USERS-CALLBACK")
async def test_a_callback_is_handed_over_in_a_step_and_completed_by_its_token(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    assert result.status is RunStatus.pending_input
    row = await (await hf.service()).get(result.run_id)
    shown = await shown_run(await hf.open(), row)
    assert (shown.waits_for[0].callback, shown.label) == ("built", "waiting for the callback built")
    (token,) = SENT
    await (await callbacks(await place.hf())).complete(token, {"image": "a17"})
    assert await built(place, result.run_id) == {"image": "a17"}
    assert [token] == SENT


@pytest.mark.covers("USERS-BAD-TOKEN")
async def test_a_token_is_used_once_and_the_same_outcome_again_changes_nothing(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    tokens = await callbacks(hf)
    first = await tokens.complete(SENT[0], 1)
    assert (await tokens.complete(SENT[0], 1)).version == first.version
    for other in (tokens.complete(SENT[0], 2), tokens.fail(SENT[0], "broken"), tokens.heartbeat(SENT[0])):
        with pytest.raises(CallbackUsedError):
            await other
    assert await built(place, result.run_id) == 1


@pytest.mark.covers("USERS-BAD-TOKEN")
async def test_a_token_that_is_unknown_of_another_run_or_changed_completes_nothing(place: Place) -> None:
    hf = await place.hf()
    one, two = [await BUILD.run({}, on=hf) for _ in range(2)]
    tokens = await callbacks(hf)
    first, second = SENT
    mixed, flipped = first[:24] + second[24:], first[:-1] + ("A" if first[-1] != "A" else "B")
    for wrong in ("", "x" * 64, first[:-1], first + "A", mixed, flipped, "\N{SNOWMAN}" * 64):
        with pytest.raises(CallbackNotFoundError):
            await tokens.complete(wrong)
    for key, _ in await tokens.keys.kept("default"):
        await tokens.keys.delete("default", key.id)
    with pytest.raises(CallbackNotFoundError):
        await tokens.complete(first)
    for run in (one, two):
        assert (await BUILD.resume(run.run_id, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("USERS-CALLBACK")
async def test_the_store_has_no_token_and_keys_that_are_rotated_leave_it_valid(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    store: Store = await hf.open()
    (hold,) = await (await hf.service()).holds(result.run_id)
    stored = repr(await store.read(result.run_id)) + repr(hold)
    assert SENT[0][24:] not in stored
    await LinkKeys(store).rotate("default")
    await (await callbacks(hf)).complete(SENT[0], 1)
    assert await built(place, result.run_id) == 1


@pytest.mark.covers("USERS-CALLBACK", "USERS-BAD-TOKEN")
async def test_a_callback_is_over_in_time_and_its_token_then_too(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    tokens = await callbacks(hf)
    place.clock.advance(days=2)
    # Before a worker has noticed it, too.
    for late in (tokens.complete(SENT[0]), tokens.heartbeat(SENT[0])):
        with pytest.raises(CallbackExpiredError, match="its time is over"):
            await late
    await (await hf.service()).runtime.sweep_holds()
    with pytest.raises(CallbackExpiredError):
        await tokens.complete(SENT[0])
    assert await built(place, result.run_id) == "late"


@pytest.mark.covers("USERS-CALLBACK")
@pytest.mark.parametrize("beats", [0, 3])
async def test_heartbeats_keep_a_callback_and_a_missing_one_ends_it_before_its_time(
    place: Place, beats: int
) -> None:
    hf = await place.hf()
    result = await BUILD.run({"heartbeat": "1h"}, on=hf)
    tokens, runtime = await callbacks(hf), (await hf.service()).runtime
    for _ in range(beats):
        place.clock.advance(minutes=50)
        await runtime.sweep_holds()
        await tokens.heartbeat(SENT[0])
    place.clock.advance(minutes=61)
    await runtime.sweep_holds()
    with pytest.raises(CallbackExpiredError, match="heartbeat"):
        await tokens.heartbeat(SENT[0])
    assert await built(place, result.run_id) == "silent"
    # Entered again from the journal, it is the same: every flow test replays its runs, too.
    assert await built(place, result.run_id) == "silent"


@pytest.mark.covers("USERS-CALLBACK")
async def test_heartbeats_do_not_make_a_callback_longer_than_its_time_limit(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({"heartbeat": "20h"}, on=hf)
    place.clock.advance(hours=19)
    row = await (await callbacks(hf)).heartbeat(SENT[0])
    assert row.expires_at == row.time_limit
    place.clock.advance(hours=6)
    await (await hf.service()).runtime.sweep_holds()
    assert await built(place, result.run_id) == "late"


@pytest.mark.covers("USERS-CALLBACK")
async def test_a_failure_that_is_reported_is_an_error_of_the_script(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    with pytest.raises(InputError):
        await (await callbacks(hf)).fail(SENT[0], " ")
    await (await callbacks(hf)).fail(SENT[0], "no disk", {"code": 28})
    assert await built(place, result.run_id) == "failed: {'code': 28}"


async def test_a_callback_is_not_answered_by_people(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    service = await hf.service()
    (hold,) = await service.holds(result.run_id)
    with pytest.raises(InputError, match="callback"):
        await service.answer(hold.id, "completed")


@pytest.mark.covers("USERS-BAD-TOKEN")
async def test_one_token_is_used_at_the_pace_of_links(place: Place) -> None:
    hf = await place.hf(pace=Pace(link=2))
    await BUILD.run({}, on=hf)
    tokens = await callbacks(hf)
    for _ in range(2):
        await tokens.heartbeat(SENT[0])
    with pytest.raises(RateLimitedError):
        await tokens.complete(SENT[0])


async def test_callbacks_with_wrong_options_are_refused(place: Place) -> None:
    flow = Flow("wrong", effect="read")

    @flow.script
    async def wrong(s: dict[str, Any], ctx: Context) -> None:
        await ctx.callback(**s["given"])

    hf = await place.hf()
    for given in (
        {"name": ""},
        {"name": "x" * 101},
        {"name": "x", "timeout": "soon"},
        {"name": "x", "heartbeat": 0},
    ):
        failed = await flow.run({"given": given}, on=hf)
        assert failed.status is RunStatus.failed
        assert "ctx.callback" in str(failed.error)


async def test_a_run_that_is_cancelled_ends_its_callback(place: Place) -> None:
    hf = await place.hf()
    result = await BUILD.run({}, on=hf)
    await (await hf.service()).cancel(result.run_id)
    await Worker(BUILD, on=hf).run_until_idle()
    with pytest.raises(CallbackExpiredError, match="does not wait"):
        await (await callbacks(hf)).complete(SENT[0])


async def test_a_sync_script_hands_a_callback_over(place: Place) -> None:
    flow = Flow("plain", effect="read")

    @flow.script
    def wait(s: dict[str, Any], ctx: Any) -> dict[str, Any]:
        callback = ctx.callback("built")
        ctx.step("order", SENT.append, callback.token, effect="external")
        return {"built": callback.result()}

    hf = await place.hf()
    result = await flow.run({}, on=hf)
    await (await callbacks(hf)).complete(SENT[0], "yes")
    assert (await flow.resume(result.run_id, on=hf)).expect().state["built"] == "yes"


# ------------------------------------------------------------------ killed
@pytest.mark.covers("USERS-CALLBACK")
@pytest.mark.parametrize(
    ("point", "nth"),
    [("after_settle", 2), ("after_intent", 1), ("after_substep", 1), ("after_park", 1), ("after_answer", 1),
     ("after_settle", 4), ("inside_settle", 2)],
)  # fmt: skip
async def test_a_callback_is_applied_once_when_workers_die_around_it(
    place: Place, point: str, nth: int
) -> None:
    await kill_around_callbacks(place, point, nth)


@pytest.mark.soak
@pytest.mark.covers("USERS-CALLBACK")
@pytest.mark.parametrize("nth", range(1, 8))
@pytest.mark.parametrize("point", ["after_settle", "inside_settle", "after_answer", "after_park"])
async def test_a_callback_is_applied_once_when_workers_die_at_any_commit(
    place: Place, point: str, nth: int
) -> None:
    await kill_around_callbacks(place, point, nth, may_miss=True)


TWICE = Flow("twice", effect="read")


@TWICE.script
async def two_callbacks(ctx: Context) -> dict[str, Any]:
    got = []
    for name in ("first", "second"):
        callback = await ctx.callback(name, timeout="30d")
        await ctx.step(f"order {name}", _order, name, callback.token, idempotent=True)
        got.append(await callback.result())
    return {"got": got}


async def _order(name: str, token: str) -> None:
    SENT.append(f"{name} {token}")


async def kill_around_callbacks(place: Place, point: str, nth: int, *, may_miss: bool = False) -> None:
    hf = await place.hf()
    await (await hf.service()).create(TWICE.compile(), {}, run_id=RUN)

    async def work() -> None:
        await Worker(TWICE, on=hf).run_until_idle()
        await complete_sent(hf)
        await Worker(TWICE, on=hf).run_until_idle()

    await place.die_at(point, nth, work, may_miss=may_miss)
    for _ in range(2):
        later = await place.finish(TWICE)
        await complete_sent(later)
    later = await place.finish(TWICE)
    assert (await TWICE.result(RUN, on=later)).expect().state["got"] == ["first done", "second done"]
    # A script that is entered again hands the same token over.
    assert len(set(SENT)) == 2


async def complete_sent(hf: Holdfast) -> None:
    for sent in sorted(set(SENT)):
        name, token = sent.split()
        await (await callbacks(hf)).complete(token, f"{name} done")


# ------------------------------------------------------------------ nodes
@pytest.mark.covers("USERS-CALLBACK")
async def test_a_callback_node_hands_over_its_token_and_stores_the_result(place: Place) -> None:
    flow = Flow("order", effect="read")

    @flow.callback("built", timeout="1d", heartbeat="1h", into="image", idempotent=True)
    async def order(s: dict[str, Any], callback: Any) -> None:
        SENT.append(callback.token)
        assert (s["name"], callback.url) == ("a17", f"/v1/callbacks/{callback.token}")

    @flow.node
    async def ship(s: dict[str, Any]) -> dict[str, Any]:
        return {"shipped": s["image"]}

    flow.edge("built", ship)
    hf = await place.hf()
    done, lost = [await flow.run({"name": "a17"}, on=hf) for _ in range(2)]
    await (await callbacks(hf)).complete(SENT[0], "a17:1")
    await (await callbacks(hf)).fail(SENT[1], "no disk")
    assert (await flow.resume(done.run_id, on=await place.hf())).expect().state["shipped"] == "a17:1"
    failed = await flow.resume(lost.run_id, on=await place.hf())
    assert (failed.status, failed.failed_node, "no disk" in str(failed.error)) == (
        RunStatus.failed, "built", True
    )  # fmt: skip


@pytest.mark.covers("USERS-CALLBACK")
async def test_the_token_is_masked_where_an_error_or_a_line_of_the_log_names_it() -> None:
    flow, seen = Flow("tells", effect="read"), list[str]()

    async def send(callback: Any) -> None:
        raise ValueError(f"cannot reach the builder for {callback.url}")

    @flow.script
    async def wait(s: dict[str, Any], ctx: Context) -> None:
        callback = await ctx.callback("built", timeout="1d")
        seen[:] = [callback.token]
        ctx.log.warning("the token is %s", callback.token)
        try:
            await ctx.step("send", send, callback, effect="read")
        except StepFailedError as error:
            raise RuntimeError(f"{error} {callback.token}") from error

    async with Holdfast("memory:") as hf:
        result = await flow.run({}, on=hf)
        service = await hf.service()
        assert (result.failed, len(seen[0])) == (True, 64)
        recorded = repr([await service.events(result.run_id), await service.get(result.run_id)])
        assert "cannot reach the builder" in recorded
        assert seen[0] not in recorded
        assert seen[0] not in repr(await service.story(result.run_id))
        assert seen[0].encode() not in await service.export_run(result.run_id, decrypt=True)


async def test_a_token_that_is_no_text_is_an_input_error(place: Place) -> None:
    service = await callbacks(await place.hf())
    for token in (None, 5, b"token", "half \ud800"):
        given: Any = token
        for call in (service.complete(given), service.fail(given, "no"), service.heartbeat(given)):
            with pytest.raises(InputError):
                await call
