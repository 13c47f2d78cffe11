"""Keeps the directory of each run that a worker advances in step with its journal.

A file never shows what is not durable. Several steps that are committed at once are written once, and the run
does not wait for it; when the run is released, its directory equals its journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.attractor.branch_files import FOLDER as BRANCHES
from holdfast.attractor.child_runs import DETACH, STARTING, cancel_child
from holdfast.attractor.continuation import Continuation
from holdfast.attractor.detached_commands import kill_all
from holdfast.attractor.directory_owner import Owner, read_owner, write_owner
from holdfast.attractor.run_directory import Facts, RunDirectory
from holdfast.attractor.run_files import CHECKPOINT, is_refused, logs_root, make_private, write_or_raise
from holdfast.attractor.stored_source import pipeline_of, shared_stages
from holdfast.attractor.worktree_folders import remove_worktrees
from holdfast.checkpoint.run_history import begin as brought_by
from holdfast.errors import HoldfastError
from holdfast.model.graph import Graph
from holdfast.model.record_bodies import SubstepBody
from holdfast.runs.child_questions import change_at, change_key, tell_watchers
from holdfast.runs.driver.load import begin, decode_body, fetch_and_apply
from holdfast.runs.service import RunService
from holdfast.telemetry import log
from holdfast.types.ids import RunId
from holdfast.types.own_threads import in_thread
from holdfast.types.record import Kind, Record
from holdfast.types.status import PARKED

if TYPE_CHECKING:
    from holdfast.runs.blobs import BlobStore
    from holdfast.runs.driver.runtime import Runtime
    from holdfast.runs.driver.services import RunServices
    from holdfast.runs.record_codec import RecordCodec
    from holdfast.store.protocols import Store
    from holdfast.store.rows import Claim, RunRow

PAUSE = 0.05
"""Seconds between two writes: steps that follow each other quicker share one."""
LOOK = 0.25
"""Seconds between two looks at a run that other processes advance as well."""
_LOCKED = 0.01
_KEPT = 64
# Their own: the loop's threads may all be busy with handlers for a long time.
_WRITERS = ThreadPoolExecutor(2, thread_name_prefix="holdfast-directories")


class JournalFollower:
    """Reads a run's journal from where it stopped, and says which files have changed."""

    def __init__(
        self,
        store: Store,
        blobs: BlobStore,
        codec: RecordCodec,
        graph: Graph,
        row: RunRow,
        *,
        every: bool = False,
    ) -> None:
        """`every`: as of a `RunDirectory`."""
        self.store, self._blobs, self._codec, self.every = store, blobs.of(row.tenant), codec, every
        self._graph, self.row = graph, row
        self.directory: RunDirectory | None = None
        self.last_event = 0
        """The number of the last event that the directory includes."""
        self.children: dict[str, str] = {}
        """Child runs of running managers that end with them, by the manager's place."""
        self.left_waits: list[str] = []
        """Where the run waited, for a person or a time, and has continued since (`change_key`)."""

    @property
    def head(self) -> int:
        return -1 if self.directory is None else self.directory.pos.head

    async def read_new(self, upto: int | None = None) -> RunDirectory:
        """Read everything committed so far, or up to a record."""
        first = self.row.horizon if self.directory is None else self.head + 1
        for record in await self.store.read(self.row.id, first=first, last=upto):
            await self._take(record)
        assert self.directory is not None
        return self.directory

    async def _take(self, record: Record) -> None:
        body = decode_body(self._codec, self.row.id, record)
        await self._blobs.fill_body(body, self._codec.registry)
        if self.directory is None:
            await self._begin(record, body)
        else:
            pos = self.directory.pos
            if pos.holds or pos.timers:
                self.left_waits.append(change_at(self.row.id, pos.head))
            await fetch_and_apply(self._graph, pos, record, body, self._blobs, self._codec)
            self.directory.note(record, body)
        self._note_child(record, body)
        self.last_event = max(self.last_event, record.event_from + record.events - 1)

    def _note_child(self, record: Record, body: Any) -> None:
        """Keep the child of a manager while the manager runs."""
        place = record.scope + record.node
        if isinstance(body, SubstepBody) and body.name == STARTING and isinstance(body.value, str):
            if not self._is_detached(record.node):
                self.children[place] = body.value
        elif record.kind == Kind.step:
            self.children.pop(place, None)

    def _is_detached(self, manager: str) -> bool:
        """Whether the child of this stage goes on without its manager."""
        pipeline = pipeline_of(self._graph.spec)
        stage = pipeline.stages.get(manager)
        return stage is not None and stage.flag(DETACH, default=pipeline.flag(DETACH))

    async def _begin(self, record: Record, body: Any) -> None:
        pos = await begin(self._graph, self._codec, self.row.id, record, self.store, self._blobs)
        await self._blobs.fill_state(pos, self._codec.registry)
        facts = Facts(
            run=self.row.id,
            name=self.row.flow,
            version=self.row.version,
            graph=self._graph,
            started_at=self.row.created_at,
            shared=shared_stages(self._graph.spec),
        )
        brought = brought_by(record, body).executions
        self.directory = RunDirectory(facts, pos, brought, every=self.every)

    @property
    def root(self) -> Path:
        assert self.directory is not None
        given: Mapping[str, Any] = self.directory.pos.scopes[""].tree.see(0, "input")
        return logs_root(given, self.row.id, self.row.forked_from)

    @property
    def continues(self) -> str:
        """The run whose directory this one took over; empty: none."""
        assert self.directory is not None
        known = Continuation.of(self.directory.pos.scopes[""].tree.see(0, "input"))
        return "" if known is None else known.run


