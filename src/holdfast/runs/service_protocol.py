"""What the functions of this package need of the run service: the store, the runtime, a few calls.

`RunService` forwards to functions in other modules (`branch.fork`, `retention`, `history.checkpoints`).
They take a `RunAccess`, so that none of them has to know the service that calls it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.types.ids import RunId

if TYPE_CHECKING:
    # The service loads every action on holds; a program that only runs flows needs none of them.
    from holdfast.holds.service import HoldService
    from holdfast.model.program import Program
    from holdfast.runs.blobs import BlobStore
    from holdfast.runs.driver.runtime import Runtime
    from holdfast.runs.record_codec import RecordCodec
    from holdfast.store.protocols import Store
    from holdfast.store.rows import NewRun, RunRow
    from holdfast.types.hold import HoldRow

MAX_PROGRESS = 256  # runs
MAX_TIMELINES = 16  # runs


class RunCaches:
    """What this process has read or written before, so that it need not do so again."""

    def __init__(self) -> None:
        # Versions of flows, and digests of their code, that the store is known to have.
        self.stored_flows: set[str] = set()
        # Runs with secret fields whose present values the redactor knows, unless it dropped some since.
        self.known_secrets: dict[RunId, tuple[int, int]] = {}
        self._progress: OrderedDict[RunId, tuple[int, dict[str, bool]]] = OrderedDict()
        # `runs.history.timeline.KeptVisits` of the runs that were looked at last.
        self.timelines: OrderedDict[RunId, Any] = OrderedDict()

    def progress(self, run: RunId, upto: int) -> tuple[int, dict[str, bool]] | None:
        """(record, completed nodes up to it), not after `upto`; True: a node of the flow itself."""
        known = self._progress.get(run)
        return None if known is None or known[0] > upto else (known[0], dict(known[1]))

    def keep_progress(self, run: RunId, seq: int, done: dict[str, bool]) -> None:
        """So that an event stream reads each record once."""
        self._progress[run] = (seq, dict(done))
        self._progress.move_to_end(run)
        if len(self._progress) > MAX_PROGRESS:
            self._progress.popitem(last=False)

    def keep_timeline(self, run: RunId, kept: Any) -> None:
        self.timelines[run] = kept
        self.timelines.move_to_end(run)
        if len(self.timelines) > MAX_TIMELINES:
            self.timelines.popitem(last=False)


class JournalReaders(Protocol):
    """What reads values from records: the programs that are loaded, their codecs, the blobs."""

    @property
    def programs(self) -> Mapping[str, Program]: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def codec_for(self) -> Callable[[Program, str], RecordCodec]: ...


class JournalAccess(Protocol):
    """Enough to fold a checkpoint from a journal; a `RunAccess` is one."""

    @property
    def store(self) -> Store: ...

    @property
    def runtime(self) -> JournalReaders: ...


class RunAccess(Protocol):
    """`RunService` is one. Its docstrings say what these methods do."""

    runtime: Runtime
    store: Store
    people: HoldService
    caches: RunCaches

    async def get(self, run: str, *, tenant: str | None = None) -> RunRow: ...

    async def find(self, ref: str) -> tuple[RunRow, int]: ...

    async def holds(self, run: RunId | None = None, *, open_only: bool = True) -> list[HoldRow]: ...

    async def store_flow(self, program: Program) -> None: ...

    async def add_run(self, program: Program, new: NewRun, *, executions: int = 0) -> tuple[RunRow, bool]: ...

    async def answer(
        self,
        hold: str,
        decision: str | None,
        *,
        data: Any = None,
        comment: str | None = None,
        by: str = "user:local",
        channel: str = "api",
    ) -> HoldRow: ...

    async def cancel(self, run: str, *, reason: str = "cancelled", by: str = "user:local") -> RunRow: ...

    async def request_resume(self, run: str, *, accept_loss: bool = False) -> RunRow: ...
