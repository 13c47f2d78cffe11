"""A cluster as this process uses it: runs are started there, and told what was decided about them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.checkpoint import encode_body
from holdfast.drivers.temporal.address import EngineAddress
from holdfast.drivers.temporal.key_sample import require_same_keys
from holdfast.drivers.temporal.payload_codec import converter_for
from holdfast.drivers.temporal.payloads import MOST_ITEMS, PROTOCOL, RecordRegistry, RunStart, Wire, enums_of
from holdfast.drivers.temporal.projection import is_driven, stripped
from holdfast.drivers.temporal.search_attributes import (
    attributes_of,
    register_attributes,
    require_attributes,
)
from holdfast.drivers.temporal.task_queues import TaskQueues
from holdfast.engine.decision import side_of
from holdfast.errors import EngineError, FlowNotFoundError
from holdfast.model.fingerprint import CODED, decode_graph, dialect_of
from holdfast.model.graph import Graph
from holdfast.model.program import Program
from holdfast.runs.driver.load import load
from holdfast.runs.engine_moves import FOREVER, StartOrder, read_state
from holdfast.runs.engine_report import EngineFigures, EngineFinding, EngineReport
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.rows import ClaimRequest, NewRun, RunRow
from holdfast.telemetry import log
from holdfast.types.ids import DEFAULT_TENANT, RunId
from holdfast.types.outbox import ENGINE_START, OutboxMessage

if TYPE_CHECKING:
    from holdfast.drivers.temporal.sdk_metrics import SdkMetrics
    from holdfast.runs.service import RunService

WORKFLOW: Final = "holdfast.run"
MAIL: Final = "holdfast.mail"
TERM: Final = "term"
"""The name of a workflow's memo: the term of the lease that it was started for."""
ENTRIES: Final = 1_000_000_000
"""Activities of nodes of one workflow, at most."""
OLDEST: Final = (1, 29)
"""The oldest server that is tested."""
_PATIENCE: Final = timedelta(seconds=10)
_OPEN: Final = (None, WorkflowExecutionStatus.RUNNING)


class Cluster:
    """The connection, made when it is first needed."""

    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        self._clients: dict[asyncio.AbstractEventLoop, Client] = {}
        self._lock = asyncio.Lock()
        self._metrics: SdkMetrics | None = None

    def measure(self) -> SdkMetrics:
        """From the next connection on, the SDK's metrics are collected."""
        if self._metrics is None:
            from holdfast.drivers.temporal.sdk_metrics import SdkMetrics

            self._metrics = SdkMetrics()
            self._clients.clear()
        return self._metrics

    async def connect(self) -> Client:
        """Raises EngineError."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            found = self._clients.get(loop)
            if found is None:
                found = self._clients[loop] = await self._connect()
            return found

    async def _connect(self) -> Client:
        address, options = self.address, self._options()
        try:
            client = await Client.connect(address.target, namespace=address.namespace, **options)
            await self._check(client)
        except RPCError as error:
            raise self._unreachable(error) from error
        except (RuntimeError, ValueError) as error:
            raise self._away(error) from error
        return client

    def _away(self, error: Exception) -> EngineError:
        return EngineError(
            f"the cluster at {self.address.target} does not answer: {_reason(error)}.",
            hint="Check the address, and that the server runs. Runs that were created wait in the store.",
        )

    def _options(self) -> dict[str, Any]:
        """Keys and certificates come from the vendor's profile. Raises EngineError."""
        address = self.address
        measured = {} if self._metrics is None else {"runtime": self._metrics.runtime}
        if not address.profile:
            return {"tls": address.tls, **measured}
        from temporalio.envconfig import ClientConfigProfile

        try:
            found = ClientConfigProfile.load(address.profile).to_client_connect_config()
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineError(
                f"the profile {address.profile!r} of the engine cannot be read: {_first_line(error)}",
                hint="TEMPORAL_CONFIG_FILE names the file; `temporal config list` shows its profiles.",
            ) from error
        options = {name: value for name, value in found.items() if name not in ("target_host", "namespace")}
        return {"tls": address.tls, **options, **measured}

    def _unreachable(self, error: RPCError) -> EngineError:
        if error.status is RPCStatusCode.NOT_FOUND:
            return EngineError(
                f"the cluster at {self.address.target} has no namespace {self.address.namespace!r}.",
                hint=f"Create it: temporal operator namespace create -n {self.address.namespace}",
            )
        return EngineError(f"the cluster at {self.address.target} refuses access: {_first_line(error)}")

    async def _check(self, client: Client) -> None:
        """Raises EngineError for a server that is too old, RPCError for an unknown namespace."""
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest

        info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
        numbers = tuple(int(part) for part in info.server_version.split("-")[0].split(".")[:2])
        if numbers < OLDEST:
            raise EngineError(
                f"the server at {self.address.target} is version {info.server_version}.",
                hint=f"Holdfast needs {'.'.join(map(str, OLDEST))} or newer.",
            )
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=self.address.namespace)
        )
        await require_attributes(client, self.address)

    async def setup(self) -> list[str]:
        """Registers what runs need there; returns what was missing. Raises EngineError."""
        address, options = self.address, self._options()
        try:
            client = await Client.connect(address.target, namespace=address.namespace, **options)
            return await register_attributes(client, address)
        except RuntimeError as error:
            raise self._away(error) from error


