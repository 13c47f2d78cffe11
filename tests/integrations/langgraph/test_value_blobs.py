"""Large values of threads are blobs: read, shared, encrypted, collected, and put again when they are gone."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast
from holdfast.checkpoint.size_limit import SPILL_OVER
from holdfast.errors import CheckpointCorruptError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.runs.encryption.reencrypt import reencrypt
from tests.integrations.langgraph.test_saver import CONFIG, checkpoint_of, config_of, ring, rows_of
from tests.services import mariadb, postgres
from tests.storage.canary import turned, without

if TYPE_CHECKING:
    from pathlib import Path

LARGE = Random(5).randbytes(2 * SPILL_OVER).hex()
HUGE = Random(6).randbytes(2 << 20).hex()

pytestmark = [pytest.mark.anyio, pytest.mark.covers("IN-14")]


async def put(saver: HoldfastSaver, name: str, text: str, parent: str | None = None) -> None:
    made = checkpoint_of(name, {"a": text}, {"a": name})
    await saver.aput(CONFIG if parent is None else config_of("t", parent), made, {}, {"a": name})


async def text_of(saver: HoldfastSaver, name: str) -> Any:
    found = await saver.aget_tuple(config_of("t", name))
    return found and found.checkpoint["channel_values"]["a"]


async def blob_digests(saver: HoldfastSaver) -> list[bytes | None]:
    numbers = [number for row in await rows_of(saver) for number in row.values]
    found = await (await saver.store()).graph_values("default", "t", numbers)
    return [each.blob_digest for each in sorted(found, key=lambda each: len(each.data))]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_large_value_is_a_blob_and_a_small_change_of_it_is_not(
    kind: str, encrypted: bool, tmp_path: Path
) -> None:
    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    if kind == "memory":
        address = "memory:"
    elif kind == "postgres":
        address = postgres.with_setting(postgres.database(), schema="value_blobs")
        await postgres.empty("value_blobs")
    elif kind == "mariadb":
        address = mariadb.fresh()
    hf = Holdfast(address, keys=ring() if encrypted else None)
    async with hf:
        saver = HoldfastSaver(hf)
        await put(saver, "1", LARGE)
        await put(saver, "2", LARGE + "more", "1")
        await put(saver, "3", HUGE, "2")
        fresh = HoldfastSaver(hf)
        assert [await text_of(fresh, name) for name in "123"] == [LARGE, LARGE + "more", HUGE]
        digests = await blob_digests(fresh)
        assert sorted(each is None for each in digests) == [False, False, True]
        service = await hf.service()
        assert await service.collect_blobs(grace=-1) == 0
        assert await text_of(HoldfastSaver(hf), "3") == HUGE
        await fresh.adelete_thread("t")
        assert await service.collect_blobs(grace=-1) == 2
        for each in (saver, fresh):
            await each.aclose()


async def test_two_threads_with_the_same_large_value_share_its_blob(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as hf:
        saver = HoldfastSaver(hf)
        await put(saver, "1", LARGE)
        made = checkpoint_of("1", {"a": LARGE}, {"a": "1"})
        await saver.aput({"configurable": {"thread_id": "u", "checkpoint_ns": ""}}, made, {}, {"a": "1"})
        await saver.acopy_thread("t", "v")
        service = await hf.service()
        assert (await service.store.examine(deep=False)).blobs == 1
        await saver.adelete_thread("t")
        await saver.adelete_thread("u")
        assert await service.collect_blobs(grace=-1) == 0
        found = await saver.aget_tuple(config_of("v", "1"))
        assert found is not None
        assert found.checkpoint["channel_values"]["a"] == LARGE
        await saver.aclose()


async def test_a_blob_that_is_gone_is_reported_with_its_place(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as hf:
        saver = HoldfastSaver(hf)
        await put(saver, "1", LARGE)
        (digest,) = await blob_digests(saver)
        assert digest is not None
        await (await saver.store()).replace_blob(digest, b"damaged")
        with pytest.raises(CheckpointCorruptError, match="missing") as caught:
            await text_of(saver, "1")
        assert caught.value.facts == {"thread": "t", "checkpoint": "1", "channel": "a"}
        await saver.aclose()


async def test_a_blob_that_was_collected_before_it_was_named_is_put_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as hf:
        saver, service = HoldfastSaver(hf), await hf.service()
        store = await saver.store()
        inner, collected = store.put_graph_rows, list[int]()

        async def late(batch: Any) -> Any:
            if not collected:
                collected.append(await service.collect_blobs(grace=-1))
            return await inner(batch)

        monkeypatch.setattr(store, "put_graph_rows", late)
        await put(saver, "1", LARGE)
        assert collected == [1]
        assert await text_of(HoldfastSaver(hf), "1") == LARGE
        await saver.aclose()


@pytest.mark.covers("IN-18")
@pytest.mark.parametrize("size", [9_000, len(LARGE)])
async def test_values_are_encrypted_with_a_new_key_whatever_their_size(size: int, tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    old = ring()
    new = turned(old)
    async with Holdfast(address) as hf:
        await put(HoldfastSaver(hf), "1", LARGE[:size])  # before there were keys
    async with Holdfast(address, keys=old) as hf:
        await put(HoldfastSaver(hf), "2", LARGE[-size:], "1")
        service = await hf.service()
        assert not (await reencrypt(service)).unreadable
        assert await service.collect_blobs(grace=-1) == (1 if size > SPILL_OVER else 0), "the plain one"
    async with Holdfast(address, keys=new) as hf:
        service = await hf.service()
        assert not (await reencrypt(service)).unreadable
        again = await reencrypt(service)
        assert (again.rows, again.blobs) == (0, 0)
    async with Holdfast(address, keys=without(new, old.file.scopes["*"].current)) as hf:
        saver = HoldfastSaver(hf)
        assert [await text_of(saver, name) for name in "12"] == [LARGE[:size], LARGE[-size:]]
        await saver.aclose()
