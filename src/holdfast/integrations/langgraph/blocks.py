"""Blocks of `with` and `async with`: an open saver, and a thread that is claimed for the block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import NotAStoreError

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.integrations.langgraph.saver import HoldfastSaver


class SaverOpening:
    """The saver is made at the beginning of the block; at its end, its store is closed with it."""

    def __init__(self, hf: Callable[[], Holdfast], make: Callable[[Holdfast], HoldfastSaver]) -> None:
        self._instance, self._make = hf, make
        self._holdfast: Holdfast | None = None
        self._saver: HoldfastSaver | None = None

    def _made(self) -> tuple[Holdfast, HoldfastSaver]:
        hf = self._holdfast = self._instance()
        saver = self._saver = self._make(hf)
        return hf, saver

    async def __aenter__(self) -> HoldfastSaver:
        hf, saver = self._made()
        await _open(hf)
        return saver

    async def __aexit__(self, *_exc: object) -> None:
        assert self._saver is not None
        assert self._holdfast is not None
        await self._saver.owners.close()
        await self._holdfast.close()
        await asyncio.to_thread(self._saver.stop)

    def __enter__(self) -> HoldfastSaver:
        hf, saver = self._made()
        try:
            saver.run_sync(_open(hf))
        except BaseException:
            saver.stop()
            raise
        return saver

    def __exit__(self, *_exc: object) -> None:
        assert self._saver is not None
        assert self._holdfast is not None
        self._saver.run_sync(self._saver.owners.close())
        self._saver.run_sync(self._holdfast.close())
        self._saver.stop()


async def _open(hf: Holdfast) -> None:
    try:
        await hf.open()
    except NotAStoreError as error:
        # The file of the saver that the graph had before is what is given most.
        error.hint = (
            f"{error.hint} `holdfast import langgraph FILE` copies the threads of a SqliteSaver into a store."
        )
        raise


class ThreadBlock:
    """Raises ThreadOwnedError at the beginning of the block if another owner has the thread."""

    def __init__(self, saver: HoldfastSaver, thread: str) -> None:
        self._saver, self._thread = saver, thread

    async def __aenter__(self) -> None:
        await self._saver.owners.own(self._thread)

    async def __aexit__(self, *_exc: object) -> None:
        await self._saver.owners.disown(self._thread)

    def __enter__(self) -> None:
        self._saver.run_sync(self._saver.owners.own(self._thread))

    def __exit__(self, *_exc: object) -> None:
        self._saver.run_sync(self._saver.owners.disown(self._thread))
