"""Remembers how a run's effects ended until that is committed, and tells it where the run is lost (D-17)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.engine.messages import Finished, Proven
from holdfast.errors import StoreError
from holdfast.runs.driver import late_evidence__evidence
from holdfast.runs.driver.late_evidence__backward import look_back
from holdfast.runs.driver.late_evidence__testifying import Known

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver

NEVER = 1 << 62  # the seq of a record that was not written: no commit reaches it


class Witness:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        # Effects that ended: (seq of the record that says so, seq of the intent, what it came to).
        self._unproven: list[tuple[int, int, Finished | Proven]] = []

    def see(self, message: Finished, seq: int) -> None:
        """A handler has ended; record `seq` is to say so."""
        execution = self.driver.pos.execs.get((message.scope, message.node))
        if execution is not None and execution.intent >= 0 and not message.unknown and message.probe is None:
            self.keep(seq, execution.intent, message)

    def keep(self, seq: int, intent: int, told: Finished | Proven) -> None:
        committed = self.driver.queue.committed
        if self._unproven and self._unproven[0][0] <= committed:
            self._unproven = [known for known in self._unproven if known[0] > committed]
        self._unproven.append((seq, intent, told))

    async def testify(self) -> None:
        """We lost the run. What became of its effects is told unfenced, for who has it now. Where the store
        is away that is done when it is back."""
        driver = self.driver
        driver.runtime.testimonies.keep(driver.run, await self.known())
        with suppress(StoreError):
            await driver.runtime.testimonies.tell(driver.run)
        await look_back(driver)

    async def known(self) -> Known:
        """How the effects of this run ended that no record tells of; those under way may end now."""
        driver, underway = self.driver, self.driver.underway
        waiting = [task for key, task in underway.tasks.items() if underway.is_effect(key)]
        if waiting:
            await asyncio.wait(waiting, timeout=driver.runtime.grace)
        for message in underway.done:
            if isinstance(message, Finished):
                self.see(message, NEVER)
        committed, registry = driver.queue.committed, driver.sealer.registry
        return [
            (intent, late_evidence__evidence.encode(told, registry))
            for seq, intent, told in self._unproven
            if seq > committed
        ]
