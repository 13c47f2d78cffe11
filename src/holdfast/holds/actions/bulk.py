"""The same decision on many holds: shown before it is made, with a result for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from holdfast.errors import AnswerInvalidError, HoldfastError, InputError, StoreError
from holdfast.holds.actions.change import change, load
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, consider, is_replay
from holdfast.holds.actions.submission import Submission, needs_input
from holdfast.holds.actions.undo_window import placed
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Actor

MAX_HOLDS: Final = 1000


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one hold, or its preview. `why`: the reason if it is left out; `code`: the error
    code."""

    hold: str
    done: bool
    code: str | None = None
    why: str | None = None
    row: HoldRow | None = None


class BulkResult(msgspec.Struct, frozen=True):
    preview: bool
    items: tuple[BulkItem, ...]

    @property
    def done(self) -> int:
        return sum(item.done for item in self.items)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of holds left out, by error code."""
        codes = [item.code for item in self.items if item.code is not None]
        return {code: codes.count(code) for code in dict.fromkeys(codes)}


async def bulk(
    ctx: HoldContext,
    actor: Actor,
    holds: Sequence[str],
    submission: Submission,
    *,
    preview: bool,
    undo: bool = False,
    versions: Mapping[str, int] | None = None,
) -> BulkResult:
    """Each hold is decided separately: one that cannot be decided does not stop the others. A preview writes
    nothing.

    `undo`: each is decided when its undo window ends, unless it is undone. `versions`: those that were
    shown; holds that changed since are left out. Raises InputError for too many."""
    if isinstance(holds, str):
        raise InputError("the holds are a list of ids, not one text.", hint=f"Write [{holds!r}].")
    if len(holds) > MAX_HOLDS:
        raise InputError(
            f"{len(holds):,} holds at once are more than the maximum of {MAX_HOLDS:,}.", hint="Send fewer."
        )
    seen = versions or {}
    how = _How(submission, preview, undo)
    each = [
        await _one(ctx, actor, hold, how, ResolveConditions(if_match=seen.get(hold)))
        # Each once: a repetition is accepted as a replay, and would count the same hold twice.
        for hold in dict.fromkeys(holds)
    ]
    return BulkResult(preview, tuple(each))


class _How(NamedTuple):
    submission: Submission
    preview: bool
    undo: bool


async def _one(ctx: HoldContext, actor: Actor, hold: str, how: _How, terms: ResolveConditions) -> BulkItem:
    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        if await is_replay(ctx, actor, row, how.submission, terms):
            return None
        _require_bulk(row)
        made = await consider(ctx, actor, row, now, how.submission, terms)
        return placed(row, actor, made) if how.undo else made

    try:
        if how.preview:
            row = await load(ctx, actor, hold)
            await decide(row, ctx.now())
        else:
            row = await change(ctx, actor, hold, "bulk", decide)
    except StoreError:
        # Raised and not listed: if the store is away, no further hold can be decided either.
        raise
    except HoldfastError as error:
        return BulkItem(hold=hold, done=False, code=error.code, why=error.message)
    return BulkItem(hold=hold, done=True, row=row)


def _require_bulk(row: HoldRow) -> None:
    """Raises AnswerInvalidError for a hold that must be decided by itself."""
    if not row.terms.bulk:
        raise AnswerInvalidError(f"hold {row.id} does not allow bulk decisions.", hold=row.id)
    if needs_input(row):
        raise AnswerInvalidError(f"hold {row.id} has a form to fill in.", hold=row.id)
