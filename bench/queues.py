"""Row Q: a person in the loop (row F) who answers through a queue: in the database, and through NATS.

The NATS server is one of our own, from the wheel, with its streams on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from bench.flows import person
from bench.lines import Line
from bench.measure import Plan, against, folder, line, ratios
from bench.waits import TIMES, answered
from holdfast import Flow, Holdfast
from holdfast.queues.service import QueueService
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import COMPLETED_EVENT
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.services.nats import NatsServer, binary

ABSENT = "nats-server is not installed"
ROUND = 60.0
PERSON = operator("user:dana@acme")
LOCAL, BOUND = "bench/local", "bench/bound"


def row_q(plan: Plan) -> list[Line]:
    if not binary():
        return [Line(row="Q", name="queues, not measured", value=None, unit="", note=ABSENT)]
    return asyncio.run(_row_q(plan))


async def _row_q(plan: Plan) -> list[Line]:
    with folder() as place:
        server = NatsServer(place / "nats")
        server.start()
        try:
            return await _measured(plan, place, server)
        finally:
            server.stop()


async def _measured(plan: Plan, place: Path, server: NatsServer) -> list[Line]:
    settings = QueueSettings(
        queues={BOUND: QueueSpec(backend="nats")}, backends={"nats": {"servers": [server.address]}}
    )
    async with Holdfast(f"sqlite:{place}/h.db", queues=settings) as hf:
        queues: QueueService = await hf.queues()
        serving = asyncio.create_task(queues.serve())
        consumer = await _consumer(server)

        async def direct() -> float:
            return sum([await answered(hf) for _ in range(TIMES)]) / TIMES

        def through(flow: Flow, answer: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[float]]:
            async def measure() -> float:
                return sum([await _trip(hf, flow, answer) for _ in range(TIMES)]) / TIMES

            return measure

        try:
            local = await against(direct, through(person(queue=LOCAL), lambda: _claimed(queues)), plan.some)
            bound = await against(direct, through(person(queue=BOUND), _nothing), plan.some)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await consumer.close()
    return [
        line("Q", "row F in the same run", bound[1], "ms", scale=1e3),
        line("Q", "answer through a queue in the database", ratios(*local), "x row F", target="Q-database"),
        line("Q", "answer through NATS", ratios(*bound), "x row F", target="Q-nats"),
    ]


async def _trip(hf: Holdfast, flow: Flow, answer: Callable[[], Awaitable[None]]) -> float:
    """Seconds from start to end; the message of the queue is answered at once."""
    began = perf_counter()
    paused = await flow.run({}, on=hf)
    store = await hf.open()
    await answer()
    hold, seen = HoldId(paused.holds[0].id), store.queue_changes()
    while (row := await store.hold(hold)) and row.status is HoldStatus.pending:
        await store.wait_queues(seen, ROUND)
        seen = store.queue_changes()
    (await flow.resume(paused.run_id, on=hf)).expect()
    return perf_counter() - began


async def _claimed(queues: QueueService) -> None:
    scope, _, queue = LOCAL.partition("/")
    (row,) = await queues.claim(PERSON, scope, queue, wait=ROUND)
    await queues.complete(PERSON, scope, queue, row.id, row.claim_token, {"decision": "yes"})


async def _nothing() -> None:
    """The consumer at the broker answers."""


async def _consumer(server: NatsServer) -> Any:
    """A foreign program that completes each review as it arrives."""
    import nats

    client = await nats.connect(server.address)
    js = client.jetstream()

    async def complete(message: Any) -> None:
        asked = msgspec.json.decode(message.data)["correlation_id"]
        data = {"correlation_id": asked, "completed_by": PERSON.id, "result": {"decision": "yes"}}
        event = {"id": f"done-{asked}", "type": COMPLETED_EVENT, "data": data}
        await js.publish(f"hf.done.default.{asked}", msgspec.json.encode(event))

    await client.subscribe("hf.q.>", cb=complete)
    return client
