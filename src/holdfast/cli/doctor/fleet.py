"""`doctor`: the fleet. Workers, clocks, releases, versions that no worker serves, schedules, dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from holdfast.cli.doctor.finding import OK, WARN, Finding, few
from holdfast.errors import StoreError
from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.runs.schedules.schedule import Schedule
from holdfast.runs.schedules.service import ScheduleService
from holdfast.runs.service import RunService
from holdfast.runs.unserved import find_unserved, how_to_get, missing_requirements
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.clock import MICROS, iso
from holdfast.types.fleet import HOLD_RULES, FleetFigures, WorkerRow
from holdfast.types.human_time import ago, human_duration
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus

APART: Final = MICROS
"""Microseconds of difference from which a clock counts as wrong."""


async def fleet_findings(service: RunService) -> AsyncIterator[Finding]:
    rows, now = await service.store.workers(), service.store.now()
    alive = [row for row in rows if row.is_alive(now)]
    yield _workers(rows, alive, now)
    newest = await service.store.list_runs(RunFilter(), after=None, limit=1)
    if newest and newest[0].created_at > now + _LATE:
        yield _set_back(newest[0], now)
    if alive:
        yield _releases(alive)
        yield _clocks(alive)
        yield _hold_rules(alive)
        yield await _entities(service, alive, now)
    figures = await service.store.fleet_figures(ages=())
    yield _waits(figures, alive)
    if alive:
        yield _lanes(figures, rows)


async def served_versions(service: RunService) -> set[str] | None:
    """The versions that live workers serve; None if no worker is alive."""
    now = service.store.now()
    alive = [row for row in await service.store.workers() if row.is_alive(now)]
    return {version for row in alive for version in row.versions} if alive else None


async def runs_without_means(service: RunService, live: list[RunRow]) -> Finding:
    """Runs of pipelines that need what no live worker has."""
    missing = Counter((await missing_requirements(service.store, live)).values())
    if not missing:
        return Finding(
            "requirements", OK, "no run waits for a worker with a backend, handler, provider or tool"
        )
    return Finding(
        "requirements",
        WARN,
        f"{missing.total()} runs need a backend, handler, provider or tool that no live worker has",
        f"start a worker that has it: {how_to_get(word for words in sorted(missing) for word in words)}",
        few([f"{count} for {' and '.join(words)}" for words, count in missing.most_common()]),
    )


def unserved_runs(live: list[RunRow], versions: set[str] | None) -> Finding:
    """A run is pinned to the version it was started on (D-34): a worker must have that code."""
    if versions is None:
        return Finding(
            "flow versions", OK, "no worker is alive; `holdfast run` and `holdfast resume` advance runs"
        )
    coded = [row for row in live if dialect_of(row.version) == CODED]  # for others see `runs_without_means`
    counts = Counter((row.flow, row.version) for row in coded if row.version not in versions)
    if not counts:
        return Finding("flow versions", OK, f"live workers serve the versions of all {len(live)} active runs")
    return Finding(
        "flow versions",
        WARN,
        f"{counts.total()} active runs are on a version that no worker serves",
        "start a worker with that code, or see `holdfast flows check NEW` and move them",
        few([f"{count} of {flow} {version}" for (flow, version), count in counts.most_common()]),
    )


def _waits(figures: FleetFigures, alive: list[WorkerRow]) -> Finding:
    """What waits uses no worker; what is late does."""
    asleep, asked = figures.statuses.get("waiting", 0), figures.statuses.get("pending_input", 0)
    ends = f", the next ends in {human_duration(figures.next_timer)}" if figures.next_timer else ""
    hot = sum(row.hot for row in alive)
    text = f"{asleep} runs sleep, {asked} wait for input, {hot} wait in memory; {figures.timers} timers{ends}"
    if not figures.suspects:
        return Finding("waiting", OK, text)
    return Finding(
        "waiting",
        WARN,
        f"{text}; {figures.suspects} suspects wait for, or have, a worker of their own",
        "their workers died: `holdfast show RUN` and `holdfast dead show RUN` say where",
    )


async def _entities(service: RunService, alive: list[WorkerRow], now: int) -> Finding:
    """The run must still have its lease there: else the entity is free."""
    about: list[str] = []
    for worker in alive:
        for each in worker.blocked:
            row = await service.store.get_run(RunId(each.run))
            if row is not None and row.status is RunStatus.running and row.worker == worker.name:
                about.append(
                    f"{each.entity}: run {each.run} ({each.flow}, node {each.nodes}) on {worker.name}, pid "
                    f"{worker.pid} on {worker.host}, stopped {ago(each.since, now)}"
                )
    if not about:
        return Finding("entities", OK, "no entity is locked by code that does not stop")
    return Finding(
        "entities",
        WARN,
        f"{len(about)} entities are still locked: their runs were stopped, but the code is still running",
        "if the code does not return, restart that worker: its lease expires and the next run starts; "
        'isolation="process" ends such code',
        few(about),
    )


def _lanes(figures: FleetFigures, rows: list[WorkerRow]) -> Finding:
    """Runs of versions that no worker serves are in the finding `carried`."""
    unserved = find_unserved(figures, rows).lanes
    if not unserved:
        return Finding("lanes", OK, "live workers serve all lanes that have ready runs")
    ready = Counter[str]()
    for each in unserved:
        ready[each.lane] += each.ready
    return Finding(
        "lanes",
        WARN,
        f"{ready.total()} ready runs are in lanes that no worker serves",
        "start a worker for the lane: holdfast worker FILE --lane NAME, or one without --lane for all",
        few([f"{count} in lane {lane}" for lane, count in ready.most_common()]),
    )


def _workers(rows: list[WorkerRow], alive: list[WorkerRow], now: int) -> Finding:
    count = "1 worker is" if len(alive) == 1 else f"{len(alive) or 'no'} workers are"
    silent = [row for row in rows if not row.is_alive(now)]
    if not silent:
        return Finding("workers", OK, f"{count} alive")
    about = [f"{row.name}: pid {row.pid} on {row.host}, {ago(row.seen_at, now)}" for row in silent]
    return Finding(
        "workers",
        WARN,
        f"{count} alive, {len(silent)} died without shutting down within the last day",
        "find out why it died; other workers claim its runs, and this entry disappears after a day",
        few(about),
    )


def _releases(alive: list[WorkerRow]) -> Finding:
    releases = Counter(row.release for row in alive)
    if len(releases) == 1:
        return Finding("releases", OK, f"all workers run release {alive[0].release}")
    text = ", ".join(f"{count} of {release}" for release, count in sorted(releases.items()))
    return Finding("releases", OK, f"workers run different releases: {text}")


def _set_back(newest: RunRow, now: int) -> Finding:
    return Finding(
        "time",
        WARN,
        f"the newest run was created {human_duration(newest.created_at - now)} later than now: "
        "the store's clock was set back",
        "workers correct leases, queues and rates; sleeps, retries, reminders and deadlines that were set "
        "before come as much later",
        [f"{newest.id} ({newest.flow}), created at {iso(newest.created_at)}"],
    )


def _clocks(alive: list[WorkerRow]) -> Finding:
    wrong = [row for row in alive if abs(row.skew) > APART]
    if not wrong:
        return Finding("clocks", OK, "the clocks of all workers are within a second of the store's")
    about = [
        f"{row.name} on {row.host}: {abs(row.skew) / MICROS:,.1f} s {'ahead' if row.skew > 0 else 'behind'}"
        for row in wrong
    ]
    return Finding(
        "clocks",
        WARN,
        "the clock of 1 worker is wrong"
        if len(wrong) == 1
        else f"the clocks of {len(wrong)} workers are wrong",
        "set it by NTP: the runtime uses the store's time, but handlers see the clock of their machine",
        few(about),
    )


def _hold_rules(alive: list[WorkerRow]) -> Finding:
    """A worker that was not given the policies opens holds without them."""
    known = {
        row.name: sorted(each.removeprefix(HOLD_RULES) for each in row.offers if each.startswith(HOLD_RULES))
        for row in alive
        if HOLD_RULES in row.offers
    }
    if len(set(map(tuple, known.values()))) < 2:
        return Finding("hold rules", OK, "all workers have the same policies, and a directory or none")
    return Finding(
        "hold rules",
        WARN,
        "workers open holds with different policies or people: which rules apply depends on the worker",
        "give all of them the same policies and directory (HOLDFAST_POLICIES, HOLDFAST_DIRECTORY)",
        few([f"{name}: {', '.join(filter(None, texts)) or 'none'}" for name, texts in sorted(known.items())]),
    )


_LATE = 60 * MICROS


async def schedule_findings(service: RunService) -> AsyncIterator[Finding]:
    """No finding if there are no schedules and no dead letters."""
    for finding in (await _schedules(service), await _dead(service)):
        if finding is not None:
            yield finding


async def _schedules(service: RunService) -> Finding | None:
    try:
        found = await ScheduleService(service.store).list()
    except StoreError as error:
        return Finding("schedules", WARN, error.message, error.hint or "")
    if not found:
        return None
    now = service.store.now()
    live = [worker for worker in await service.store.workers() if worker.is_alive(now)]
    carried = {flow for worker in live for flow in worker.versions.values()}
    active = [each for each in found if not each.paused and not each.over]
    early = [each for each in active if (each.next_at or 0) > (each.last_at or 0) > now + _LATE]
    if early:
        text = f"{len(early)} of {len(found)} schedules fired for later times: the clock was set back"
        todo = "they wait until then; `holdfast schedules pause NAME` and `resume NAME` end that wait"
        waits = [f"{each.name} ({each.flow}), fired for {iso(each.last_at or now)}" for each in early]
        return Finding("schedules", WARN, text, todo, few(waits))
    unserved = [each for each in active if each.flow not in carried]
    if unserved:
        flows = ", ".join(sorted({each.flow for each in unserved}))
        return Finding(
            "schedules",
            WARN,
            f"{len(unserved)} of {len(found)} schedules start a flow that no worker serves: {flows}",
            "start a worker with their code: holdfast worker FILE; or holdfast schedules pause NAME",
            few([_named(each, now) for each in unserved]),
        )
    wrong = [each for each in active if each.standing.trouble or _is_late(each, now)]
    if wrong:
        text = f"{len(wrong)} of {len(found)} schedules are late, or their last start failed"
        todo = "`holdfast schedules show NAME` shows the reason"
        return Finding("schedules", WARN, text, todo, few([_named(each, now) for each in wrong]))
    return Finding("schedules", OK, f"{len(found)} schedules, {len(found) - len(active)} paused or over")


def _is_late(each: Schedule, now: int) -> bool:
    return each.next_at is not None and not _by_hand(each) and each.next_at < now - _LATE


def _by_hand(each: Schedule) -> bool:
    return bool(each.standing.asked or each.standing.filling)


def _named(each: Schedule, now: int) -> str:
    late = f", overdue for {human_duration(now - (each.next_at or now))}" if _is_late(each, now) else ""
    trouble = f": {each.standing.trouble}" if each.standing.trouble else ""
    return f"{each.name} ({each.flow}){late}{trouble}"


async def _dead(service: RunService) -> Finding | None:
    rows = await service.dead(limit=1000)
    if not rows:
        return None
    many = "1,000 or more" if len(rows) == 1000 else f"{len(rows)}"
    return Finding(
        "dead letters",
        WARN,
        f"{many} dead letters: runs whose workers died too often",
        "`holdfast dead show RUN` shows where they died; then `dead retry` or `dead discard`",
        few([f"{row.id[:8]} ({row.flow})" for row in rows]),
    )
