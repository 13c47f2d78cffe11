"""`holdfast.Worker`: a worker of these flows, on one instance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.app.flow import Flow
from holdfast.app.holdfast import Holdfast, default_instance
from holdfast.runs.driver.services import EngineServer
from holdfast.runs.worker.worker import RunWorker

if TYPE_CHECKING:
    from holdfast.runs.engine_report import DeploymentOptions


class Worker:
    """Advances runs that others start, resume or answer.

        async with Worker(refund, invoice, on=hf):      # in the background of a program
            ...
        await Worker(refund, on=hf).serve()             # until stop()

    `lanes`: only runs of these; None: all. `name`: its name in the fleet (default: generated).
    `probe`: its health server (`holdfast.integrations.prometheus.Metrics`, or
    `holdfast.runs.worker.health_server.Health`). `deployment`: of the worker versioning of the instance's
    engine. The other options are those of
    `holdfast.runs.worker.worker.RunWorker`.
    """

    def __init__(
        self,
        *flows: Flow,
        on: Holdfast | None = None,
        lanes: Sequence[str] | None = None,
        concurrency: int = 10,
        deployment: DeploymentOptions | None = None,
        **options: Any,
    ) -> None:
        self._deployment = deployment
        self.hf = on or default_instance()
        self._flows = flows
        for flow in flows:
            self.hf.register(flow.program())
            self.hf.require_judges(flow.program())
        self._options: dict[str, Any] = {
            "lanes": None if lanes is None else tuple(lanes), "concurrency": concurrency, **options
        }  # fmt: skip
        self._worker: RunWorker | None = None
        # Advances the runs of the instance's engine, beside those of the store.
        self._engine: EngineServer | None = None
        self._engine_task: asyncio.Task[None] | None = None

    async def _made(self) -> RunWorker:
        if self._worker is None:
            await self._declare()
            self._worker = RunWorker(await self.hf.new_service(), **self._options)
        return self._worker

    @property
    def probe(self) -> Any:
        """The address of its health server; None: there is none."""
        return self._options.get("probe")

    async def arrive(self) -> None:
        """Register in the fleet without claiming runs yet. `serve` does it too.

        Raises WorkerNameTakenError if another live worker has its name."""
        await (await self._made()).arrive()

    async def _declare(self) -> None:
        """Set the schedules that the flows declare; an operator's changes are kept."""
        for flow in self._flows:
            for (tenant, name), plan in flow.declared.items():
                schedules = await self.hf.schedules()
                await schedules.put(name, flow, tenant=tenant, by="service:worker", declared=True, **plan)

    async def serve(self) -> None:
        """Until `stop`."""
        worker = await self._made()
        beside = self._start_engine(worker)
        if beside is None:
            await worker.serve()
            return
        serving = asyncio.create_task(worker.serve())
        try:
            await asyncio.wait({serving, beside}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # One alone would serve half of the runs.
            await self.stop()
            await serving
        await beside

    def _start_engine(self, worker: RunWorker) -> asyncio.Task[None] | None:
        engine = worker.runtime.engine
        if engine is not None:
            self._engine = engine.worker(
                lanes=self._options["lanes"],
                deployment=self._deployment,
                measured=self.probe is not None and self.probe.measures,
            )
            self._engine_task = asyncio.create_task(self._engine.serve())
        return self._engine_task

    async def stop(self) -> None:
        """Claim nothing more, let steps finish for a while, release the rest."""
        if self._engine is not None:
            self._engine.stop()
        if self._worker is not None:
            self._worker.halt()
            await self._worker.stop()
        if self._engine_task is not None:
            await asyncio.wait([self._engine_task])

    async def run_until_idle(self) -> None:
        """For tests: work until nothing is ready and nothing is running."""
        await (await self._made()).run_until_idle()

    async def __aenter__(self) -> Worker:
        worker = await self._made()
        await worker.__aenter__()
        self._start_engine(worker)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop, and send what is still unsent. After it, `serve` begins anew."""
        try:
            await self.stop()
        finally:
            made, self._worker = self._worker, None
            self._engine = self._engine_task = None
            if made is not None:
                await made.runtime.close()
