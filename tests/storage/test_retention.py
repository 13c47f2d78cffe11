"""Retention as flows declare it, applied by workers; what it never touches."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Worker, append
from holdfast.errors import RunBusyError, SettingsError
from holdfast.runs import retention as pruning
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.retention import RetentionSweep
from holdfast.store.open import open_store
from holdfast.testing.clock import FakeClock
from holdfast.types.retention import Retention
from holdfast.types.status import RunStatus
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


def counting(name: str = "count", **options: Any) -> Flow:
    flow = Flow(name, effect="pure", reducers={"seen": append}, **options)

    async def turn(s: dict[str, Any]) -> dict[str, Any]:
        return {"n": s["n"] + 1, "seen": [s["n"]], "text": f"{s['n'] % 3}" * 70_000}

    node = flow.node()(turn)
    flow.loop(node, node, when="n < 15", max=50)
    return flow


def asking(**options: Any) -> Flow:
    flow = Flow("asking", effect="pure", **options)
    flow.hold("ask", prompt="Well?", options=["yes", "no"])
    return flow


@pytest.mark.covers("TOOL-KEEP-01")
async def test_worker_keeps_what_each_flow_says_and_takes_the_rest() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        few, all_, brief = (
            counting("few", retention=Retention(keep=3)),
            counting("all", retention=Retention(keep=None)),
            counting("brief", retention=Retention(keep=5, days=2)),
        )
        runs = [(await flow.run({"n": 0}, on=hf)).run_id for flow in (few, all_, brief, counting("usual"))]
        service = await hf.service()
        clock.advance(days=3)
        young = (await brief.run({"n": 0}, on=hf)).run_id
        async with Worker(few, all_, brief, counting("usual"), on=hf):
            await _until(clock, lambda: _count(service, young), 5)
        assert [await _count(service, run) for run in runs] == [3, 17, None, 10]


async def _count(service: Any, run: str) -> int | None:
    if await service.store.get_run(run) is None:
        return None
    return len(await service.checkpoints(run, limit=0))


async def _until(clock: FakeClock, look: Any, wanted: Any) -> None:
    async with asyncio.timeout(HANG):
        for turn in count():
            if await look() == wanted:
                return
            if turn < 200:
                clock.advance(minutes=10)
            await asyncio.sleep(0.001)


@pytest.mark.covers("TOOL-KEEP-01")
async def test_setting_overrides_what_flows_declare() -> None:
    settings = RunSettings(retention=Retention(keep=2))
    async with Holdfast("memory:", settings=settings) as hf:
        run = (await counting(retention=Retention(keep=None)).run({"n": 0}, on=hf)).run_id
        worker = Worker(counting(retention=Retention(keep=None)), on=hf)
        keeper = (await worker._made()).retention_sweep  # pyright: ignore[reportPrivateUsage]
        assert (await keeper.sweep()).records > 0
        assert await _count(await hf.service(), run) == 2


@pytest.mark.covers("TOOL-KEEP-01")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_many_workers_forget_once(kind: str, tmp_path: Any) -> None:
    address = "memory:" if kind == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        flow = counting(retention=Retention(keep=2))
        runs = [(await flow.run({"n": 0}, on=hf)).run_id for _ in range(3)]
        service = await hf.service()
        before = [(await service.latest(run)).as_interface() for run in runs]
        done = await asyncio.gather(*(RetentionSweep(service).sweep() for _ in range(4)))
        assert sum(d.records for d in done) == 3 * 15
        assert [(await service.latest(run)).as_interface() for run in runs] == before


@pytest.mark.parametrize(
    "options", [{"keep": 0}, {"keep": -1}, {"days": 1, "older": "1d"}, {"older": "soon"}, {"days": -1}]
)
async def test_retention_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="retention"):
        Retention(**options)


@pytest.mark.covers("TOOL-KEEP-01")
def test_retention_makes_no_other_version() -> None:
    assert counting().program().version == counting(retention=Retention(keep=1)).program().version


@pytest.mark.covers("TOOL-KEEP-02", "D-35")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_forks_of_a_pruned_and_deleted_source_open_the_same_at_every_checkpoint(
    kind: str, tmp_path: Any
) -> None:
    address = "memory:" if kind == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        flow = counting()
        source = (await flow.run({"n": 0}, on=hf)).run_id
        service = await hf.service()
        forks = [await flow.fork(source, seq, on=hf) for seq in (2, 6, 11, 15)]
        before = [await _every(service, fork.run_id) for fork in forks]
        assert await service.prune(source, keep=1) > 0
        await service.collect_blobs(grace=-1)
        assert [await _every(service, fork.run_id) for fork in forks] == before
        assert await service.store.delete_run(source)
        await service.collect_blobs(grace=-1)
        assert [await _every(service, fork.run_id) for fork in forks] == before


async def _every(service: Any, run: str) -> list[Any]:
    listed = await service.checkpoints(run, limit=0)
    return [(await service.checkpoint(meta.id)).as_interface() for meta in listed]


@pytest.mark.covers("TOOL-KEEP-04", "D-37")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_pruning_lets_go_of_blobs_that_only_the_past_named(kind: str, tmp_path: Any) -> None:
    address = "memory:" if kind == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        one, two = [(await fetching().run({}, on=hf)).expect().run_id for _ in range(2)]
        service = await hf.service()
        assert len(await service.store.blobs_of(one)) == 2
        await service.prune(one, keep=1)
        assert len(await service.store.blobs_of(one)) == 1
        assert await service.collect_blobs(grace=-1) == 0, "the other run names it"
        await service.prune(two, keep=1)
        assert await service.collect_blobs(grace=-1) == 1
        assert (await service.latest(one)).state["text"] == "b" * 70_000


def fetching() -> Flow:
    """Of two large values only one reaches the state; the other is a sub-step's."""
    flow = Flow("fetching", effect="pure")

    async def fetch(s: dict[str, Any], ctx: Any) -> dict[str, Any]:
        await ctx.step("raw", lambda: "a" * 70_000)
        return {"text": "b" * 70_000}

    async def end() -> None:
        return None

    flow.edge(flow.node(effect="read")(fetch), flow.node()(end))
    return flow


