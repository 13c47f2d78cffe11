"""Whoever starts runs, answers questions and cancels: `python -m tests.fleet.torture.people ADDRESS
FOLDER RUNS SECONDS SEED`, until SIGTERM.

What they were told is done they write down at once (`acks.jsonl`): it has to be true in the end.
"""

from __future__ import annotations

from tests.fleet.torture import clocks

clocks.deceive()

import asyncio  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from itertools import cycle, islice  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402
from uuid import UUID  # noqa: E402

from holdfast import Holdfast, HoldfastError, StoreError, operator  # noqa: E402
from holdfast.runs.schedules.service import ScheduleService  # noqa: E402
from holdfast.runs.service import RunService  # noqa: E402
from holdfast.types.clock import MICROS, to_datetime  # noqa: E402
from holdfast.types.hold import HoldRow  # noqa: E402
from tests.fleet.torture import flows, stacks  # noqa: E402
from tests.fleet.torture.history import key_of  # noqa: E402
from tests.fleet.torture.ledger import append  # noqa: E402

log = logging.getLogger("torture")
SAYS = {"confirm": "yes", "second": "yes"}
IN_WORDS = ("talk", "first")
# For the test of the judge: what they write down is not what they said.
FORGETFUL = "forgetful" in os.environ.get("TORTURE_SABOTAGE", "")


class People:
    def __init__(self, service: RunService, folder: Path, seed: int) -> None:
        self.service = service
        self.acks = folder / "acks.jsonl"
        self.dice = random.Random(seed)
        self.done: set[str] = set()

    def note(self, what: str, **facts: Any) -> None:
        append(self.acks, {"what": what, **facts})

    # ------------------------------------------------------------------ starting
    async def start(self, runs: int, seconds: float) -> None:
        """Each flow about as often, in an order that the dice say, spread over the time."""
        asked = [name for name in flows.FLOWS if name != flows.SCHEDULED]
        names = list(islice(cycle(asked), runs))
        self.dice.shuffle(names)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, began + seconds * number / runs - loop.time()))
            await self.create(name, number, str(UUID(int=self.dice.getrandbits(128), version=4)))

    async def create(self, name: str, number: int, run: str) -> None:
        """Asked again until somebody says that it is there: the key makes it one run."""
        given, program = flows.given(name, number), flows.FLOWS[name].program()
        while True:
            try:
                row, _ = await self.service.create(program, given, run_id=run, idempotency_key=run)
                self.note("created", run=row.id, flow=name, n=number)
                return
            except StoreError as error:
                log.info("not created yet: %s", error)
                await asyncio.sleep(0.1)

    async def schedule(self, seconds: float) -> None:
        """One run a second, and none left out: what was missed in an outage is caught up."""
        while True:
            # Some seconds ahead: a schedule that is set after its start leaves out what was before.
            begin = self.service.store.now() // MICROS * MICROS + 4 * MICROS
            end = begin + int(seconds) * MICROS
            try:
                await ScheduleService(self.service.store).put(
                    "ticking", flows.FLOWS[flows.SCHEDULED], every="1s", missed="all", overlap="allow",
                    stamp="moment", start=to_datetime(begin), end=to_datetime(end),
                )  # fmt: skip
                self.note("scheduled", begin=begin, end=end)
                return
            except StoreError as error:
                log.info("not scheduled yet: %s", error)
                await asyncio.sleep(0.1)

    # ------------------------------------------------------------------ answering
    async def attend(self) -> None:
        while True:
            try:
                for hold in await self.service.holds():
                    if hold.id not in self.done:
                        await self.look_at(hold)
            except StoreError as error:
                log.info("nobody could be asked: %s", error)
            await asyncio.sleep(0.15)

    async def look_at(self, hold: HoldRow) -> None:
        if hold.node == "never" and hold.type != "in_doubt":
            await self.service.cancel(hold.run, reason="not needed any more")
            self.note("cancelled", run=hold.run)
            self.done.add(hold.id)
            return
        found = self.decision(hold)
        if found is None:
            return
        decision, data = found
        self.note("tried", hold=hold.id, run=hold.run, decision=decision, type=hold.type)
        try:
            await self.service.people.resolve(
                operator("ada"), hold.id, decision=decision, response_data=data, idempotency_key=f"k{hold.id}"
            )
        except StoreError:
            raise  # tried again with the same key: whether it arrived is not known
        except HoldfastError as error:
            self.note("refused", hold=hold.id, run=hold.run, code=error.code)
        else:
            said = f"not {decision}" if FORGETFUL else decision
            self.note("decided", hold=hold.id, run=hold.run, decision=said, type=hold.type)
        self.done.add(hold.id)

    def decision(self, hold: HoldRow) -> tuple[str, Any] | None:
        if hold.type == "in_doubt":
            return truth(hold)
        if hold.node in IN_WORDS:
            return f"word-{hold.id[:13]}", None
        if hold.node == "second" and hold.assignee != "user:boss":
            return None  # the first whom it goes to never answers
        return (SAYS[hold.node], None) if hold.node in SAYS else None


def truth(hold: HoldRow) -> tuple[str, Any]:
    """What a careful person finds out: whether it is there, and what it gave."""
    step, key = json.loads(hold.context)["step"], key_of(hold)
    for line in flows.OUTSIDE.lines():
        if line.what == "did" and line.run == hold.run and line.key == key:
            as_value = step or hold.node == "each"
            return "happened", {"value" if as_value else "update": line.gives}
    return "not_happened", None


async def main(address: str, folder: Path, runs: int, seconds: float, seed: int) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    stacks.tell_when_asked()
    async with Holdfast(address) as hf:
        people = People(await hf.service(), folder, seed)
        attending = asyncio.create_task(people.attend())
        print("serving", flush=True)
        await people.schedule(seconds)
        await people.start(runs, seconds)
        people.note("all created")
        await asyncio.wait([attending, asyncio.create_task(stopping.wait())], return_when="FIRST_COMPLETED")
        if attending.done():
            attending.result()
        attending.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s people %(name)s: %(message)s")
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])))
