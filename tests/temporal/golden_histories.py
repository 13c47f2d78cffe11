"""Golden histories: python -m tests.temporal.golden_histories

Records one history of each flow of the suite, with the present protocol, into tests/temporal/histories (files
that exist are left alone). They replay with every later version: a release that changes a decision counts the
protocol up and keeps the old rule for runs that began before.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import tempfile
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import (
    Interceptor,
    Replayer,
    StartActivityInput,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from holdfast import Context, Flow, Holdfast
from holdfast.drivers.temporal.payloads import PROTOCOL
from holdfast.drivers.temporal.workflow import RunWorkflow
from holdfast.testing.conformance.flows import FLOWS
from tests.services import temporal
from tests.temporal.runs import engine_of, run, settled, workers
from tests.temporal.test_runs import asks

ALL = Path(__file__).parent / "histories"
FOLDER = ALL / f"v{PROTOCOL}"
LARGEST = 400
"""Events of a history that is kept: each decision is in a short one."""


def files() -> list[Path]:
    """Of every protocol."""
    return sorted(ALL.glob("v*/*.json.gz"))


def name(file: Path) -> str:
    return f"{file.parent.name}-{file.name.partition('.')[0]}"


def read(file: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(file.name.partition(".")[0], gzip.decompress(file.read_bytes()).decode())


class _Inputs(Interceptor):
    """What the workflow gives its activities. The vendor's check compares only which ones it starts."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002
    ) -> type[WorkflowInboundInterceptor]:
        found = self.found

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> Any:  # noqa: A002
                found.append(input.args[0])
                return super().start_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


async def replay(history: WorkflowHistory) -> None:
    """Raises if the workflow decides something else than the history has."""
    inputs = _Inputs()
    replayer = Replayer(
        workflows=[RunWorkflow], workflow_runner=UnsandboxedWorkflowRunner(), interceptors=[inputs]
    )
    await replayer.replay_workflow(history)
    recorded = [
        event.activity_task_scheduled_event_attributes.input.payloads[0].data
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert sorted(inputs.found) == sorted(recorded), "an activity is given something else than before"


LARGE = {"items": [base64.b85encode(os.urandom(760)).decode() for _ in range(3)]}
"""Over the size from which it is left out, and below that from which payloads are compressed."""


def large_input() -> Flow:
    """Items are not each given the input of their run."""
    flow = Flow("large_input", effect="pure")

    async def measure(item: str, ctx: Context) -> int:
        return len(item) + len(ctx.run_input["items"])

    flow.map("each", over="items", body=measure, into="sizes")
    flow.hold("ask", prompt="Enough?", options=["yes"])
    flow.edge("each", "ask")
    return flow


def effects() -> Flow:
    """Effects of nodes, of items and inside scripts, which also sleep and ask."""
    flow, inner = Flow("effects", effect="external"), Flow("inner", effect="external")

    @inner.node(idempotency_key="{{order}}")
    async def pay(_state: Any) -> dict[str, Any]:
        return {"paid": True}

    async def send(item: int) -> int:
        return item

    @flow.script(timeout="1m")
    async def talk(_state: Any, ctx: Context) -> dict[str, Any]:
        first = await ctx.step("first", lambda: 1, effect="external")
        await ctx.sleep(0.01)
        reply = await ctx.ask("Well?", options=["yes"])
        second = await ctx.step("second", lambda: 2, effect="external")
        return {"sum": first + second, "said": reply.decision}

    flow.subflow("order", inner, inputs={"order": "'A17'"}, outputs={"paid": "state.paid"})
    flow.map("each", over="[1, 2, 3]", body=send, into="sent", concurrency=2)
    flow.chain("order", "each", "talk")
    return flow


async def record() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases = [(case.name, case.build(), case.given) for case in FLOWS]
    cases += [("asks", asks(), None), ("effects", effects(), {}), ("large_input", large_input(), LARGE)]
    engine = temporal.server().address()
    with tempfile.TemporaryDirectory() as place:
        async with (
            Holdfast(f"sqlite:{place}/h.db", engine=engine) as hf,
            workers(hf, *(flow for _, flow, _ in cases)),
        ):
            client = await (await engine_of(hf)).client()
            for name, flow, given in cases:
                file = FOLDER / f"{name}.json.gz"
                if file.exists():
                    continue
                ended = await run(flow, hf, given)
                if ended.holds:
                    await (await hf.service()).answer(ended.holds[0].id, "yes")
                    await settled(flow, hf, ended.run_id)
                history = await client.get_workflow_handle(ended.run_id).fetch_history()
                if len(history.events) > LARGEST:
                    continue
                try:
                    await replay(history)
                except Exception as error:
                    # Large payloads are in blobs of a store that is gone.
                    print(f"{name} is left out: {str(error)[:100]}")
                    continue
                file.write_bytes(gzip.compress(history.to_json().encode(), mtime=0))


if __name__ == "__main__":
    asyncio.run(record())