def _reason(error: BaseException) -> str:
    """Of a failed connection: the innermost text of what the SDK's transport says."""
    said = _first_line(error)
    inner = re.findall(r'(?:message|error): "([^"]+)"', said)
    return inner[-1] if inner else said.rstrip(".")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]


class TemporalEngine:
    """Implements `RunEngine`: the runs of one service go to the cluster."""

    def __init__(self, cluster: Cluster, service: RunService) -> None:
        self.cluster = cluster
        self.name = cluster.address.name
        self.service = service
        self.runtime = service.runtime
        self.store = service.store
        self.figures = EngineFigures()
        self.queues = TaskQueues(self.runtime)
        self._converter = converter_for(self.runtime.blobs, plain=cluster.address.unencrypted)
        # Tenants whose keys are those of the other processes.
        self._checked: set[str] = set()

    async def client(self) -> Client:
        """Reads and writes the payloads of runs. Raises EngineError."""
        found = await self.cluster.connect()
        return Client(found.service_client, namespace=found.namespace, data_converter=self._converter)

    # ------------------------------------------------------------------ how it is
    async def check(self) -> None:
        await self.cluster.connect()
        await self.require_keys(DEFAULT_TENANT)

    async def require_keys(self, tenant: str) -> None:
        """Raises EngineError if the processes of the cluster have other keys for this tenant."""
        if tenant not in self._checked:
            await require_same_keys(self.store, tenant)
            self._checked.add(tenant)

    async def report(self, row: RunRow) -> EngineReport:
        from holdfast.drivers.temporal.report import report_of

        return await report_of(self, row)

    def findings(self) -> AsyncIterator[EngineFinding]:
        from holdfast.drivers.temporal.report import findings

        return findings(self)

    def notes(self, program: Program) -> list[str]:
        spec, found = program.graph.spec, list[str]()
        if spec.mode != "strict":
            found.append(f"mode={spec.mode!r} makes no difference: every step is durable.")
        if spec.allow_uncheckpointed:
            found.append("allow_uncheckpointed has no effect: every step is durable.")
        return found

    # ------------------------------------------------------------------ new runs
    def enlist(self, program: Program, new: NewRun, *, executions: int = 0) -> None:
        """The run belongs to the cluster from its first moment on: no built-in worker claims it. Raises
        EngineError for what this engine cannot run."""
        require_runnable(program, executions)
        new.claimed_by, new.lease_until, new.ready_at = self.name, FOREVER, None
        new.first[:] = [stripped(record) for record in new.first]
        # Written with the run: a process that dies here leaves a run that is started all the same.
        order = StartOrder(self.name, program.budget is not None, new.supersedes or "")
        start = OutboxMessage(ENGINE_START, f"{ENGINE_START}:{new.id}", msgspec.json.encode(order))
        side_of(new.first[0]).outbox.append(start)

    async def created(self, row: RunRow) -> None:
        """Started at once if the cluster answers; otherwise a worker does it."""
        try:
            program = self.runtime.programs.get(row.version)
            await self.start(row, serial=program is not None and program.budget is not None)
        except (EngineError, RPCError) as error:
            log.warning("run %s is started later: %s", row.id, error, extra={"run": row.id})

    async def admit(self, row: RunRow) -> RunRow | None:
        """A run that a limit kept from being claimed as it was created; None: not yet."""
        ttl = FOREVER - self.store.now()
        claims = await self.store.claim(ClaimRequest(worker=self.name, ttl=ttl, run=row.id))
        return claims[0].run if claims else None

    async def start(self, row: RunRow, *, serial: bool = False) -> None:
        """Doing it twice has one effect. `serial`: its nodes draw on one budget."""
        if not is_driven(row, self.name):
            return
        client = await self.client()
        if row.term > 1 and await self._is_started(client, row):
            return
        await self.require_keys(row.tenant)
        start, graph = await self._start_of(row, serial)
        # The workflows of earlier terms are closed; of each term there is one.
        again = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        try:
            await client.start_workflow(
                WORKFLOW,
                args=[encode_body(start), graph],
                id=row.id,
                task_queue=await self.queues.of(row),
                id_reuse_policy=again if row.term > 1 else WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={TERM: row.term},
                task_timeout=_PATIENCE,
                priority=priority_of(row),
                search_attributes=attributes_of(row.tenant, row.flow, row.version, str(row.status)),
            )
        except WorkflowAlreadyStartedError:
            log.debug("run %s is started already", row.id)

    async def _is_started(self, client: Client, row: RunRow) -> bool:
        """Whether the workflow of this term was started. Raises EngineError while that of an earlier term is
        open: it is told to end."""
        try:
            found = await client.get_workflow_handle(row.id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        term = int(await found.memo_value(TERM, 1))
        if term < row.term and found.status in _OPEN:
            await self.tell(row.id, 0, cancels=False)
            raise EngineError(f"run {row.id} is started when its earlier workflow has ended.")
        return term >= row.term

    async def _start_of(self, row: RunRow, serial: bool) -> tuple[RunStart, bytes]:
        """And the graph: a payload of its own, which runs share where it is large."""
        stored = await self.store.flow(row.flow, row.version)
        if stored is None:
            raise FlowNotFoundError(f"the graph of flow {row.flow!r} is not stored.", flow=row.flow)
        codec = self._codec(row)
        graph = Graph(decode_graph(stored.graph))
        loaded = await load(self.store, codec, graph, row.id, blobs=self.runtime.blobs, row=row)
        await self.runtime.blobs.materialise(loaded.pos, codec.registry)
        start = RunStart(
            run=row.id,
            tenant=row.tenant,
            flow=row.flow,
            version=row.version,
            key=row.key,
            engine=self.name,
            position=Wire(codec.registry).position(loaded.pos),
            typed=True,
            heartbeat=self.cluster.address.heartbeat,
            serial=serial,
            protocol=PROTOCOL,
            enums=enums_of(codec.registry),
        )
        if row.term > 1:
            # It was moved here, or is resumed.
            start.term, start.mail = row.term, row.inbox_seq > 0
            # Beyond those of its earlier workflows.
            start.entries = row.term * ENTRIES
            start.queued = not row.limit and bool((await read_state(self.store, row)).limit)
        return start, stored.graph

    def _codec(self, row: RunRow) -> RecordCodec:
        """With the types of the flow, of which its workflow is told. Raises EngineError where they are not
        known."""
        program = self.runtime.programs.get(row.version)
        if program is not None:
            return self.runtime.codec_for(program, row.tenant)
        if dialect_of(row.version) == CODED:
            raise EngineError(f"the code of {row.flow!r} is not loaded here: a worker that has it starts it.")
        return RecordCodec(RecordRegistry())

    # ------------------------------------------------------------------ messages
    async def tell(self, run: RunId, number: int, *, cancels: bool) -> bool:
        """That a message is in the store; False: there is no such workflow (yet, or any more)."""
        client = await self.client()
        handle = client.get_workflow_handle(run)
        try:
            if cancels:
                await handle.cancel(rpc_timeout=_PATIENCE)
            else:
                await handle.signal(MAIL, number, rpc_timeout=_PATIENCE)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def closed_by(self, run: RunId) -> str | None:
        """How its workflow ended: `terminated`, `timed out`, `deleted` or the type of its failure; None: it
        has not. Raises RPCError."""
        client = await self.client()
        handle = client.get_workflow_handle(run)
        try:
            found = await handle.describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return "deleted"
            raise
        self.figures.history_events = max(self.figures.history_events, found.history_length)
        if found.status in _OPEN:
            return None
        if found.status is WorkflowExecutionStatus.FAILED:
            try:
                await handle.result()
            except WorkflowFailureError as failed:
                return getattr(failed.cause, "type", None) or "failed"
        return (found.status or WorkflowExecutionStatus.FAILED).name.lower().replace("_", " ")

    def worker(self, **options: Any) -> Any:
        from holdfast.drivers.temporal.worker import EngineWorker

        return EngineWorker(self, **options)


def priority_of(row: RunRow) -> Priority:
    """The cluster knows five: 3 is the usual one, and a lower number goes first."""
    steps = sum(row.priority >= least for least in (-9, 0, 1, 10))
    # A fairness key has 64 bytes at most.
    return Priority(priority_key=5 - steps, fairness_key=row.tenant.encode()[:64].decode(errors="ignore"))


def require_runnable(program: Program, executions: int = 0) -> None:
    """Raises EngineError."""
    graph = program.graph
    if executions > MOST_ITEMS:
        raise EngineError(
            f"flow {graph.name!r} begins with {executions:,} nodes and items together, and a run on a "
            f"Temporal cluster can start {MOST_ITEMS:,}.",
            hint="Give its map `concurrency=`, or run the flow on the built-in workers.",
        )
