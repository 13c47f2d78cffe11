"""Deciding a hold: what an answer must be, and the one compare-and-set that takes it (DESIGN 8)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import (
    AnswerInvalidError,
    HoldDecidedError,
    HoldNotFoundError,
    ValueTooLargeError,
)
from holdfast.holds.schema import problems_in
from holdfast.store.base import Store
from holdfast.store.readonly import demand_live
from holdfast.telemetry import crashpoint
from holdfast.types.event import EventRow
from holdfast.types.hold import Answer, HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.status import HoldStatus
from holdfast.types.wording import demand_text, told

MAX_TEXT = 200
MAX_ANSWER = 16 * 2**20
MAX_SHOWN = 10

_FORM = "Send data that fits the hold's schema."
_FORMS = {"in_doubt": 'Write {"update": {FIELD: VALUE}} for a node, {"value": VALUE} for a step of one.'}


async def decide(
    store: Store, hold: str, decision: str | None, *, data: Any, comment: str | None, by: str
) -> HoldRow:
    """Once, whoever else tries. Invalid: the hold stays pending, nothing is consumed.

    Raises HoldNotFoundError, AnswerInvalidError, HoldDecidedError (which names the winner),
    RunReadOnlyError for imported history.
    """
    row = await store.hold(HoldId(demand_text(hold, "a hold's id")))
    if row is None:
        raise HoldNotFoundError(
            f"there is no hold {hold!r} in this store.",
            hint="`holdfast runs --status pending_input` lists the runs that wait for an answer.",
            hold=hold,
        )
    _check_answer(row, decision, comment, by)
    if row.status is not HoldStatus.pending:
        raise _decided(row)
    resolution = {"decision": decision, "response_data": data, "comment": comment, "resolved_by": by}
    encoded = _fitting(row, _encoded(resolution))
    won = await _take(store, row, encoded, decision, by)
    if won is None:
        await _say_why_not(store, row)
        raise _decided(await store.hold(row.id) or row)
    crashpoint("after_answer")
    return won


def _fitting(row: HoldRow, encoded: bytes) -> bytes:
    """The answer as it is kept: checked against the hold's schema, or filled into its form."""
    if row.schema is None:
        return encoded
    # Forms are loaded where there is one: most programs only open holds, or have none with a form.
    from holdfast.holds.forms.answering import filled_in, form_of

    form = form_of(row)
    if form is not None:
        return _encoded(filled_in(row, form, msgspec.json.decode(encoded)))
    _check_data(row, encoded)
    return encoded


async def _take(store: Store, row: HoldRow, encoded: bytes, decision: str | None, by: str) -> HoldRow | None:
    now = store.now()
    said = msgspec.json.encode({"hold": row.id, "decision": decision, "by": by})
    answer = Answer(hold=row.id, resolution=encoded, resolved_by=by, at=now)
    return await store.answer(answer, event=EventRow(0, now, "hold.resolved", said))


async def _say_why_not(store: Store, row: HoldRow) -> None:
    run = await store.get_run(row.run)
    if run is not None:
        demand_live(run)


def _encoded(resolution: dict[str, Any]) -> bytes:
    try:
        encoded = msgspec.json.encode(resolution)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AnswerInvalidError(
            f"the data of an answer has to be JSON: {error}.", hint="Send text, numbers, lists and objects."
        ) from error
    if len(encoded) > MAX_ANSWER:
        raise ValueTooLargeError(
            f"an answer of {len(encoded):,} bytes is over the limit of {MAX_ANSWER:,}.",
            hint="Put the content elsewhere and answer with a reference to it.",
            size=len(encoded),
            limit=MAX_ANSWER,
        )
    return encoded


def _check_data(row: HoldRow, encoded: bytes) -> None:
    """As it would be read back: the caller's own types have become JSON. No data is null."""
    if row.schema is None:
        return
    problems = problems_in(msgspec.json.decode(encoded)["response_data"], msgspec.json.decode(row.schema))
    if problems:
        lines = "".join(f"\n  - {told(problem, 500)}" for problem in problems[:MAX_SHOWN])
        more = len(problems) - MAX_SHOWN
        rest = f"\n  and {more} more" if more > 0 else ""
        raise AnswerInvalidError(
            f"the data of this answer does not fit the hold:{lines}{rest}",
            hint=f"{_FORMS.get(row.type, _FORM)} Nothing was stored; the hold is still open.",
            hold=row.id,
            problems=problems,
        )


def _check_answer(row: HoldRow, decision: Any, comment: Any, by: Any) -> None:
    for name, value in (("decision", decision), ("comment", comment), ("resolved_by", by)):
        if value is not None and not isinstance(value, str):
            raise AnswerInvalidError(
                f"the {name} of an answer must be text, not {type(value).__name__}.",
                hint="Further content goes into data=.",
            )
    if row.options:
        ids = [option.id for option in row.options]
        if decision not in ids:
            raise AnswerInvalidError(
                f"{decision!r} is not one of the answers to this hold.",
                hint=f"Choose one of: {', '.join(ids)}.",
                options=ids,
            )
    elif not decision or not decision.strip():
        raise AnswerInvalidError("an answer must not be empty.", hint="An empty reply never approves.")
    elif row.type != "freeform" and len(decision) > MAX_TEXT:
        raise AnswerInvalidError(f"an answer has at most {MAX_TEXT} characters.")


def _decided(row: HoldRow) -> HoldDecidedError:
    said: dict[str, Any] = msgspec.json.decode(row.resolution) if row.resolution else {}
    who = f"{said.get('decision')!r} by {row.resolved_by}" if row.resolution else str(row.status)
    return HoldDecidedError(
        f"hold {row.id} is already decided: {who}.",
        hold=row.id,
        status=row.status,
        decision=said.get("decision"),
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
    )
