"""What an activity that was given up still knows about its effects: evidence beside their intents (D-17)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast.drivers.temporal.execution import ExecCalls, ExecSession
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.engine.messages import HandlerFinished, SubstepEvidence
from holdfast.model.position import Exec
from holdfast.model.record_bodies import SubstepBody
from holdfast.runs.driver.evidence_outbox import encode_evidence, report_late
from holdfast.runs.driver.load import load
from holdfast.telemetry import log

LOOKS: Final = 20
"""How often the record of an intent is looked for: what a lost activity noted becomes a record a little
later."""
PAUSE: Final = 0.5


class LateReports:
    """Of one execution."""

    def __init__(self, session: ExecSession, execution: Exec) -> None:
        self._session = session
        self._execution = execution

    async def of_node(self, finished: HandlerFinished) -> None:
        if self._execution.intent >= 0 and not finished.unknown and finished.probe is None:
            await self._report(self._execution.intent, finished)

    async def of_substeps(self, calls: ExecCalls) -> None:
        """Those that ended after the activity was given up."""
        for body in calls.unwritten_substeps():
            intent = await self._intent(body)
            if intent is not None:
                effect = calls.effects.get(body.ordinal, "")
                found = SubstepEvidence(ordinal=body.ordinal, name=body.name, value=body.value, effect=effect)
                await self._report(intent, found)

    async def _intent(self, body: SubstepBody) -> int | None:
        mine = self._execution
        for _ in range(LOOKS):
            pos = await while_unavailable(self._load)
            there = pos.execs.get((mine.scope, mine.node))
            if there is None or there.visit != mine.visit:
                return None
            if body.ordinal in there.step_intents:
                return int(there.step_intents[body.ordinal])
            await asyncio.sleep(PAUSE)
        return None

    async def _load(self) -> Any:
        session = self._session
        found = await load(
            session.store, session.codec, session.graph, session.run, blobs=session.services.blobs
        )
        return found.pos

    async def _report(self, intent: int, evidence: HandlerFinished | SubstepEvidence) -> None:
        session = self._session
        raw = encode_evidence(evidence, session.codec.registry)
        await while_unavailable(lambda: report_late(session.store, session.run, intent, raw))
        log.warning(
            "run %s: a late result of record %s is evidence", session.run, intent, extra={"run": session.run}
        )
