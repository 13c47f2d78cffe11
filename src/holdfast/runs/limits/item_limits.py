"""Limits that items of maps share by a key, over all runs of a tenant."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import msgspec

from holdfast.store.protocols import Store
from holdfast.types.concurrency_limits import StartPace
from holdfast.types.document import Document
from holdfast.types.ids import RunId

T = TypeVar("T")

KIND = "item_limit"
_SOON = 0.02  # seconds until a process looks for a place again
_LATE = 1.0
_LOOKED_AT = 20
_UNUSED = 86_400_000_000  # microseconds


class _Shared(msgspec.Struct):
    """The document of a key."""

    key: str
    pace: StartPace
    # The items that are at work, as `run place`.
    places: list[str] = []


class SharedLimit:
    """The limit with this key."""

    def __init__(self, store: Store, tenant: str, key: str) -> None:
        self._store = store
        self._tenant = tenant
        self._key = key
        self._name = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    async def ask(self, now: int, spacing: int, *, again: bool) -> int:
        """As `StartPace.ask`."""

        def change(shared: _Shared) -> int:
            return shared.pace.ask(now, spacing, again=again)

        return await self._change(change)

    async def enter(self, run: RunId, place: str, most: int) -> None:
        """Wait until fewer than `most` items are at work; then this one is. A place belongs to it for as long
        as a worker has its run."""
        mine, pause = f"{run} {place}", _SOON

        def change(shared: _Shared) -> bool:
            if mine not in shared.places:
                if len(shared.places) >= most:
                    return False
                shared.places.append(mine)
            return True

        while not await self._change(change):
            if not await self._forget_left():
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(_LATE, pause * 1.5)

    async def leave(self, run: RunId, prefix: str) -> None:
        """The item of this place, or all whose places are below it."""

        def change(shared: _Shared) -> None:
            shared.places = [each for each in shared.places if not _is_below(each, f"{run} {prefix}")]

        await self._change(change)

    async def _forget_left(self) -> bool:
        """Places of runs that no worker has: they ended, wait, or their worker died."""
        found = await self._store.document(self._tenant, KIND, self._name)
        places = [] if found is None else msgspec.msgpack.decode(found.body, type=_Shared).places
        gone: set[str] = set()
        for run in {each.partition(" ")[0] for each in places}:
            row = await self._store.get_run(RunId(run))
            if row is None or row.worker is None:
                gone.add(run)

        def change(now: _Shared) -> None:
            now.places = [each for each in now.places if each.partition(" ")[0] not in gone]

        if gone:
            await self._change(change)
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
            if each.updated_at < now - _UNUSED and shared.pace.next_at < now and not shared.places:
                await self._store.drop_document(self._tenant, KIND, each.name, expect=each.revision)


def _is_below(place: str, prefix: str) -> bool:
    return place == prefix or place.startswith(f"{prefix}/")
