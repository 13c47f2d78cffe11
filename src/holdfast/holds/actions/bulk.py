"""The same decision on many holds: shown before it is made, with a result for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holdfast.errors import AnswerInvalidError, HoldfastError, InputError, StoreError
from holdfast.holds.actions.answers import Submission, needs_input
from holdfast.holds.actions.change import change, load
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.resolve import ResolveConditions, consider, is_replay
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Actor

MAX_HOLDS: Final = 1000


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one, or would. `why`: in words, where it is left out; `code`: of that error."""

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
        """How many for which reason, by code."""
        codes = [item.code for item in self.items if item.code is not None]
        return {code: codes.count(code) for code in dict.fromkeys(codes)}


async def bulk(
    office: HoldContext,
    actor: Actor,
    holds: Sequence[str],
    said: Submission,
    *,
    preview: bool,
    versions: Mapping[str, int] | None = None,
) -> BulkResult:
    """Each by itself: one that cannot be decided so stops none of the others. A preview writes nothing.

    `versions`: those that were shown; what has changed since is left out. Raises InputError for too many."""
    if isinstance(holds, str):
        raise InputError("the holds are a list of ids, not one text.", hint=f"Write [{holds!r}].")
    if len(holds) > MAX_HOLDS:
        raise InputError(f"{len(holds):,} holds at once are more than {MAX_HOLDS:,}.", hint="Take fewer.")
    seen = versions or {}
    each = [
        await _one(office, actor, hold, said, ResolveConditions(if_match=seen.get(hold)), preview)
        for hold in dict.fromkeys(holds)
    ]
    return BulkResult(preview, tuple(each))


async def _one(
    office: HoldContext, actor: Actor, hold: str, said: Submission, terms: ResolveConditions, preview: bool
) -> BulkItem:
    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        if await is_replay(office, actor, row, said, terms):
            return None
        _require_bulk(row)
        return await consider(office, actor, row, now, said, terms)

    try:
        if preview:
            row = await load(office, actor, hold)
            await decide(row, office.now())
        else:
            row = await change(office, actor, hold, "bulk", decide)
    except StoreError:
        raise
    except HoldfastError as error:
        return BulkItem(hold=hold, done=False, code=error.code, why=error.message)
    return BulkItem(hold=hold, done=True, row=row)


def _require_bulk(row: HoldRow) -> None:
    """Raises AnswerInvalidError for what wants to be looked at by itself."""
    if not row.terms.bulk:
        raise AnswerInvalidError(f"hold {row.id} is not decided together with others.", hold=row.id)
    if needs_input(row):
        raise AnswerInvalidError(f"hold {row.id} has something to fill in.", hold=row.id)
