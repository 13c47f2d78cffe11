"""What the runs of one event loop share. `Runtime` adds the drivers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack
from weakref import WeakKeyDictionary

from holdfast.checkpoint import TypeRegistry
from holdfast.model.program import Program
from holdfast.runs.attachments import BlobAttachments
from holdfast.runs.blobs import BlobStore
from holdfast.runs.driver.evidence_outbox import EvidenceOutbox
from holdfast.runs.driver.lease import LeaseHolder, LeaseKeeper
from holdfast.runs.driver.settings import RunSettings, log_threshold
from holdfast.runs.hold_preparation import Preparer
from holdfast.runs.node_memory import MemoryBackend, StoredMemory
from holdfast.runs.record_codec import RecordCodec
from holdfast.runs.recorder.recorder import Recorder
from holdfast.store.blob.objects import Objects
from holdfast.store.protocols import Store
from holdfast.store.rows import NewRun, RunRow
from holdfast.types.clock import Clock, SharedClock
from holdfast.types.fleet import BlockedEntity
from holdfast.types.ids import DEFAULT_CELL, DEFAULT_TENANT, RunId
from holdfast.types.record import Record, Side

if TYPE_CHECKING:
    from holdfast.holds.notify.deliverer import Deliverer
    from holdfast.holds.policies.auto_decide import Arbiter
    from holdfast.holds.preparation import HoldPreparation
    from holdfast.holds.service import HoldService
    from holdfast.holds.timing.sweeper import HoldSweeper
    from holdfast.runs.engine_report import DeploymentOptions, EngineFigures, EngineFinding, EngineReport


class QueueDuties(Protocol):
    """The messages of queues, as far as a worker takes care of them."""

    def open(self) -> Any:
        """The service of queues."""
        ...

    async def serve(self) -> None:
        """Until cancelled."""
        ...

    async def work(self) -> None:
        """Everything that is due now, once."""
        ...

    async def close(self) -> None:
        """Ends its connections to brokers."""
        ...


class SubstepGate(Protocol):
    def replace_substep(self, attempt: Any, step: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
        """What is called instead of the function of a sub-step."""
        ...


class PutHoldStates(Protocol):
    async def __call__(
        self, program: Program, row: RunRow, unwritten: Sequence[Record], side: Side
    ) -> None: ...


class RunCreator(Protocol):
    async def __call__(self, program: Program, given: Any, **options: Any) -> tuple[RunRow, bool]: ...


class RunStarter(Protocol):
    """How the script of a run starts others."""

    programs: dict[str, Program]
    has_worker: bool
    """Whether a worker claims the runs that are created here; otherwise who starts one advances it."""
    children: set[asyncio.Task[None]]

    async def create_run(self, program: Program, given: Any, **options: Any) -> tuple[RunRow, bool]: ...

    async def find_program(self, version: str, flow: str) -> Program: ...

    async def advance_child(self, run: RunId) -> None: ...

    async def cancel_child(self, run: RunId) -> None: ...


class RunEngine(Protocol):
    """What advances runs instead of the built-in workers. It has the lease of its runs under its name."""

    name: str
    figures: EngineFigures

    def enlist(self, program: Program, new: NewRun, *, executions: int = 0) -> None:
        """The run is created as one of the engine, and begins with so many executions. Raises EngineError if
        it cannot run it."""
        ...

    async def created(self, row: RunRow) -> None:
        """It is in the store: it may start."""
        ...

    async def check(self) -> None:
        """Raises EngineError if it cannot be used."""
        ...

    async def report(self, row: RunRow) -> EngineReport:
        """How one of its runs is doing. Raises EngineError if it cannot be asked."""
        ...

    def notes(self, program: Program) -> list[str]:
        """What differs for a flow that runs there, or why it cannot."""
        ...

    def findings(self) -> AsyncIterator[EngineFinding]:
        """What `doctor` says of it. Raises EngineError if it cannot be asked."""
        ...

    def worker(
        self,
        *,
        lanes: Sequence[str] | None = None,
        grace: float = 10.0,
        deployment: DeploymentOptions | None = None,
        measured: bool = False,
    ) -> EngineServer:
        """What advances its runs in this process. `measured`: the metrics of its library are collected."""
        ...


class EngineServer(Protocol):
    async def serve(self) -> None:
        """Until `stop`."""
        ...

    def stop(self) -> None: ...


class ServiceOptions(TypedDict, total=False):
    """What is left out, or None, gets a default."""

    objects: Objects | None
    clock: Clock | None
    settings: RunSettings | None
    memory: MemoryBackend | None
    preparation: HoldPreparation | None
    sweeper: HoldSweeper | None
    people: HoldService | None
    arbiter: Arbiter | None
    deliverer: Deliverer | None
    queues: QueueDuties | None


class RunServices:
    """Store, clock, recorder, blobs, leases and everything else that a run needs beside its own session."""

    def __init__(
        self, store: Store, holders: Mapping[RunId, LeaseHolder], **options: Unpack[ServiceOptions]
    ) -> None:
        # Imported with the first runtime: a program that only builds flows needs none of them.
        from holdfast.holds.default_preparation import default_preparation
        from holdfast.holds.service import HoldService
        from holdfast.holds.timing.sweeper import HoldSweeper
        from holdfast.runs.unserved import ReleasedRuns

        self.store = store
        # Wake times and deadlines are the store's: another machine, with another clock, acts on them.
        self.clock: Clock = options.get("clock") or SharedClock(store.now)
        self.settings = options.get("settings") or RunSettings()
        self.log_from = log_threshold(self.settings.stored_log_level)
        self.blobs = BlobStore(store, options.get("objects"))
        self.recorder = Recorder(store, self.blobs.put_for)
        self.recorder.patience = self.settings.patience
        self.leases = LeaseKeeper(store, self.clock, self.settings, holders)
        self.evidence_outbox = EvidenceOutbox(store)
        self.preparer = Preparer(options.get("preparation") or default_preparation(store))
        # Stores the state of a run before a record of it opens holds; set by the run service.
        self.put_hold_states: PutHoldStates | None = None
        self.starter: RunStarter | None = None
        self.unserved = ReleasedRuns()
        # What new runs go to instead of the built-in workers; set by the instance.
        self.engine: RunEngine | None = None
        # The place that the store is in; set by the instance.
        self.cell = DEFAULT_CELL
        # Raises TenantNotPlacedError for a tenant that is elsewhere; None: all are here.
        self.require_tenant: Callable[[str], Awaitable[object]] | None = None
        self.sweeper = options.get("sweeper") or HoldSweeper(store, self.clock)
        self.people = options.get("people") or HoldService(store)
        self.attachments = self.people.ctx.attachments = BlobAttachments(self.blobs)
        self.arbiter = options.get("arbiter")
        self.deliverer = options.get("deliverer")
        self.queues = options.get("queues")
        self.memory: MemoryBackend = options.get("memory") or StoredMemory(store)
        # Called with each sweep of the retention.
        self.cleanups: list[Callable[[], Awaitable[None]]] = []
        # Stands before the sub-steps of a run that is only previewed.
        self.gate: SubstepGate | None = None
        # Called when a run begins to wait in memory.
        self.on_idle: Callable[[], None] = _ignore
        # Entities that code keeps taken which was stopped and goes on, by that code.
        self.blocked: dict[asyncio.Future[Any], BlockedEntity] = {}
        # How often the code of a node did not stop when it was cancelled, by flow and node.
        self.disowned: Counter[tuple[str, str]] = Counter()
        # Weak: a program that a later one replaces (`register`) is freed with its codec.
        self._codecs: WeakKeyDictionary[Program, dict[str, RecordCodec]] = WeakKeyDictionary()

    def codec_for(self, program: Program, tenant: str = DEFAULT_TENANT) -> RecordCodec:
        """`tenant`: whose runs it reads and writes; their secrets are kept apart."""
        codecs = self._codecs.get(program)
        if codecs is None:
            registry = TypeRegistry(*program.all_types())
            program.adopt_with(registry.adopt)
            codecs = self._codecs[program] = {"": RecordCodec(registry, program.graph.secrets)}
        secrets = program.graph.secrets
        # One for all tenants where it does not matter whose it is.
        codec = codecs.get(tenant if secrets else "")
        if codec is None:
            codec = codecs[tenant] = RecordCodec(codecs[""].registry, secrets, tenant)
        return codec

    async def sweep_holds(self, run: RunId | None = None) -> bool:
        """Whether there was anything to do: passed deadlines become inbox rows of their runs."""
        # One cheap read decides: this is asked with every poll, and deadlines are rare.
        due = await self.store.next_due_hold()
        if due is None or due > self.store.now():
            return False
        await self.sweeper.sweep(run=run)
        return True


def _ignore() -> None:
    pass
