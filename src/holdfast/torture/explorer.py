"""The whole exploration: two undisturbed runs, then one trial for each boundary.

Chooses boundaries if there are too many to try all.

Every kind of boundary gets a share, every place of a kind at least one, and the rest goes to repetitions:
every tenth boundary of a run with a period of ten would always be the same place.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.app.flow import Flow
from holdfast.errors import InputError
from holdfast.torture.answers import POLICIES, Policy, read_answers
from holdfast.torture.boundaries import NAMES, Point
from holdfast.torture.compare import Baseline, differences, repeated_under_key
from holdfast.torture.forks import ChildSequence, Pool
from holdfast.torture.process_run import Task
from holdfast.torture.report import PointVerdict, Report
from holdfast.torture.trial import TrialResult, TrialRunner
from holdfast.torture.trial_log import Doubt, UndeclaredEffect
from holdfast.types.clock import SystemClock

T = TypeVar("T")


def spread(items: Sequence[T], most: int, *kinds: Callable[[T], Hashable]) -> list[T]:
    """At most `most` of them, in order: spread evenly over the kinds, then within each kind."""
    if len(items) <= most:
        return list(items)
    chosen = set(_spread(items, range(len(items)), most, kinds))
    return [item for i, item in enumerate(items) if i in chosen]


def _spread(
    items: Sequence[T], among: Sequence[int], most: int, kinds: Sequence[Callable[[T], Hashable]]
) -> list[int]:
    if not kinds:
        return _evenly(among, most)
    groups: dict[Hashable, list[int]] = {}
    for i in among:
        groups.setdefault(kinds[0](items[i]), []).append(i)
    # Fewer places than groups: one of each of some groups, evenly, rather than all of the first ones.
    if len(groups) > most:
        return [group[0] for group in _evenly(list(groups.values()), most)]
    shares = _shares([len(group) for group in groups.values()], most)
    return [
        i
        for group, share in zip(groups.values(), shares, strict=True)
        for i in _spread(items, group, share, kinds[1:])
    ]


def _shares(sizes: Sequence[int], most: int) -> list[int]:
    """One for each, in rounds, until all are distributed."""
    shares = [0] * len(sizes)
    left = min(most, sum(sizes))
    while left:
        for i in range(len(sizes)):
            if left and shares[i] < sizes[i]:
                shares[i] += 1
                left -= 1
    return shares


def _evenly(items: Sequence[T], most: int) -> list[T]:
    """The first, the last, and the others at equal distances."""
    if most >= len(items):
        return list(items)
    return [items[i * (len(items) - 1) // max(most - 1, 1)] for i in range(most)]


Progress = Callable[[int, int], None]
Kills = tuple[Point, ...]
"""Where the processes of a trial are killed: the first one, then the one that recovers."""
_DECLARED = {
    "pure": "is declared pure",
    "read": "is declared read",
    "script": "is a script, whose code around its steps runs again",
}


class ExplorerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Named as the options of `holdfast torture`. `points`: names or patterns (`after_*`, `after_settle:3`);
    `max`: maximum number of boundaries, spread evenly. `kills`: 2 to also kill the process that recovers, at
    as many boundaries again. `limit`: seconds that one process may take; `time`: seconds after which no
    further run starts. `copy`: files and folders to copy into each working folder."""

    points: Sequence[str] = ()
    kills: int = 1
    max: int = 400
    jobs: int = 2
    limit: float = 30.0
    time: float = 600.0
    in_doubt: Policy = "truth"
    effects: Sequence[str] = ()
    copy: Sequence[str] = ()
    keep: bool = False
    options: dict[str, Any] = {}


_EARLIER = {"most": "max", "copies": "copy", "life_limit": "limit", "total_limit": "time"}
"""Earlier names of options, still accepted; so is `given` for the input."""


def torture(
    flow: Flow,
    input: Any = None,  # noqa: A002
    *,
    decide: Mapping[str, Any] | None = None,
    answers: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **wishes: Any,
) -> Report:
    """Kill a run of this flow at every boundary, resume it, and compare with an undisturbed run.

    The flow's handlers really run, with separate stores and working folders. `decide`: by node, the decision
    of its hold (a list: of its first hold, its second, ...); `answers` also takes data with the decision. The
    other options are those of `ExplorerOptions`, and of `holdfast torture`. Raises InputError if the
    undisturbed run does not end.
    """
    given = wishes.pop("given", None) if input is None else input
    wanted = _options(wishes)
    task = Task(
        given={} if given is None else given,
        answers=read_answers({**(answers or {}), **(decide or {})}),
        in_doubt=wanted.in_doubt,
        options=wanted.options,
    )
    copies = [_existing(name) for name in wanted.copy]
    folder = Path(tempfile.mkdtemp(prefix="holdfast-torture-"))
    runner = TrialRunner(
        flow=flow,
        task=task,
        folder=folder,
        copies=copies,
        files=wanted.effects,
    )
    try:
        return _Exploration(runner, wanted, progress or (lambda _done, _all: None)).report()
    finally:
        if not wanted.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _options(given: dict[str, Any]) -> ExplorerOptions:
    wishes = ExplorerOptions(**{_EARLIER.get(name, name): value for name, value in given.items()})
    if wishes.in_doubt not in POLICIES:
        raise InputError(f"in_doubt {wishes.in_doubt!r} is not one of {', '.join(POLICIES)}.")
    if wishes.kills not in (1, 2):
        raise InputError(f"kills {wishes.kills!r} is neither 1 nor 2.")
    for pattern in wishes.points:
        if not any(fnmatch(name, pattern.partition(":")[0]) for name in NAMES):
            raise InputError(f"unknown boundary {pattern!r}.", hint=f"Known: {', '.join(NAMES)}.")
    return wishes


