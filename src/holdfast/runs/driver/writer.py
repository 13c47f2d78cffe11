"""What a driver writes: records in order, intents before effects, now and then a snapshot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.checkpoint import Blob
from holdfast.engine.decision import Decision, side_of
from holdfast.engine.messages import HandlerFinished
from holdfast.errors import ExpressionError, StoreError
from holdfast.model.apply import apply_record
from holdfast.model.graph import Node
from holdfast.model.position import SETTLED, Exec
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, IntentBody, SnapshotBody
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver import handler_result
from holdfast.telemetry import crashpoint, log
from holdfast.types.record import Body, Kind, Record, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver

SNAPSHOT_RECORDS = 200


class JournalWriter:
    """Seals and orders the records of one run; the recorder commits them."""

    def __init__(self, driver: Driver, since_snapshot: int) -> None:
        self.driver = driver
        self.sealer = driver.sealer
        self.recorder = driver.recorder
        self.queue = driver.queue
        self.since_snapshot = since_snapshot
        self.bytes_since = 0
        self.snapshot_size = 0
        self.strict = False
        self.hurry = False
        # What the run's row says while it is kept in memory and only waits (D-31).
        self.resting: RunStatus | None = None
        # Executions with an intent whose handler was not called: a release withdraws them (D-14).
        self.uncalled: set[tuple[str, int]] = set()
        # Those whose handler is not called at all, because they failed before.
        self.unstarted: set[tuple[str, int]] = set()

    def write(self, decision: Decision) -> bool:
        """Order what was decided. Answers whether it has to be durable before anything else happens."""
        driver = self.driver
        if decision.records:
            self.append_all(decision)
        if decision.starts and driver.pos.failing is None and driver.pos.cancelling is None:
            self._intend(decision.starts)
        if decision.probes:
            for execution in decision.probes:
                driver.handler_tasks.spawn(execution, probe=True)
        if self.hurry and not self.strict:
            self.hurry = False
            self.recorder.hurry()
        if self.since_snapshot >= SNAPSHOT_RECORDS and not decision.ended:
            self._snapshot()
        return self.strict and bool(decision.records)

    def append_all(self, decision: Decision) -> None:
        """Seal the drafts and order them, all at once: records of one decision are written together."""
        sealer, term = self.sealer, self.driver.lease.term
        for record, body in decision.records:
            self._append(record, sealer.seal(record, body, term))
        sealer.clear()
        if sealer.spilled:
            self._note_spilled()

    async def rest(self, status: RunStatus) -> None:
        """The run only waits from here on, and everybody may see that; its next record says otherwise."""
        self.resting = status
        driver = self.driver
        if not await driver.retry_while_unavailable(
            partial(driver.runtime.store.rest, driver.lease, status=status)
        ):
            self.driver.lost()

    def _append(self, record: Record, blobs: list[Blob]) -> None:
        if self.resting is not None:
            side, self.resting = side_of(record), None
            side.status = side.status or RunStatus.running
        if record.side is not None and record.side.holds:
            self._route(record.side)
        self.recorder.append(self.queue, record, blobs)
        self.since_snapshot += 1
        self.bytes_since += len(record.payload)

    def _route(self, side: Side) -> None:
        if not self.driver.runtime.preparer.prepare_now(side, self.driver.facts):
            self.queue.unrouted.append(side)

    def _note_spilled(self) -> None:
        """Where large values lie, so that a snapshot can name them instead of copying them."""
        for path, partition, key, operand, ref in self.sealer.spilled:
            scope = self.driver.pos.scopes.get(path)
            if scope is not None and scope.tree.frames[0].over.get(partition, {}).get(key) is operand:
                scope.tree.refs[(partition, key)] = ref
        self.sealer.spilled.clear()

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
        driver = self.driver
        decision = driver.decision()
        effect = effect or node.effect
        record = decision.draft(
            kind, body, node=node.id, execution=execution, effect=effect, outcome=outcome, listed=listed
        )
        # Sealed first: what cannot be stored must not move the position.
        blobs = self.sealer.seal(record, body, driver.lease.term)
        self.sealer.clear()
        apply_record(driver.graph, driver.pos, record, body)
        self._append(record, blobs)
        return record.seq

    def uncheckpointed(self, error: BaseException) -> None:
        """From the recorder: the store is away. Told on the run as soon as it is back."""
        info = ErrorInfo(getattr(error, "code", ""), type(error).__name__, str(error))
        self._tell(AttemptBody("uncheckpointed", info))

    def announce(self, asked: list[str]) -> None:
        """The run goes on: told before anything else, with the questions that are still open (R-16, R-17)."""
        self._tell(AttemptBody("loaded", token=",".join(asked)))

    def _tell(self, body: AttemptBody) -> None:
        decision = self.driver.decision()
        record = decision.draft(Kind.attempt, body)
        apply_record(self.driver.graph, self.driver.pos, record, body)
        self.append_all(decision)

    def _intend(self, starts: list[Exec]) -> None:
        """Intents travel in the settle that made their nodes ready (D-14)."""
        driver = self.driver
        for execution in starts:
            graph = driver.graph if execution.scope == "" else driver.graph_of(execution)
            if graph.repeatable[execution.node] or execution.intent >= 0 or SETTLED in execution.subs:
                continue
            node = graph.nodes[execution.node]
            try:
                key = driver.context_calls.idempotency_key(execution, node) if node.idempotency_key else ""
            except ExpressionError as error:
                self._without_key(execution, node, error)
                continue
            self.note(Kind.intent, IntentBody(-1, node.id, key), execution, node)
            self.uncalled.add((execution.scope, execution.node))

    def _without_key(self, execution: Exec, node: Node, error: ExpressionError) -> None:
        """No key, no effect: the node fails before its handler is called."""
        info = handler_result.describe(ExpressionError(f"the idempotency key of node {node.id!r}: {error}"))
        failed = HandlerFinished(
            scope=execution.scope, node=execution.node, visit=execution.visit, outcome="fail", error=info
        )
        self.driver.handler_tasks.done.append(failed)
        self.unstarted.add((execution.scope, execution.node))

    def withdraw(self) -> None:
        """Effects whose handler was not called have certainly not begun (D-14)."""
        for key in self.uncalled:
            execution = self.driver.pos.execs.get(key)
            if execution is not None and execution.intent >= 0:
                node = self.driver.node(execution)
                self.note(Kind.attempt, AttemptBody("withdrawn"), execution, node)
        self.uncalled.clear()

    def _snapshot(self) -> None:
        """So that loading stays short: an index of where the run stands (D-27).

        Not before as many bytes were written as the last one took: snapshots never outweigh the journal.
        """
        pos = self.driver.pos
        if self.bytes_since < self.snapshot_size or pos.failing is not None or pos.cancelling is not None:
            return
        decision = self.driver.decision()
        body = SnapshotBody(dump_position(pos, whole=False, by_ref=True))
        record = decision.draft(Kind.snapshot, body)
        pos.head, pos.at = record.seq, record.at
        self.append_all(decision)
        crashpoint("inside_snapshot")
        self.since_snapshot, self.bytes_since, self.snapshot_size = 0, 0, len(record.payload)

    async def end(self) -> RunStatus:
        """A run whose flow allows it may end while the store is away: no effect came since then (R-41)."""
        driver = self.driver
        self.queue.ending = True
        try:
            await self.recorder.committed(self.queue, driver.pos.head)
        except StoreError as error:
            if self.queue.outage is None:
                raise
            status = driver.pos.status
            said = "run %s has %s, and no record of that could be written: %s"
            log.error(said, driver.run, status, error, extra={"run": driver.run, "seq": driver.pos.head})
        return RunStatus(driver.pos.status)