class DirectorySync:
    """The directory of one run, in this process."""

    def __init__(
        self,
        follower: JournalFollower,
        term: int,
        *,
        writes: bool = True,
        services: RunServices | None = None,
    ) -> None:
        """`writes`: false for an encrypted store; then the journal is followed, and nothing is written.
        `services`: of the worker that advances the run, if one does."""
        self.follower = follower
        self._services = services
        self._term = term
        self._writes = writes
        self._woken = asyncio.Event()
        self._reached = asyncio.Condition()
        self._lock = asyncio.Lock()
        self._written = 0
        self._broken = False
        self._fresh = True
        self._is_first = True

    @property
    def ended(self) -> bool:
        """Whether the run has ended; only a failed one can be resumed."""
        directory = self.follower.directory
        return directory is None or directory.pos.status != "running"

    @property
    def completed(self) -> bool:
        directory = self.follower.directory
        return directory is not None and directory.pos.status == "completed"

    @property
    def is_broken(self) -> bool:
        return self._broken

    def wake(self) -> None:
        self._woken.set()

    async def follow(self) -> None:
        while not self._broken:
            await self._changed()
            self._woken.clear()
            await self.write()
            await asyncio.sleep(PAUSE)

    async def _changed(self) -> None:
        if not self.follower.every:
            await self._woken.wait()
            return
        # Other processes advance it as well. Not every store notifies of every step.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), LOOK)

    async def write(self) -> None:
        """Bring the directory up to date with the journal. Errors are logged, and the run continues."""
        async with self._lock:
            if self._broken:
                return
            try:
                directory = await self.follower.read_new()
                if self._writes:
                    await self._write_files(directory)
            except Exception as error:
                self._broken = True
                log.warning("the directory of run %s could not be updated: %s", self.follower.row.id, error)
        async with self._reached:
            self._written = self.follower.last_event
            self._reached.notify_all()
        await self._tell_watchers()

    async def _tell_watchers(self) -> None:
        """A manager may wait for this run, which was answered while it was still in memory: it has not been
        claimed anew, where its managers are told otherwise."""
        left, self.follower.left_waits = self.follower.left_waits, []
        is_first, self._is_first = self._is_first, False
        services = self._services
        if services is None or is_first:
            return
        for change in left:
            try:
                await tell_watchers(services, change, self.follower.row.tenant)
            except HoldfastError as error:
                log.warning("the managers of run %s were not notified: %s", self.follower.row.id, error)

    async def _write_files(self, directory: RunDirectory) -> None:
        root = self.follower.root
        if self.follower.every:
            async with _locked(root):
                # Again: another process may have written newer files meanwhile.
                await self.follower.read_new()
                await self._write_pages(root, directory.take())
            return
        whole = self._fresh and not _follows(root, directory)
        await self._write_pages(root, directory.take(whole=whole))

    async def _write_pages(self, root: Path, pages: Mapping[Path, str]) -> None:
        loop = asyncio.get_running_loop()
        self._broken = not await loop.run_in_executor(_WRITERS, self._write_own, root, pages)
        self._fresh = False

    def _write_own(self, root: Path, pages: Mapping[Path, str]) -> bool:
        """False: the directory belongs to another run, and nothing is written."""
        row, owner = self.follower.row, read_owner(root)
        if owner is not None and owner.run not in (row.id, self.follower.continues):
            log.warning("run %s does not write %s, which belongs to run %s now", row.id, root, owner.run)
            return False
        before = () if owner is None else owner.before if owner.run == row.id else (*owner.before, owner.run)
        if self._fresh and owner != Owner(row.id, self._term, before):
            write_owner(root, Owner(row.id, self._term, before))
        write_files(root, pages)
        return True

    async def leave(self) -> None:
        """Release everything that waits for files that will not be written."""
        self._broken = True
        async with self._reached:
            self._reached.notify_all()

    async def reached(self, number: int) -> None:
        """Wait until the directory includes this event."""
        async with self._reached:
            await self._reached.wait_for(lambda: self._written >= number or self._broken)