@pytest.mark.covers("TOOL-KEEP-03")
async def test_waiting_run_is_untouched_by_every_way_of_forgetting() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        flow = asking(retention=Retention(keep=1, older="1s"))
        run = (await flow.run({}, on=hf)).run_id
        service = await hf.service()
        before = await service.store.history(run)
        clock.advance(days=400)
        await RetentionSweep(service).sweep()
        await service.clean(keep=1, older_than=1)
        with pytest.raises(RunBusyError, match="waits for an answer"):
            await service.prune(run)
        assert await service.store.history(run) == before


@pytest.mark.covers("TOOL-KEEP-03")
async def test_run_that_goes_on_between_the_plan_and_the_deed_is_left_alone() -> None:
    clock = FakeClock()
    async with Holdfast(await open_store("memory:", clock=clock), clock=clock) as hf:
        flow = Flow("failing", effect="pure")

        async def boom() -> None:
            raise ValueError("no")

        flow.node()(boom)
        run = (await flow.run({}, on=hf)).run_id
        service = await hf.service()
        clock.advance(days=2)
        retention = Retention(keep=1, days=1)
        (share,) = [share async for share in pruning.plan(service, retention)]
        await service.request_resume(run)
        done = pruning.CleanupResult()
        await pruning.apply_item(service, share, retention, done)
        assert (done.runs, (await service.get(run)).status) == (0, RunStatus.resumable)
        assert await service.store.prune(run, horizon=1, replace=None, ended=True) == 0


@pytest.mark.covers("TOOL-KEEP-02")
async def test_run_is_pruned_without_its_code_and_its_own_types_stay(tmp_path: Any) -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Price:
        amount: int
        currency: str

    flow = Flow("typed", effect="pure", types=[Price])

    async def set_price() -> dict[str, Any]:
        return {"price": Price(5, "EUR"), "prices": (Price(1, "USD"),)}

    async def again(s: dict[str, Any]) -> dict[str, Any]:
        return {"same": s["price"]}

    flow.edge(flow.node()(set_price), flow.node()(again))
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        run = (await flow.run({}, on=hf)).expect().run_id
    async with Holdfast(address) as hf:
        assert await (await hf.service()).prune(run, keep=1) > 0
    async with Holdfast(address) as hf:
        hf.register(flow.program())
        state = (await (await hf.service()).latest(run)).state
        assert (state["price"], state["same"], state["prices"]) == (
            Price(5, "EUR"),
            Price(5, "EUR"),
            (Price(1, "USD"),),
        )


@pytest.mark.covers("TOOL-KEEP-01")
def test_retention_is_read_from_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.cli.options.store import open_store_for_command
    from holdfast.types.retention import parse_retention

    assert parse_retention("keep=20,older=30d") == Retention(20, older="30d")
    assert parse_retention("older=12h") == Retention(None, older="12h")
    assert parse_retention("all") == Retention(None)
    for wrong in ("", "keep", "keep=x", "days=3", "keep=0", "older=soon"):
        with pytest.raises(SettingsError, match="retention"):
            parse_retention(wrong)
    monkeypatch.setenv("HOLDFAST_RETENTION", "keep=2")
    settings = open_store_for_command("memory:", must_exist=False)._settings  # pyright: ignore[reportPrivateUsage]
    assert settings is not None
    assert settings.retention == Retention(2)


@pytest.mark.covers("TOOL-KEEP-01", "R-42")
async def test_full_store_is_cleaned_as_the_flows_declare() -> None:
    async with Holdfast("memory:") as hf:
        kept = (await counting("kept", retention=Retention(keep=None)).run({"n": 0}, on=hf)).run_id
        few = (await counting("few", retention=Retention(keep=2)).run({"n": 0}, on=hf)).run_id
        service = await hf.service()
        make_room = service.runtime.recorder.make_room
        assert make_room is not None
        await make_room()
        assert (await _count(service, kept), await _count(service, few)) == (17, 2)


@pytest.mark.covers("TOOL-KEEP-01")
async def test_later_sweep_looks_only_at_runs_that_changed_or_grew_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        flow = counting(retention=Retention(keep=2, days=1))
        old = (await flow.run({"n": 0}, on=hf)).run_id
        service = await hf.service()
        keeper = RetentionSweep(service)
        clock.advance(seconds=1)
        await keeper.sweep()
        asked: list[str] = []
        share_of = pruning.share_of

        async def counted(service: Any, row: Any, retention: Any, **how: Any) -> Any:
            asked.append(row.id)
            return await share_of(service, row, retention, **how)

        monkeypatch.setattr(pruning, "share_of", counted)
        clock.advance(hours=2)
        await keeper.sweep()
        assert asked == []
        young = (await flow.run({"n": 0}, on=hf)).run_id
        clock.advance(hours=23)
        await keeper.sweep()
        assert sorted(asked) == sorted([old, young])
        assert (await _count(service, old), await _count(service, young)) == (None, 2)
