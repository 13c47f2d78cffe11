"""When the store is in trouble: R-13, R-37, R-41 to R-44, R-49, R-52, R-63, RF-8, RS-FILE."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import (
    InputError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    VersionMismatchError,
)
from holdfast.runs.recorder import recorder
from holdfast.runs.recorder.queue import RunQueue
from holdfast.store.rows import RunFilter
from tests.flows.places import Place, answer, kinds, told
from tests.runtime.people import Seen, State, approval, line, listed, step, until

pytestmark = pytest.mark.anyio


class Trouble:
    """Writes of a store that fail as often as it is told, and are counted."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.writes = 0
        self.error: Callable[[], StoreError] = lambda: StoreBusyError("the disk is away")
        settle, settle_now = store.settle, store.settle_now

        async def slow(batches: Any) -> Any:
            self.count()
            return await settle(batches)

        def quick(batches: Any) -> Any:
            self.count()
            return settle_now(batches)

        monkeypatch.setattr(store, "settle", slow)
        monkeypatch.setattr(store, "settle_now", quick)
        monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.001, 0.001))
        monkeypatch.setattr(RunQueue, "may_wait", lambda *_: False)

    def count(self) -> None:
        self.writes += 1
        if self.left:
            self.left -= 1
            raise self.error()


def plodding(name: str, seen: Seen, *names: str, **options: Any) -> Flow:
    """Nodes that each take longer than the recorder waits before it writes."""
    flow = Flow(name, effect="pure", **options)
    before: Any = None
    for each in names:

        async def work(s: State, each: str = each) -> State:
            seen.calls.append(each)
            await asyncio.sleep(0.04)
            return {each: True}

        here = flow.node(id=each)(_taking_state(work))
        if before is not None:
            flow.edge(before, here)
        before = here
    return flow


def _taking_state(work: Any) -> Any:
    async def handler(s: State) -> State:
        return await work(s)

    return handler


@pytest.mark.covers("R-41")
async def test_a_failed_save_is_tried_again_and_nothing_is_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    trouble = Trouble(await hf.open(), monkeypatch)
    flow = line("retried", Seen(), "one", "two")
    trouble.left = 2

    result = await flow.run({}, on=hf)

    assert result.completed
    assert [c.node for c in await listed(hf, result.run_id)] == ["", "two", "one", ""]
    assert "run.uncheckpointed" not in await kinds(hf, result)


@pytest.mark.covers("R-41", "R-63")
async def test_a_run_goes_on_without_checkpoints_and_says_so_when_its_flow_allows_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hf = await place.hf()
    seen = Seen()
    flow = plodding("allowed", seen, "one", "two", "three", allow_uncheckpointed=True)
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.left = 9

    result = await flow.resume(row.id, on=hf)

    assert result.completed
    assert seen.calls == ["one", "two", "three"]
    (shown,) = await told(hf, row.id, "run.uncheckpointed")
    assert shown.data["error"]["code"] == "store_busy"
    assert [c.node for c in await listed(hf, row.id)] == ["", "three", "two", "one", ""]
    assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1


@pytest.mark.covers("R-63", "R-41")
async def test_a_run_stops_with_the_error_when_its_flow_does_not_allow_to_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    seen = Seen()
    flow = plodding("not_allowed", seen, "one", "two", "three")
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.left = 1000

    with pytest.raises(StoreBusyError):
        await flow.resume(row.id, on=hf)

    assert "three" not in seen.calls
    trouble.left = 0
    place.lapse()
    assert (await flow.resume(row.id, on=await place.hf())).completed


@pytest.mark.covers("R-63")
@pytest.mark.parametrize("effect", ["write", "external"])
async def test_no_effect_is_started_while_nothing_can_be_stored(
    place: Place, monkeypatch: pytest.MonkeyPatch, effect: str
) -> None:
    hf = await place.hf()
    seen = Seen()
    flow = plodding("effect", seen, "one", "two", allow_uncheckpointed=True)
    pay = step(flow, "pay", seen, effect=effect)
    flow.edge("two", pay)
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.left = 1000

    with pytest.raises(StoreBusyError):
        await flow.resume(row.id, on=hf)

    assert seen.calls == ["one", "two"]
    trouble.left = 0
    place.lapse()
    result = await flow.resume(row.id, on=await place.hf())
    assert result.completed
    assert seen.count("pay") == 1


