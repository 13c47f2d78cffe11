"""Rounds, medians and sizes."""

from __future__ import annotations

import contextlib
import gc
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import msgspec

from bench import targets
from bench.lines import Line

Measure = Callable[[], Awaitable[float]]


class Plan(msgspec.Struct, frozen=True):
    """How much to do."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        return 9 if self.quick else 21

    @property
    def some(self) -> int:
        return 4 if self.quick else 9

    @property
    def few(self) -> int:
        """Rounds of something that takes a second or more."""
        return 2 if self.quick else 5


STEADY = 1.5


async def interleaved(rounds: int, /, **measures: Measure) -> dict[str, list[float]]:
    """Each measure once a round, in turns, after one round that does not count."""
    for measure in measures.values():
        await measure()
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            gc.collect()
            found[name].append(await measure())
    return found


async def against(floor: Measure, measure: Measure, rounds: int) -> tuple[list[float], list[float]]:
    """What was measured, and the floor of the same round: taken before and after it.

    A round in which the floor moved (somebody else used the disk) is done again, up to twice as many rounds.
    """
    await measure()
    await floor()
    values: list[float] = []
    floors: list[float] = []
    for spare in reversed(range(2 * rounds)):
        gc.collect()
        before, value, after = await floor(), await measure(), await floor()
        steady = max(before, after) < STEADY * min(before, after)
        if steady or spare < rounds - len(values):
            values.append(value)
            floors.append((before * after) ** 0.5)
        if len(values) == rounds:
            break
    return values, floors


def ratios(values: list[float], floors: list[float]) -> list[float]:
    """Value by floor of the same round."""
    return [value / floor for value, floor in zip(values, floors, strict=True)]


def spread(values: list[float]) -> float:
    """Half the distance of the quartiles, as a share of the median."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2 / statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / statistics.median(values)


def line(
    row: str,
    name: str,
    values: list[float],
    unit: str,
    *,
    scale: float = 1.0,
    target: str = "",
    note: str = "",
) -> Line:
    """The median of the rounds. `target`: the id of what it is to reach."""
    value = statistics.median(values) * scale
    return aimed(row, name, value, unit, target, spread=spread(values), note=note)


def aimed(
    row: str,
    name: str,
    value: float | None,
    unit: str,
    target: str = "",
    *,
    spread: float | None = None,
    note: str = "",
) -> Line:
    """A figure with what it is to reach, if that is anything."""
    aim = targets.target(target)
    return Line(
        row=row,
        name=name,
        id=target,
        value=value,
        unit=unit,
        most=aim.most,
        least=aim.least,
        spread=spread,
        note=note,
    )


def ends(times: list[float], share: float = 0.05) -> tuple[list[float], list[float]]:
    """How long the first and the last steps took, from when each of them began.

    The very first ten are left out: they pay for what is done once.
    """
    took = [after - before for before, after in pairwise(times)][10:]
    count = max(5, int(len(took) * share))
    return took[:count], took[-count:]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def stored(place: Path) -> int:
    """Bytes in that folder once the log of its database is folded into the file."""
    for path in place.glob("*.db"):
        conn = apsw.Connection(str(path))
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        conn.close()
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
