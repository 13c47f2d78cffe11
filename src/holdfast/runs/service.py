"""The operations on runs from outside: create, read, answer, cancel, resume. Writes no journal records (D-2).

Most methods forward to a function in another module. These modules are imported on first use: a command that
only lists runs must not wait for all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    RunNotFoundError,
)
from holdfast.model.graph import Graph
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs import create
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.hold_states import put_hold_states_for
from holdfast.runs.pending_holds import ALL, PendingRun, open_breakpoints, pending_runs
from holdfast.runs.service_protocol import RunCaches
from holdfast.store.rows import Claim, NewRun, RunFilter, RunRow, ThreadRow
from holdfast.types.event import Event
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.lease import Lease
from holdfast.types.retention import BLOB_GRACE, KEEP
from holdfast.types.status import ENDED, HoldStatus
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.checkpoint.checkpoint import Checkpoint, CheckpointMeta
    from holdfast.checkpoint.diff_result import Diff
    from holdfast.runs.dead_runs import DeadRun
    from holdfast.runs.history.replay import Replay
    from holdfast.runs.history.story import Story
    from holdfast.runs.migrate.check import MigrationReport
    from holdfast.runs.preview.preview import HoldPreview
    from holdfast.runs.retention import CleanupResult
    from holdfast.runs.steer_messages import SteerMessage
    from holdfast.types.terms import Actor


class RunService:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.store = runtime.store
        self.people = runtime.people
        self.caches = RunCaches()
        runtime.recorder.make_room = self.make_room
        runtime.put_hold_states = put_hold_states_for(self)
        runtime.make_run = self.create
        runtime.stop_run = self.cancel

    # ------------------------------------------------------------------ creating
    async def create(self, program: Program, given: Any, **options: Any) -> tuple[RunRow, bool]:
        """A new run, durable when this returns, for any worker to claim (options as for `create.prepare`).
        (row, False) if the idempotency key names an earlier one."""
        new, pos = await create.prepare(self, program, given, **options)
        return await self.add_run(program, new, executions=len(pos.execs))

    async def add_run(self, program: Program, new: NewRun, *, executions: int = 0) -> tuple[RunRow, bool]:
        """Store a run that was prepared; with an engine it is one of the engine. `executions`: how many
        begin at once, as far as it is known."""
        engine = self.runtime.engine
        if engine is None:
            return await self.store.create(new)
        engine.enlist(program, new, executions=executions)
        row, fresh = await self.store.create(new)
        if fresh:
            await engine.created(row)
        return row, fresh

    async def start(
        self, program: Program, given: Any, **options: Any
    ) -> tuple[Claim, Position] | QueuedRun | RunRow:
        """Create a run and claim it in one transaction, for a caller that drives it at once.

        If its limit is reached it is queued, for `runs.claim_run.claim_in_turn`. If the idempotency key names
        an earlier run: that run's row."""
        recorder = self.runtime.recorder
        recorder.expected += 1
        try:
            new, pos = await create.prepare(self, program, given, **options)
            new.claimed_by = self.runtime.worker
            new.lease_until = new.created_at + self.runtime.ttl
            row, fresh = await self.store.create(new)
        finally:
            recorder.expected -= 1
        if not fresh:
            return row
        if row.worker is None:
            return QueuedRun(row)
        return Claim(Lease(row.id, row.key, row.term, self.runtime.worker), row), pos

    async def store_flow(self, program: Program) -> None:
        """Store the graph, so that runs can be read without code, and what the code consists of (D-34)."""
        await create.store_flow(self, program)

    # ------------------------------------------------------------------ looking
    async def get(self, run: str, *, tenant: str | None = None) -> RunRow:
        """By its id or a unique beginning of it; `tenant`: only a run of this tenant. Raises
        RunNotFoundError."""
        row = await self.store.get_run(RunId(require_text(run, "a run's id")))
        found = [] if row is not None else await self.store.find_runs(run) if len(run) >= 4 else []
        if tenant is not None:
            # For a caller of one tenant, a run of another does not exist.
            found = [one for one in found if one.tenant == tenant]
            row = row if row is None or row.tenant == tenant else None
        if row is None:
            if len(found) == 1:
                return found[0]
            more = f" {len(found)} runs begin with it: give more of the id." if found else ""
            raise RunNotFoundError(
                f"there is no run {run!r} in this store.{more}", hint="`holdfast runs` lists them.", run=run
            )
        return row

    async def list(self, where: RunFilter, *, limit: int = 50) -> list[RunRow]:
        return await self.store.list_runs(where, after=None, limit=limit)

    async def children(self, run: RunId) -> list[RunRow]:
        """The runs that the scripts of this one have started, newest first; without detached ones."""
        return await self.store.list_runs(RunFilter(parent_run=run), after=None, limit=ALL)

    async def holds(self, run: RunId | None = None, *, open_only: bool = True) -> list[HoldRow]:
        """All of them: a map may have opened hundreds."""
        return await self.store.holds(run=run, status=HoldStatus.pending if open_only else None, limit=ALL)

    async def questions(self, run: RunId) -> list[HoldRow]:
        """The open holds of a run, with the questions of runs that it manages and waits for."""
        from holdfast.runs.child_questions import questions_of

        return await questions_of(self.store, run)

    async def pending(
        self, *, tenant: str | None = None, thread: str | None = None, limit: int = 50
    ) -> list[PendingRun]:
        """Runs that wait for a person, with what they ask: newest question first. `limit` 0: all."""
        return await pending_runs(self, tenant=tenant, thread=thread, limit=limit)

    async def breakpoints(
        self, *, run: str | None = None, flow: str | None = None, tenant: str | None = None
    ) -> list[HoldRow]:
        """Breakpoints that runs wait at, oldest first."""
        return await open_breakpoints(self, run=run, flow=flow, tenant=tenant)

    # ------------------------------------------------------------------ answers and requests
    async def answer(
        self,
        hold: str,
        decision: str | None,
        *,
        data: Any = None,
        comment: str | None = None,
        by: str = "user:local",
        channel: str = "api",
    ) -> HoldRow:
        """Decide a hold, once. Invalid: the hold stays pending, nothing is consumed."""
        return await self.people.answer(hold, decision, data=data, comment=comment, by=by, channel=channel)

    async def preview(self, hold: HoldRow, *, decision: str | None = None, data: Any = None) -> HoldPreview:
        """What each answer to an open hold would lead to, up to the next questions and outside effects;
        nothing is done outside. `decision`: only this one. `data`: what was filled in."""
        from holdfast.runs.preview.preview import preview_hold

        return await preview_hold(self, hold, decision=decision, data=data)

    async def say(
        self,
        run: str,
        content: str | Mapping[str, Any],
        *,
        hold: str | None = None,
        by: str = "user:local",
        actor: Actor | None = None,
        key: str | None = None,
    ) -> HoldRow:
        """Answer the open question of a run in plain words, or with a complete answer as a mapping. `actor`:
        who answers, if not the operator of the store. `key`: sent again with the same key, it counts once."""
        from holdfast.runs import answer_text

        return await answer_text.answer_text(self, run, content, hold=hold, by=by, actor=actor, key=key)

    async def cancel(self, run: str, *, reason: str = "cancelled", by: str = "user:local") -> RunRow:
        """Ask a run to stop. The worker that has it does so; without one, any worker claims it and does."""
        from holdfast.runs import cancel

        return await cancel.cancel(self, run, reason=reason, by=by)

    async def steer(self, run: str, text: str, *, by: str = "user:local", stage: str = "") -> SteerMessage:
        """A message to the agent that is at work in the run: it gets it once, after the tool calls that it
        makes now. Raises RunStatusError if there is none, and RunEndedError."""
        from holdfast.runs.steer import steer

        return await steer(self, run, text, by=by, stage=stage)

    async def request_resume(
        self,
        run: str,
        *,
        breaks: Sequence[str] | None = None,
        no_breaks: bool = False,
        accept_loss: bool = False,
    ) -> RunRow:
        """A failed run resumes; a parked or abandoned one is made claimable; a finished one does not change.
        `breaks`: more nodes to stop before. `no_breaks`: it stops at no breakpoint. `accept_loss`: even if
        the store lost part of its history, else that is a HistoryLostError."""
        from holdfast.runs import resume

        return await resume.request_resume(
            self, run, breaks=breaks, no_breaks=no_breaks, accept_loss=accept_loss
        )

    # ------------------------------------------------------------------ dead letters
    async def dead(self, *, tenant: str | None = None, limit: int = 50) -> list[RunRow]:
        """Runs that were given up because their workers died again and again, newest first."""
        from holdfast.runs import dead_runs

        return await dead_runs.list_dead(self, tenant=tenant, limit=limit)

    async def deaths(self, run: str) -> DeadRun:
        """Every death of a worker that had this run, with the nodes that were running."""
        from holdfast.runs import dead_runs

        return await dead_runs.examine_dead(self, run)

    async def retry_dead(self, run: str, *, by: str = "user:local") -> RunRow:
        """Any worker may claim it, and its recoveries are counted from zero. RunEndedError if it is
        not dead."""
        from holdfast.runs import dead_runs

        return await dead_runs.retry_dead(self, run, by=by)

    async def discard_dead(
        self, run: str, *, reason: str = "discarded", by: str = "user:local", unread: bool = False
    ) -> RunRow:
        """The next worker ends it as cancelled, no node runs again; `unread`: at once, without loading it.
        RunEndedError if it is not dead."""
        from holdfast.runs import dead_runs

        return await dead_runs.discard_dead(self, run, reason=reason, by=by, unread=unread)

    # ------------------------------------------------------------------ checkpoints
    async def checkpoints(
        self, run: str, *, limit: int = 50, node: str | None = None, before: int | None = None
    ) -> list[CheckpointMeta]:
        """Metadata, newest first; no state is loaded. `limit` 0: all."""
        from holdfast.runs.history import checkpoints

        return await checkpoints.list_checkpoints(self, run, limit=limit, node=node, before=before)

    async def checkpoint(self, ref: str, seq: int | None = None) -> Checkpoint:
        """The complete picture: by checkpoint id, or by run and record. Raises CheckpointNotFoundError."""
        from holdfast.runs.history import checkpoints

        row, found = await checkpoints.resolve(self, ref, seq)
        return await checkpoints.make_checkpoint(self, row, found)

    async def latest(self, run: str, node: str | None = None) -> Checkpoint:
        """The newest checkpoint of a run (and node), by sequence."""
        from holdfast.runs.history import checkpoints

        row, seq = await checkpoints.latest_seq(self, run, node)
        return await checkpoints.make_checkpoint(self, row, seq)

    async def hold_state(self, hold: str) -> dict[str, Any] | None:
        """The object with the run's state when the hold was asked, decrypted: a checkpoint in its published
        form; None if there is none. Raises BlobMissingError, BlobDamagedError for other content."""
        from holdfast.runs.hold_states import read_state

        row = await self.store.hold(HoldId(hold))
        if row is None or row.state_key is None:
            return None
        return await read_state(self.runtime.blobs.of(row.tenant), row, row.state_key)

    async def standing(self, ref: str, checkpoint: str | int | None = None) -> tuple[RunRow, int | None]:
        """(run, None) if `ref` (and `checkpoint`) mean the run's latest state; else (run, seq)."""
        from holdfast.runs.history import checkpoints

        return await checkpoints.resolve_run(self, ref, checkpoint)

    async def find(self, ref: str) -> tuple[RunRow, int]:
        """The run and record that a reference names: a checkpoint's id, RUN, RUN@12 or RUN@node."""
        from holdfast.runs import references

        return await references.find(self, ref)

    async def diff(self, a: str, b: str, *, whole: bool = False) -> Diff:
        """From moment `a` to moment `b`, each given as for `find`: what differs, and where they diverge.
        `whole`: with every change of the values, however many there are."""
        from holdfast.runs.history import diff

        return await diff.compare(self, a, b, limit=0 if whole else diff.LIMIT)

    async def story(self, run: str, *, upto: int | None = None) -> Story:
        """What happened, visit by visit: attempts, sub-steps, questions, what changed in the state."""
        from holdfast.runs.history import story_loader

        return await story_loader.load_story(self, await self.get(run), upto)

    async def replay(
        self, run: str, *, upto: int | None = None, against: Graph | None = None, version: str = ""
    ) -> Replay:
        """Make the run's decisions again and compare. `against`: with the graph of another version."""
        from holdfast.runs.history import replay

        return await replay.replay(self, run, upto=upto, against=against, version=version)

    # ------------------------------------------------------------------ branching off
    async def fork(
        self,
        ref: str,
        seq: int | None = None,
        *,
        patch: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002
        run_id: str | None = None,
        started_by: str | None = None,
    ) -> RunRow:
        """A new run from a checkpoint (an id, or a run and a record); the source does not change.
        `started_by`: who asks for it; default: the initiator of the source."""
        from holdfast.runs.fork import fork

        return await fork.fork(self, ref, seq, patch=patch, given=input, run_id=run_id, started_by=started_by)

    async def rewind(
        self,
        ref: str,
        seq: int | None = None,
        *,
        patch: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002
        run_id: str | None = None,
        started_by: str | None = None,
    ) -> RunRow:
        """A fork that supersedes its source: the old run ends as cancelled, with links both ways."""
        from holdfast.runs.fork import fork

        return await fork.fork(
            self, ref, seq, patch=patch, given=input, supersede=True, run_id=run_id, started_by=started_by
        )

    # ------------------------------------------------------------------ versions
    async def check(self, program: Program) -> list[MigrationReport]:
        """Each live run of this flow on another version: whether it would fit this one, and why not; and
        those of this version inside of a script whose code has changed."""
        from holdfast.runs.migrate import check

        return await check.check(self, program)

    async def migrate(
        self, program: Program, *, runs: Sequence[str] = (), dry_run: bool = False, force: bool = False
    ) -> list[MigrationReport]:
        """Move runs (default: all live ones of another version) to this one; those that do not fit are not
        changed."""
        from holdfast.runs.migrate import check

        return await check.migrate(self, program, runs=runs, dry_run=dry_run, force=force)

    # ------------------------------------------------------------------ moving
    async def export_run(self, run: str, *, decrypt: bool = False) -> bytes:
        """The run with its whole history as a file, for another machine or store. The run does not change."""
        from holdfast.runs.transfer import export

        return await export.export_run(self, run, decrypt=decrypt)

    async def import_run(
        self,
        data: bytes,
        *,
        as_new_run: bool = False,
        tenant: str | None = None,
        actor: Actor | None = None,
        repeat_effects: bool = False,
    ) -> RunRow:
        """An exported run as read-only history under its own id; `as_new_run`: as a fork that continues."""
        from holdfast.runs.transfer import import_run

        return await import_run.import_run(
            self, data, as_new_run=as_new_run, tenant=tenant, actor=actor, repeat_effects=repeat_effects
        )

    # ------------------------------------------------------------------ retention
    async def prune(self, run: str, *, keep: int = KEEP) -> int:
        """Keep the last checkpoints of an ended run. Returns the number of deleted records."""
        from holdfast.runs.prune_run import prune

        return await prune(self, run, keep=keep)

    async def delete(self, run: str, *, by: str = "user:local") -> None:
        """Delete an ended run for good, with everything that belongs to it; the audit keeps its entries.
        Raises RunBusyError for a run that has not ended."""
        from holdfast.runs.prune_run import delete

        await delete(self, run, by=by)

    async def threads(
        self, *, tenant: str, after: tuple[int, str] | None = None, limit: int = 50
    ) -> list[ThreadRow]:
        """Threads of a tenant, the one with the newest run first."""
        return await self.store.list_threads(tenant, after=after, limit=limit)

    async def clean(
        self, *, keep: int = KEEP, older_than: float | None = None, flow: str | None = None
    ) -> CleanupResult:
        """Retention by count and by age (seconds since the end) over ended runs."""
        from holdfast.runs import retention

        return await retention.clean(self, keep=keep, older_than=older_than, flow=flow)

    async def make_room(self) -> CleanupResult:
        """Apply the retention of the flows that are served here, now; the space is free at once."""
        from holdfast.runs import retention

        return await retention.make_room_at_once(self)

    async def collect_blobs(self, *, grace: float = BLOB_GRACE) -> int:
        """Delete blobs that nothing refers to, after a grace period in seconds."""
        from holdfast.runs.collect_blobs import collect_blobs

        return await collect_blobs(self, grace=grace)

    # ------------------------------------------------------------------ events
    async def events(self, run: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """The stored log from a cursor: nothing twice, nothing missing (D-3)."""
        from holdfast.runs.events import read_events

        return await read_events(self, await self.get(run), after=after, limit=limit)

    async def stream(self, run: str, *, after: int = 0, poll: float = 0.5) -> AsyncIterator[Event]:
        """Events as they commit, until the run ends or is parked with no further events."""
        import asyncio

        woken = asyncio.Event()
        row = await self.get(run)
        stop = self.runtime.listen(row.id, woken.set)
        try:
            while True:
                woken.clear()
                row = await self.get(run)
                for event in await self.events(run, after=after):
                    after = event.number
                    yield event
                if row.status in ENDED and after >= row.event_seq:
                    return
                try:
                    async with asyncio.timeout(poll):
                        await woken.wait()
                except TimeoutError:
                    pass
        finally:
            stop()