@contextlib.asynccontextmanager
async def _locked(root: Path) -> AsyncGenerator[None]:
    """Of the processes of this machine one writes the directory at a time. Raises OSError."""
    make_private(root)
    handle = os.open(root, os.O_RDONLY)
    try:
        while True:
            try:
                flock(handle, LOCK_EX | LOCK_NB)
                break
            except BlockingIOError:
                # No thread waits for it: the other process may need this one's.
                await asyncio.sleep(_LOCKED)
        yield
    finally:
        os.close(handle)


def write_files(root: Path, pages: Mapping[Path, str]) -> None:
    """Checkpoints are written last and durably: a checkpoint must not refer to files that are missing. Those
    of branches are not synced: what they lack is done again, or asked about."""
    for path, text in pages.items():
        durable = path.name == CHECKPOINT and BRANCHES not in path.parts
        write_or_raise(root / path, text, durable=durable)


def _follows(root: Path, directory: RunDirectory) -> bool:
    """Whether the existing files are of this run, so that they need not be written again."""
    try:
        found = (root / CHECKPOINT).read_bytes()
    except OSError:
        return False
    return msgspec.json.encode(directory.facts.run) in found


async def _stop_left(runtime: Runtime, sync: DirectorySync) -> None:
    """What a dead worker's stages left of a run that has ended: commands of this machine, and children."""
    if sync.follower.directory is not None:
        await in_thread(kill_all, sync.follower.root)
        for child in sync.follower.children.values():
            await cancel_child(RunService(runtime), child)


class _Use:
    """The directory of a run that an engine advances, while a stage or a reader here needs it."""

    def __init__(self, sync: DirectorySync, stop: Callable[[], None]) -> None:
        self.sync = sync
        self.count = 0
        self._stop = stop
        self._task = asyncio.create_task(sync.follow())

    async def close(self) -> None:
        self._stop()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.sync.leave()


