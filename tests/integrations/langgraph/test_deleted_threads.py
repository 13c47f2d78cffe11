"""Threads that are deleted, pruned, copied and claimed while others write to them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import ConflictError, LeaseLostError, ThreadOwnedError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.types.graph_thread import GraphFilter
from tests.integrations.langgraph.test_saver import checkpoint_of, config_of
from tests.services import mariadb, postgres

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

Place = tuple[str, str]
"""(thread, checkpoint)"""
_REFUSED = (ThreadOwnedError, LeaseLostError, ConflictError)


def address_of(kind: str, tmp_path: Path) -> str:
    if kind == "postgres":
        return postgres.emptied("deleted_threads")
    if kind == "mariadb":
        return mariadb.emptied("deleted_threads")
    return f"sqlite:{tmp_path / 'threads.db'}?sync=normal"


@dataclass
class View:
    """What a writer has last seen of a thread."""

    checkpoint: str | None = None
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    versions: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Writer:
    saver: HoldfastSaver
    views: dict[str, View] = field(default_factory=dict[str, View])
    owned: set[str] = field(default_factory=set[str])


class History:
    """Acts of two writers in any order, some at once, and what must be there after each."""

    def __init__(self, savers: tuple[HoldfastSaver, HoldfastSaver], seed: int) -> None:
        self.random = random.Random(seed)
        self.writers = [Writer(saver) for saver in savers]
        self.threads = ("a", "b")
        self.values: dict[Place, dict[str, Any]] = {}  # all that was ever put
        self.kept: set[Place] = set()  # acknowledged, and nothing was deleted since
        self.put: set[Place] = set()
        self.cleaned: set[str] = set()
        self.count = 0
        self.refused = 0

    async def round(self) -> None:
        self.put, self.cleaned = set(), set()
        acts = [self.act() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        await asyncio.gather(*acts)
        # Of what is put and deleted at once, either comes first.
        self.kept = {place for place in self.kept | self.put if place[0] not in self.cleaned}
        found = await self.found()
        assert self.kept <= found.keys()
        assert found == {place: self.values[place] for place in found}
        self.kept = set(found)

    async def found(self) -> dict[Place, dict[str, Any]]:
        saver = self.writers[0].saver
        return {
            (thread, each.config["configurable"]["checkpoint_id"]): each.checkpoint["channel_values"]
            for thread in self.threads
            async for each in saver.alist(config_of(thread))
        }

    async def act(self) -> None:
        acts: list[tuple[Callable[[Writer, str], Awaitable[None]], int]] = [
            (self.load, 4), (self.write, 10), (self.delete, 2), (self.prune, 2), (self.delete_run, 2),
            (self.copy, 1), (self.own, 2), (self.disown, 2),
        ]  # fmt: skip
        (act,) = self.random.choices([each for each, _ in acts], [weight for _, weight in acts])
        writer, thread = self.random.choice(self.writers), self.random.choice(self.threads)
        try:
            await act(writer, thread)
        except _REFUSED:
            self.refused += 1

    async def load(self, writer: Writer, thread: str) -> None:
        found = await writer.saver.aget_tuple(config_of(thread))
        if found is None:
            writer.views[thread] = View()
        else:
            point: Any = found.checkpoint
            writer.views[thread] = View(point["id"], point["channel_values"], point["channel_versions"])

    async def write(self, writer: Writer, thread: str) -> None:
        view, random = writer.views.get(thread, View()), self.random
        self.count += 1
        name = f"{self.count:08}"
        values = {"text": "", "constant": f"{name} " * 100, "n": 0} | view.values
        changed = {"n": self.count}
        if not view.values:
            changed = dict(values)
        if random.random() < 0.7:
            changed["text"] = values["text"] + "".join(random.choices("abcdefgh", k=300))
        new = dict.fromkeys(changed, name)
        made = checkpoint_of(name, values | changed, view.versions | new)
        self.values[thread, name] = values | changed
        metadata: Any = {"run_id": f"run{self.count % 3}"}
        await writer.saver.aput(config_of(thread, view.checkpoint), made, metadata, new)
        self.put.add((thread, name))
        writer.views[thread] = View(name, values | changed, view.versions | new)

    async def delete(self, writer: Writer, thread: str) -> None:
        self.cleaned.add(thread)
        await writer.saver.adelete_thread(thread)

    async def prune(self, writer: Writer, thread: str) -> None:
        self.cleaned.add(thread)
        await writer.saver.aprune([thread])

    async def delete_run(self, writer: Writer, _thread: str) -> None:
        self.cleaned.update(self.threads)
        await writer.saver.adelete_for_runs([f"run{self.random.randrange(3)}"])

    async def copy(self, writer: Writer, thread: str) -> None:
        other = "b" if thread == "a" else "a"
        self.values |= {(other, name): values for (of, name), values in self.values.items() if of == thread}
        await writer.saver.acopy_thread(thread, other)

    async def own(self, writer: Writer, thread: str) -> None:
        if thread not in writer.owned:
            await writer.saver.owners.own(thread)
            writer.owned.add(thread)

    async def disown(self, writer: Writer, thread: str) -> None:
        if thread in writer.owned:
            writer.owned.discard(thread)
            await writer.saver.owners.disown(thread)


@pytest.mark.covers("IN-12", "IN-24")
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("seed", range(4))
async def test_what_was_put_is_readable_until_it_is_deleted(kind: str, seed: int, tmp_path: Path) -> None:
    address = address_of(kind, tmp_path)
    async with HoldfastSaver.open(address) as first, HoldfastSaver.open(address) as second:
        history = History((first, second), seed)
        for _ in range(120):
            await history.round()
        assert history.count > 20
        assert history.refused > 0


@pytest.mark.covers("IN-15", "IN-24")
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
async def test_a_thread_that_is_deleted_between_load_and_update_gets_whole_values(
    kind: str, tmp_path: Path
) -> None:
    address, text = address_of(kind, tmp_path), "".join(str(n) for n in range(1000))
    async with HoldfastSaver.open(address) as saver, HoldfastSaver.open(address) as other:
        first = checkpoint_of("1", {"text": text, "kept": text}, {"text": "1", "kept": "1"})
        await saver.aput(config_of("t"), first, {}, {"text": "1", "kept": "1"})
        assert await saver.aget_tuple(config_of("t")) is not None
        await other.adelete_thread("t")
        longer = {"text": text + "end", "kept": text}
        given = checkpoint_of("2", longer, {"text": "2", "kept": "1"})
        for _ in range(2):  # a repeat adds nothing
            await saver.aput(config_of("t", "1"), given, {}, {"text": "2"})
        found = await other.aget_tuple(config_of("t"))
        assert found is not None
        assert found.checkpoint["channel_values"] == longer
        store = await other.store()
        (row,) = await store.graph_checkpoints(GraphFilter(tenant="default", thread="t"))
        values = await store.graph_values("default", "t", row.values)
        assert [each.base for each in values] == [None, None]