@pytest.mark.covers("R-13", "R-43", "R-63")
@pytest.mark.parametrize("wait", ["hold", "timer"])
async def test_a_pause_is_an_error_while_nothing_can_be_stored(
    place: Place, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    hf = await place.hf()
    seen = Seen()
    flow = plodding("pause", seen, "one", "two", allow_uncheckpointed=True)
    gate = flow.timer("gate", "1h") if wait == "timer" else flow.hold("gate", prompt="Go?", options=["yes"])
    flow.edge("two", gate)
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.left = 1000

    with pytest.raises(StoreBusyError):
        await flow.resume(row.id, on=hf)

    trouble.left = 0
    assert await service.pending() == []
    place.lapse()
    assert (await flow.resume(row.id, on=await place.hf())).waiting


@pytest.mark.covers("R-41")
async def test_a_run_may_even_end_when_its_flow_allows_it_and_is_repeated_by_who_finds_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    seen = Seen()
    flow = plodding("ends", seen, "one", "two", allow_uncheckpointed=True)
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.left = 1000

    result = await flow.resume(row.id, on=hf)

    assert (result.completed, result.state) == (True, {"one": True, "two": True})

    async def gave_up() -> bool:
        return service.runtime.recorder._commit_task is None

    await until(gave_up)
    trouble.left = 0
    place.lapse()
    again = await flow.resume(row.id, on=await place.hf())
    assert (again.completed, again.state) == (True, result.state)


@pytest.mark.covers("R-42")
@pytest.mark.parametrize("helps", [True, False])
async def test_a_full_store_is_cleaned_once_before_the_run_gives_up(
    place: Place, monkeypatch: pytest.MonkeyPatch, helps: bool
) -> None:
    hf = await place.hf()
    old = line("old", Seen(), *"abcdefghijklmno")
    ended = await old.run({}, on=hf)
    many = len(await listed(hf, ended.run_id))
    service = await hf.service()
    flow = line("fills", Seen(), "one")
    row, _ = await service.create(flow.program(), {})
    trouble = Trouble(await hf.open(), monkeypatch)
    trouble.error = lambda: StoreFullError("no room")
    trouble.left = 2 if helps else 1000
    cleaned: list[int] = []
    clean = service.clean

    async def cleaning() -> None:
        cleaned.append((await clean()).records)

    monkeypatch.setattr(service.runtime.recorder, "make_room", cleaning)
    if helps:
        assert (await flow.resume(row.id, on=hf)).completed
    else:
        with pytest.raises(StoreFullError):
            await flow.resume(row.id, on=hf)

    assert len(cleaned) == 1
    assert cleaned[0] > 0
    trouble.left = 0
    assert len(await listed(hf, ended.run_id)) == 10 < many


@pytest.mark.covers("RF-8")
async def test_a_failed_save_is_raised_and_no_log_line_shows_the_state(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hf = await place.hf()
    flow = Flow("secret", effect="pure")

    @flow.node
    async def one(s: State) -> State:
        return {"card": "4242-SECRET-VALUE"}

    service = await hf.service()
    row, _ = await service.create(flow.program(), {"password": "hunter2-SECRET-VALUE"})
    Trouble(await hf.open(), monkeypatch).left = 1000
    with pytest.raises(StoreBusyError) as raised:
        await flow.resume(row.id, on=hf)
    assert caplog.records
    for text in (caplog.text, str(raised.value), str(raised.value.facts)):
        assert "SECRET-VALUE" not in text


@pytest.mark.covers("R-44", "RS-DB-1")
async def test_a_run_is_not_started_when_there_is_no_store(tmp_path: Path) -> None:
    seen = Seen()
    (tmp_path / "file").write_text("not a folder")
    for where in (tmp_path / "file" / "h.db", tmp_path):
        async with Holdfast(f"sqlite:{where}") as hf:
            with pytest.raises(StoreUnavailableError):
                await line("nowhere", seen, "one").run({}, on=hf)
    assert seen.calls == []


@pytest.mark.covers("RS-FILE-1", "RS-FILE-5")
async def test_the_folder_of_a_store_is_made_when_it_is_absent(tmp_path: Path) -> None:
    where = tmp_path / "deep" / "er" / "h.db"
    flow = line("folder", Seen(), "one")
    async with Holdfast(f"sqlite:{where}") as hf:
        result = await flow.run({}, on=hf)
    assert where.exists()
    async with Holdfast(f"sqlite:{where}") as hf:
        assert (await flow.resume(result.run_id, on=hf)).completed


@pytest.mark.covers("RS-FILE-2")
@pytest.mark.parametrize("unsafe", ["../../evil", "/etc/passwd", "a\x00b", "..", "C:\\x", "%2e%2e/x"])
async def test_unsafe_ids_never_leave_the_folder(tmp_path: Path, unsafe: str) -> None:
    inside = tmp_path / "inside"
    flow = line(unsafe.replace("\x00", "0"), Seen(), "one")
    async with Holdfast(f"sqlite:{inside / 'h.db'}") as hf:
        with pytest.raises(InputError):
            await flow.run({}, on=hf, run_id=unsafe)
        named = {"thread": unsafe, "tenant": unsafe, "idempotency_key": unsafe}
        if "\x00" in unsafe:
            return
        result = await flow.run({"data": bytes(3_000_000), unsafe: 1}, on=hf, **named)
        assert result.completed
    assert names_in(tmp_path) == ["inside"]
    assert all(name.startswith("h.db") for name in names_in(inside))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.covers("R-49")
async def test_the_next_node_starts_while_the_last_one_is_being_saved(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    store = await hf.open()
    saving, may_save, went_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    settle = store.settle

    async def slow(batches: Any) -> Any:
        saving.set()
        await may_save.wait()
        return await settle(batches)

    monkeypatch.setattr(store, "settle", slow)
    (await hf.service()).runtime.recorder.inline = False
    flow = Flow("unblocked", effect="pure")

    @flow.node
    async def one(s: State) -> State:
        return {}

    @flow.node
    async def two(s: State) -> State:
        await saving.wait()
        return {}

    @flow.node
    async def three(s: State) -> State:
        went_on.set()
        may_save.set()
        return {}

    flow.edge(one, two)
    flow.edge(two, three)
    assert (await flow.run({}, on=hf)).completed
    assert went_on.is_set()


@pytest.mark.covers("R-52")
async def test_a_run_costs_one_commit_when_checkpoints_are_switched_off(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    flow = line("off", Seen(), *(f"n{i}" for i in range(30)), mode="exit", checkpoints="none")
    trouble = Trouble(await hf.open(), monkeypatch)
    result = await flow.run({}, on=hf)
    assert result.completed
    assert trouble.writes == 1
    assert [c.node for c in await listed(hf, result.run_id)] == ["", ""]


@pytest.mark.covers("R-37")
async def test_a_run_is_restored_in_order_when_it_is_loaded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version, then integrity, then state, then the mail; only then does anything run."""
    from holdfast.runs.driver import run_inbox
    from holdfast.runs.driver.handler_call import HandlerCall

    order: list[str] = []
    seen = Seen()
    flow = approval("restored", seen)
    waiting = await flow.run({"amount": 1}, on=await place.hf())
    hf = await place.hf()
    await answer(hf, waiting, "approve")

    def noting(where: Any, name: str, called: str) -> None:
        real = getattr(where, name)

        def note(*args: Any, **more: Any) -> Any:
            order.append(called)
            return real(*args, **more)

        monkeypatch.setattr(where, name, note)

    service = await hf.service()
    noting(service.runtime, "program_for", "version")
    noting(service.runtime.codec_for(flow.program()), "decode", "integrity")
    noting(run_inbox.DriverInbox, "take", "mail")
    noting(HandlerCall, "run", "run")
    result = await flow.resume(waiting.run_id, on=hf)

    assert result.completed
    first = [order.index(each) for each in ("version", "integrity", "mail", "run")]
    assert first == sorted(first)
    assert seen.calls == ["before", "after"]


@pytest.mark.covers("R-37", "RF-3")
async def test_nothing_is_read_or_run_when_the_version_is_another(place: Place) -> None:
    seen = Seen()
    waiting = await approval("changed", seen).run({"amount": 1}, on=await place.hf())
    other = approval("changed", seen, priority="high")
    hf = await place.hf()
    await answer(hf, waiting, "approve")
    with pytest.raises(VersionMismatchError):
        await other.resume(waiting.run_id, on=hf)
    service = await hf.service()
    assert (await service.get(waiting.run_id)).status in ("pending_input", "resumable")
    assert len((await service.store.pending(waiting.run_id))[1]) == 1
    assert seen.calls == ["before"]
    assert len(await service.list(RunFilter())) == 1
