"""Limits that items of maps share by a key, over all runs of a tenant."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec

from holdfast.store.protocols import Store
from holdfast.types.concurrency_limits import StartPace
from holdfast.types.document import Document
from holdfast.types.ids import RunId

T = TypeVar("T")

KIND = "item_limit"
_SOON = 0.02  # seconds until a process looks for a place again
_NEAR = 0.1  # at most, for those that are the next
_LATE = 1.0
_SEEN = 5_000_000  # microseconds after which an item that waits says so again
_SILENT = 30_000_000  # after which one that does not is left out
_LOOKED_AT = 20
_PAGE = 500
_UNUSED = 86_400_000_000  # microseconds


class _Shared(msgspec.Struct):
    """The document of a key."""

    key: str
    pace: StartPace
    # The items that are at work, as `run place`.
    places: list[str] = []
    # Those that wait for a place, the oldest first, and when each of them was last seen.
    waiting: dict[str, int] = {}
    # As the map that asked last has it.
    most: int | None = None
    spacing: int = 0


class ItemLimitUse(NamedTuple):
    """A limit as it is used now. `holders`, `waiters`: a run for each item."""

    key: str
    concurrency: int | None
    spacing: int
    holders: list[str]
    waiters: list[str]


class SharedLimit:
    """The limit with this key."""

    def __init__(self, store: Store, tenant: str, key: str) -> None:
        self._store = store
        self._tenant = tenant
        self._key = key
        self._name = sha256(key.encode()).hexdigest()

    async def ask(self, now: int, spacing: int, *, again: bool) -> int:
        """As `StartPace.ask`."""

        def change(shared: _Shared) -> int:
            shared.spacing = spacing
            return shared.pace.ask(now, spacing, again=again)

        return await self._change(change)

    async def enter(self, run: RunId, place: str, most: int) -> None:
        """Wait until fewer than `most` items are at work, and this one is the next; then it is. A place
        belongs to it for as long as a worker has its run. Places are given in the order of waiting: a run
        asks for as many as it may have at once, so that one with many items lets others in between."""
        mine, pause, looked = f"{run} {place}", _SOON, 0

        def change(shared: _Shared) -> int:
            shared.most = most
            return _place(shared, mine, most, self._store.now())

        while before := await self._change(change):
            # Runs are looked up now and then: what they have is mostly still at work.
            if looked % 10 == 0 and await self._forget_left():
                continue
            looked += 1
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(_NEAR if before <= most else _LATE, pause * 1.5)

    async def leave(self, run: RunId, prefix: str) -> None:
        """The item of this place, or all whose places are below it."""

        def change(shared: _Shared) -> None:
            _forget(shared, lambda each: _is_below(each, f"{run} {prefix}"))

        await self._change(change)

    async def _forget_left(self) -> bool:
        """Places of runs that no worker has: they ended, wait, or their worker died."""
        found = await self._store.document(self._tenant, KIND, self._name)
        if found is None:
            return False
        shared = msgspec.msgpack.decode(found.body, type=_Shared)
        gone: set[str] = set()
        for run in {_run_of(each) for each in (*shared.places, *shared.waiting)}:
            row = await self._store.get_run(RunId(run))
            if row is None or row.worker is None:
                gone.add(run)
        if gone:
            await self._change(lambda now: _forget(now, lambda each: _run_of(each) in gone))
        return bool(gone)

    async def _change(self, change: Callable[[_Shared], T]) -> T:
        while True:
            found = await self._store.document(self._tenant, KIND, self._name)
            before = msgspec.msgpack.encode(_Shared(self._key, StartPace())) if found is None else found.body
            shared = msgspec.msgpack.decode(before, type=_Shared)
            result = change(shared)
            body = msgspec.msgpack.encode(shared)
            if body == before or await self._write(body, 0 if found is None else found.revision):
                return result
            await asyncio.sleep(random.uniform(0, _SOON))

    async def _write(self, body: bytes, revision: int) -> bool:
        if revision == 0:
            await self._drop_unused()
        document = Document(tenant=self._tenant, kind=KIND, name=self._name, body=body)
        return await self._store.put_document(document, expect=revision) is not None

    async def _drop_unused(self) -> None:
        """A few documents of other keys, from a random one on: with each new key more are looked at than one
        adds, so that keys that are used no more do not pile up."""
        start = f"{random.getrandbits(64):016x}"
        now = self._store.now()
        for each in await self._store.documents(self._tenant, KIND, after=start, limit=_LOOKED_AT):
            shared = msgspec.msgpack.decode(each.body, type=_Shared)
            if (
                each.updated_at < now - _UNUSED
                and shared.pace.next_at < now
                and not (shared.places or shared.waiting)
            ):
                await self._store.drop_document(self._tenant, KIND, each.name, expect=each.revision)


async def limits_in_use(store: Store, tenant: str, prefix: str = "") -> list[ItemLimitUse]:
    """The limits of a tenant in which items are at work or wait, in order of key."""
    found: list[ItemLimitUse] = []
    after = ""
    while page := await store.documents(tenant, KIND, after=after, limit=_PAGE):
        for each in page:
            shared = msgspec.msgpack.decode(each.body, type=_Shared)
            if shared.key.startswith(prefix) and (shared.places or shared.waiting):
                holders, waiters = map(_run_of, shared.places), map(_run_of, shared.waiting)
                found.append(
                    ItemLimitUse(shared.key, shared.most, shared.spacing, list(holders), list(waiters))
                )
        after = page[-1].name
    return sorted(found)


def _place(shared: _Shared, mine: str, most: int, now: int) -> int:
    """0: it has its place. Else which one it is among those that wait."""
    if mine in shared.places:
        return 0
    if shared.waiting and (silent := [w for w, seen in shared.waiting.items() if seen < now - _SILENT]):
        _forget(shared, lambda each: each in silent and each != mine)
    waiting = list(shared.waiting)
    before = waiting.index(mine) if mine in waiting else len(waiting)
    if before < most - len(shared.places):
        shared.waiting.pop(mine, None)
        shared.places.append(mine)
        return 0
    if shared.waiting.get(mine, 0) < now - _SEEN:
        shared.waiting[mine] = now
    return before + 1


def _forget(shared: _Shared, gone: Callable[[str], bool]) -> None:
    shared.places = [each for each in shared.places if not gone(each)]
    shared.waiting = {each: seen for each, seen in shared.waiting.items() if not gone(each)}


def _run_of(place: str) -> str:
    return place.partition(" ")[0]


def _is_below(place: str, prefix: str) -> bool:
    return place == prefix or place.startswith(f"{prefix}/")
