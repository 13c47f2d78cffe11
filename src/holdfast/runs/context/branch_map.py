"""`ctx.map`: a branch of a script for each item."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypedDict, cast

from holdfast.errors import InputError, MapFailedError
from holdfast.model.branch_ordinals import segment
from holdfast.model.failure_tolerance import Tolerance, read_tolerance
from holdfast.runs.context.combinators import (
    Branches,
    Combinator,
    GivenBranch,
    Work,
    decided_branch,
    error_of,
    in_order,
    run_branches,
)
from holdfast.runs.context.limited_items import MapStarts, limited, place_of, shared_key, starts_of_map
from holdfast.types.concurrency_limits import ItemLimit, item_limit
from holdfast.types.text import clean_text


class MapOptions(TypedDict, total=False):
    """What `ctx.map` takes besides the function and its items."""

    concurrency: int | None
    rate: str | None
    limit_key: str | Callable[[Any], str] | None
    tolerated_failures: int | str | None
    min_successes: int | None
    item_key: Callable[[Any], str] | None
    key: str | None


def require_options(node: str, given: Iterable[str]) -> None:
    """Raises InputError for those of a join, or of another combinator."""
    known = list(MapOptions.__annotations__)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"ctx.map in node {node!r} has no option {unknown!r}. It has {', '.join(known)}.",
            hint="It waits for all items: tolerated_failures= or min_successes= say how many may fail, and "
            "ctx.gather(ctx.map(...), timeout=...) limits its time.",
        )


async def map_items(
    script: Branches,
    fn: Callable[..., Any],
    items: Iterable[Any],
    *,
    concurrency: int | None = None,
    rate: str | None = None,
    limit_key: str | Callable[[Any], str] | None = None,
    tolerated_failures: int | str | None = None,
    min_successes: int | None = None,
    item_key: Callable[[Any], str] | None = None,
    key: str | None = None,
) -> list[Any]:
    given = _listed(script, fn, items)
    works, names = _item_works(script, fn, given, item_key)
    limit = _concurrency(script, concurrency)
    starts_at = item_limit(rate, concurrency, limit_key)
    if callable(limit_key):
        limit = 0
    tolerance = _tolerance(script, tolerated_failures, min_successes)
    call = Combinator(script, "map", key)
    if call.error is not None and call.error.code == MapFailedError.code:
        await call.cancel_children()
        raise MapFailedError(call.error.message)
    if tolerance.is_short(len(given)):
        raise MapFailedError(f"ctx.map in node {script.node!r}: {tolerance.text(0, len(given))}.")
    starts = None if starts_at is None else _limit_works(call, starts_at, given, works, names)
    failed: list[str] = []

    def decides(index: int, error: BaseException | None) -> bool:
        if error is None:
            return False
        failed.append(f"item {index}: {clean_text(f'{type(error).__name__}: {error}', 200)}")
        return tolerance.is_exceeded(len(failed), len(given))

    def to_error(error: BaseException) -> BaseException:
        if not tolerance.given:
            return error
        why = tolerance.text(len(failed), len(given))
        return MapFailedError(f"ctx.map in node {script.node!r}: {why}. The first was {failed[0]}")

    outcomes = await run_branches(
        call, works, decides, None, None, names=names, limit=limit, to_error=to_error
    )
    over = decided_branch(call, names)
    if over is not None:
        if starts is not None:
            await starts.leave(script.at.session, place_of(script.at, call.path))
        found = error_of(call, outcomes[over])
        raise to_error(found) if failed else found
    return [outcome.value if outcome.error is None else outcome.error for outcome in in_order(outcomes)]


def _listed(script: Branches, fn: Any, items: Any) -> list[Any]:
    if callable(fn) and isinstance(items, Iterable):
        return list(cast("Iterable[Any]", items))
    raise InputError(
        f"ctx.map in node {script.node!r} was given {clean_text(repr(fn), 100)} and "
        f"{clean_text(repr(items), 100)}.",
        hint="Give the function first, then the items: ctx.map(fetch, urls).",
    )


def _item_works(
    script: Branches, fn: Callable[..., Any], items: Sequence[Any], item_key: Callable[[Any], str] | None
) -> tuple[list[Work], list[str]]:
    keys = [str(index) if item_key is None else str(item_key(item)) for index, item in enumerate(items)]
    twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
    if twice is not None:
        raise InputError(
            f"ctx.map in node {script.node!r}: two items have the key {clean_text(repr(twice), 100)}.",
            hint="item_key= gives each item a key of its own.",
        )
    try:
        takes = set(inspect.signature(fn).parameters)
    except ValueError:  # a built-in function
        takes = set[str]()
    works: list[Work] = []
    for index, item in enumerate(items):
        own = {"index": index, "key": keys[index]}
        works.append(GivenBranch(partial(fn, item, **{name: own[name] for name in own if name in takes})))
    return works, [segment(index, None if item_key is None else keys[index]) for index in range(len(items))]


def _limit_works(
    call: Combinator, limit: ItemLimit, items: Sequence[Any], works: list[Work], names: Sequence[str]
) -> MapStarts:
    """Each begins by waiting until it may start."""
    script = call.script
    starts = starts_of_map(script.at, limit, call.path)
    for index, work in enumerate(works):
        key = limit.key(items[index]) if callable(limit.key) else limit.key
        key = None if limit.key is None else shared_key(script.node, key)
        place = place_of(script.at, f"{call.path}{names[index]}")
        works[index] = partial(limited, script, starts, key, place, work)
    return starts


def _tolerance(script: Branches, failures: Any, successes: Any) -> Tolerance:
    def wrong(what: str, fix: str) -> None:
        raise InputError(f"ctx.map in node {script.node!r}: {what}.", hint=f"{fix[0].upper()}{fix[1:]}.")

    return read_tolerance(failures, successes, wrong)


def _concurrency(script: Branches, given: int | None) -> int:
    if given is None:
        return 0
    if type(given) is not int or given < 1:
        raise InputError(
            f"concurrency={clean_text(repr(given), 40)} of ctx.map in node {script.node!r} is no number of "
            "items.",
            hint="Give 1 or more, or leave it out.",
        )
    return given
