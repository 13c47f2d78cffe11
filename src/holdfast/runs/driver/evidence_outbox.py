"""Evidence about effects whose records could not be written: reported when the store is back (D-17)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.engine.messages import HandlerFinished, SubstepEvidence
from holdfast.errors import StoreError, StoreMovedError
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.backoff import Backoff
from holdfast.types.ids import RunId

Evidence = list[tuple[int, bytes]]
"""(seq of the intent, how the effect ended)"""

BACKOFF = Backoff(first=0.1, longest=5.0)
_NODE = ("scope", "node", "visit", "outcome", "routes", "reroute", "duration", "label")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class EvidenceOutbox:
    """Kept in memory: a run that stops because the store is unavailable for long leaves effects that
    happened, and without this a person would have to be asked about each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[RunId, Evidence] = {}
        self._reporting: asyncio.Task[None] | None = None

    def keep(self, run: RunId, known: Evidence) -> None:
        if not known:
            return
        self._kept.setdefault(run, []).extend(known)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.get_running_loop().create_task(self._report_all())

    async def report(self, run: RunId) -> None:
        """Report what is kept of this run. Raises StoreError while the store is unavailable."""
        while known := self._kept.get(run):
            intent, evidence = known[0]
            await report_late(self._store, run, intent, evidence)
            # The other reporting task may have removed it while this one waited for the store.
            if known and known[0][0] == intent:
                known.pop(0)
        self._kept.pop(run, None)

    async def _report_all(self) -> None:
        pauses = BACKOFF.pauses()
        while run := next(iter(self._kept), None):
            try:
                await self.report(run)
            except StoreMovedError as error:
                log.warning("how effects ended can no longer be reported here: %s", error)
                self._kept.clear()
            except StoreError as error:
                if error.retryable:
                    await asyncio.sleep(next(pauses))
                else:
                    # For example a missing key: the other runs do not wait for that.
                    self._kept.pop(run, None)
                    _log_unreported(run, error)

    async def close(self) -> None:
        """A last attempt, in case the store is back; a person is asked about what cannot be
        reported (D-15)."""
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)
        for run in list(self._kept):
            try:
                await self.report(run)
            except StoreError as error:
                _log_unreported(run, error)


def _log_unreported(run: RunId, error: StoreError) -> None:
    log.warning("run %s: could not report how its effects ended: %s", run, error, extra={"run": run})


async def report_late(store: Store, run: RunId, intent: int, evidence: bytes) -> None:
    await store.report_late(run, intent, evidence)
    # The row wakes the run: it may already have asked a person about that effect.
    await store.send(run, "late", b"%d" % intent, dedupe=f"late:{intent}")


def encode_evidence(evidence: HandlerFinished | SubstepEvidence, registry: TypeRegistry) -> bytes:
    if isinstance(evidence, SubstepEvidence):
        value = pack(evidence.value, registry)
        return _encode(
            {"step": evidence.ordinal, "name": evidence.name, "value": value, "effect": evidence.effect}
        )
    known: dict[str, Any] = {name: getattr(evidence, name) for name in _NODE}
    known["ops"] = [(p, k, o, pack(v, registry)) for p, k, o, v in evidence.ops]
    known["output"] = pack(evidence.output, registry)
    if evidence.error is not None:
        known["error"] = msgspec.to_builtins(evidence.error)
        known["retryable"] = evidence.retryable
    return _encode(known)


def decode_evidence(raw: bytes, registry: TypeRegistry) -> HandlerFinished | SubstepEvidence:
    known: dict[str, Any] = _decode(raw)
    if "step" in known:
        value = unpack(known["value"], registry)
        return SubstepEvidence(
            ordinal=known["step"], name=known["name"], value=value, effect=known.get("effect", "")
        )
    ops = [(p, k, o, unpack(v, registry)) for p, k, o, v in known.pop("ops")]
    output = unpack(known.pop("output"), registry)
    evidence = msgspec.convert(known, HandlerFinished)
    evidence.ops, evidence.output = ops, output
    return evidence
