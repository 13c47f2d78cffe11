"""A part of a timeline: a page of its visits, with what is inside maps and sub-flows folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.checkpoint.visit import Visit
from holdfast.runs.history.visits import FAILED


class FoldedVisits(msgspec.Struct, kw_only=True):
    """Visits inside a visit. `within`: names them for another page. `items`: of a map, or branches."""

    within: str
    visits: int = 0
    items: int = 0
    done: int = 0
    failed: int = 0
    open: int = 0


class TimelinePage(msgspec.Struct, frozen=True):
    """`folded`: by label and number of the visit around them. `before`: the number of earlier visits."""

    visits: list[Visit]
    folded: dict[tuple[str, int], FoldedVisits]
    before: int


def changed_since(visits: Iterable[Visit], run: str, record: int) -> list[Visit]:
    """Those that a reader of the run at the record does not know as they are: not ended, with a later record,
    or stopped, which needs no record. What a fork took from its source does not change."""
    return [
        visit
        for visit in visits
        if visit.ended_at is None
        or visit.state == "stopped"
        or (visit.seq > record and visit.run in ("", run))
    ]


def page_of(
    visits: Sequence[Visit], *, limit: int, end: int | None = None, fold: bool = False, within: str = ""
) -> TimelinePage:
    """The latest `limit` visits before the place `end`. `fold`: only those directly in the flow, or in the
    visit `within`; the others are counted."""
    folded: dict[tuple[str, int], FoldedVisits] = {}
    shown: list[Visit] = list(visits)
    if fold or within:
        shown.clear()
        seen: dict[str, set[str]] = {}
        for visit in visits:
            key = _key(visit.scope, within)
            if key is None:
                continue
            if key == "" or not fold:
                shown.append(visit)
            else:
                _count(folded, seen, key, visit)
    last = len(shown) if end is None else max(0, min(end, len(shown)))
    first = max(0, last - limit)
    return TimelinePage(shown[first:last], folded, first)


def _key(scope: str, within: str) -> str | None:
    """Of the visit around a scope, as seen from `within`: `pay.1` for `pay.1[3]/`. Empty: directly inside;
    None: elsewhere."""
    head = ""
    if within:
        if not scope.startswith(f"{within}["):
            return None
        item, _, rest = scope[len(within) :].partition("/")
        head, scope = f"{within}{item}/", rest
    if not scope:
        return ""
    return head + scope.partition("/")[0].rpartition("[")[0]


def _count(
    folded: dict[tuple[str, int], FoldedVisits], seen: dict[str, set[str]], key: str, visit: Visit
) -> None:
    label, _, number = key.rpartition(".")
    found = folded.setdefault((label, int(number)), FoldedVisits(within=key))
    item = visit.scope[len(key) :].partition("/")[0]
    found.visits += 1
    found.done += visit.state == "done"
    found.failed += visit.state in FAILED
    found.open += visit.ended_at is None
    items = seen.setdefault(key, set())
    items.add(item)
    found.items = len(items)