def _existing(name: str) -> Path:
    path = Path(name).resolve()
    if not path.exists():
        raise InputError(f"the file or folder {name} to copy does not exist.")
    return path


class _Exploration:
    def __init__(self, runner: TrialRunner, wishes: ExplorerOptions, progress: Progress) -> None:
        self._runner = runner
        self._wishes = wishes
        self._progress = progress
        self._now = SystemClock().monotonic
        self._began = self._now()
        # The boundaries at which a process that recovers from one kill can die.
        self._further: list[Kills] = []

    def report(self) -> Report:
        # Two, on different days: what differs between them depends on the time or on chance, and would be
        # reported as damage by a crash.
        calm, again = self._undisturbed()
        unsteady = differences(calm, again)
        steady = Baseline.of(calm, again, unsteady)
        # A list and not an iterator: second kills are known only when all first kills have been tried.
        verdicts = list(self._tried(self._chosen([(point,) for point in calm.points]), calm, steady))
        verdicts += self._tried(self._chosen(self._further), calm, steady)
        verdicts.sort(key=lambda verdict: verdict.order)
        assert calm.ending is not None
        return Report(
            flow=self._runner.flow.name,
            status=calm.ending.status,
            error=calm.ending.error,
            waits=calm.ending.waits,
            points=len(calm.points),
            verdicts=verdicts,
            unsteady=[d.text.replace(" instead of ", " and then ") for d in unsteady],
            suspects=_suspects(calm),
            seconds=round(self._now() - self._began, 2),
            folder=str(self._runner.folder) if self._wishes.keep else "",
        )

    def _undisturbed(self) -> tuple[TrialResult, TrialResult]:
        # In a child too: the parent must stay without open stores and threads, because it forks.
        for _ in Pool[None](1, self._wishes.limit, self._now).run([self._runner.prepare()]):
            pass
        works = [
            self._runner.trial("calm", record=True),
            self._runner.trial("calm-again", later=True, record=True),
        ]
        found = sorted(self._pool().run(works), key=lambda seen: seen.folder.name)
        calm, again = found
        for seen in found:
            if seen.ending is None:
                raise InputError(
                    f"the undisturbed run does not end: {seen.trouble}",
                    hint=f"Make `holdfast run` succeed first; --decide answers its holds.{_threads()}",
                )
        return calm, again

    def _pool(self) -> Pool[TrialResult]:
        return Pool(self._wishes.jobs, self._wishes.limit, self._now)

    def _chosen(self, tries: list[Kills]) -> list[Kills]:
        patterns = self._wishes.points
        wanted = [
            kills for kills in tries if not patterns or any(_fits(kills[-1], pattern) for pattern in patterns)
        ]
        return spread(wanted, self._wishes.max, _names, _places)

    def _tried(self, tries: list[Kills], calm: TrialResult, steady: Baseline) -> Iterator[PointVerdict]:
        if not tries:
            return
        self._progress(0, len(tries))
        for done, seen in enumerate(self._pool().run(self._trials(tries)), 1):
            self._progress(done, len(tries))
            if seen.reached and len(seen.kills) < self._wishes.kills:
                self._further += [(*seen.kills, point) for point in seen.points]
            yield self._judged(calm, seen, steady)
            if not self._wishes.keep:
                shutil.rmtree(seen.folder, ignore_errors=True)

    def _trials(self, tries: list[Kills]) -> Iterator[ChildSequence[TrialResult]]:
        """No more are started after the time limit; the report says how many were tried."""
        for kills in tries:
            # Only between trials: a trial that is cut off would look like a run that could not continue.
            if self._now() - self._began > self._wishes.time:
                return
            name = "-".join(f"{point.index:04}-{point.name}" for point in kills)
            yield self._runner.trial(name, kills, record=len(kills) < self._wishes.kills)

    def _judged(self, calm: TrialResult, seen: TrialResult, steady: Baseline) -> PointVerdict:
        point, *again = seen.kills
        return PointVerdict(
            point=point,
            again=again[0] if again else None,
            reached=seen.reached,
            status="" if seen.ending is None else seen.ending.status,
            doubts=sum(1 for note in seen.notes if isinstance(note, Doubt)),
            repeated_under_key=repeated_under_key(calm, seen),
            differences=differences(calm, seen, steady),
            folder=str(seen.folder) if self._wishes.keep else "",
        )


def _threads() -> str:
    others = threading.active_count() - 1
    if not others:
        return ""
    return f" {others} other threads were running when it started; they do not exist in its processes."


def _names(kills: Kills) -> tuple[str, ...]:
    return tuple(point.name for point in kills)


def _places(kills: Kills) -> tuple[str, ...]:
    return tuple(point.where for point in kills)


def _fits(point: Point, pattern: str) -> bool:
    return fnmatch(str(point), pattern) or fnmatch(point.name, pattern)


def _suspects(calm: TrialResult) -> list[str]:
    found = [note for note in calm.notes if isinstance(note, UndeclaredEffect)]
    return [f"{note.call} {_DECLARED[note.effect]}, and {note.did}" for note in found]
