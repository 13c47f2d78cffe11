"""What a driver writes: records in order, intents before effects, snapshots at intervals."""

from __future__ import annotations

from functools import partial

from holdfast.checkpoint import Blob
from holdfast.engine.decision import Decision, side_of
from holdfast.engine.messages import HandlerFinished
from holdfast.errors import ExpressionError, StoreError
from holdfast.model.apply import apply_record
from holdfast.model.graph import Node
from holdfast.model.idempotency_keys import idempotency_key
from holdfast.model.position import SETTLED, Exec
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, IntentBody, SnapshotBody
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver import handler_result
from holdfast.runs.driver.session import RunSession
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.telemetry import crashpoint, log
from holdfast.types.record import Body, Kind, Record, Side
from holdfast.types.status import RunStatus

# Loading a run reads the newest snapshot and at most about this many records after it (D-27).
SNAPSHOT_RECORDS = 200
# Of a run whose last worker died: so the journal names the node that runs if this worker dies too.
CAREFUL_DECISIONS = 16


class RecordWriter:
    """Encodes and orders the records of one run; the recorder commits them."""

    def __init__(self, session: RunSession, since_snapshot: int) -> None:
        self.session = session
        self.codec = session.codec
        self.recorder = session.recorder
        self.queue = session.queue
        self.since_snapshot = since_snapshot
        self.bytes_since = 0
        self.snapshot_size = 0
        self.strict = False
        # Decisions that are still committed before anything else happens, although the mode is not strict.
        self.careful = 0
        self.hurry = False
        # The status in the run's row while it is kept in memory and only waits (D-31).
        self.idle_status: RunStatus | None = None
        # Executions with an intent whose handler was not called: a release withdraws them (D-14).
        self.uncalled: set[tuple[str, int]] = set()
        # Those whose handler is never called, because they failed before.
        self.unstarted: set[tuple[str, int]] = set()

    def write(self, decision: Decision) -> bool:
        """Order what was decided. Returns whether it has to be durable before anything else happens."""
        pos = self.session.pos
        if decision.records:
            self.append_all(decision)
        # A run that ends starts nothing: an intent now would be an effect in doubt that never began.
        if decision.starts and pos.failing is None and pos.cancelling is None:
            self._intend(decision.starts)
        if self.hurry and not self.strict:
            self.hurry = False
            self.recorder.hurry()
        if self.since_snapshot >= SNAPSHOT_RECORDS and not decision.ended:
            self._snapshot()
        if not self.strict and self.careful and decision.records:
            self.careful -= 1
            return True
        return self.strict and bool(decision.records)

    def append_all(self, decision: Decision) -> None:
        """Encode the drafts and order them, all at once: records of one decision are written together."""
        codec, term = self.codec, self.session.lease.term
        for record, body in decision.records:
            self._append(record, codec.encode(record, body, term))
        codec.clear()
        if codec.spilled:
            self._note_spilled()

    async def set_idle(self, status: RunStatus) -> None:
        """Show the run as waiting while it stays in memory; its next record shows it as running again."""
        self.idle_status = status
        session = self.session
        set_idle = partial(session.store.set_idle, session.lease, status=status)
        if not await retry_while_unavailable(set_idle, self.queue):
            raise session.lease_lost_error()

    async def commit_intent(self, seq: int) -> None:
        """Until an intent is durable, and the lease lasts long enough to begin the effect (D-17)."""
        session = self.session
        await self.recorder.committed(self.queue, seq)
        crashpoint("after_intent")
        # After the commit, which may have waited for the store: what counts is how long the lease lasts when
        # the effect begins.
        margin = partial(session.services.leases.ensure_margin, session.lease)
        if not await retry_while_unavailable(margin, self.queue):
            # The heartbeat has not noticed it yet: the handlers of this run have to stop now.
            self.queue.on_lost()
            raise session.lease_lost_error()

    def _append(self, record: Record, blobs: list[Blob]) -> None:
        if self.idle_status is not None:
            side, self.idle_status = side_of(record), None
            side.status = side.status or RunStatus.running
        if record.side is not None and record.side.holds:
            self._route(record.side)
        self.recorder.append(self.queue, record, blobs)
        self.since_snapshot += 1
        self.bytes_since += len(record.payload)

    def _route(self, side: Side) -> None:
        services = self.session.services
        if services.put_hold_states is not None or not services.preparer.prepare_now(
            side, self.session.facts
        ):
            self.queue.unrouted.append(side)

    def _note_spilled(self) -> None:
        """The places of large values, so that a snapshot can refer to them instead of copying them."""
        for path, partition, key, operand, ref in self.codec.spilled:
            scope = self.session.pos.scopes.get(path)
            # The same object, not an equal one: a later record may have changed the value, and then the blob
            # is not what the state contains.
            if scope is not None and scope.tree.frames[0].over.get(partition, {}).get(key) is operand:
                scope.tree.refs[(partition, key)] = ref
        self.codec.spilled.clear()

    def note(
        self,
        kind: Kind,
        body: Body,
        execution: Exec,
        node: Node,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> int:
        """A record that the handler's context writes while it runs."""
        session = self.session
        decision = session.decision()
        effect = effect or node.effect
        record = decision.draft(
            kind, body, node=node.id, execution=execution, effect=effect, outcome=outcome, listed=listed
        )
        # Encoded first: what cannot be stored must not change the position.
        blobs = self.codec.encode(record, body, session.lease.term)
        self.codec.clear()
        apply_record(session.graph, session.pos, record, body)
        self._append(record, blobs)
        return record.seq

    def uncheckpointed(self, error: BaseException) -> None:
        """From the recorder: the store is unavailable. Recorded on the run, and written when it is back."""
        info = ErrorInfo(getattr(error, "code", ""), type(error).__name__, str(error))
        self._note_run(AttemptBody("uncheckpointed", info))

    def announce(self, asked: list[str]) -> None:
        """The run resumes: its first record says so, with the questions that are still open (R-16, R-17) and
        the worker that has it."""
        worker = self.session.lease.worker
        self._note_run(AttemptBody("loaded", token=",".join(asked), nodes=[worker] if worker else []))

    def _note_run(self, body: AttemptBody) -> None:
        session = self.session
        decision = session.decision()
        record = decision.draft(Kind.attempt, body)
        apply_record(session.graph, session.pos, record, body)
        self.append_all(decision)

    def _intend(self, starts: list[Exec]) -> None:
        """Intents are written in the settle that made their nodes ready (D-14)."""
        session = self.session
        for execution in starts:
            graph = session.graph if execution.scope == "" else session.graph_of(execution)
            # Without an effect, with an intent of an earlier attempt, or done already and waiting for its
            # router.
            if graph.repeatable[execution.node] or execution.intent >= 0 or SETTLED in execution.subs:
                continue
            node = graph.nodes[execution.node]
            try:
                key = idempotency_key(session.pos, execution, node) if node.idempotency_key else ""
            except ExpressionError as error:
                self._without_key(execution, node, error)
                continue
            self.note(Kind.intent, IntentBody(-1, node.id, key), execution, node)
            self.uncalled.add((execution.scope, execution.node))

    def _without_key(self, execution: Exec, node: Node, error: ExpressionError) -> None:
        """Without a key no effect may begin: the node fails before its handler is called."""
        info = handler_result.describe(ExpressionError(f"the idempotency key of node {node.id!r}: {error}"))
        failed = HandlerFinished(
            scope=execution.scope, node=execution.node, visit=execution.visit, outcome="fail", error=info
        )
        self.session.finished.append(failed)
        self.unstarted.add((execution.scope, execution.node))

    def withdraw(self) -> None:
        """Effects whose handler was not called have certainly not begun (D-14)."""
        for key in self.uncalled:
            execution = self.session.pos.execs.get(key)
            if execution is not None and execution.intent >= 0:
                node = self.session.node(execution)
                self.note(Kind.attempt, AttemptBody("withdrawn"), execution, node)
        self.uncalled.clear()

    def _snapshot(self) -> None:
        """Keeps loading fast: a snapshot of the run's position (D-27). Written only after as many bytes of
        records as the last one took: so snapshots never outweigh the journal.
        """
        pos = self.session.pos
        if self.bytes_since < self.snapshot_size or pos.failing is not None or pos.cancelling is not None:
            return
        decision = self.session.decision()
        body = SnapshotBody(dump_position(pos, whole=False, by_ref=True))
        record = decision.draft(Kind.snapshot, body)
        pos.head, pos.at = record.seq, record.at
        self.append_all(decision)
        crashpoint("inside_snapshot")
        self.since_snapshot, self.bytes_since, self.snapshot_size = 0, 0, len(record.payload)

    async def end(self) -> RunStatus:
        """A run whose flow allows it may end during an outage: no effect has happened since it
        began (R-41)."""
        session, pos = self.session, self.session.pos
        self.queue.ending = True
        try:
            await self.recorder.committed(self.queue, pos.head)
        except StoreError as error:
            # The outcome is reported to the caller although no record has it: the flow chose that, and the
            # log line below is all that remains of it.
            if self.queue.outage is None:
                raise
            message = "run %s has %s, and no record of that could be written: %s"
            log.error(message, session.run, pos.status, error, extra={"run": session.run, "seq": pos.head})
        return RunStatus(pos.status)
