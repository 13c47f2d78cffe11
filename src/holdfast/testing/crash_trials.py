"""`pytest --holdfast-crash`: a test runs twice undisturbed, and once for each pass of a crash point, at which
its runs are killed then. A killed run is resumed when its lease has expired, as by another worker; the test
continues with the result.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pytest
from _pytest.runner import runtestprotocol

from holdfast import telemetry
from holdfast.app.holdfast import Holdfast
from holdfast.model.position import Position
from holdfast.runs.driver.load import load
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.service import RunService
from holdfast.store.rows import Claim, RunFilter
from holdfast.telemetry import CRASH_POINTS
from holdfast.testing.crashpoints import Crash
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.testing.clock import FakeClock

LEASE: Final = 3600
"""Seconds after which the lease of a killed worker has certainly expired."""
MOST: Final = 200
"""Kills of one test; of more passes, evenly spread ones are tried."""
_DOUBT: Final = "in_doubt"
Driven = tuple[RunStatus, Position]


class Kill(NamedTuple):
    """The pass of a crash point at which the worker dies."""

    point: str
    number: int

    def __str__(self) -> str:
        return f"{self.point}, pass {self.number}"


class DoubtAsked(Exception):
    """A person is asked whether an effect happened: the right end of this trial, and nothing to compare."""


class Trial:
    """One execution of a test. `results`: of its runs, in the order of their creation."""

    def __init__(self, kill: Kill | None = None) -> None:
        self.kill = kill
        self.killed = False
        self.passes: Counter[str] = Counter()
        self.results: list[dict[str, Any]] = []
        self.asked = False

    def passed(self, point: str) -> None:
        self.passes[point] += 1
        if self.kill == (point, self.passes[point]) and not self.killed:
            self.killed = True
            raise Crash(point)


_TRIAL: Final = pytest.StashKey[Trial]()


@contextmanager
def watched(item: pytest.Item, hf: Holdfast, clock: FakeClock) -> Generator[None]:
    """For the fixture: the runs of this instance are killed as the trial says, and their results are kept."""
    trial, drive = item.stash[_TRIAL], Runtime.drive
    services = hf._services  # pyright: ignore[reportPrivateUsage]

    async def drive_or_die(runtime: Runtime, claim: Claim, *more: Any, **options: Any) -> Driven:
        if all(runtime is not service.runtime for service in services.values()):
            return await drive(runtime, claim, *more, **options)
        try:
            with _armed(trial):
                return await drive(runtime, claim, *more, **options)
        except Crash:
            # The next call gets a runtime of its own, as in another process.
            services.pop(asyncio.get_running_loop(), None)
        clock.advance(seconds=LEASE)
        driven = await _resumed(await hf.service(), claim.run.id, drive)
        trial.asked = trial.asked or await _is_in_doubt(hf, claim.run.id)
        if trial.asked:
            raise DoubtAsked
        return driven

    Runtime.drive = drive_or_die  # type: ignore[method-assign]
    try:
        yield
    finally:
        Runtime.drive = drive  # type: ignore[method-assign]
        trial.results = asyncio.run(_results(hf))


async def _resumed(service: RunService, run: RunId, drive: Callable[..., Any]) -> Driven:
    runtime, row = service.runtime, await service.get(run)
    if row.status not in ENDED:
        return await drive(runtime, await runtime.claim(run))
    # Killed after its last record: there is nothing left to do.
    program = runtime.program_for(row.version, row.flow)
    codec = runtime.codec_for(program, row.tenant)
    loaded = await load(service.store, codec, program.graph, run, blobs=runtime.blobs)
    return row.status, loaded.pos


async def _is_in_doubt(hf: Holdfast, run: RunId) -> bool:
    holds = await (await hf.service()).store.holds(run=run, status=HoldStatus.pending, limit=1000)
    return any(hold.type == _DOUBT for hold in holds)


@contextmanager
def _armed(trial: Trial) -> Generator[None]:
    with ExitStack() as stack:
        for point in CRASH_POINTS:
            telemetry.arm_each(point, _passing(trial, point))
            stack.callback(telemetry.disarm, point)
        yield


def _passing(trial: Trial, point: str) -> Callable[[], None]:
    return lambda: trial.passed(point)


async def _results(hf: Holdfast) -> list[dict[str, Any]]:
    service = await hf.service()
    rows = sorted(
        await service.store.list_runs(RunFilter(), after=None, limit=1000), key=lambda row: row.created_at
    )
    found: list[dict[str, Any]] = []
    for row in rows:
        state = (await service.checkpoint(row.id, row.head)).shown().state
        holds = await service.store.holds(run=row.id, status=HoldStatus.pending, limit=1000)
        asks = [hold.prompt for hold in holds]
        found.append({"flow": row.flow, "status": str(row.status), "asks": asks, **_fields(state)})
    return found


def _fields(state: Any) -> dict[str, Any]:
    return {f"state.{name}": _without_times(value) for name, value in dict(state).items()}


def _without_times(value: Any) -> Any:
    """The lease of a killed worker expires first, so that everything after it is later."""
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        return {name: _without_times(each) for name, each in found.items() if not name.endswith("_at")}
    return (
        [_without_times(each) for each in cast("Any", value)] if isinstance(value, (list, tuple)) else value
    )


def run_trials(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Reports one outcome: that of the first trial that fails, else that of the first undisturbed one."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    calm, first = _trial(item, Trial())
    reports = first
    if all(not report.failed and not report.skipped for report in first):
        again, second = _trial(item, Trial())
        is_steady = not any(report.failed for report in second)
        reports = next(_failures(item, calm, again), first) if is_steady else second
    # Fixtures of larger scopes were kept for the next trial.
    item.session._setupstate.teardown_exact(nextitem)  # pyright: ignore[reportPrivateUsage]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _trial(item: Any, trial: Trial) -> tuple[Trial, list[pytest.TestReport]]:
    item.stash[_TRIAL] = trial
    item._initrequest()
    # What is next is in the same collector, whose fixtures are kept; the item's own end with each trial.
    return trial, runtestprotocol(item, log=False, nextitem=item.parent)


def _failures(item: pytest.Item, calm: Trial, again: Trial) -> Iterator[list[pytest.TestReport]]:
    for kill in _kills(calm):
        trial, reports = _trial(item, Trial(kill))
        if trial.asked:
            continue
        if any(report.failed for report in reports):
            for report in reports:
                report.sections.append(("holdfast", f"its worker was killed at {kill}"))
            yield reports
            return
        differs = _difference(calm, again, trial)
        if differs:
            call = next(report for report in reports if report.when == "call")
            call.outcome = "failed"
            call.longrepr = f"killed at {kill} and resumed, the results differ: {differs}"
            yield reports
            return


def _kills(calm: Trial) -> list[Kill]:
    found = [Kill(point, number + 1) for point, count in calm.passes.items() for number in range(count)]
    step = max(1.0, len(found) / MOST)
    return [found[int(place * step)] for place in range(min(len(found), MOST))]


def _difference(calm: Trial, again: Trial, trial: Trial) -> str:
    """What is the same in both undisturbed trials has to be the same in this one."""
    if len(trial.results) != len(calm.results):
        return f"{len(trial.results)} runs instead of {len(calm.results)}"
    for before, other, after in zip(calm.results, again.results, trial.results, strict=False):
        for name in before.keys() | after.keys():
            is_steady = before.get(name) == other.get(name)
            if is_steady and before.get(name) != after.get(name):
                return f"{name} of {before['flow']} is {after.get(name)!r} and was {before.get(name)!r}"
    return ""
