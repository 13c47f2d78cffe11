"""Remembers how a run's effects ended until that is committed, and tells it where the run is lost (D-17).

A run that we lost: another worker has it, or the store lost what it had acknowledged to us.

A settle that is refused because the stored head is lower than the one we know is never tried again: the
records that are missing may have had effects, and those that follow would hide it.

What a worker that lost a run still knows: how the effects ended that it had begun (D-17).

Fencing stops writes to the journal, not effects in flight. Their results are told beside the intent, with no
fence, and an inbox row says so: a doubt that was already asked is resolved by it.

What is known of effects whose records could not be written: told as soon as the store is back (D-17).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.engine.messages import HandlerFinished, SubstepEvidence
from holdfast.errors import StoreError, StoreMovedError
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver


async def verify_acknowledged(driver: Driver) -> None:
    """Hold what was acknowledged to us against the store. Where it is away, who comes back to it looks."""
    store, run = driver.runtime.store, driver.run
    try:
        known = await _acknowledged(driver)
        row = None if known is None else await store.lost_history(known)
    except StoreError as error:
        said = "run %s: whether its history is whole could not be asked: %s"
        log.warning(said, run, error, extra={"run": run})
        return
    if row is not None:
        log.error("run %s stops. %s", run, row.error, extra={"run": run, "seq": row.head})


async def _acknowledged(driver: Driver) -> AcknowledgedState | None:
    queue, lease = driver.queue, driver.lease
    last = queue.last
    if last is not None:
        return AcknowledgedState(
            run=lease.run, head=last.seq, term=last.term, at=last.at, worker=lease.worker
        )
    # Nothing was written here yet: what we loaded is all that we know.
    row = await driver.runtime.store.get_run(lease.run)
    if row is None or row.head >= queue.committed:
        return None
    loaded_at = driver.row.updated_at
    return AcknowledgedState(
        run=lease.run, head=queue.committed, term=lease.term, at=loaded_at, worker=lease.worker
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_NODE = ("scope", "node", "visit", "outcome", "routes", "reroute", "duration", "label")


async def report(store: Store, run: RunId, intent: int, told: bytes) -> None:
    await store.report_late(run, intent, told)
    await store.send(run, "late", b"%d" % intent, dedupe=f"late:{intent}")


def encode(told: HandlerFinished | SubstepEvidence, registry: TypeRegistry) -> bytes:
    if isinstance(told, SubstepEvidence):
        value = pack(told.value, registry)
        return _encode({"step": told.ordinal, "name": told.name, "value": value, "effect": told.effect})
    known: dict[str, Any] = {name: getattr(told, name) for name in _NODE}
    known["ops"] = [(p, k, o, pack(v, registry)) for p, k, o, v in told.ops]
    known["output"] = pack(told.output, registry)
    if told.error is not None:
        known["error"] = msgspec.to_builtins(told.error)
        known["retryable"] = told.retryable
    return _encode(known)


def decode(raw: bytes, registry: TypeRegistry) -> HandlerFinished | SubstepEvidence:
    known: dict[str, Any] = _decode(raw)
    if "step" in known:
        value = unpack(known["value"], registry)
        return SubstepEvidence(
            ordinal=known["step"], name=known["name"], value=value, effect=known.get("effect", "")
        )
    ops = [(p, k, o, unpack(v, registry)) for p, k, o, v in known.pop("ops")]
    output = unpack(known.pop("output"), registry)
    told = msgspec.convert(known, HandlerFinished)
    told.ops, told.output = ops, output
    return told


FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0

Known = list[tuple[int, bytes]]
"""(seq of the intent, how the effect ended)"""


class EvidenceOutbox:
    """Kept in memory: a run that stops because the store is away for long leaves effects that happened, and
    whoever goes on with it would have to ask a person about each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[RunId, Known] = {}
        self._telling: asyncio.Task[None] | None = None

    def keep(self, run: RunId, known: Known) -> None:
        if not known:
            return
        self._kept.setdefault(run, []).extend(known)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell_all())

    async def tell(self, run: RunId) -> None:
        """Raises StoreError where it cannot be told yet."""
        while known := self._kept.get(run):
            intent, told = known[0]
            await report(self._store, run, intent, told)
            if known and known[0][0] == intent:
                known.pop(0)
        self._kept.pop(run, None)

    async def _tell_all(self) -> None:
        pause = FIRST_PAUSE
        while run := next(iter(self._kept), None):
            try:
                await self.tell(run)
            except StoreMovedError as error:
                log.warning("how effects ended cannot be told here any more: %s", error)
                self._kept.clear()
            except StoreError as error:
                if error.retryable:
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                else:
                    # For want of a key, say: the others do not wait for that.
                    self._kept.pop(run, None)
                    _log_unreported(run, error)

    async def close(self) -> None:
        """Once more, in case the store is back; what cannot be told is asked of a person (D-15)."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        for run in list(self._kept):
            try:
                await self.tell(run)
            except StoreError as error:
                _log_unreported(run, error)


def _log_unreported(run: RunId, error: StoreError) -> None:
    said = "run %s: how its effects ended could not be told: %s"
    log.warning(said, run, error, extra={"run": run})


NEVER = 1 << 62  # the seq of a record that was not written: no commit reaches it


class LateEvidence:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        # Effects that ended: (seq of the record that says so, seq of the intent, what it came to).
        self._unproven: list[tuple[int, int, HandlerFinished | SubstepEvidence]] = []

    def see(self, message: HandlerFinished, seq: int) -> None:
        """A handler has ended; record `seq` is to say so."""
        execution = self.driver.pos.execs.get((message.scope, message.node))
        if execution is not None and execution.intent >= 0 and not message.unknown and message.probe is None:
            self.keep(seq, execution.intent, message)

    def keep(self, seq: int, intent: int, told: HandlerFinished | SubstepEvidence) -> None:
        committed = self.driver.queue.committed
        if self._unproven and self._unproven[0][0] <= committed:
            self._unproven = [known for known in self._unproven if known[0] > committed]
        self._unproven.append((seq, intent, told))

    async def report_lost_run(self) -> None:
        """We lost the run. What became of its effects is told unfenced, for who has it now. Where the store
        is away that is done when it is back."""
        driver = self.driver
        driver.runtime.evidence_outbox.keep(driver.run, await self.known())
        with suppress(StoreError):
            await driver.runtime.evidence_outbox.tell(driver.run)
        await verify_acknowledged(driver)

    async def known(self) -> Known:
        """How the effects of this run ended that no record tells of; those under way may end now."""
        driver, underway = self.driver, self.driver.handler_tasks
        waiting = [task for key, task in underway.tasks.items() if underway.is_effect(key)]
        if waiting:
            await asyncio.wait(waiting, timeout=driver.runtime.grace)
        for message in underway.done:
            if isinstance(message, HandlerFinished):
                self.see(message, NEVER)
        committed, registry = driver.queue.committed, driver.sealer.registry
        return [(intent, encode(told, registry)) for seq, intent, told in self._unproven if seq > committed]
