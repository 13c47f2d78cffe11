"""Three NATS servers with three replicas: the leader is killed while messages go out, completions come in and
are delivered again. Nothing is lost, and nothing is applied twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from holdfast import Flow, Holdfast
from holdfast.errors import TransportError
from holdfast.queues.nats import STORE_FAILED
from holdfast.queues.transport import Ack
from holdfast.testing.clock import FakeClock
from holdfast.types.outbox import OutboxState
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.queues.test_nats import Foreign
from tests.queues.test_nats_story import NatsOffice, bound_to, event
from tests.services.nats import DONE, OPEN, NatsCluster, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats-cluster")]

PHASES = ("publish", "completion", "redelivery")
Note = Callable[[str, int], None]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    found = NatsCluster(tmp_path / "cluster")
    found.start()
    yield found
    found.stop()


class Siege:
    """One round: `kills` names the phases in which the leader of the phase's stream is killed."""

    def __init__(self, cluster: NatsCluster, harness: NatsOffice, foreign: Foreign, count: int) -> None:
        self.cluster, self.harness, self.foreign, self.count = cluster, harness, foreign, count
        self.kills: tuple[str, ...] = ()
        self.down: NatsServer | None = None
        self.times: dict[str, float] = {}
        self.failures: Counter[str] = Counter()
        self.holds: list[str] = []
        self.killed: list[str] = []

    async def kill(self, phase: str, stream: str) -> None:
        if phase in self.kills:
            info = await self.foreign.js.stream_info(stream)
            assert info.cluster is not None
            self.down = self.cluster.kill(str(info.cluster.leader))
            self.killed.append(phase)

    def revive(self) -> None:
        if self.down is not None:
            self.down.start()
            self.down = None

    async def publish(self) -> None:
        flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt="Pay?", options=["approve", "reject"], queue="support/reviews")
        for place in range(self.count):
            (hold,) = (await flow.run({"n": place}, on=self.harness.hf)).holds
            self.holds.append(hold.id)
        working = asyncio.create_task(self.harness.queues.work())
        while not working.done() and len(await self.foreign.subjects(OPEN)) < self.count // 3:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await self.kill("publish", OPEN)
        await working
        while await self._waiting():
            self.failures["publish"] += 1
            await asyncio.sleep(0.9)
            self.harness.clock.advance(hours=30)
            await self.harness.queues.work()

    async def _waiting(self) -> int:
        rows = await self.harness.store.list_outbox(topic="hold.queue", state=OutboxState.waiting, limit=1)
        return len(rows)

    async def complete(self) -> None:
        """As a foreign client does: repeated until it is stored, or refused because it is."""
        for place, hold in enumerate(self.holds):
            if place == self.count // 3:
                await self.kill("completion", DONE)
            while not await self._completed(hold):
                self.failures["completion"] += 1
                await asyncio.sleep(0.2)

    async def _completed(self, hold: str) -> bool:
        try:
            await self.foreign.js.publish(f"hf.done.default.{hold}", event(hold), timeout=1)
        except APIError as error:
            return error.err_code == STORE_FAILED
        except (NatsError, OSError, TimeoutError):
            return False
        return True

    async def receive(self) -> Counter[str]:
        """Every third one is committed and not acknowledged the first time, as by a worker that dies."""
        taken: Counter[str] = Counter()
        while len(taken) < self.count or any(taken[hold] < 2 for hold in self.holds[::3]):
            try:
                await self._receive(taken)
            except TransportError:
                self.failures["redelivery"] += 1
                await asyncio.sleep(0.5)
        return taken

    async def _receive(self, taken: Counter[str]) -> None:
        dropped = set(self.holds[::3])
        async for found in self.harness.transport.receive():
            assert await self.harness.queues.relay.taken(found) == (Ack.ack, "")
            (hold,) = (each for each in self.holds if each.encode() in found.body)
            taken[hold] += 1
            if hold not in dropped or taken[hold] > 1:
                await found.settle(Ack.ack)
            if sum(taken.values()) == self.count // 3:
                await self.kill("redelivery", DONE)
            if len(taken) == self.count and all(taken[each] > 1 for each in dropped):
                return


@pytest.mark.covers("QU-22")
async def test_three_servers_carry_reviews_and_completions(tmp_path: Path, cluster: NatsCluster) -> None:
    await _round(tmp_path, cluster, 12, ())


@pytest.mark.soak  # an election takes 4 to 10 seconds
@pytest.mark.timeout(600)
@pytest.mark.covers("PLATFORM-QUEUE-02", "QU-22")
async def test_nothing_is_lost_or_applied_twice_when_the_leader_is_killed(
    tmp_path: Path, cluster: NatsCluster, record_property: Note
) -> None:
    siege = await _round(tmp_path, cluster, 300, PHASES)
    for name, seconds in siege.times.items():
        record_property(f"soak:nats {name} ms", round(seconds * 1000))
    for name, number in siege.failures.items():
        record_property(f"soak:nats {name} retries", number)


async def _round(tmp_path: Path, cluster: NatsCluster, count: int, kills: tuple[str, ...]) -> Siege:
    clock = FakeClock()
    settings = bound_to(*cluster.servers, replicas=3, timeout="1s", ack_wait="1s")
    client = await nats.connect(cluster.addresses, max_reconnect_attempts=-1, reconnect_time_wait=0)
    try:
        async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
            harness = NatsOffice(hf, await hf.queues(), await hf.open(), clock)
            await _ready(harness)
            siege = Siege(cluster, harness, Foreign(client), count)
            siege.kills = kills
            taken = await _played(siege)
            await _judge(siege, taken)
    finally:
        await client.close()
    return siege


async def _ready(harness: NatsOffice) -> None:
    async with asyncio.timeout(HANG):
        while True:
            try:
                await harness.transport.jetstream()
                return
            except TransportError:
                await asyncio.sleep(0.1)


async def _played(siege: Siege) -> Counter[str]:
    taken: Counter[str] = Counter()
    steps: dict[str, Callable[[], Any]] = {
        "publish": siege.publish, "completion": siege.complete, "redelivery": siege.receive,
    }  # fmt: skip
    for name, step in steps.items():
        begun = time.monotonic()
        taken = await step() or taken
        siege.times[name] = time.monotonic() - begun
        if name == "publish":
            seen = await siege.foreign.subjects(OPEN)
            assert len(seen) == siege.count, "every message is in the stream once"
        if siege.kills == PHASES:
            siege.revive()
    return taken


async def _judge(siege: Siege, taken: Counter[str]) -> None:
    harness = siege.harness
    assert tuple(siege.killed) == siege.kills
    assert set(taken) == set(siege.holds)
    actions = Counter(
        row.hold for row in await harness.store.audit("default", limit=100_000) if row.action == "resolved"
    )
    assert {actions[hold] for hold in siege.holds} == {1}
    for hold in siege.holds:
        assert (await harness.hold(hold)).status is HoldStatus.resolved
    async with asyncio.timeout(60):
        while await siege.foreign.subjects(OPEN):
            harness.clock.advance(hours=2)
            await harness.queues.work()
            await asyncio.sleep(0.05)
