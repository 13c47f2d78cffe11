"""Large values and writes are stored compressed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import CheckpointCorruptError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph.content import pack_write, unpack_write
from holdfast.integrations.langgraph.values import ValueRef, rebuild_all
from holdfast.types.graph_thread import GraphCheckpointRow, GraphValueRow
from tests.integrations.langgraph.test_saver import CONFIG, checkpoint_of, config_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path


async def put_twice(saver: HoldfastSaver, text: str) -> tuple[Any, list[GraphValueRow]]:
    """The row of the first checkpoint, which has writes, and the values of both."""
    await saver.aput(CONFIG, checkpoint_of("1", {"a": text}, {"a": "1"}), {}, {"a": "1"})
    await saver.aput_writes(config_of("t", "1"), [("a", text), ("b", text[:200])], "task")
    longer = checkpoint_of("2", {"a": text + "more"}, {"a": "2"})
    await saver.aput(config_of("t", "1"), longer, {}, {"a": "2"})
    second, first = await rows_of(saver)
    store = await saver.store()
    return first, await store.graph_values("default", "t", [*first.values, *second.values])


@pytest.mark.anyio
async def test_large_values_and_writes_are_stored_compressed(tmp_path: Path) -> None:
    text = "".join(random.Random(3).choices("0123456789abcdef", k=200_000))
    address = f"sqlite:{tmp_path / 'threads.db'}?sync=normal"
    async with HoldfastSaver.open(address) as saver:
        first, values = await put_twice(saver, text)
    assert len(values) == 2
    assert sum(len(each.data) for each in (*values, *first.writes)) < 1.2 * len(text)
    async with HoldfastSaver.open(address) as fresh:
        found = [await fresh.aget_tuple(config_of("t", name)) for name in ("1", "2")]
    assert [each and each.checkpoint["channel_values"]["a"] for each in found] == [text, text + "more"]
    assert found[0] is not None
    assert found[0].pending_writes == [("task", "a", text), ("task", "b", text[:200])]


@pytest.mark.covers("IN-19")
def test_damaged_compressed_bytes_are_found() -> None:
    ref = ValueRef("msgpack", "1", number=-5)
    small = pack_write(("msgpack", b"x" * 9000))
    row = GraphCheckpointRow(ns="", id="1", parent=None, body=b"", digest=b"", thread="t")
    assert unpack_write(small, row) == ("msgpack", b"x" * 9000)
    for damaged in (b"junk", small[9:-3]):
        (found,) = rebuild_all([{"a": ref}], [GraphValueRow(number=-5, channel="a", data=damaged)])
        assert isinstance(found["a"], str)
        with pytest.raises(CheckpointCorruptError):
            unpack_write(small[:9] + damaged, row)
