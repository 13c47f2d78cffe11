"""Moves a whole store: active runs, holds and history, with all ids and numbers unchanged (ADR 40).

The target is closed to others, and workers get no more runs of the source. When no worker has a run any more,
the source is closed for writes. Then rows are copied, compared by count and hash, and the target opens. After
a crash at any point the same call continues: both stores record how far the move is (D-36).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.errors import (
    CheckpointCorruptError,
    RunBusyError,
    StoreBusyError,
    StoreError,
    StoreMovedError,
)
from holdfast.runs.transfer.promote_checks import (
    is_empty,
    moves_elsewhere,
    no_such_move,
    open_both,
    require_room,
    require_whole,
)
from holdfast.store.copy import (
    RULES,
    CopyProgress,
    CopyRule,
    Movable,
    MoveMark,
    TableDigest,
    TableShape,
    Values,
    WorkerLeases,
)


class PromoteProgress(msgspec.Struct, frozen=True):
    """Progress: `done` of `total` rows; while it waits for workers, their names."""

    phase: str
    table: str = ""
    done: int = 0
    total: int = 0
    held: Sequence[WorkerLeases] = ()


ProgressCallback = Callable[[PromoteProgress], None]


class TableComparison(msgspec.Struct, frozen=True):
    """One table: rows and hash, in the source and the target."""

    table: str
    rows: int
    sha256: str
    arrived: int
    arrived_sha256: str

    @property
    def same(self) -> bool:
        return (self.rows, self.sha256) == (self.arrived, self.arrived_sha256)


class PromoteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a move. `already`: it was done before. `anew`: readers of the feed must start again.
    `outside`: number of blobs in the user's separate blob store, which both stores need."""

    source: str
    target: str
    tables: list[TableComparison] = []
    copied: int = 0
    seconds: float = 0.0
    already: bool = False
    anew: bool = False
    outside: int = 0


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a move would do."""

    source: str
    target: str
    tables: dict[str, int]
    held: list[WorkerLeases]
    state: str | None


_LOOK = 0.2  # seconds between two checks for workers with runs


async def promote(
    source: str,
    target: str,
    *,
    force: bool = False,
    wait: float = 600.0,
    on_progress: ProgressCallback | None = None,
) -> PromoteResult:
    """Move everything from one address to the other. An interrupted call can be repeated.

    It waits for workers of the source, at most `wait` seconds; `force` takes their runs under a new term
    instead. Raises InputError, StoreMovedError, StoreFillingError, RunBusyError (workers did not stop: the
    source is unchanged), CheckpointCorruptError (the copy differs from the source), StoreError."""
    async with open_both(source, target) as (old, new):
        move = _Move(old, new, on_progress or _ignore_progress)
        if not await move.agree(source):
            return PromoteResult(source=old.where, target=new.where, already=True)
        await move.stop(force=force, wait=wait)
        began = time.monotonic()
        await move.copy()
        seconds = time.monotonic() - began
        # Every row is compared before the target opens: until then the source can still be used again.
        compared = await move.compare()
        outside = await move.hand_over(target)
        return PromoteResult(
            source=old.where,
            target=new.where,
            tables=compared,
            copied=move.copied,
            seconds=seconds,
            anew=move.mark.anew,
            outside=outside,
        )


async def survey(source: str, target: str) -> Survey:
    """What would be moved. Neither store is changed, and a missing target is not created."""
    async with open_both(source, target) as (old, new):
        mark = await old.mark()
        if await new.exists():
            await require_room(old, new, mark)
        counts = {rule.table: await old.count(rule) for rule in RULES if not rule.checked}
        return Survey(
            source=old.where,
            target=new.where,
            tables=counts,
            held=await old.leases(),
            state=None if mark is None else mark.state,
        )


async def undo(source: str, target: str) -> None:
    """Undo an unfinished move: the target is emptied, the source works again.

    Raises InputError if there is nothing to undo, StoreMovedError if the target is already in use."""
    async with open_both(source, target) as (old, new):
        mark, there = await old.mark(), await new.mark() if await new.exists() else None
        if mark is not None and mark.peer != new.where:
            raise moves_elsewhere(old, mark)
        if there is not None:
            if there.state != "filling" or there.peer != old.where:
                raise no_such_move(old, new)
            await new.clear()
        elif mark is None:
            raise no_such_move(old, new)
        elif await new.exists() and not await is_empty(new):
            raise StoreMovedError(
                f"{old.where} was moved to {new.where}, which is complete and may be in use.",
                hint=f"Move it back into a new store instead: holdfast promote {new.where} ADDRESS.",
            )
        if mark is not None:
            await old.cancel_move()


class _Move:
    """One call. State that must survive it is in the two stores."""

    mark: MoveMark

    def __init__(self, old: Movable, new: Movable, on_progress: ProgressCallback) -> None:
        self._old = old
        self._new = new
        self._on_progress = on_progress
        self._there: dict[str, TableShape] = {}  # tables of the source
        self._here: dict[str, TableShape] = {}
        self._copied = 0
        self.copied = 0

    async def agree(self, source: str) -> bool:
        """Record the move in both stores. False: it is already done."""
        mark = await self._old.mark()
        if mark is None:
            await require_whole(source, self._old.where)
        await self._new.prepare()
        there = await require_room(self._old, self._new, mark)
        if mark is not None and there is None and mark.state == "moved":
            await self._require_arrived()
            return False
        await self._require_alike()
        begins = there is None
        if there is None:
            there = await self._begin(mark)
        self.mark = mark or replace(there, state="closing", peer=self._new.where, at=await self._old.now())
        if mark is None:
            await self._stop_claims(begins=begins)
        self.mark = replace(self.mark, anew=there.anew)
        return True

    async def _stop_claims(self, *, begins: bool) -> None:
        """If the source cannot be written, the target is restored; another move's target is not touched."""
        try:
            await self._old.stop_claims(self.mark)
        except StoreError:
            if begins:
                await self._new.clear()
            raise

    async def _require_arrived(self) -> None:
        if await is_empty(self._new) and not await is_empty(self._old):
            raise StoreMovedError(
                f"{self._old.where} was moved to {self._new.where}, which is empty now.",
                hint="Restore a backup there, or use the source again as it was then: --undo.",
            )

    async def _begin(self, mark: MoveMark | None) -> MoveMark:
        """The target first: if it cannot be written, the source must stay open."""
        token = secrets.token_hex(8) if mark is None else mark.token
        floor = await self._new.feed_floor()
        last = (await self._last_position()) if floor is not None else 0
        begun = MoveMark(
            state="filling",
            token=token,
            peer=self._old.where,
            at=await self._new.now(),
            anew=floor is not None and last >= floor,
        )
        await self._new.begin(begun)
        return begun

    async def _last_position(self) -> int:
        return (await self._old.counters())["feed"]

    async def _require_alike(self) -> None:
        """A table that differs, or has no rule, stops the move: nothing is left out silently."""
        old, new = await self._old.shapes(), await self._new.shapes()
        rules = {rule.table: rule for rule in RULES}
        alike = {t for t in rules if t in old and t in new and old[t].columns == new[t].columns}
        odd = {*old, *new, *rules} - alike
        if odd:
            raise StoreError(
                f"the tables of {self._old.where} and {self._new.where} cannot be matched: "
                f"{', '.join(sorted(odd))}.",
                hint="Update both to the schema of this version (`holdfast doctor` shows differences).",
            )
        self._there = {t: replace(shape, where=rules[t].where) for t, shape in old.items()}
        self._here = {t: replace(shape, where=rules[t].where) for t, shape in new.items()}

    async def stop(self, *, force: bool, wait: float) -> None:
        """Wait until no worker has a run of the source, then close it for writes."""
        if self.mark.state != "closing":
            return
        deadline = time.monotonic() + wait
        while held := await self._old.leases():
            if force:
                break
            # Leases and not registered workers: a worker that died counts until its lease has expired.
            if time.monotonic() > deadline:
                await self._give_up(held, wait)
            self._on_progress(PromoteProgress("waiting", held=held))
            await asyncio.sleep(_LOOK)
        await self._old.block_writes(fence=force)

    async def _give_up(self, held: list[WorkerLeases], wait: float) -> None:
        """Nothing was moved: the source works as before."""
        await self._new.clear()
        await self._old.cancel_move()
        who = ", ".join(f"{each.worker} ({each.runs})" for each in held)
        raise RunBusyError(
            f"workers still had runs of {self._old.where} after {wait:.0f} s: {who}. Nothing was moved.",
            hint="Stop them (SIGTERM), wait longer (--wait), or take over their runs (--force).",
        )

    async def copy(self) -> None:
        reached = await self._new.reached()
        totals = {rule.table: await self._old.count(rule) for rule in RULES}
        rules = [rule for rule in self._rules() if not rule.checked]
        total = sum(totals[rule.table] for rule in rules)
        self._copied = sum(each.rows for each in reached.values())
        for rule in rules:
            was = reached.get(rule.table, CopyProgress())
            if not was.done:
                await self._copy(rule, was, total)

    def _rules(self) -> list[CopyRule]:
        return [rule for rule in RULES if not (rule.placed and self.mark.anew)]

    async def _copy(self, rule: CopyRule, was: CopyProgress, total: int) -> None:
        """The next batch is read while one is written."""
        shape = self._there[rule.table]
        batch = await self._old.rows(shape, was.after)
        while not was.done:
            last = shape.key_of(batch[-1]) if batch else was.after
            now = CopyProgress(last, was.rows + len(batch), not batch)
            following, fits = await asyncio.gather(
                self._next(shape, now), self._new.put(shape, batch, was, now)
            )
            if not fits:
                raise StoreBusyError(
                    f"another process is filling {self._new.where} at the same time.",
                    hint="Run only one `promote`.",
                )
            self._copied += len(batch)
            self.copied += len(batch)
            self._on_progress(PromoteProgress("copying", rule.table, self._copied, total))
            was, batch = now, following

    async def _next(self, shape: TableShape, now: CopyProgress) -> list[Values]:
        return [] if now.done else await self._old.rows(shape, now.after)

    async def compare(self) -> list[TableComparison]:
        """Read and hash every row of both stores."""
        compared: list[TableComparison] = []
        rules = self._rules()
        for rule in rules:
            there, here = await asyncio.gather(
                self._tally(self._old, self._there[rule.table]),
                self._tally(self._new, self._here[rule.table]),
            )
            compared.append(TableComparison(rule.table, there.rows, there.digest, here.rows, here.digest))
            self._on_progress(PromoteProgress("comparing", rule.table, len(compared), len(rules)))
        wrong = [each.table for each in compared if not each.same]
        if wrong:
            raise CheckpointCorruptError(
                f"the copy in {self._new.where} differs from {self._old.where}: {', '.join(wrong)} "
                "are different. The target stays closed.",
                hint="Undo the move (--undo) and start again; check the disk, and for other writers.",
                tables=compared,
            )
        return compared

    async def _tally(self, half: Movable, shape: TableShape) -> TableDigest:
        tally = TableDigest(shape, anew=self.mark.anew)
        after: Values | None = None
        while batch := await half.rows(shape, after):
            tally.add(batch)
            after = shape.key_of(batch[-1])
        return tally

    async def hand_over(self, target: str) -> int:
        """The source first: both must never accept writes at the same time."""
        outside = await require_whole(target, self._new.where)
        counters = await self._old.counters()
        if self.mark.state != "moved":
            await self._old.settle()
        self._on_progress(PromoteProgress("opening"))
        # With the counters of the source: new rows must not get numbers that deleted ones had.
        await self._new.open_for_work(counters)
        return outside


def _ignore_progress(_step: PromoteProgress) -> None:
    return None
