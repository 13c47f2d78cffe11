"""`GET /runs/pending`: page by page, without reading what nobody asked for."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Worker
from holdfast.types.cursor import encode_cursor
from holdfast.types.schedule import starter_of_schedule
from tests.api.conftest import Server
from tests.api.flows import refund

pytestmark = pytest.mark.anyio


async def asking(
    server: Server, count: int, *, started_by: str = "user:ada", thread: str | None = None
) -> None:
    service = await server.hf.service()
    for number in range(count):
        given = {"order": str(number), "amount": number}
        await service.create(refund().program(), given, started_by=started_by, thread=thread)
    worker = Worker(refund(), on=server.hf)
    await worker.run_until_idle()
    await worker.close()


async def paged(server: Server, **query: Any) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = None
    while cursor is not None or not pages:
        asked = query | ({"cursor": cursor} if cursor else {})
        found = await server.json("GET", "/v1/runs/pending", params=asked)
        pages.append([each["hold_id"] for each in found["items"]])
        cursor = found["next"]
    return pages


@pytest.mark.covers("SERVER-API-02")
async def test_pages_have_each_question_once_the_newest_first(server: Server) -> None:
    await asking(server, 7)
    whole = await server.json("GET", "/v1/runs/pending?limit=50")
    ids = [each["hold_id"] for each in whole["items"]]
    assert [len(page) for page in await paged(server, limit=3)] == [3, 3, 1]
    assert [each for page in await paged(server, limit=3) for each in page] == ids
    assert [len(page) for page in await paged(server, limit=7)] == [7]
    instants = [each["created_at"] for each in whole["items"]]
    assert instants == sorted(instants, reverse=True)


async def test_page_reads_no_more_holds_than_it_shows(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asking(server, 8)
    store: Any = (await server.hf.service()).store
    listed, read = store.list_holds, list[int]()

    async def counted(*args: Any, **options: Any) -> Any:
        found = await listed(*args, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "list_holds", counted)
    await server.json("GET", "/v1/runs/pending?limit=2")
    assert read == [3]


async def test_mine_are_those_that_i_started_and_that_my_schedules_did(server: Server) -> None:
    me = (await server.json("GET", "/v1/session"))["subject"]
    await asking(server, 2, started_by=me)
    await asking(server, 3, started_by="user:somebody")
    await asking(server, 1, started_by=starter_of_schedule("nightly", me))
    assert sum(map(len, await paged(server))) == 6
    assert sum(map(len, await paged(server, mine=True))) == 3
    assert [len(page) for page in await paged(server, mine=True, limit=2)] == [2, 1]


async def test_questions_of_a_thread_are_those_of_its_runs(server: Server) -> None:
    await asking(server, 2, thread="t-1")
    await asking(server, 1, thread="t-2")
    assert [len(page) for page in await paged(server, thread="t-1", limit=1)] == [1, 1]
    assert await paged(server, thread="nobody") == [[]]


@pytest.mark.parametrize(
    "cursor", ["x", "WzFd", "é", *(encode_cursor("main", place) for place in ([1], ["a", "b"], [2**63, 1]))]
)
async def test_cursor_that_nobody_gave_out_is_refused(server: Server, cursor: str) -> None:
    answer = await server.json("GET", "/v1/runs/pending", 422, params={"cursor": cursor})
    assert answer["status"] == 422
