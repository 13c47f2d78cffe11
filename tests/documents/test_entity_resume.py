"""Runs of one entity that are resumed and started at once never overlap."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Worker
from holdfast.documents import functions
from tests.api.conftest import Server, server
from tests.documents.run import flow_text
from tests.documents.test_entities import deploy, invoke

__all__ = ["server"]

pytestmark = pytest.mark.anyio

DOCUMENT = flow_text(
    """
    {id: start, type: start}
    {id: work, type: python, config: {function: work, effect: read}}
    {id: ask, type: checkpoint, config: {prompt: Go?, options: [yes]}}
    {id: done, type: end}
    """,
    "start -> work -> ask\nask:yes -> done",
)


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
async def test_resume_that_is_overtaken_by_another_run_of_its_entity_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]

    async def work() -> str:
        if fails:
            raise ValueError("not today")
        return "done"

    monkeypatch.setattr(functions, "_registered", {"work": work})
    await deploy(server, DOCUMENT, "sample")
    store = (await server.hf.service()).store
    send = store.send
    async with Worker(on=server.hf):
        first = (await invoke(server, "sample", "a", wait=20))["id"]
        fails.clear()

        async def overtaken(run: Any, kind: str, *given: Any, **more: Any) -> bool:
            """Another one starts after the service has looked, and before the run is resumed."""
            if kind == "resume":
                monkeypatch.setattr(store, "send", send)
                assert (await invoke(server, "sample", "a", wait=20))["status"] == "pending_input"
            return await send(run, kind, *given, **more)

        monkeypatch.setattr(store, "send", overtaken)
        refused = await server.json("POST", f"/v1/runs/{first}/resume", 409, json={})
        assert refused["code"] == "gate_shut"
        assert (await server.json("GET", f"/v1/runs/{first}"))["status"] == "failed"
