"""The saver on each store: LangGraph's own suite, threads and event loops, sizes, bad input."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast import Holdfast, Retention
from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.errors import CheckpointCorruptError, ConflictError, InputError, SettingsError
from holdfast.integrations import partner_versions
from holdfast.integrations.langgraph import HoldfastSaver, private_names
from holdfast.runs.retention import RetentionSweep
from holdfast.testing.clock import FakeClock
from holdfast.types.graph_thread import GraphFilter
from tests.services import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holdfast.store.protocols import Store

pytestmark = pytest.mark.anyio

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def ring() -> StaticKeys:
    return StaticKeys(with_scope(None, EVERYBODY, new_scope(datetime(2026, 1, 1, tzinfo=UTC))))


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[HoldfastSaver]:
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as opened:
        yield opened


def config_of(thread: str, checkpoint: str | None = None) -> Any:
    given: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": given if checkpoint is None else given | {"checkpoint_id": checkpoint}}


def checkpoint_of(name: str, values: dict[str, Any], versions: dict[str, str]) -> Any:
    made: Any = {**empty_checkpoint(), "id": name}
    return made | {"channel_values": values, "channel_versions": versions}


async def append(saver: HoldfastSaver, count: int, size: int, thread: str = "t") -> list[list[str]]:
    """So many checkpoints, each with one more text in a list; returns the lists."""
    version, items, parent = None, list[str](), None
    lists: list[list[str]] = []
    for n in range(count):
        items = [*items, f"{n:08}" + "x" * (size - 8)]
        lists.append(items)
        version = saver.get_next_version(version, None)
        made = checkpoint_of(f"{n:08}", {"items": items, "n": n}, {"items": version, "n": version})
        parent = await saver.aput(config_of(thread, parent), made, {"step": n}, made["channel_versions"])
        parent = parent["configurable"]["checkpoint_id"]
    return lists


async def rows_of(saver: HoldfastSaver, thread: str = "t") -> list[Any]:
    return await (await saver.store()).graph_checkpoints(
        GraphFilter(tenant="default", thread=thread), limit=5000
    )


# ---------------------------------------------------------------------- LangGraph's own suite


@pytest.mark.covers("IN-45", "IN-10", "IN-12", "IN-18")
@pytest.mark.parametrize("kind", ["sqlite", "encrypted", "postgres"])
async def test_the_saver_has_all_capabilities_of_langgraphs_own_suite(kind: str, tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    if kind == "postgres":
        address = postgres.with_setting(postgres.database(), schema="savers")
        await postgres.empty("savers")

    async with AsyncExitStack() as stack:
        keys = ring() if kind == "encrypted" else None
        opened = await stack.enter_async_context(HoldfastSaver.open(address, keys=keys))

        async def one() -> AsyncIterator[HoldfastSaver]:
            yield opened

        report = await validate(checkpointer_test(name=kind)(one))
    assert report.passed_all(), [each.failures for each in report.results.values()]


@pytest.mark.covers("IN-10")
def test_every_method_of_langgraphs_saver_is_overridden() -> None:
    kept = {"get", "aget", "with_allowlist", "config_specs"}  # made of the others
    public = {name for name, _ in inspect.getmembers(BaseCheckpointSaver, inspect.isfunction)}
    methods = {name for name in public if not name.startswith("_")} - kept
    inherited = {n for n in methods if getattr(HoldfastSaver, n) is getattr(BaseCheckpointSaver, n)}
    assert inherited == set()


@pytest.mark.covers("IN-3", "IN-21")
def test_langgraph_still_has_the_private_names_that_are_used() -> None:
    from langgraph._internal import _constants as constants

    assert constants.CONFIG_KEY_RUNTIME == private_names.RUNTIME
    assert constants.CONFIG_KEY_TASK_ID == private_names.TASK
    from langgraph.checkpoint.base import CheckpointMetadata

    assert private_names.DELTA_COUNTERS in CheckpointMetadata.__annotations__
    from langgraph.pregel import Pregel
    from langgraph.pregel._executor import AsyncBackgroundExecutor, BackgroundExecutor
    from langgraph.pregel._loop import PregelLoop

    assert private_names.SUBMIT in PregelLoop.__annotations__
    for executor in (AsyncBackgroundExecutor, BackgroundExecutor):
        assert f"self.{private_names.TASKS}:" in inspect.getsource(executor.__init__)
    assert all(inspect.isfunction(getattr(Pregel, name)) for name in private_names.STREAMS)


# ---------------------------------------------------------------------- threads and loops


@pytest.mark.covers("IN-11")
async def test_sync_methods_work_beside_a_running_loop_and_from_other_threads(saver: HoldfastSaver) -> None:
    made = checkpoint_of("1", {"a": 1}, {"a": "1"})
    saver.put(CONFIG, made, {"step": 0}, {"a": "1"})
    found: list[Any] = []

    def other() -> None:
        found.append(saver.get_tuple(CONFIG))
        found.append(asyncio.run(saver.aget_tuple(CONFIG)))
        found.extend(saver.list(CONFIG, filter={"step": 0}))

    thread = threading.Thread(target=other)
    thread.start()
    await asyncio.to_thread(thread.join)
    found.append(await saver.aget_tuple(CONFIG))
    assert [each.checkpoint["channel_values"] for each in found] == [{"a": 1}] * 4
    assert list(saver.list(CONFIG, filter={"step": 1})) == []


@pytest.mark.covers("IN-11")
def test_a_saver_opens_without_a_loop(tmp_path: Path) -> None:
    with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as saver:
        saver.put(CONFIG, checkpoint_of("1", {}, {}), {}, {})
        saver.put_writes(config_of("t", "1"), [("a", 1)], "task")
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.pending_writes == [("task", "a", 1)]
        saver.copy_thread("t", "u")
        with saver.own("t"):
            saver.prune(["t"])
        saver.delete_thread("t")
        assert saver.get_tuple(CONFIG) is None
        assert saver.get_tuple(config_of("u")) is not None


# ---------------------------------------------------------------------- sizes


@pytest.mark.covers("IN-15")
async def test_appends_store_little_more_than_what_is_appended(saver: HoldfastSaver) -> None:
    lists = await append(saver, 300, 1000)
    store, rows = await saver.store(), await rows_of(saver)
    payload = sum(len(text) for text in lists[-1])
    values = await store.graph_values("default", "t", [n for row in rows for n in row.values])
    assert sum(len(value.data) for value in values) <= 2 * payload
    assert all(len(row.values) == 1 for row in rows), "the small value is in the row"
    for n in (0, 1, 150, 299):
        found = await saver.aget_tuple(config_of("t", f"{n:08}"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"items": lists[n], "n": n}
        (number,) = next(row for row in rows if row.id == f"{n:08}").values
        read = await store.graph_values("default", "t", [number])
        assert sum(len(each.data) for each in read) <= 3 * sum(map(len, lists[n])) + 100


@pytest.mark.covers("IN-15")
async def test_a_saver_that_remembers_nothing_continues_the_differences(saver: HoldfastSaver) -> None:
    await append(saver, 20, 500)
    async with Holdfast(saver.holdfast._given) as hf:  # pyright: ignore[reportPrivateUsage]
        fresh = HoldfastSaver(hf)
        found = await fresh.aget_tuple(CONFIG)
        assert found is not None
        items = [*found.checkpoint["channel_values"]["items"], "y" * 500]
        versions = found.checkpoint["channel_versions"]
        new = fresh.get_next_version(versions["items"], None)  # pyright: ignore[reportArgumentType]
        made = checkpoint_of("9", {"items": items, "n": 19}, {**versions, "items": new})
        await fresh.aput(config_of("t", "00000019"), made, {}, {"items": new})
        await fresh.aclose()
    again = await saver.aget_tuple(CONFIG)
    assert again is not None
    assert again.checkpoint["channel_values"] == {"items": items, "n": 19}
    row = next(row for row in await rows_of(saver) if row.id == "9")
    store = await saver.store()
    value = next(v for v in await store.graph_values("default", "t", row.values) if v.number in row.values)
    assert value.base is not None


async def test_a_value_that_was_not_changed_is_kept_though_the_saver_remembers_nothing(
    saver: HoldfastSaver,
) -> None:
    await append(saver, 1, 500)
    version = (await saver.aget_tuple(CONFIG)).checkpoint["channel_versions"]  # type: ignore[union-attr]
    saver.forget("t")
    made = checkpoint_of("2", {"items": ["ignored: not a new version"], "b": 1}, {**version, "b": "1"})
    await saver.aput(config_of("t", "00000000"), made, {}, {"b": "1"})
    found = await saver.aget_tuple(CONFIG)
    assert found is not None
    assert len(found.checkpoint["channel_values"]["items"][0]) == 500
    assert found.checkpoint["channel_values"]["b"] == 1


@pytest.mark.covers("IN-18")
async def test_with_a_serializer_that_encrypts_values_are_stored_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Turned:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "turned", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    with caplog.at_level(logging.INFO):
        async with HoldfastSaver.open(address, serde=EncryptedSerializer(Turned())) as saver:
            lists = await append(saver, 5, 500)
            found = await saver.aget_tuple(CONFIG)
            values = await (await saver.store()).graph_values(
                "default", "t", [n for row in await rows_of(saver) for n in row.values]
            )
    assert found is not None
    assert found.checkpoint["channel_values"]["items"] == lists[-1]
    assert [value.base for value in values] == [None] * 5
    assert caplog.text.count("not as differences") == 1


# ---------------------------------------------------------------------- bad input


@pytest.mark.covers("IN-19")
@pytest.mark.parametrize("thread", ["", "x" * 513, "a\x00b", "\ud800", None])
async def test_a_bad_thread_id_is_refused(saver: HoldfastSaver, thread: Any) -> None:
    with pytest.raises(InputError, match="thread_id"):
        await saver.aget_tuple({"configurable": {"thread_id": thread}})


@pytest.mark.covers("IN-19")
async def test_damaged_bytes_are_reported_with_their_place(saver: HoldfastSaver) -> None:
    store: Store = await saver.store()
    await append(saver, 1, 500)
    (row,) = await store.stored_rows("graph_values", after=-1, limit=9)
    await store.rewrite("graph_values", [(row, row.values | {"data": b"\xc1" + row.values["data"][1:]})])
    with pytest.raises(CheckpointCorruptError, match="items") as caught:
        await saver.aget_tuple(CONFIG)
    assert caught.value.facts == {"thread": "t", "checkpoint": "00000000", "channel": "items"}


@pytest.mark.covers("IN-19")
async def test_pickle_is_neither_written_nor_read(saver: HoldfastSaver) -> None:
    with pytest.raises(SettingsError, match="pickle"):
        HoldfastSaver(saver.holdfast, serde=JsonPlusSerializer(pickle_fallback=True))

    class Pickles(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "pickle", b""

    with pytest.raises(InputError, match="pickle"):
        await HoldfastSaver(saver.holdfast, serde=Pickles()).aput(CONFIG, checkpoint_of("1", {}, {}), {}, {})
    assert await saver.aget_tuple(CONFIG) is None


async def test_an_existing_target_and_unknown_strategies_are_refused(saver: HoldfastSaver) -> None:
    await append(saver, 1, 10)
    await saver.acopy_thread("t", "u")
    with pytest.raises(ConflictError, match="'u' exists"):
        await saver.acopy_thread("t", "u")
    with pytest.raises(InputError, match="'oldest'"):
        await saver.aprune(["t"], strategy="oldest")


@pytest.mark.covers("IN-17")
@pytest.mark.parametrize("key", ["it's", 'a"b', "a.b", "$x", "a b"])
async def test_checkpoints_are_found_by_any_key_of_their_metadata(saver: HoldfastSaver, key: str) -> None:
    metadata: Any = {key: {"deep": [1, "x"]}}
    await saver.aput(CONFIG, checkpoint_of("1", {}, {}), metadata, {})
    await saver.aput(CONFIG, checkpoint_of("2", {}, {}), {}, {})

    async def found(wanted: Any) -> list[str]:
        return [each.checkpoint["id"] async for each in saver.alist(CONFIG, filter=wanted)]

    assert await found(metadata) == ["1"]
    assert await found({key: {"deep": [1]}}) == []
    assert await found({key: None}) == ["2"]
    with pytest.raises(InputError, match="no JSON"):
        await found({key: object()})


@pytest.mark.covers("IN-2")
def test_holdfast_imports_no_langgraph_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.integrations.langgraph")]:
        monkeypatch.delitem(sys.modules, name)

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(partner_versions, "version", absent)
    with pytest.raises(ImportError, match=r"pip install 'holdfast-flow\[langgraph\]'"):
        import holdfast.integrations.langgraph as _  # noqa: F401


def _joined(values: list[str], writes: list[list[str]]) -> list[str]:
    return [*values, *(text for write in writes for text in write)]


@pytest.mark.covers("IN-24")
async def test_delta_channels_survive_prune_and_copy_right_after_an_invocation(saver: HoldfastSaver) -> None:
    from typing import Annotated, TypedDict

    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import START, StateGraph

    channel = DeltaChannel(_joined, snapshot_frequency=1000)
    lines = TypedDict("lines", {"lines": Annotated[list[str], channel]})  # noqa: UP013
    builder: Any = StateGraph(lines)
    builder.add_node("a", lambda _state: {"lines": ["a"]})
    builder.add_edge(START, "a")
    graph, config = builder.compile(checkpointer=saver), config_of("t")
    for name in ("1", "2"):
        await graph.ainvoke({"lines": [name]}, config)
    await saver.acopy_thread("t", "u")
    await saver.aprune(["t"])
    assert len([each async for each in saver.alist(config)]) == 1
    assert (await graph.ainvoke({"lines": ["3"]}, config))["lines"] == ["1", "a", "2", "a", "3", "a"]
    assert (await graph.aget_state(config_of("u"))).values["lines"] == ["1", "a", "2", "a"]
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(config) is None


async def checkpoints(saver: HoldfastSaver, thread: str) -> int:
    return len([each async for each in saver.alist(config_of(thread))])


@pytest.mark.covers("IN-16")
async def test_workers_apply_the_retention_of_threads() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        saver = HoldfastSaver(hf, retention=Retention(keep=3, days=2))
        await append(saver, 5, 100, "old")
        clock.advance(days=1)
        await append(saver, 5, 100, "young")
        sweep = RetentionSweep(await hf.service())
        await sweep.sweep()
        assert (await checkpoints(saver, "old"), await checkpoints(saver, "young")) == (3, 3)
        clock.advance(days=1, seconds=1)
        await append(saver, 1, 100, "busy")
        async with saver.own("busy"):
            await sweep.sweep()
        assert (await checkpoints(saver, "old"), await checkpoints(saver, "young")) == (0, 3)
        # What is kept can be read.
        kept = await saver.aget_tuple(config_of("young"))
        assert kept is not None
        assert len(kept.checkpoint["channel_values"]["items"]) == 5


@pytest.mark.covers("IN-16")
async def test_a_thread_that_another_process_has_is_left_for_the_next_time(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    async with HoldfastSaver.open(address, retention=Retention(keep=1)) as saver:
        await append(saver, 3, 100, "a")
        await append(saver, 3, 100, "b")
        async with HoldfastSaver.open(address) as other, other.own("a"):
            await saver.apply_retention()
            assert (await checkpoints(saver, "a"), await checkpoints(saver, "b")) == (3, 1)
        await saver.apply_retention()
        assert await checkpoints(saver, "a") == 1


@pytest.mark.covers("IN-12")
async def test_what_follows_a_repeated_put_is_readable(saver: HoldfastSaver) -> None:
    text = "".join(str(n) for n in range(1000))
    first = checkpoint_of("1", {"text": text}, {"text": "1"})
    for name in ("1", "2", "1"):
        given = first if name == "1" else checkpoint_of("2", {"text": text}, {"text": "1"})
        for _ in range(2):
            await saver.aput(CONFIG, given, {}, {"text": "1"})
    kept = checkpoint_of("3", {"text": text, "n": 1}, {"text": "1", "n": "1"})
    await saver.aput(config_of("t", "2"), kept, {}, {"n": "1"})
    longer = checkpoint_of("4", {"text": text + "end"}, {"text": "2"})
    await saver.aput(config_of("t", "3"), longer, {}, {"text": "2"})
    found = [each.checkpoint["channel_values"]["text"] async for each in saver.alist(CONFIG)]
    assert found == [text + "end", text, text, text]


@pytest.mark.covers("IN-15")
async def test_a_thread_that_another_process_deleted_begins_with_whole_values(
    saver: HoldfastSaver, tmp_path: Path
) -> None:
    text = "".join(str(n) for n in range(1000))
    for name in ("1", "2"):
        assert await saver.aget_tuple(CONFIG) is None
        await saver.aput(CONFIG, checkpoint_of(name, {"text": text}, {"text": name}), {}, {"text": name})
        found = await saver.aget_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"text": text}
        async with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as other:
            await other.adelete_thread("t")
