"""`holdfast serve`: the HTTP server, with a worker in the same process unless `--no-worker` is given."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable
from enum import Enum
from logging import WARNING, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Backends, Engine, Functions, Handlers, Json, Store, Text, app, run_async
from holdfast.cli.commands.worker import LEASE, WorkerOptions, open_with_probe
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, remember_source, shown_address
from holdfast.cli.options.telemetry import start_logging
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import to_json
from holdfast.errors import InputError, StoreError
from holdfast.telemetry import log

if TYPE_CHECKING:
    import asyncio

    from holdfast.api.app import ApiSettings
    from holdfast.api.projector import ProjectionScope
    from holdfast.app.flow import Flow
    from holdfast.app.holdfast import Holdfast
    from holdfast.app.worker import Worker
    from holdfast.cli.server_access import ServerAccess
    from holdfast.runs.service import RunService
    from holdfast.runs.worker.health_server import Health
    from holdfast.runs.worker.reaper import Reaper

PORT = 8420


class ProjectionMode(Enum):
    """`holds`: questions, failures and ends; `every`: all; `none`: none."""

    holds = "holds"
    every = "every"
    none = "none"


FlowModules = Annotated[
    list[str] | None,
    typer.Argument(help="Files or modules whose flows the server serves", metavar="FLOW..."),
]
HostAddress = Annotated[str, typer.Option(help="Address to listen on; other than loopback it needs tokens")]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Do not run a worker in this process")]
Lanes = Annotated[
    list[str] | None, typer.Option(help="Its worker claims only runs of this lane; may be repeated")
]
WorkerLease = Annotated[
    Text, typer.Option(help="Lease of its worker (default: HOLDFAST_LEASE or 30s)", metavar="DURATION")
]
MetricsAddress = Annotated[
    Text,
    typer.Option(
        help="Serve /metrics for Prometheus, /healthz and /readyz on this address", metavar="[HOST:]PORT"
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(help="Allow this origin (CORS); may be repeated", metavar="URL"),
]
HostNames = Annotated[
    list[str] | None,
    typer.Option(help="Accept only this host name, or *.NAME; may be repeated", metavar="NAME"),
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(
        help="Trust X-Forwarded-For and X-Forwarded-Proto of this address or network; may be repeated",
        metavar="ADDRESS",
    ),
]
SignInFile = Annotated[
    Text,
    typer.Option(help="Sign-in settings, a TOML file (default: HOLDFAST_SIGN_IN)", metavar="FILE"),
]
Roots = Annotated[
    list[str] | None,
    typer.Option(
        help="Allow starting flows from files of this folder, to all tenants; TENANT=FOLDER: flow documents, "
        "to this tenant; may be repeated",
        metavar="[TENANT=]FOLDER",
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Allow commands, agents and folders of the machine in submitted pipelines",
    ),
]
DrainTime = Annotated[float, typer.Option(help="Seconds for open requests to finish at shutdown", min=0)]
Projection = Annotated[
    ProjectionMode,
    typer.Option(help="Checkpoints projected into SQL tables (docs/reference/tables.md)"),
]


@app.command(
    epilog="Examples:  holdfast serve flows/refund.py   ·   holdfast serve shop.flows --port 9000   ·   "
    "holdfast serve shop.flows --store postgresql://db/shop --no-worker",
)
def serve(
    flows: FlowModules = None,
    host: HostAddress = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port (0 = any free port)", min=0, max=65535)] = 8420,
    no_worker: NoWorker = False,
    lane: Lanes = None,
    concurrency: Annotated[int, typer.Option(help="Maximum number of active runs", min=1)] = 10,
    name: Annotated[Text, typer.Option(help="Worker name (default: generated)", metavar="NAME")] = None,
    lease: WorkerLease = None,
    metrics: MetricsAddress = None,
    origin: Origins = None,
    hosts: HostNames = None,
    proxy: Proxies = None,
    sign_in: SignInFile = None,
    root: Roots = None,
    allow_code: AllowCode = False,
    drain: DrainTime = 10.0,
    projection: Projection = ProjectionMode.holds,
    functions: Functions = None,
    backend: Backends = None,
    handlers: Handlers = None,
    engine: Engine = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Serve runs and holds over HTTP, with pages for people.

    By default: SQLite in the working folder and a worker in the same process. On PostgreSQL or MariaDB any
    number of servers share one store; with --no-worker they only serve. SIGTERM and Ctrl-C drain it.
    /healthz says whether the process is alive, /readyz whether it is ready.
    """
    wanted = ServeOptions(
        flows=flows or [],
        host=host,
        port=port,
        worker=not no_worker,
        lanes=lane or None,
        concurrency=concurrency,
        terms=WorkerOptions(
            name=name,
            lease=lease,
            metrics=metrics,
            engine=engine,
            functions=tuple(functions or ()),
            backends=tuple(backend or ()),
            handlers=handlers,
        ),
        store=store,
        origins=tuple(origin or ()),
        hosts=tuple(hosts or ()),
        proxies=tuple(proxy or ()),
        sign_in=sign_in,
        roots=tuple(root or ()),
        allow_code=allow_code,
        drain=drain,
        projection=projection.value,
        json=json,
    )
    return run_async(run_server(wanted))


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options. `terms`: those of the worker in this process."""

    flows: list[str]
    host: str = "127.0.0.1"
    port: int = PORT
    worker: bool = True
    lanes: list[str] | None = None
    concurrency: int = 10
    terms: WorkerOptions = WorkerOptions()
    store: str | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    sign_in: str | None = None
    roots: tuple[str, ...] = ()
    allow_code: bool = False
    drain: float = 10.0
    projection: ProjectionScope = "holds"
    json: bool = False


async def run_server(wanted: ServeOptions) -> Exit:
    """Until SIGTERM or Ctrl-C. With `json`: one line on stdout that says where it listens, logs as JSON."""
    with start_logging("json" if wanted.json else "text"):
        for name in ("uvicorn.error", "mcp"):
            getLogger(name).setLevel(WARNING)  # start and stop are logged by us
        return await _run_server(wanted)


async def _run_server(wanted: ServeOptions) -> Exit:
    from holdfast.api.auth.settings import read_sign_in
    from holdfast.cli.flow_check import load_checked_flows
    from holdfast.cli.server_access import ServerAccess

    options, lease = wanted.terms.options(), wanted.terms.lease_seconds()
    carried = load_checked_flows(wanted.flows)
    async with open_store_for_command(
        wanted.store,
        must_exist=False,
        lease=LEASE,
        wanted_lease=lease,
        allow_code=wanted.allow_code,
        engine=wanted.terms.engine,
    ) as hf:
        flows = [flow for _, flow in carried]
        wanted.terms.configure(hf)
        for flow in flows:
            hf.register(flow.program())
        worker = _worker(hf, flows, wanted, options) if wanted.worker else None
        sign_in = read_sign_in(wanted.sign_in) if wanted.sign_in else None
        door = ServerAccess(
            hf, host=wanted.host, settings=_settings(wanted, options.get("probe")), sign_in=sign_in
        )
        runner = ServeRunner(hf, door, worker, wanted)
        runner.probe = options.get("probe")
        await runner.live(carried)
    return Exit.ok


def _settings(wanted: ServeOptions, probe: Any) -> ApiSettings:
    from holdfast.api.app import ApiSettings
    from holdfast.api.inbound.settings import settings_from_environment as inbound_settings
    from holdfast.api.pages.web_app import packaged_app

    roots = [folder_of_root(each) for each in wanted.roots]
    return ApiSettings(
        observed=getattr(probe, "request", None),
        origins=wanted.origins,
        hosts=wanted.hosts,
        roots=tuple(folder for tenant, folder in roots if tenant is None),
        tenant_roots={
            tenant: tuple(folder for of, folder in roots if of == tenant)
            for tenant in {of for of, _ in roots if of is not None}
        },
        allow_code=wanted.allow_code,
        inbound=inbound_settings(),
        web_app=packaged_app(),
    )


def folder_of_root(given: str) -> tuple[str | None, Path]:
    """The tenant that it is for, if it names one, and the folder. Raises InputError."""
    tenant, equals, folder = given.partition("=")
    if not equals or "/" in tenant or Path(given).is_dir():
        return None, Path(given)
    if not tenant or not folder:
        raise InputError(f"--root {given!r} is not TENANT=FOLDER.", hint="Write acme=flows/acme.")
    return tenant, Path(folder)


def _worker(hf: Holdfast, flows: list[Flow], wanted: ServeOptions, options: dict[str, Any]) -> Worker:
    from holdfast.app.worker import Worker
    from holdfast.integrations.ask_people_flow import ask_people

    # Questions of agents (/mcp) are runs too, created by this server or another one.
    return Worker(*flows, ask_people, on=hf, lanes=wanted.lanes, concurrency=wanted.concurrency, **options)


class ServeRunner:
    """The server and its worker, and their shutdown."""

    def __init__(self, hf: Holdfast, door: ServerAccess, worker: Worker | None, wanted: ServeOptions) -> None:
        from holdfast.api.health import ReadinessApp, ServerState
        from holdfast.api.server import HttpServer

        self.hf = hf
        self.door = door
        self.worker = worker
        self.wanted = wanted
        self.probe: Health | None = None
        self.standing = ServerState()
        self.serving = HttpServer(
            ReadinessApp(door.app, self.standing, door.may_see_details),
            host=wanted.host,
            port=wanted.port,
            drain=wanted.drain,
            proxies=wanted.proxies,
        )
        self._stops = 0
        self._work: asyncio.Task[None] | None = None
        self._ending: list[asyncio.Future[None]] = []

    async def live(self, carried: list[tuple[str, Flow]]) -> None:
        import asyncio

        from holdfast.cli.drive import Signals

        # It listens before the store is open, so that probes and clients get a reason instead of a refusal.
        listening = asyncio.create_task(self.serving.serve(lambda: None))
        self._work = asyncio.create_task(self._open_and_work(carried))
        # Installed until the very end: a second signal must not kill the process during its clean-up.
        with Signals(self.stop):
            try:
                await self._until_over(listening, self._work)
            finally:
                self._drain()
                self._work.cancel()
                await asyncio.gather(listening, self._work, return_exceptions=True)
                if self.worker is not None:
                    await self.worker.close()
                elif self.probe is not None:
                    await self.probe.close()

    async def _until_over(self, listening: asyncio.Task[None], work: asyncio.Task[None]) -> None:
        """Until a signal and both are done; or until one of them fails, with its error."""
        import asyncio

        waiting: set[asyncio.Task[None]] = {listening, work}
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                with contextlib.suppress(asyncio.CancelledError):
                    task.result()
            # The command is one unit: if its server cannot listen or has ended, the worker ends too.
            if listening in done and work in waiting:
                work.cancel()

    async def _open_and_work(self, carried: list[tuple[str, Flow]]) -> None:
        import asyncio

        from holdfast.api.projector import Projector
        from holdfast.app.loader import address_in

        if self.worker is None and self.probe is not None:
            await self.probe.open_without_worker(self.standing)
        await open_with_probe(self.hf, self.probe, on_error=self._away)
        # Before any request is answered: a server without a token must not be reachable from elsewhere.
        await self.door.admit()
        service = await self.hf.service()
        for spec, flow in carried:
            await service.store_flow(flow.program())
            # So that `holdfast resume` on this machine finds the code of a run that the server started.
            remember_source(self.wanted.store, flow.program().version, address_in(spec, flow))
        # From here on requests are answered, and find the flows in the store.
        self.standing.store = await self.hf.open()
        await self._greet([flow for _, flow in carried])
        works = self._reaper(service) if self.worker is None else self.worker
        working = asyncio.create_task(works.serve())
        projecting = asyncio.create_task(Projector(service, self.wanted.projection).serve())
        try:
            await asyncio.wait((working, projecting), return_when=asyncio.FIRST_COMPLETED)
            if projecting.done():
                projecting.result()
            await working
        finally:
            working.cancel()
            projecting.cancel()
            await asyncio.gather(working, projecting, return_exceptions=True)

    def _reaper(self, service: RunService) -> Reaper:
        """Without a worker of its own: runs whose workers are all gone become resumable all the same."""
        from holdfast.runs.worker.reaper import Reaper

        lease, limit = service.runtime.settings.lease_ttl, self.wanted.terms.max_recoveries
        reaper = Reaper(service.store, service.runtime.clock, every=lease / 3, backoff=lease)
        reaper.max_recoveries = reaper.max_recoveries if limit is None else limit
        return reaper

    def _away(self, error: StoreError) -> None:
        self.standing.wrong = f"the store does not answer: {error.message}"

    async def _greet(self, flows: list[Flow]) -> None:
        address = self.serving.address
        if self.wanted.json:
            versions = {flow.name: flow.program().version for flow in flows}
            shown = {"address": address, "flows": versions, "worker": self.worker is not None}
            print(to_json(shown | await self.door.startup_fields(address)), flush=True)
            return
        print_line(f"Holdfast listens at {address}, on {shown_address(self.wanted.store)}.")
        for line in await self.door.greeting(address):
            print_line(line)
        print_note(_flows_text(flows, self.worker is not None) + " Ctrl-C or SIGTERM drains it.")

    def stop(self) -> None:
        """The first signal lets running steps and requests finish; the second stops at once."""
        import asyncio

        self._stops += 1
        if self._stops > 1:
            if self._work is not None:
                self._work.cancel()
            self.serving.stop(now=True)
            return
        log.info("draining: running requests and steps may finish")
        self._drain()
        self._ending = [asyncio.ensure_future(each) for each in self._stopping()]

    def _drain(self) -> None:
        self.standing.draining = True
        # Streams stay open for an hour; without this the drain would always last until its limit.
        self.door.close_streams()
        self.serving.stop()

    def _stopping(self) -> list[Awaitable[None]]:
        if self.worker is not None and self.standing.store is not None:
            return [self.worker.stop()]
        if self._work is not None:
            self._work.cancel()
        return []


def _flows_text(flows: list[Flow], works: bool) -> str:
    if not works:
        return "No worker runs here: runs are advanced by `holdfast worker`."
    if not flows:
        return "Its worker serves deployed documents; for flows in Python: holdfast serve flows.py."
    names = ", ".join(f"{flow.name} {flow.label}".strip() for flow in flows)
    return f"Its worker serves {names} and deployed documents."
