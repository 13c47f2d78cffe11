"""Added to LangGraph's own `conftest_checkpointer.py`: its SQLite fixtures give savers of Holdfast."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from holdfast.integrations.langgraph import HoldfastSaver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def _opening(place: str, **settings: Any) -> Any:
    return HoldfastSaver.open(f"sqlite:{place}/threads.db?sync=normal", **settings)


@contextmanager
def _checkpointer_sqlite() -> Iterator[HoldfastSaver]:
    with tempfile.TemporaryDirectory() as place, _opening(place) as saver:
        yield saver


@contextmanager
def _checkpointer_sqlite_aes() -> Iterator[HoldfastSaver]:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")
    with tempfile.TemporaryDirectory() as place, _opening(place, serde=serde) as saver:
        yield saver


@asynccontextmanager
async def _checkpointer_sqlite_aio() -> AsyncIterator[HoldfastSaver]:
    with tempfile.TemporaryDirectory() as place:
        async with _opening(place) as saver:
            yield saver
