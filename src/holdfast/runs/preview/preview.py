"""What each answer to a hold would lead to: the run is continued in memory for each option, up to the next
questions and outside effects.

The driver and the engine are the real ones, on a store in memory. Pure nodes, scripts and pure sub-steps run;
what is recorded answers as it does when a run resumes; anything else stops its branch (`gate`), because a
preview must do nothing outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.engine.messages import HoldAnswered, Message
from holdfast.errors import AnswerInvalidError, ConflictError, HoldfastError, InputError
from holdfast.holds.actions.conflicts import require_open
from holdfast.holds.forms.schema_threads import compare, is_slow
from holdfast.model.hold_declaration import decision_for_flow
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.create import new_run
from holdfast.runs.driver.driver import Driver
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.events import reader_of
from holdfast.runs.fork.first_records import first_records
from holdfast.runs.fork.fork import fork_start
from holdfast.runs.fork.patch import partitions
from holdfast.runs.history.checkpoints import FoldedRun, fold_to
from holdfast.runs.hold_preparation import facts_of
from holdfast.runs.preview.missing_fields import fit_partly, names_read, up_to_code
from holdfast.runs.preview.outcome import OptionPreview, PreviewEntry, entries_of
from holdfast.runs.preview.stop_effects import EffectGate, PlainCalls, ReadOnlyMemory
from holdfast.runs.stored_program import stored_program
from holdfast.store.memory import MemoryStore
from holdfast.store.rows import Claim, RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import new_run_id
from holdfast.types.lease import Lease
from holdfast.types.record import Record
from holdfast.types.status import ENDED, RunStatus
from holdfast.types.value import freeze

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.types.terms import Actor

PATIENCE: Final = 5.0
"""Seconds for one option. Pure nodes that take longer end it with what is known by then."""
TURN: Final = 0.002
"""Seconds between two looks at a run that is under way."""
LATE: Final = f"it took longer than the {PATIENCE:.0f} seconds of a preview"
MOST_RECORDS: Final = 2_000
"""Of one option. What is read from them blocks the server for as long as they are many."""
LONG: Final = f"it has more than the {MOST_RECORDS} records that a preview follows"


_CALLS: Final = PlainCalls()


class HoldPreview(msgspec.Struct, frozen=True, kw_only=True):
    """`record`: the record of the run from which it was made."""

    hold: str
    run: str
    record: int
    options: list[OptionPreview]


class PreviewDriver(Driver):
    """Continues with the given messages: what else was under way in the run stays as it is."""

    first_messages: Sequence[Message] = ()

    async def _first(self) -> list[Message]:
        return list(self.first_messages)


async def preview_hold(
    service: RunAccess, hold: HoldRow, *, decision: str | None = None, data: Any = None
) -> HoldPreview:
    """For each option of the hold, or only for `decision`. `data`: what was filled in; without, what the
    form proposes.

    Raises HoldDecidedError for a hold that is not open, InputError for a decision that is none of its
    options, RateLimitedError if too many large values of the tenant are being checked."""
    require_open(hold)
    row = await service.get(hold.run)
    if row.status in ENDED or row.read_only:
        raise ConflictError(f"run {row.id} does not continue, so there is nothing to preview.", run=row.id)
    program, options = await _program(service, row), _options(hold, decision)
    if not options:
        depends = OptionPreview(option="", label="", entries=[PreviewEntry.depends_on("the answer")])
        return HoldPreview(hold=hold.id, run=row.id, record=row.head, options=[depends])
    async with service.runtime.previews:
        found = [
            await _preview_option(service, row, program, hold, option, label, data)
            for option, label in options
        ]
    return HoldPreview(hold=hold.id, run=row.id, record=row.head, options=found)


async def preview_branch(
    service: RunAccess, row: RunRow, at: int, patch: Mapping[str, Any], actor: Actor | None
) -> list[PreviewEntry]:
    """What a fork or a rewind with a changed state does, up to its next questions and outside effects. Raises
    what `fork` raises for this record and patch."""
    start = await fork_start(service, row, at, partitions(patch, None), actor)
    if start.blobs:
        # They are stored with the branch, and so not yet.
        return [PreviewEntry.unknown("", "a changed value is too large for a preview")]
    async with service.runtime.previews:
        world = PreviewWorld(service, row, start.program)
        try:
            return await world.entries_from(start.folded)
        finally:
            await world.close()


def _options(hold: HoldRow, decision: str | None) -> list[tuple[str, str]]:
    given = [(option.id, option.text) for option in hold.options or ()]
    if decision is None:
        return given
    if given and decision not in dict(given):
        raise InputError(
            f"{decision!r} is not one of the answers to this hold.",
            hint=f"Choose one of: {', '.join(dict(given))}.",
        )
    return [(decision, dict(given).get(decision, decision))]


async def _program(service: RunAccess, row: RunRow) -> Program:
    """Without its code the graph is known: the preview goes as far as the first node that needs it."""
    try:
        return await service.runtime.find_program(row.version, row.flow)
    except HoldfastError:
        return stored_program(row, (await reader_of(service, row)).graph)


async def _preview_option(
    service: RunAccess, row: RunRow, program: Program, hold: HoldRow, option: str, label: str, data: Any
) -> OptionPreview:
    try:
        resolution, missing = await compare(
            hold.tenant, is_slow(hold, data), fit_partly, hold, _resolution(hold, option, data)
        )
    except AnswerInvalidError as error:
        return OptionPreview(option=option, label=label, entries=[_incomplete(error)])
    if decisive := sorted(names_read(program.graph, hold).intersection(missing), key=missing.index):
        depends = PreviewEntry.depends_on(", ".join(decisive))
        return OptionPreview(option=option, label=label, entries=[depends])
    world = PreviewWorld(service, row, program)
    try:
        entries = await world.entries_after(hold, freeze(resolution))
        entries = up_to_code(entries, missing) if missing else entries
        return OptionPreview(option=option, label=label, entries=entries)
    finally:
        await world.close()


def _incomplete(error: AnswerInvalidError) -> PreviewEntry:
    """Fields do not fit."""
    errors: Any = error.facts.get("errors", ())
    problems: Any = error.facts.get("problems", ())
    names = [str(each["field"]) for each in errors if each.get("field")] or [str(each) for each in problems]
    return PreviewEntry.depends_on(", ".join(dict.fromkeys(names)) or "what is filled in")


def _resolution(hold: HoldRow, option: str, data: Any) -> dict[str, Any]:
    return {
        "decision": option,
        "response_data": {} if data is None and hold.schema is not None else data,
        "comment": None,
        "auto_expired": False,
        "late": False,
        "request_hash": hold.request_hash,
    }


class PreviewWorld:
    """A store in memory with a copy of the run, for one option."""

    def __init__(self, service: RunAccess, row: RunRow, program: Program) -> None:
        self.service = service
        self.row = row
        self.gate = EffectGate(_CALLS)
        self.program = self.gate.replace_handlers(program)
        self.store = MemoryStore()
        memory = ReadOnlyMemory(service.runtime.memory)
        # Whatever waits for a time or a person parks at once: a preview waits for nothing.
        settings = RunSettings(hot_timer=0.0, grace=0.5)
        self.runtime = Runtime(self.store, settings=settings, memory=memory)
        self.runtime.gate = self.gate
        # Files are read from where they are.
        self.runtime.attachments = service.runtime.attachments
        self.runtime.register(self.program)

    async def entries_after(self, hold: HoldRow, resolution: Any) -> list[PreviewEntry]:
        """What happens after this resolution of the hold."""
        reader = await reader_of(self.service, self.row)
        claim, pos = await self._copy(await fold_to(self.service, self.row, self.row.head, reader))
        open_before = set(pos.holds)
        asked = next(
            (
                known.id
                for known in await self.store.holds(run=claim.run.id, limit=len(open_before) + 1)
                if (known.scope, known.node, known.prompt) == (hold.scope, hold.node, hold.prompt)
            ),
            None,
        )
        if asked is None:
            return [PreviewEntry.unknown(hold.node, "its question cannot be asked again from its record")]
        driver = PreviewDriver(self.runtime, self.program, claim, LoadedRun(pos, 1))
        answer = HoldAnswered(hold=asked, resolution=freeze(decision_for_flow(resolution)), by="", at=pos.at)
        driver.first_messages = [answer]
        if pos.skills:
            from holdfast.runs.deployments import load_skills

            driver.calls.skills = await load_skills(self.service.store, self.row, pos.skills)
        late = await self._drive(driver, claim)
        return await entries_of(self.runtime, claim.run.id, self.gate.stopped, known=open_before, late=late)

    async def entries_from(self, folded: FoldedRun) -> list[PreviewEntry]:
        """What a branch does that begins there: everything that was under way runs, and open questions are
        asked anew."""
        claim, pos = await self._copy(folded)
        driver = Driver(self.runtime, self.program, claim, LoadedRun(pos, 1))
        late = await self._drive(driver, claim)
        return await entries_of(self.runtime, claim.run.id, self.gate.stopped, known=set(), late=late)

    async def _copy(self, folded: FoldedRun) -> tuple[Claim, Position]:
        """The run as it stood there, as a run of its own that this process has claimed."""
        service, runtime = self.service, self.runtime
        await service.runtime.blobs.materialise(folded.pos, folded.reader.codec.registry)
        run, now = new_run_id(), self.store.now()
        codec = runtime.codec_for(self.program, self.row.tenant)
        records, blobs = first_records(self.program, folded, run, now, codec, supersedes=None, changes={})
        await runtime.blobs.put(blobs)
        await self._copy_blobs(records[0])
        new = new_run(
            self.program,
            run,
            records,
            ("", []),
            now,
            tenant=self.row.tenant,
            thread=self.row.thread,
            instance_key=self.row.instance_key,
            started_by=self.row.started_by,
            deployment=self.row.deployment,
        )
        new.claimed_by, new.lease_until = runtime.worker, now + runtime.ttl
        await runtime.preparer.prepare_all(new.first, facts_of(new))
        row, _ = await self.store.create(new)
        return Claim(Lease(row.id, row.key, row.term, runtime.worker), row), folded.pos

    async def _copy_blobs(self, first: Record) -> None:
        """The large values that the position names."""
        blobs = self.service.runtime.blobs.of(self.row.tenant)
        for digest in first.side.blobs if first.side is not None else ():
            data = await blobs.content(digest)
            if data is not None:
                await self.store.put_blob(digest, len(data), data)

    async def _drive(self, driver: Driver, claim: Claim) -> str:
        """Until the run ends, parks, or everything that is under way has stopped at the gate. Returns why it
        was ended before."""
        runtime, loop = self.runtime, asyncio.get_running_loop()
        runtime.leases.add(claim.lease)
        drive: asyncio.Task[RunStatus] = loop.create_task(driver.drive())
        deadline, last = loop.time() + PATIENCE, driver.session.pos.head + MOST_RECORDS
        try:
            while not drive.done() and loop.time() < deadline:
                if self._all_stopped(driver):
                    return ""
                if driver.session.pos.head > last:
                    return LONG
                await asyncio.wait({drive}, timeout=TURN)
            return "" if drive.done() else LATE
        finally:
            if not drive.done():
                driver.stop()
            # After the stop: what waits at the gate is cancelled, and reports no failure.
            self.gate.end()
            await asyncio.gather(drive, return_exceptions=True)
            runtime.leases.remove(claim.run.id)

    def _all_stopped(self, driver: Driver) -> bool:
        session = driver.session
        under_way = set(session.tasks)
        if session.inline is not None:
            under_way.add((session.inline.scope, session.inline.node))
        if not under_way or session.finished or session.wake.is_set():
            return False
        stopped = self.gate.places
        return all(
            (scope, session.node(session.pos.execs[scope, node]).id) in stopped
            for scope, node in under_way
            if (scope, node) in session.pos.execs
        )

    async def close(self) -> None:
        await self.runtime.close()
        await self.store.close()
