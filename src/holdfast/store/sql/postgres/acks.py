"""What was acknowledged here, for as long as a failover could still take it back.

A standby that is not synchronous may be promoted without the last commits. Nobody but those who were told of
them can know: so each store remembers the newest of the runs that it touched lately, and after a failover
holds it against the new primary before it does anything else there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from holdfast.store.base import NewRun
from holdfast.store.sql.postgres import losing
from holdfast.store.sql.postgres.connect import Conn
from holdfast.telemetry import log
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.loss import Acknowledged
from holdfast.types.record import Lease, RunBatch, SettleAnswer

MOST: Final = 10_000
_AT_ONCE: Final = 1000

_Newest = tuple[int, int, int, str, int]  # head, the term and instant of that record, for whom, last event


class Acks:
    """Written on whatever loop, without a lock: each entry is replaced as a whole."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runs: dict[RunId, _Newest] = {}
        self._terms: dict[RunId, int] = {}
        self._mail: dict[RunId, tuple[int, int]] = {}
        self._holds: dict[HoldId, tuple[RunId, int, int]] = {}

    # ------------------------------------------------------------------ remembering
    def settled(self, batches: Sequence[RunBatch], answers: Sequence[SettleAnswer]) -> None:
        for batch, answer in zip(batches, answers, strict=True):
            if answer.refusal is None:
                last, lease = batch.records[-1], batch.lease
                events = answer.event_from + sum([record.events for record in batch.records]) - 1
                self._put(self._runs, lease.run, (last.seq, last.term, last.at, lease.worker, events))

    def created(self, new: NewRun) -> None:
        last = new.first[-1]
        events = sum(record.events for record in new.first)
        self._put(self._runs, new.id, (last.seq, last.term, last.at, new.claimed_by or "", events))

    def claimed(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            self._put(self._terms, lease.run, lease.term)

    async def sending(
        self, conn: Conn, run: RunId, now: int, send: Callable[[Conn], Awaitable[bool]]
    ) -> bool:
        """Within a transaction: how many messages the run has then."""
        sent = await send(conn)
        found = await conn.row("SELECT inbox_seq FROM @runs WHERE id = ?", run) if sent else None
        if found is not None:
            self._put(self._mail, run, (found[0], now))
        return sent

    def changed(self, hold: HoldRow) -> None:
        self._put(self._holds, hold.id, (hold.run, hold.version, hold.updated_at))

    def deleted(self, run: RunId) -> None:
        for known in (self._runs, self._terms, self._mail):
            known.pop(run, None)

    def _put(self, known: dict[Any, Any], key: str, value: Any) -> None:
        """The one that was not touched for longest goes."""
        known.pop(key, None)
        known[key] = value
        if len(known) > self._most:
            known.pop(next(iter(known)), None)

    # ------------------------------------------------------------------ after a failover
    async def verify(self, conn: Conn, now: Callable[[], int | None]) -> list[Acknowledged]:
        """What the primary at `conn` does not have; its runs are stopped, and it is forgotten here."""
        lost: list[Acknowledged] = []
        known = self._all()
        for first in range(0, len(known), _AT_ONCE):
            for missing, gone in await losing.behind(conn, known[first : first + _AT_ONCE]):
                lost.append(missing)
                if gone:
                    _tell_gone(missing)
                else:
                    await self._stop(conn, now(), missing)
        await losing.fence(conn, self._terms.copy())
        self._terms.clear()
        for missing in lost:
            self.deleted(missing.run)
            self._holds = {hold: told for hold, told in self._holds.items() if told[0] != missing.run}
        return lost

    def _all(self) -> list[Acknowledged]:
        runs = [
            Acknowledged(run=run, head=head, term=term, at=at, worker=worker, events=events)
            for run, (head, term, at, worker, events) in self._runs.copy().items()
        ]
        mail = [
            Acknowledged(run=run, head=0, term=0, at=at, mail=count)
            for run, (count, at) in self._mail.copy().items()
        ]
        holds = [
            Acknowledged(run=run, head=0, term=0, at=at, hold=hold, version=version)
            for hold, (run, version, at) in self._holds.copy().items()
        ]
        return runs + mail + holds

    async def _stop(self, conn: Conn, now: int | None, missing: Acknowledged) -> None:
        raw: Any = conn.raw
        async with raw.transaction():
            row = await losing.stop(conn, now, missing)
        if row is not None:
            log.error("run %s stops. %s", row.id, row.error, extra={"run": row.id, "seq": row.head})


def _tell_gone(missing: Acknowledged) -> None:
    said = (
        "run %s is not there any more (record %d was acknowledged): lost in a failover, or deleted elsewhere"
    )
    log.error(said, missing.run, missing.head, extra={"run": missing.run})
