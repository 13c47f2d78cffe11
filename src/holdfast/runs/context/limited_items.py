"""Items of a map that start at a rate, or share a limit by a key: each waits before its work begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.model.idempotency_keys import item_key, render
from holdfast.model.position import NAP, Sub
from holdfast.model.program import ItemCall
from holdfast.model.user_code.boundary import call as call_code
from holdfast.runs.concurrency_limits.item_limits import SharedLimit
from holdfast.runs.context.combinators import Branches
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.types.concurrency_limits import ItemLimit, StartPace
from holdfast.types.status import Effect
from holdfast.types.text import clean_text, require_text

if TYPE_CHECKING:
    from holdfast.runs.context.driver_protocols import HandlerSession

START, _ENDED = "item start", "item end"
# The keys of the calls that are recorded for an item.
_START, _WAIT, _END = "item-start", "item-wait", "item-end"
_SHORT = 1_000_000  # microseconds for which an item keeps its place although it may not start yet
_entered: ContextVar[tuple[str, ...]] = ContextVar(
    "keys of limits in which this code has a place", default=()
)


class MapStarts:
    """The starts of the items of one map, in the process that has the run."""

    def __init__(
        self, limit: ItemLimit, items: Iterable[list[Sub]], now: int, shared: str | None = None
    ) -> None:
        """`items`: what is recorded of those that have asked before. `shared`: the key under which its items
        start at their rate, where they are in several processes."""
        self.limit = limit
        self.shared = shared
        self.pace = StartPace()
        for subs in items:
            self._note(subs, now)
        self._queues: dict[str, asyncio.Semaphore] = {}

    def _note(self, subs: list[Sub], now: int) -> None:
        asked = [sub.value for sub in subs if sub.name == START and sub.done and sub.error is None]
        for each in asked:
            self.pace.next_at = max(self.pace.next_at, each["at"] + self.limit.spacing)
            if not each["wait"]:
                # If nothing else is recorded, its process died before it began: it begins now.
                at = each["at"] if any(sub.name not in (START, NAP) for sub in subs) else now
                self.pace.last_at = max(self.pace.last_at or 0, at)

    def queue(self, key: str) -> asyncio.Semaphore:
        """Only so many items of a run ask the store for a place."""
        return self._queues.setdefault(key, asyncio.Semaphore(self.limit.concurrency or 1))

    async def leave(self, session: HandlerSession, prefix: str) -> None:
        """Places of items that were given up."""
        for key in self._queues:
            await SharedLimit(session.store, session.row.tenant, key).leave(session.run, prefix)


async def limited(
    script: Branches, starts: MapStarts, key: str | None, place: str, work: Callable[[], Awaitable[Any]]
) -> Any:
    """`key`: of the limit that the item shares. `place`: of the item, in its run."""
    most = starts.limit.concurrency if key is not None else None
    if key is None or most is None:
        await _until_start(script, starts, key, None)
        found = await work()
        await script.step(_ENDED, _nothing, effect=Effect.pure, key=_END)
        return found
    if key in _entered.get():
        raise InputError(
            f"node {script.node!r}: an item inside an item of a map has the same limit_key, "
            f"{clean_text(repr(key), 80)}: it would wait for a place that the outer one has.",
            hint="Give the inner map a limit_key of its own, or none.",
        )
    session, token = script.at.session, _entered.set((*_entered.get(), key))
    shared, queue = SharedLimit(session.store, session.row.tenant, key), starts.queue(key)
    mine = _Place(partial(shared.enter, session.run, place, most), partial(shared.leave, session.run, place))
    await _next_in(script, queue)
    try:
        await _until_start(script, starts, key, mine)
        try:
            found = await work()
        except Exception:
            await _free(script, mine.leave)
            raise
        await _free(script, mine.leave)
        return found
    finally:
        queue.release()
        _entered.reset(token)


class _Place:
    """Of an item, among those that are at work. `is_mine`: it was entered in this process."""

    def __init__(self, enter: Callable[[], Awaitable[None]], leave: Callable[[], Awaitable[None]]) -> None:
        self._enter, self._leave = enter, leave
        self.is_mine = False

    async def enter(self) -> None:
        await self._enter()
        self.is_mine = True

    async def leave(self) -> None:
        await self._leave()
        self.is_mine = False


async def _until_start(script: Branches, starts: MapStarts, key: str | None, place: _Place | None) -> None:
    again = 0
    while wait := await _start(script, starts, key, place, again):
        await script.sleep(wait / 1e6, key=f"{_WAIT}{again}")
        again += 1
    if place is not None and not place.is_mine and not _has_ended(script):
        # It started in a process that died, or its run was parked: another item may have its place by now.
        await place.enter()


def _has_ended(script: Branches) -> bool:
    known = script.numbers.recorded(script.numbers.next(_END), _ENDED)
    return known is not None and known.done


async def _next_in(script: Branches, queue: asyncio.Semaphore) -> None:
    """A branch that waits for another item of its run is not at work: the run may park."""
    if not queue.locked():
        await queue.acquire()
        return
    branch = script.numbers.here
    branch.waits += 1
    script.at.calls.step_ended()
    try:
        await queue.acquire()
    finally:
        branch.waits -= 1


async def _start(
    script: Branches, starts: MapStarts, key: str | None, place: _Place | None, again: int
) -> int:
    """The microseconds after which it has to ask again; 0: it starts, and has its place."""
    clock = script.at.session.clock

    async def ask() -> dict[str, int]:
        if place is not None:
            await place.enter()
        asked = bool(again)
        while True:
            now = clock.now()
            at = await _ask(script, starts, key, now, again=asked)
            if at <= now or place is None:
                break
            if at - now > _SHORT:
                # The run sleeps, and others may have the place.
                await place.leave()
                break
            await clock.sleep((at - now) / 1e6)
            asked = True
        return {"at": at, "wait": at - now}

    found = await script.step(START, ask, effect=Effect.read, key=f"{_START}{again or ''}")
    return int(found["wait"])


async def _ask(script: Branches, starts: MapStarts, key: str | None, now: int, *, again: bool) -> int:
    """As `StartPace.ask`."""
    session, spacing = script.at.session, starts.limit.spacing
    if not spacing:
        return now
    key = key or starts.shared
    if key is None:
        return starts.pace.ask(now, spacing, again=again)
    return await SharedLimit(session.store, session.row.tenant, key).ask(now, spacing, again=again)


async def _nothing() -> None:
    """Only the record matters: the item does not begin again."""


async def _free(script: Branches, leave: Callable[[], Awaitable[None]]) -> None:
    """Recorded: a script that is entered again does not free a place that is another's by now."""
    if not script.at.closed and script.at.doubt is None:
        await script.step(_ENDED, leave, effect=Effect.read, key=_END)


