"""The result of an exploration: as text, as JSON, and as an assertion."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.torture.boundaries import Point
from holdfast.torture.compare import TrialDifference


class PointVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One boundary; `again`: where the process that recovered from that was killed too. `doubts`: how often a
    person was asked whether an effect happened."""

    point: Point
    reached: bool
    status: str
    doubts: int
    repeated_under_key: int
    differences: list[TrialDifference]
    folder: str = ""
    again: Point | None = None

    @property
    def safe(self) -> bool:
        return not self.differences

    @property
    def order(self) -> tuple[int, int, int]:
        """Trials with one kill come before those with two, both in the order of the run."""
        return (0, self.point.index, 0) if self.again is None else (1, self.point.index, self.again.index)

    @property
    def description(self) -> str:
        where = f"{self.point}, {self.point.description}"
        return where if self.again is None else f"{where}, and then {self.again}, {self.again.description}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`points`: how many boundaries the run has; `verdicts`: those that were tried, in their order."""

    flow: str
    status: str
    error: str | None
    waits: list[str]
    points: int
    verdicts: list[PointVerdict]
    unsteady: list[str]
    suspects: list[str]
    seconds: float
    folder: str = ""

    @property
    def unsafe(self) -> list[PointVerdict]:
        return [verdict for verdict in self.verdicts if not verdict.safe]

    @property
    def safe(self) -> bool:
        return not self.unsafe

    @property
    def smallest(self) -> PointVerdict | None:
        """The first boundary at which a crash changes the result."""
        return next(iter(self.unsafe), None)

    @property
    def missed(self) -> int:
        return sum(1 for verdict in self.verdicts if not verdict.reached)

    @property
    def failed(self) -> bool:
        """The undisturbed run fails, so that little is proven."""
        return self.status == "failed"

    def assert_safe(self, *, may_fail: bool = False) -> None:
        """Raises AssertionError that shows the smallest point and what differs there.

        `may_fail`: accept a run that always fails in the same way.
        """
        if not self.safe or (self.failed and not may_fail):
            raise AssertionError(self.story())

    def story(self) -> str:
        found = self.smallest
        if found is None and self.failed:
            return f"Flow {self.flow!r} fails even without a crash: {self.error}"
        if found is None:
            once = sum(1 for verdict in self.verdicts if verdict.again is None)
            twice = len(self.verdicts) - once
            more = f", and {twice} times again during recovery" if twice else ""
            tried = f"{once} of {self.points} boundaries{more}"
            return f"Flow {self.flow!r} is safe: killed at {tried}, it ended the same way each time."
        more = f"\n  and at {len(self.unsafe) - 1} further boundaries" if len(self.unsafe) > 1 else ""
        lines = "".join(f"\n  - {difference.text}" for difference in found.differences)
        return (
            f"Flow {self.flow!r} is not safe. The first unsafe boundary is {found.description}. "
            f"Killed there and resumed:{lines}{more}"
        )

    def as_json(self) -> dict[str, Any]:
        result: dict[str, Any] = msgspec.to_builtins(self)
        for verdict, shown in zip(self.verdicts, result["verdicts"], strict=True):
            for name, point in (("point", verdict.point), ("again", verdict.again)):
                if point is not None:
                    shown[name] |= {"id": str(point), "meaning": point.meaning}
            shown["safe"] = verdict.safe
        smallest = self.smallest
        return {
            "safe": self.safe,
            "smallest": None if smallest is None else result["verdicts"][self.verdicts.index(smallest)],
            **result,
        }
