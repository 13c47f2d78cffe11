"""The same commands on every store: the same answers, the same rows, and as the pure engine decides."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.encryption.store import with_encryption
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from tests.flows.conftest import address_of
from tests.properties.commands import (
    FLOWS,
    PEOPLE,
    POINTS,
    RUNS,
    Command,
    World,
    commands,
    tables_of,
)

STORES = ("sqlite", "encrypted", "postgres", "mariadb")
SQL = ("postgres", "mariadb")


async def opened(kind: str, folder: Path, clock: FakeClock) -> Store:
    if kind == "encrypted":
        ring = StaticKeys(with_scope(None, EVERYBODY, new_scope(datetime(2026, 1, 1, tzinfo=UTC))))
        return with_encryption(await open_store("memory:", clock=clock), FieldCipher(ring))
    return await open_store(await address_of(kind, folder), clock=clock)


async def tables_after(kind: str, given: list[Command]) -> tuple[list[Any], dict[str, Any]]:
    """The answers, and every row that is left."""
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        address = await address_of(kind, Path(folder))
        store = await open_store(address, clock=clock)
        world = World(store, clock)
        try:
            answers = [await world.perform(command) for command in given]
        finally:
            await world.close()
            await store.close()
        return answers, await tables_of(address)


def assert_same_tables(kind: str, given: list[Command]) -> None:
    async def both() -> None:
        expected, rows = await tables_after("sqlite", given)
        answers, found = await tables_after(kind, given)
        assert answers == expected, given
        for table, kept in rows.items():
            assert found[table] == kept, (table, given)

    asyncio.run(both())


async def performed(kind: str, given: list[Command]) -> tuple[list[Any], dict[str, Any]]:
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        store = await opened(kind, Path(folder), clock)
        world = World(store, clock)
        try:
            answers = [await world.perform(command) for command in given]
            return answers, await world.rows()
        finally:
            await world.close()
            await store.close()


def assert_same(kind: str, given: list[Command]) -> None:
    async def both() -> None:
        expected, rows = await performed("memory", given)
        answers, found = await performed(kind, given)
        assert answers == expected, given
        assert found == rows, given

    asyncio.run(both())


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike(kind: str) -> None:
    @given(given=commands(8, 16))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", SQL)
def test_stores_have_the_same_rows_in_every_table_after_the_same_commands(kind: str) -> None:
    @given(given=commands(12, 24))
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same_tables(kind, given)

    same()


RUN = RUNS[0]
GATE, SCRIPT, FORK = RUNS[1:]


def _done(run: str, *moves: tuple[str, str]) -> list[Command]:
    return [("hold", run, 0, who, action) for who, action in moves]


EVERYTHING: list[Command] = [
    ("break", 2), ("start", RUN, "votes"), ("start", GATE, "gate"), ("start", SCRIPT, "script"), ("lists",),
    *_done(GATE, ("dana", "claim"), ("sam", "claim"), ("dana", "release"), ("dana", "ask_back")),
    *_done(GATE, ("kim", "reply"), ("dana", "ask_back"), ("dana", "withdraw_question"), ("kim", "extend")),
    *_done(GATE, ("dana", "place"), ("dana", "undo"), ("kim", "reassign"), ("sam", "place")), ("lists",),
    ("fork", GATE, 0), ("resume", FORK), *_done(FORK, ("kim", "cancel")), ("resume", FORK), ("advance", 1),
    ("delete", FORK), ("start", FORK, "votes"), *_done(FORK, ("dana", "vote"), ("sam", "vote")),
    ("resume", FORK), ("delete", FORK),
    ("advance", 601), ("resume", SCRIPT), ("crash", SCRIPT, "before_park", 1), ("resume", GATE),
    *_done(RUN, ("dana", "resolve"), ("dana", "resolve"), ("sam", "resolve")), ("lists",), ("resume", RUN),
    ("rewind", SCRIPT, 1), ("advance", 4000), ("resume", FORK), ("answer", FORK, 0, "yes"),
    ("resume", FORK), ("prune", FORK, 1), ("transfer", GATE), ("resume", SCRIPT), ("delete", SCRIPT),
    ("fork", GATE, 1), ("cancel", SCRIPT), ("resume", SCRIPT), ("delete", SCRIPT),
    ("start", SCRIPT, "items"), ("resume", SCRIPT), ("break", 2), ("resume", SCRIPT), ("lists",),
]  # fmt: skip


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"all-{kind}") for kind in SQL])
def test_stores_have_the_same_rows_after_every_kind_of_command(kind: str) -> None:
    assert_same_tables(kind, EVERYTHING)


def test_every_command_does_something_in_the_list_of_all() -> None:
    """A command that is only refused, everywhere, compares nothing."""
    answers, tables = asyncio.run(tables_after("sqlite", EVERYTHING))
    done: dict[str, bool] = {}
    for command, answer in zip(EVERYTHING, answers, strict=True):
        name = f"hold {command[4]}" if command[0] == "hold" else command[0]
        refused = isinstance(answer, list) and answer[:1] == ["error"]
        done[name] = done.get(name, False) or not refused
    assert [name for name, happened in done.items() if not happened] == []
    empty = {table for table, rows in tables.items() if not rows}
    assert empty <= NOT_FILLED


NOT_FILLED = {
    "feed", "feed_marks", "hold_links", "schedules", "queue_messages", "gates", "gate_starts", "projections",
    "late_reports", "deaths", "timers", "blobs", "blob_refs", "documents",
    "graph_threads", "graph_checkpoints", "graph_values", "graph_writes",
}  # fmt: skip
"""Tables that these commands leave empty."""
ENDS: dict[str, list[Command]] = {
    "decided": [("answer", RUN, 0, "approve"), ("resume", RUN), ("answer", RUN, 0, "reject")],
    "late": [("answer", RUN, 0, "yes"), ("advance", 4000), ("answer", RUN, 0, "approve"), ("resume", RUN)],
    "cancelled": [("cancel", RUN), ("resume", RUN), ("answer", RUN, 0, "approve"), ("resume", RUN)],
    "cancelled after an answer": [("answer", RUN, 0, "approve"), ("cancel", RUN), ("resume", RUN)],
    "failed": [("resume", RUN), ("break", 2), ("resume", RUN), ("cancel", RUN)],
    **{
        f"crashed {point}": [
            ("answer", RUN, 0, "approve"), ("crash", RUN, point, 1), ("resume", RUN),
            ("crash", RUN, point, 1),
            ("answer", RUN, 0, "yes"), ("crash", RUN, point, 2), ("resume", RUN),
        ]
        for point in POINTS
    },
}  # fmt: skip


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("flow", FLOWS)
def test_stores_answer_alike_at_each_end_of_a_run(kind: str, flow: str) -> None:
    for end in ENDS.values():
        assert_same(kind, [("break", 2), ("start", RUN, flow), ("advance", 601), ("resume", RUN), *end])


@pytest.mark.soak
@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike_for_long(kind: str) -> None:
    @given(given=commands(8, 40))
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("flow", FLOWS)
def test_every_flow_comes_to_its_end_by_commands(flow: str) -> None:
    """The commands reach what they are to compare."""
    script: list[Command] = [("start", RUN, flow), ("advance", 601), ("resume", RUN)]
    script += [("answer", RUN, 0, "yes" if flow == "script" else "approve"), ("resume", RUN)]
    if flow == "votes":
        script += [("hold", RUN, 0, who, "resolve") for who in PEOPLE[:2]] + [("resume", RUN)]
    answers, rows = asyncio.run(performed("memory", script))
    assert answers[-1][0] == "completed"
    assert rows[RUN]["journal"]
