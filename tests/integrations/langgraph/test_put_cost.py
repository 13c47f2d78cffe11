"""What a put does does not grow with the thread: counted by SQLite, never timed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import apsw
import pytest

from holdfast.integrations.langgraph import HoldfastSaver, values
from holdfast.integrations.langgraph.deltas import apply_deltas
from holdfast.integrations.langgraph.values import store_value
from tests.integrations.langgraph.test_saver import append, config_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.mark.anyio
@pytest.mark.covers("IN-15")
async def test_a_put_reads_no_more_rows_where_the_thread_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    def opened(conn: apsw.Connection) -> None:
        conn.set_progress_handler(count, 1)

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, opened])
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as saver:
        needed: list[int] = []
        for thread, before in (("short", 10), ("long", 200)):
            await append(saver, before, 200, thread)
            steps = 0
            await append(saver, before + 1, 200, thread)
            needed.append(steps // (before + 1))
    assert needed[1] < needed[0] * 1.2, needed


@pytest.mark.anyio
@pytest.mark.covers("IN-15")
async def test_a_list_applies_each_difference_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[int] = []

    def counted(old: bytes, all_data: Sequence[bytes]) -> bytes:
        applied.append(len(all_data))
        return apply_deltas(old, all_data)

    monkeypatch.setattr(values, "apply_deltas", counted)
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as saver:
        lists = await append(saver, 40, 200)
        applied.clear()
        found = [each async for each in saver.alist(config_of("t"))]
    assert [each.checkpoint["channel_values"]["items"] for each in reversed(found)] == lists
    assert 30 < sum(applied) < 40


def number_of_a_value() -> int:
    _, row = store_value("a", "1", ("msgpack", os.urandom(500)), None)
    assert row is not None
    return row.number


def test_numbers_of_values_follow_each_other_and_differ_in_a_forked_process() -> None:
    first = number_of_a_value()
    assert number_of_a_value() == first + 1
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(number_of_a_value()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as given:
        theirs = int(given.read())
    os.waitpid(child, 0)
    assert abs(theirs - first) > 1_000_000
