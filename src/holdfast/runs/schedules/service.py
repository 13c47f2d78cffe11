"""Operations on schedules: set, show, pause, resume, trigger, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.errors import (
    InputError,
    KeyMissingError,
    ScheduleNotFoundError,
    SchemaTooNewError,
    StoreBusyError,
)
from holdfast.model.program import Program
from holdfast.runs.create import require_no_effect
from holdfast.runs.input_check import checked_input
from holdfast.runs.schedules.cron import fires_at, following, upcoming
from holdfast.runs.schedules.derive import run_id_for, with_instant, with_next_at
from holdfast.runs.schedules.missed_instants import AT_MOST
from holdfast.runs.schedules.parse_schedule import Moment, make_plan, moment_for, require_name
from holdfast.runs.schedules.schedule import (
    FillRequest,
    Schedule,
    ScheduleFiring,
    SchedulePlan,
    ScheduleState,
    TriggerRequest,
    read,
    write,
)
from holdfast.telemetry import log
from holdfast.types.clock import iso
from holdfast.types.ids import DEFAULT_TENANT, RunId, new_id
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.frontends.python import FlowBuilder
    from holdfast.store.protocols import Store

# Workers write to the same row, so that a change may have to be made again on a newer revision.
_TRIES = 20
_PAGE = 500


class ScheduleService:
    """Flows that are started by the clock, by any worker that serves them. Times are the store's."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def put(
        self,
        name: str,
        flow: Program | FlowBuilder | str,
        *,
        tenant: str = DEFAULT_TENANT,
        by: str = "user:local",
        via: Sequence[str] = (),
        declared: bool = False,
        **plan: Any,
    ) -> Schedule:
        """Create a schedule, or change it from now on. `via`: everyone in the chain of the caller's
        credential.

        `plan`: exactly one of `cron`, `every` and `at`; see `make_plan` for the rest. With the flow itself,
        not only its name, the input is checked against it. If its times are unchanged its next instant stays;
        a paused one stays paused. `declared`: by code; then one that an operator changed meanwhile is not
        changed. Raises InputError."""
        require_name(name)
        require_text(tenant, "tenant")
        # Code may still declare a schedule that is over.
        made = make_plan(0 if declared else self.store.now(), **plan)
        named = (
            require_text(flow, "flow")
            if isinstance(flow, str)
            else await _startable_flow(flow, made, self.store.now(), tenant)
        )
        require_no_effect(named)

        def change(known: Schedule | None) -> Schedule:
            if known is None:
                standing = ScheduleState(
                    by=by, set_by="" if declared else by, set_via=tuple(via), declared=declared
                )
                return self._fresh(tenant, name, named, made, standing)
            if declared and (not known.standing.declared or (known.plan, known.flow) == (made, named)):
                return known
            return self._changed(known, named, made, by, via=tuple(via), declared=declared)

        return await self._change(tenant, name, change)

    def _fresh(
        self, tenant: str, name: str, flow: str, plan: SchedulePlan, standing: ScheduleState
    ) -> Schedule:
        made = Schedule(
            tenant=tenant, name=name, flow=flow, plan=plan, standing=standing, next_at=None, last_at=None,
            last_run=None, revision=0, updated_at=0,
        )  # fmt: skip
        return self._from(made, self.store.now())

    def _changed(
        self,
        known: Schedule,
        flow: str,
        plan: SchedulePlan,
        by: str,
        *,
        via: tuple[str, ...],
        declared: bool,
    ) -> Schedule:
        same = known.plan.when() == plan.when() and known.standing.due is not None
        standing = replace(
            known.standing,
            by=by,
            set_by="" if declared else by,
            set_via=via,
            declared=declared,
            trouble="",
            trouble_at=None,
        )
        changed = replace(known, flow=flow, plan=plan, standing=standing)
        if standing.paused:
            return changed
        return with_next_at(changed) if same else self._from(changed, self.store.now())

    def _from(self, schedule: Schedule, now: int) -> Schedule:
        due = following(schedule.plan, now)
        return with_next_at(replace(schedule, standing=replace(schedule.standing, due=due, firing=None)))

    async def get(self, name: str, *, tenant: str = DEFAULT_TENANT) -> Schedule:
        """Raises ScheduleNotFoundError."""
        row = await self.store.schedule(
            require_text(tenant, "tenant"), require_text(name, "a schedule's name")
        )
        if row is None:
            raise ScheduleNotFoundError(
                f"there is no schedule {name!r}.", hint="`holdfast schedules list` shows them.", name=name
            )
        return read(row)

    async def list(self, *, tenant: str | None = None) -> list[Schedule]:
        """In order of tenant and name; `tenant` None: of all. One that cannot be read here is logged."""
        found: list[Schedule] = []
        after = ("", "")
        while rows := await self.store.schedules(tenant, after=after, limit=_PAGE):
            after = (rows[-1].tenant, rows[-1].name)
            for row in rows:
                try:
                    found.append(read(row))
                except (KeyMissingError, SchemaTooNewError) as error:
                    log.warning("schedule %s is not shown: %s", row.name, error)
        return found

    async def next(self, name: str, count: int = 5, *, tenant: str = DEFAULT_TENANT) -> list[int]:
        """When it would fire, jitter included, if it is not paused."""
        found = await self.get(name, tenant=tenant)
        due = found.standing.due if not found.paused else None
        ahead = upcoming(found.plan, (self.store.now() if due is None else due - 1), count)
        return [fires_at(found.plan, tenant, name, instant) for instant in ahead]

    async def pause(
        self, name: str, *, reason: str = "", by: str = "user:local", tenant: str = DEFAULT_TENANT
    ) -> Schedule:
        """It does not fire until `resume`. Runs that it has started continue."""

        def change(known: Schedule) -> Schedule:
            held = replace(known.standing, paused=True, reason=reason, by=by, declared=False, firing=None)
            return with_next_at(replace(known, standing=held))

        return await self._change_known(tenant, name, change)

    async def resume(self, name: str, *, by: str = "user:local", tenant: str = DEFAULT_TENANT) -> Schedule:
        """From the next instant on: instants during the pause stay skipped."""

        def change(known: Schedule) -> Schedule:
            if not known.paused:
                return known
            free = replace(known.standing, paused=False, reason="", by=by)
            return self._from(replace(known, standing=free), self.store.now())

        return await self._change_known(tenant, name, change)

    async def trigger(
        self,
        name: str,
        *,
        input: Any = None,  # noqa: A002
        by: str = "user:local",
        via: Sequence[str] = (),
        tenant: str = DEFAULT_TENANT,
        token: str | None = None,
    ) -> RunId:
        """One run now, in addition to its instants, even while it is paused and whatever is running. Returns
        the id of the run, which exists as soon as a worker that serves the flow has handled it. `token`: the
        same token gives the same run."""
        asked = TriggerRequest(token or new_id(), by, input, tuple(via))

        def change(known: Schedule) -> Schedule:
            if any(other.token == asked.token for other in known.standing.asked):
                return known
            wishes = (*known.standing.asked, asked)
            return with_next_at(replace(known, standing=replace(known.standing, asked=wishes)))

        return run_id_for(await self._change_known(tenant, name, change), asked)

    async def history(self, name: str, *, tenant: str = DEFAULT_TENANT) -> list[ScheduleFiring]:
        """What became of its instants, the newest first; the last hundred are kept."""
        return list(reversed((await self.get(name, tenant=tenant)).standing.history))

    async def fill(
        self,
        name: str,
        first: Moment,
        last: Moment,
        *,
        one_by_one: bool = False,
        dry_run: bool = False,
        by: str = "user:local",
        via: Sequence[str] = (),
        tenant: str = DEFAULT_TENANT,
        token: str | None = None,
    ) -> list[int]:
        """Start the runs of its past instants from `first` to `last`, both included. An instant that has a
        run is left as it is. Workers that serve the flow do it, also while the schedule is paused; with
        `one_by_one` each waits for the one before. Returns the instants. A moment without an offset is in the
        schedule's zone. Raises InputError for a range in the future, without instants, or with more than
        1,000."""
        known = await self.get(name, tenant=tenant)
        begin = moment_for(first, "from", known.plan.zone)
        end = moment_for(last, "to", known.plan.zone)
        found = _past_instants(known, begin, end, self.store.now())
        asked = FillRequest(
            token=token or new_id(),
            by=by,
            next=found[0],
            last=found[-1],
            one_by_one=one_by_one,
            via=tuple(via),
        )

        def change(known: Schedule) -> Schedule:
            if any(other.token == asked.token for other in known.standing.filling):
                return known
            requests = (*known.standing.filling, asked)
            return with_next_at(replace(known, standing=replace(known.standing, filling=requests)))

        if not dry_run:
            await self._change_known(tenant, name, change)
        return found

    async def delete(self, name: str, *, tenant: str = DEFAULT_TENANT) -> list[RunId]:
        """Runs that it has started continue. Runs that `trigger` promised and that no worker has started are
        dropped with it. Raises ScheduleNotFoundError."""
        try:
            known = await self.get(name, tenant=tenant)
            promised = [run_id_for(known, asked) for asked in known.standing.asked]
        except (KeyMissingError, SchemaTooNewError):
            promised = []  # it may be deleted by a caller that cannot read it
        if not await self.store.drop_schedule(tenant, name):
            await self.get(name, tenant=tenant)
        return promised

    async def _change_known(self, tenant: str, name: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        await self.get(name, tenant=tenant)

        def known_only(known: Schedule | None) -> Schedule:
            if known is None:
                raise ScheduleNotFoundError(f"the schedule {name!r} was deleted meanwhile.", name=name)
            return change(known)

        return await self._change(tenant, name, known_only)

    async def _change(
        self, tenant: str, name: str, change: Callable[[Schedule | None], Schedule]
    ) -> Schedule:
        """Replaces the revision that was read; workers write to it as well, so it is retried a few times."""
        for _ in range(_TRIES):
            row = await self.store.schedule(tenant, name)
            known = None if row is None else read(row)
            made = change(known)
            if made is known:
                return made
            written = await self.store.put_schedule(write(made), expect=0 if row is None else row.revision)
            if written is not None:
                return read(written)
        raise StoreBusyError(f"the schedule {name!r} is being changed by other processes.", hint="Try again.")


def _past_instants(schedule: Schedule, begin: int, end: int, now: int) -> list[int]:
    if begin > end:
        raise InputError("the range to fill in ends before it begins.", hint="Give `from` before `to`.")
    if end > now:
        raise InputError(
            f"the range to fill in ends in the future, at {iso(end)}.",
            hint="Later instants start by themselves; use `trigger` for a run now.",
        )
    found = list(takewhile(lambda at: at <= end, upcoming(schedule.plan, begin - 1, AT_MOST + 1)))
    if not found:
        raise InputError(f"the schedule {schedule.name!r} has no instant from {iso(begin)} to {iso(end)}.")
    if len(found) > AT_MOST:
        raise InputError(
            f"from {iso(begin)} to {iso(end)} there are more than {AT_MOST:,} instants.",
            hint="Fill in a shorter range, and the rest after it.",
        )
    return found


async def _startable_flow(flow: Program | FlowBuilder, plan: SchedulePlan, now: int, tenant: str) -> str:
    """The flow's name. Raises InputError if it would not start with the plan's input."""
    program = flow if isinstance(flow, Program) else flow.compile()
    try:
        await checked_input(program, with_instant(plan, now), tenant)
    except InputError as error:
        raise InputError(
            f"cannot start flow {program.graph.name!r}: {error.message}", hint=error.hint
        ) from error
    return program.graph.name
