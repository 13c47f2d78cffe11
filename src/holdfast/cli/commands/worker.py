"""`holdfast worker`: advances runs from the store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Backends, Engine, Functions, Handlers, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, remember_source
from holdfast.cli.options.telemetry import start_logging
from holdfast.cli.output.console import print_note
from holdfast.cli.output.json_output import to_json
from holdfast.errors import SettingsError, StoreError
from holdfast.types.duration import DurationError, parse_duration

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.app.holdfast import Holdfast
    from holdfast.app.worker import Worker
    from holdfast.runs.engine_report import DeploymentOptions
    from holdfast.runs.worker.health_server import Health

LEASE = 30.0

FlowModules = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files or modules whose flows it serves (pipelines and documents need none)",
        metavar="[FLOW...]",
    ),
]
WorkerLease = Annotated[
    Text,
    typer.Option(
        help="Lease: after this long without a heartbeat others claim its runs (default: "
        "HOLDFAST_LEASE or 30s)",
        metavar="DURATION",
    ),
]
HotTime = Annotated[
    Text,
    typer.Option(help="How long a run that waits for input stays in memory, e.g. 30s", metavar="DURATION"),
]
MetricsAddress = Annotated[
    Text,
    typer.Option(
        help="Serve /metrics for Prometheus, /healthz and /readyz; a port alone means loopback",
        metavar="[HOST:]PORT",
    ),
]
HealthAddress = Annotated[Text, typer.Option(help="Serve /healthz and /readyz only", metavar="[HOST:]PORT")]
MaxRecoveries = Annotated[
    int | None,
    typer.Option(
        help="Give up a run after more worker deaths in a row than this (default: 5); see `holdfast dead`",
        metavar="NUMBER",
        min=0,
    ),
]
Deployment = Annotated[
    Text,
    typer.Option(help="Deployment of the engine's worker versioning; with --build-id", metavar="NAME"),
]
BuildId = Annotated[
    Text,
    typer.Option(help="Build of this worker in its deployment; runs move on to newer builds", metavar="ID"),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Run commands of pipelines that were submitted to a server"),
]


@app.command(
    epilog="Examples:  holdfast worker flows/refund.py   ·   holdfast worker shop.flows --lane fast   ·   "
    "holdfast worker shop.flows --name shop-1 --lease 10s --metrics 9464"
)
def worker(
    flows: FlowModules = None,
    lane: Annotated[list[str] | None, typer.Option(help="Only runs of this lane; may be repeated")] = None,
    concurrency: Annotated[int, typer.Option(help="Maximum number of active runs", min=1)] = 10,
    name: Annotated[Text, typer.Option(help="Worker name (default: generated)", metavar="NAME")] = None,
    lease: WorkerLease = None,
    hot: HotTime = None,
    metrics: MetricsAddress = None,
    health: HealthAddress = None,
    max_recoveries: MaxRecoveries = None,
    engine: Engine = None,
    deployment: Deployment = None,
    build_id: BuildId = None,
    allow_code: AllowCode = False,
    functions: Functions = None,
    backend: Backends = None,
    handlers: Handlers = None,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Exit when no run is ready")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Run a worker that advances runs from the store.

    Any number of workers share one store. When a worker dies, others claim its runs once its lease has
    expired. On SIGTERM or Ctrl-C it finishes the running steps and stops.
    """
    terms = WorkerOptions(
        name=name,
        lease=lease,
        hot=hot,
        metrics=metrics,
        health=health,
        max_recoveries=max_recoveries,
        engine=engine,
        deployment=deployment,
        build_id=build_id,
        allow_code=allow_code,
        functions=tuple(functions or ()),
        backends=tuple(backend or ()),
        handlers=handlers,
    )
    return run_async(
        run_worker(
            flows or [], lane or None, concurrency, until_idle=until_idle, store=store, json=json, terms=terms
        )
    )


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a worker: its name, its lease, how long idle runs stay in memory, and its health and
    metrics address."""

    name: str | None = None
    lease: str | None = None
    hot: str | None = None
    metrics: str | None = None
    health: str | None = None
    max_recoveries: int | None = None
    engine: str | None = None
    deployment: str | None = None
    build_id: str | None = None
    allow_code: bool = False
    functions: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    handlers: str | None = None

    def lease_seconds(self) -> float | None:
        seconds = _seconds(self.lease, "--lease")
        if seconds is not None and seconds < 1:
            raise SettingsError(
                f"--lease {self.lease} is too short.", hint="A worker needs at least 1s between heartbeats."
            )
        return seconds

    def configure(self, hf: Holdfast) -> None:
        """What documents may call here, and the backends and handlers of pipelines. Raises InputError."""
        if self.backends or self.handlers:
            from holdfast.attractor.program import PipelineDialect
            from holdfast.cli.pipeline_run import worker_setup
            from holdfast.frontends.dot.lower import DIALECT

            hf.dialects = {
                **hf.dialects,
                DIALECT: PipelineDialect(worker_setup(self.backends, self.handlers)),
            }
        if self.functions:
            from holdfast.cli.document_run import document_dialect

            hf.dialects = {**hf.dialects, **document_dialect(self.functions)}

    def options(self) -> dict[str, Any]:
        """Arguments of `Worker`."""
        given = {
            "name": self.name,
            "hot_hold": _seconds(self.hot, "--hot"),
            "probe": self._probe(),
            "max_recoveries": self.max_recoveries,
            "deployment": self._deployment(),
        }
        return {name: value for name, value in given.items() if value is not None}

    def _deployment(self) -> DeploymentOptions | None:
        from holdfast.runs.engine_report import DeploymentOptions

        if self.deployment is None and self.build_id is None:
            return None
        if not self.deployment or not self.build_id:
            raise SettingsError(
                "--deployment and --build-id are given together.", hint="Give both, or neither."
            )
        if not (self.engine or os.environ.get("HOLDFAST_ENGINE")):
            raise SettingsError(
                "--deployment is for workers of an engine.", hint="Give --engine, or leave it out."
            )
        return DeploymentOptions(name=self.deployment, build_id=self.build_id)

    def _probe(self) -> Health | None:
        if self.metrics is not None and self.health is not None:
            raise SettingsError(
                "--metrics and --health cannot both be given.", hint="--metrics answers for health too."
            )
        if self.health is not None:
            from holdfast.runs.worker.health_server import Health

            return Health(self.health)
        if self.metrics is None:
            return None
        try:
            from holdfast.integrations.prometheus import metrics_of_process
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"--metrics needs {error.name}, which is not installed.",
                hint="Install the extra `metrics` (pip install 'holdfast-flow[metrics]'); "
                "--health needs nothing.",
            ) from error
        return metrics_of_process(self.metrics)


def _seconds(text: str | None, option: str) -> float | None:
    if text is None or text in ("0", "0s"):
        return None if text is None else 0.0
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise SettingsError(f"{option}: {error}.") from error


async def run_worker(
    specs: list[str],
    lanes: list[str] | None,
    concurrency: int,
    *,
    until_idle: bool,
    store: str | None,
    json: bool,
    terms: WorkerOptions,
) -> Exit:
    """With `json`: one line on stdout with the flows that it serves, and logs as JSON lines."""
    with start_logging("json" if json else "text"):
        return await _run_worker(
            specs, lanes, concurrency, until_idle=until_idle, store=store, json=json, terms=terms
        )


async def _run_worker(
    specs: list[str],
    lanes: list[str] | None,
    concurrency: int,
    *,
    until_idle: bool,
    store: str | None,
    json: bool,
    terms: WorkerOptions,
) -> Exit:
    from holdfast.app.loader import address_in
    from holdfast.app.worker import Worker
    from holdfast.cli.flow_check import load_checked_flows
    from holdfast.integrations.ask_people_flow import ask_people

    options, lease = terms.options(), terms.lease_seconds()
    carried = load_checked_flows(specs)
    flows = [flow for _, flow in carried]
    async with open_store_for_command(
        store,
        must_exist=False,
        lease=LEASE,
        wanted_lease=lease,
        allow_code=terms.allow_code,
        engine=terms.engine,
    ) as hf:
        terms.configure(hf)
        # Agents ask through any server of the store, so any worker must be able to open their questions.
        worker = Worker(*flows, ask_people, on=hf, lanes=lanes, concurrency=concurrency, **options)
        if until_idle:
            await hf.open()
        elif not await _register(hf, worker):
            return Exit.ok
        for spec, flow in carried:
            remember_source(store, flow.program().version, address_in(spec, flow))
        if json:
            versions = {flow.name: flow.program().version for flow in flows}
            print(to_json({"flows": versions, "lanes": lanes, "concurrency": concurrency}), flush=True)
        else:
            print_note(_greeting(flows, lanes))
        await _run_until_stopped(worker, until_idle=until_idle)
    return Exit.ok


async def _register(hf: Holdfast, worker: Worker) -> bool:
    """False: it got a signal while it waited for its store, or for its name. A handler is needed because the
    first process of a container ignores SIGTERM by default."""

    import asyncio

    from holdfast.cli.drive import Signals

    async def arriving() -> None:
        await open_with_probe(hf, worker.probe)
        await worker.arrive()

    def stop() -> None:
        task.cancel()

    task = asyncio.ensure_future(arriving())
    with Signals(stop):
        await asyncio.wait([task])
    if task.cancelled():
        print_note("Stopped before it started to work.")
        await worker.close()
        return False
    await task
    return True


async def open_with_probe(
    hf: Holdfast, probe: Health | None, *, on_error: Callable[[StoreError], None] | None = None
) -> None:
    """`open_with_retry`; meanwhile the health page, if there is one, says that the store is missing."""
    from holdfast.app.open_retry import open_with_retry

    if probe is None:
        return await open_with_retry(hf, on_error=on_error)

    def note_error(error: StoreError) -> None:
        probe.wrong = f"the store does not answer: {error.message}"
        if on_error is not None:
            on_error(error)

    # Before the store is open: an orchestrator would otherwise restart a worker that only waits.
    await probe.listen()
    try:
        await open_with_retry(hf, on_error=note_error)
    except BaseException:
        await probe.close()
        raise


def _greeting(flows: list[Flow], lanes: list[str] | None) -> str:
    where = f" in {', '.join(lanes)}" if lanes else ""
    names = ", ".join(
        [*(f"{flow.name} {flow.label}".strip() for flow in flows), "every pipeline", "every document"]
    )
    return f"This worker serves {names} and questions of agents{where}. Ctrl-C or SIGTERM drains it."


async def _run_until_stopped(worker: Worker, *, until_idle: bool) -> None:
    import asyncio

    from holdfast.cli.drive import Signals

    serving = asyncio.ensure_future(worker.run_until_idle() if until_idle else worker.serve())
    stops = 0

    def stop() -> None:
        nonlocal stops
        stops += 1
        if stops > 1:
            serving.cancel()
            return
        print_note(
            "Draining: running steps may finish, then runs are released. Press Ctrl-C again to stop now."
        )
        tasks.append(asyncio.ensure_future(worker.stop()))

    tasks: list[asyncio.Future[None]] = []
    try:
        with Signals(stop):
            with contextlib.suppress(asyncio.CancelledError):
                await serving
            await asyncio.gather(*tasks)
    finally:
        await worker.close()
