"""The first use of an instance by many tasks at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.store.sql.postgres import store

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio


async def test_store_is_opened_once_when_many_runs_begin_at_once(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    prepare = store.prepare

    async def counted(*args: Any, **options: Any) -> Any:
        opened.append("")
        return await prepare(*args, **options)

    monkeypatch.setattr(store, "prepare", counted)
    flow = Flow("first", effect="pure")
    flow.node(id="only")(lambda s: {"done": True})
    async with Holdfast(address) as hf:
        results = await asyncio.gather(*(flow.run({}, on=hf) for _ in range(150)))
        assert all(result.status == "completed" for result in results)
    assert len(opened) == 1