class DirectorySyncs:
    """The directories of this process, by run. The state of a waiting run is kept until it resumes."""

    def __init__(self) -> None:
        self._live: dict[RunId, DirectorySync] = {}
        # Of runs that an engine advances.
        self._uses: dict[RunId, _Use] = {}
        self._kept: OrderedDict[RunId, JournalFollower] = OrderedDict()

    def of(self, run: str) -> DirectorySync | None:
        return self._live.get(RunId(run))

    async def write(self, run: str) -> None:
        """Bring the directory of a run that this process advances up to date with its journal."""
        sync = self.of(run)
        if sync is not None:
            await sync.write()

    @contextlib.asynccontextmanager
    async def beside(self, runtime: Runtime, claim: Claim) -> AsyncGenerator[None]:
        if runtime.engine is not None and claim.lease.worker == runtime.engine.name:
            async with self._shared(runtime, claim):
                yield
            return
        run = claim.run.id
        sync = self._made(runtime, claim)
        self._live[run] = sync
        # Before the first stage runs: no stage may find its files from an earlier visit.
        await sync.write()
        if claim.lease.term > 1:
            # A manager may wait for this run: it was parked, and continues now.
            await tell_watchers(runtime, change_key(claim.run), claim.run.tenant)
        stop = runtime.listen(run, sync.wake)
        task = asyncio.create_task(sync.follow())
        try:
            yield
        except BaseException:
            # Another worker may have claimed the run by now, and writes its directory.
            self._kept.pop(run, None)
            raise
        else:
            await sync.write()
        finally:
            stop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await sync.leave()
            if sync.ended:
                self._kept.pop(run, None)
                # A dead worker's commands may still run; their stages need not be entered again.
                if sync.completed:
                    await in_thread(remove_worktrees, sync.follower.root)
                if claim.lease.term > 1:
                    await _stop_left(runtime, sync)
            if self._live.get(run) is sync:
                del self._live[run]

    @contextlib.asynccontextmanager
    async def _shared(self, runtime: Runtime, claim: Claim) -> AsyncGenerator[None]:
        """Of a run that an engine advances: its stages run in several processes, and several of them here at
        once. Each process that runs a stage, or follows the run, keeps the directory on its machine."""
        run = claim.run.id
        use = self._uses.get(run)
        if use is None:
            sync = self._made(runtime, claim, every=True)
            use = self._uses[run] = _Use(sync, runtime.listen(run, sync.wake))
            self._live[run] = sync
        use.count += 1
        try:
            await use.sync.write()
            if claim.run.status in PARKED:
                await tell_watchers(runtime, change_key(claim.run), claim.run.tenant)
            yield
            await use.sync.write()
        finally:
            use.count -= 1
            if not use.count and self._uses.get(run) is use:
                del self._uses[run], self._live[run]
                if use.sync.is_broken:
                    # Read anew by the next stage.
                    self._kept.pop(run, None)
                await use.close()
                if use.sync.ended:
                    self._kept.pop(run, None)
                    if use.sync.completed:
                        await in_thread(remove_worktrees, use.sync.follower.root)
                    await _stop_left(runtime, use.sync)

    def _made(self, runtime: Runtime, claim: Claim, *, every: bool = False) -> DirectorySync:
        writes = not is_refused(runtime)
        if not writes:
            text = "the directory of run %s is not written, because the store is encrypted"
            log.info(text, claim.run.id)
        follower = self._follower(runtime, claim, every=every)
        return DirectorySync(follower, claim.lease.term, writes=writes, services=runtime)

    def _follower(self, runtime: Runtime, claim: Claim, *, every: bool) -> JournalFollower:
        row = claim.run
        found = self._kept.get(row.id)
        # After a migration the graph is another one, and the files must be derived again from the start.
        if (
            found is not None
            and found.store is runtime.store
            and found.row.version == row.version
            and (found.every is every)
        ):
            self._kept.move_to_end(row.id)
            return found
        program = runtime.programs[row.version]
        codec = runtime.codec_for(program, row.tenant)
        found = JournalFollower(runtime.store, runtime.blobs, codec, program.graph, row, every=every)
        self._kept[row.id] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


DIRECTORY_SYNCS = DirectorySyncs()
"""Of this process."""
