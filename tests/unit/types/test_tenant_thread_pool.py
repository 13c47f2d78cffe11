from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.documents import deploy
from holdfast.errors import RateLimitedError
from holdfast.types.tenant_thread_pool import TenantThreads

pytestmark = pytest.mark.anyio


async def test_work_of_a_tenant_waits_up_to_a_limit_and_that_of_others_is_taken() -> None:
    threads = TenantThreads("test", threads=1, most=2, what="works wait")
    gate = threading.Event()
    first = [asyncio.ensure_future(threads.run("a", gate.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError, match="2 works wait") as refused:
        await threads.run("a", int)
    assert refused.value.facts["retry_after"] == 1
    other = asyncio.ensure_future(threads.run("b", int, "7"))
    gate.set()
    assert [await each for each in first] == [True, True]
    assert await other == 7
    assert await threads.run("a", int, "8") == 8


async def test_work_of_a_caller_who_left_counts_until_it_has_ended() -> None:
    threads = TenantThreads("test", threads=1, most=1, what="works wait")
    gate, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        gate.wait()

    leaving = asyncio.ensure_future(threads.run("a", work))
    await asyncio.to_thread(begun.wait)
    leaving.cancel()
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError):
        await threads.run("a", int)
    gate.set()
    while threads._waiting["a"]:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert await threads.run("a", int, "8") == 8


async def test_documents_are_checked_within_that_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "checks", TenantThreads("test", threads=1, most=0, what="documents wait"))
    flows = deploy.DeployedFlows.__new__(deploy.DeployedFlows)
    flows.tenant = "a"
    with pytest.raises(RateLimitedError, match="0 documents wait"):
        await flows.compile(deploy.SentDocument(raw=b"name: x", format="yaml"))
