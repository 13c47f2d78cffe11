"""What becomes of holds, as it happens: for whoever may see them, without loss and without repetition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.api.live import Sent, Source, follow
from tests.api.people import Hall, hall_of
from tests.fleet.conftest import address as address

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgresql"])
async def hall(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    on_postgres = request.param == "postgresql"
    store = request.getfixturevalue("address") if on_postgres else f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(store) as hf, hall_of(hf) as found:
        yield found


def followed(
    hall: Hall, who: str, last: str | None = None, query: str = ""
) -> AbstractAsyncContextManager[Source]:
    hall.client.headers["Authorization"] = f"Bearer {hall.tokens[who]}"
    return follow(hall.client, f"/v1/holds/stream{query}", last=last)


def told(sent: list[Sent]) -> list[tuple[str, str]]:
    return [(each.type, each.data["hold_id"]) for each in sent]


@pytest.mark.covers("LI-4")
async def test_a_caller_who_may_see_a_hold_is_reported_what_becomes_of_it(hall: Hall) -> None:
    async with followed(hall, "dana") as dana, followed(hall, "sam") as sam:
        # Both are there before anything happens.
        await dana.place()
        await sam.place()
        hold = await hall.asks("user:dana@acme")
        finance = await hall.asks("group:finance")
        assert told(await dana.until("checkpoint.created")) == [("checkpoint.created", hold)]
        assert told(await sam.until("checkpoint.created")) == [("checkpoint.created", finance)]
        await hall.ask("dana", "POST", f"/v1/holds/{hold}/claim")
        await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
        await hall.ask("sam", "POST", f"/v1/holds/{finance}/resolve", json={"decision": "reject"})
        seen = await dana.until("checkpoint.resolved")
        assert told(seen) == [("checkpoint.claimed", hold), ("checkpoint.resolved", hold)]
        assert seen[-1].data["status"] == "resolved"
        assert seen[-1].data["actor"] == "user:dana@acme"
        assert seen[-1].data["data"]["decision"] == "approve"
        assert told(await sam.until("checkpoint.resolved"))[-1] == ("checkpoint.resolved", finance)
    # Another tenant is told nothing of all that, from the very beginning.
    async with followed(hall, "eve", query="?after=0") as eve:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await eve.rest()


@pytest.mark.covers("LI-4")
async def test_a_caller_who_comes_back_gets_exactly_what_followed(hall: Hall) -> None:
    async with followed(hall, "ada") as first:
        # Cut off before anything was told: the place is known all the same.
        begin = await first.place()
    holds = [await hall.asks("user:dana@acme") for _ in range(3)]
    for hold in holds:
        await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    async with followed(hall, "ada", begin) as source:
        whole: list[Sent] = []
        while sum(each.type == "checkpoint.resolved" for each in whole) < len(holds):
            whole += await source.until("checkpoint.resolved")
    assert [each.type for each in whole].count("checkpoint.created") == len(holds)
    ids = [each.number for each in whole]
    assert ids == sorted(set(ids))
    for place in range(len(whole) - 1):
        async with followed(hall, "ada", whole[place].id) as source:
            again: list[Sent] = []
            while len(again) < len(whole) - place - 1:
                again += await source.until(whole[-1].type)
        assert again == whole[place + 1 :]


async def test_place_that_is_none_is_refused(hall: Hall) -> None:
    for query, headers in (("?after=x", {}), ("?after=-1", {}), ("", {"Last-Event-ID": "one"})):
        found = await hall.send("dana", "GET", f"/v1/holds/stream{query}", headers=headers)
        assert found.status_code == 422, found.text


@pytest.mark.covers("SAFE-READ-01")
async def test_stream_begins_now_after_a_number_that_is_not_there_yet(hall: Hall) -> None:
    """The store was restored from a backup since."""
    async with followed(hall, "ada") as source:
        begin = await source.place()
    async with followed(hall, "ada", str(int(begin) + 1000)) as source:
        assert await source.place() == begin
        await hall.asks("user:dana@acme")
        assert (await source.until("checkpoint.created"))[-1].type == "checkpoint.created"
