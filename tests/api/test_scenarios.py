"""The scenes of the runtime proposal, section 4: servers, workers and browsers that come and go."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.api.live import Sent, follow, numbers
from tests.api.tenants import Serving, Town
from tests.deadlines import HANG
from tests.fleet.workers import ended, until
from tests.services import postgres

pytestmark = pytest.mark.anyio
LEASE = ("--lease", "2s")
Scene = tuple[Town, Serving, Serving]


@pytest.fixture(scope="module")
async def street(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Scene]:
    """Two servers on one store, for all scenes."""
    store = postgres.with_setting(postgres.database(), schema=f"t_{secrets.token_hex(4)}")
    async with Town(tmp_path_factory.mktemp("town"), store) as town:
        yield town, *(await asyncio.gather(town.serve(), town.serve()))


@pytest.fixture
async def scene(street: Scene) -> AsyncIterator[Scene]:
    yield street
    await street[0].dismiss()


def whole(sent: list[Sent]) -> None:
    """Nothing is missing, nothing is there twice."""
    assert numbers(sent) == list(range(1, len(sent) + 1))
    assert "run.completed" in [each.type for each in sent]


@pytest.mark.covers("SERVER-SCENE-01", "SERVER-SCENE-02", "SERVER-LIVE-03", "SERVER-API-02")
async def test_browser_closes_at_the_question_and_another_device_answers_later(scene: Scene) -> None:
    town, server, other = scene
    await town.start(*LEASE)
    run = await server.start("pays")
    async with follow(server.client, f"/runs/{run}/stream") as source:
        seen = await source.until("approval")
    # Nobody looks. The run waits, it does not fail.
    asked = await other.json("GET", f"/runs/{run}")
    assert asked["status"] == "pending_input"
    # Another device, at another server, finds the question as a browser that was never there.
    phone = town.device(other, "sam")
    async with follow(phone, f"/runs/{run}/stream") as source:
        again = await source.until("approval")
        assert again == seen
        answered = await phone.post(f"/runs/{run}/input", json={"content": "YES"})
        assert answered.status_code == 200, answered.text
        whole(again + await source.rest())
    # And the first one goes on where it was.
    async with follow(server.client, f"/runs/{run}/stream", last=seen[-1].id) as source:
        whole(seen + await source.rest())
    assert (await server.json("GET", f"/runs/{run}"))["status"] == "completed"


@pytest.mark.covers("SERVER-SCENE-03", "SERVER-LIVE-03", "R-16-http", "R-17-http")
async def test_worker_is_killed_during_the_wait(scene: Scene) -> None:
    town, server, _ = scene
    worker = await town.start(*LEASE)
    run = await server.start("pays")
    async with follow(server.client, f"/runs/{run}/stream") as source:
        sent = await source.until("approval")
        worker.kill()
        await ended(worker)
        # Somebody comes back and resumes it; a new worker asks again what is still open.
        await server.json("POST", f"/runs/{run}/resume")
        await town.start(*LEASE)
        again = await source.until("approval")
        assert again[-1].data["is_resumed"] is True
        assert again[-1].data["checkpoint_id"] == sent[-1].data["checkpoint_id"]
        assert "checkpoint_resumed" in [each.type for each in again]
        await server.json("POST", f"/runs/{run}/input", json={"content": "yes"})
        whole(sent + again + await source.rest())


@pytest.mark.covers("SERVER-SCENE-04", "SERVER-LIVE-03")
async def test_worker_is_killed_during_a_node(scene: Scene) -> None:
    town, server, _ = scene
    worker = await town.start(*LEASE)
    town.hold_up(worker)
    run = await server.start("jobs", job="one")
    async with follow(server.client, f"/runs/{run}/stream") as source:
        await until(lambda: bool(town.ledger("think")))
        worker.kill()
        await ended(worker)
        await town.start(*LEASE)
        sent = await source.rest()
    whole(sent)
    types = [each.type for each in sent]
    assert "run.recovered" in types
    assert "checkpoint_resumed" in types
    # The node that was under way began again, in the new worker; what follows it happened once.
    assert [job for job, _ in town.ledger("think")] == ["one", "one"]
    assert [job for job, _ in town.ledger("act")] == ["one"]


@pytest.mark.covers("SERVER-SCENE-05")
async def test_two_devices_answer_at_once_and_one_learns_who_was_first(scene: Scene) -> None:
    town, server, other = scene
    await town.start(*LEASE)
    run = await server.start("pays")
    dana, sam = town.device(server, "dana"), town.device(other, "sam")
    async with follow(server.client, f"/runs/{run}/stream") as source:
        sent = await source.until("approval")
        # Each names what it was shown: who comes later would else hear that nothing is asked any more.
        asked = {"checkpoint_id": sent[-1].data["checkpoint_id"]}
        answers = await asyncio.gather(
            dana.post(f"/runs/{run}/input", json={"content": "yes", **asked}),
            sam.post(f"/runs/{run}/input", json={"content": "no", **asked}),
        )
        whole(sent + (rest := await source.rest()))
    by_status = {each.status_code: each.json() for each in answers}
    assert set(by_status) == {200, 409}, [each.text for each in answers]
    won, who = ("yes", "user:dana@acme") if answers[0].status_code == 200 else ("no", "user:sam@acme")
    assert by_status[409]["resolved_by"] == who
    assert by_status[409]["decision"] == won
    (resolved,) = [each for each in rest if each.type == "hold.resolved"]
    assert (resolved.data["decision"], resolved.data["by"]) == (won, who)


@pytest.mark.covers("SERVER-LIVE-03", "SERVER-LIVE-04")
async def test_server_dies_in_the_middle_of_a_stream_and_another_goes_on(scene: Scene) -> None:
    town, other, _ = scene
    server, _ = await asyncio.gather(town.serve(), town.start(*LEASE))
    run = await server.start("talks", words=150)
    sent: list[Sent] = []
    async with follow(server.client, f"/v1/runs/{run}/stream") as source:
        sent += await source.until("node.emitted")
        await server.kill()
        # What a browser sees when its server dies: the connection breaks, wherever it is.
        with pytest.raises(httpx2.TransportError):  # noqa: PT012
            async for each in source:
                sent.append(each)
    assert "run.completed" not in [each.type for each in sent]
    async with follow(other.client, f"/v1/runs/{run}/stream", last=sent[-1].id) as source:
        sent += await source.rest()
    whole(sent)
    words = [each.data["data"]["data"] for each in sent if each.type == "node.emitted"]
    assert words == [f"word {number} " for number in range(150)]


@pytest.mark.covers("SERVER-LIVE-03")
async def test_server_that_drains_lets_its_followers_go_at_once(scene: Scene) -> None:
    town, other, _ = scene
    server = await town.serve("--drain", "30")
    run = await server.start("asks")
    async with follow(server.client, f"/v1/runs/{run}/stream") as source:
        await source.until("run.created")
        server.process.terminate()
        # It ends in good order, long before the time that requests have to end.
        await source.rest()
        async with asyncio.timeout(HANG):
            assert await ended(server.process) == 0
    async with follow(other.client, f"/v1/runs/{run}/stream", last=source.last):
        pass