def shared_key(node: str, found: Any) -> str:
    if isinstance(found, str) and found:
        return require_text(found, f"node {node!r}: the limit_key of an item")
    raise InputError(
        f"node {node!r}: limit_key= gave {clean_text(repr(found), 80)} for an item.",
        hint="Return the name of the limit, a text that is not empty.",
    )


# ---------------------------------------------------------------------- where items are


async def run_item(script: Branches, call: ItemCall, args: tuple[Any, ...]) -> Any:
    """The item of a map of the graph. A function without a context is one step; one with a context is a
    script itself."""
    at, limit = script.at, call.limit
    pos, execution = at.session.pos, at.execution
    key = None if limit.key is None else shared_key(script.node, render(pos, execution, str(limit.key)))

    async def work() -> Any:
        if call.is_script:
            return await call_code(call.fn, *args)
        own = None if call.idempotency_key is None else item_key(pos, execution, call.idempotency_key)
        return await script.step(
            call.name, call.fn, *args, effect=call.effect, key="item", retry=call.retry,
            timeout=call.timeout, idempotency_key=own,
        )  # fmt: skip

    return await limited(script, starts_of_siblings(at, limit), key, place_of(at), work)


def starts_of_map(at: Attempt, limit: ItemLimit, path: str) -> MapStarts:
    """Of `ctx.map` with this path."""
    items: dict[str, list[Sub]] = {}
    for ordinal, sub in at.execution.subs.items():
        if ordinal.startswith(path) and ordinal != path:
            items.setdefault(ordinal.removeprefix(path).partition("/")[0], []).append(sub)
    return MapStarts(limit, items.values(), at.session.clock.now())


def starts_of_siblings(at: Attempt, limit: ItemLimit) -> MapStarts:
    """Of the map whose item this node is; shared by all of its items."""
    session = at.session
    owner = session.pos.scopes[at.execution.scope].owner
    assert owner is not None
    visit = session.pos.execs[owner].visit
    found = session.item_starts.get((*owner, visit))
    if found is None:
        items = [
            list(execution.subs.values())
            for place, execution in session.pos.execs.items()
            if session.pos.scopes[place[0]].owner == owner
        ]
        now = session.clock.now()
        shared = f"run {session.run} {owner[0]}/{owner[1]}/{visit}" if session.is_shared else None
        found = MapStarts(limit, items, now, shared)
        if found.pace.next_at == 0 and session.pos.scopes[at.execution.scope].index > 0:
            # Nothing is known of the items before it: they have ended, perhaps just now.
            found.pace.last_at = now
        session.item_starts[(*owner, visit)] = found
    return found


def place_of(at: Attempt, path: str = "") -> str:
    """Of an item, in its run."""
    return f"{at.execution.scope}/{at.node.id}/{at.execution.visit}/{path}".rstrip("/")
