"""From a digit to a decision: armed by the first key, made by Enter, with what is filled in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.cli.inbox.form_fields import (
    DATA,
    FILE,
    Field,
    field_named,
    field_problem,
    hint_of,
    label_of,
    next_field,
    text_of,
    with_value,
)
from holdfast.cli.inbox.state import Act, Filling, InboxState, Prompt, Step, with_message
from holdfast.errors import FormInvalidError
from holdfast.holds.actions.submission import Submission, needs_input
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

_replace = msgspec.structs.replace
MOVED = "Another hold is shown now. Read it and choose again."
FREE = ""
"""What is armed where the answer is text: there is no option to name."""


def arm(state: InboxState, digit: int) -> InboxState:
    """Nothing is decided yet: the next Enter does that, any other key does not."""
    row = state.current
    if row is None:
        return state
    if row.status is not HoldStatus.pending:
        return with_message(state, "This is decided already.", alert=True)
    if not row.options:
        return (
            _replace(state, armed=FREE, armed_on=row.id)
            if digit == 1
            else with_message(state, "Press 1 to answer in words.")
        )
    if digit > len(row.options):
        return with_message(state, f"There are {len(row.options)} decisions here.", alert=True)
    option = row.options[digit - 1]
    if state.selected and not state.open:
        asked = f"{option.text}: all {len(state.selected)} selected? Enter shows what would happen."
        return with_message(_replace(state, armed=option.id, armed_on=row.id), asked)
    verb = "continues" if row.schema is not None or option.requires_comment is True else "decides"
    return with_message(
        _replace(state, armed=option.id, armed_on=row.id),
        f"{option.text}? Enter {verb}, any other key cancels.",
    )


def begin(state: InboxState) -> Step:
    """Enter, with something armed."""
    row, decision = state.current, state.armed
    state = _replace(state, armed=None, message="", alert=False)
    if row is None or decision is None:
        return state, None
    if row.id != state.armed_on:
        return with_message(state, MOVED, alert=True), None
    if state.selected and not state.open and decision != FREE:
        holds = tuple(sorted(state.selected))
        return state, Act(do="bulk", holds=holds, decision=decision)
    if state.sheet is None or state.sheet.row.id != row.id:
        return with_message(state, MOVED, alert=True), None
    # From here on it is the open one: what others do moves the list, and not what is being filled in.
    state, draft = _replace(state, open=True), _draft(state, row, decision)
    if decision == FREE:
        prompt = Prompt(kind="answer", label="Your answer", text=draft.decision)
        return _replace(state, filling=draft, prompt=prompt), None
    return ask_next(_replace(state, filling=draft), after=None)


def _draft(state: InboxState, row: HoldRow, decision: str) -> Filling:
    """What was filled in before, where it is kept."""
    kept = state.sheet.draft if state.sheet is not None and state.sheet.row.id == row.id else None
    found: dict[str, Any] = kept or {}
    data = found.get("response_data")
    if field_named(row, DATA) is not None:
        values: dict[str, Any] = {} if data is None else {DATA: data}
    else:
        known = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        values = {name: value for name, value in known.items() if field_named(row, name) is not None}
    word = str(found.get("decision") or "") if decision == FREE else decision
    return Filling(hold=row.id, decision=word, values=values, comment=found.get("comment"))


def ask_next(state: InboxState, after: str | None) -> Step:
    """The next field, then the comment where one is needed, then the decision itself."""
    row, filling = state.current, state.filling
    if row is None or filling is None:
        return state, None
    field = next_field(row, filling.decision, filling.values, after) if _has_fields(row) else None
    if field is not None:
        return _ask(state, filling, field), None
    if _needs_comment(row, filling.decision):
        label = f"Why {filling.decision}? (required)"
        return _replace(state, prompt=Prompt(kind="why", label=label, text=filling.comment or "")), None
    return decide(state, filling)


def _has_fields(row: HoldRow) -> bool:
    return row.schema is not None and (field_named(row, DATA) is None or needs_input(row))


def _ask(state: InboxState, filling: Filling, field: Field) -> InboxState:
    prompt = Prompt(
        kind="field", label=label_of(field), hint=hint_of(field), text=text_of(field, filling.values)
    )
    return _replace(state, filling=_replace(filling, field=field["field"]), prompt=prompt)


def file_attached(state: InboxState, field: str, reference: Mapping[str, Any]) -> Step:
    """A file is kept: on to what is asked next."""
    if state.filling is None:
        return state, None
    values = {**state.filling.values, field: dict(reference)}
    filled = _replace(state, filling=_replace(state.filling, values=values), prompt=None)
    return ask_next(filled, after=field)


def ask_field(state: InboxState, error: FormInvalidError) -> InboxState:
    """The first field that was refused, again, with why."""
    row, filling = state.current, state.filling
    wrong: Any = error.facts.get("errors") or ()
    for each in wrong:
        field = None if row is None else field_named(row, each["field"])
        if field is not None and filling is not None:
            asked = _ask(state, filling, field)
            text = f"{each['field']}: {each['message']}"
            return _replace(
                asked, prompt=None if asked.prompt is None else _replace(asked.prompt, error=text)
            )
    return with_message(_replace(state, prompt=None, filling=None), error.message, alert=True)


def _needs_comment(row: HoldRow, decision: str) -> bool:
    return any(each.id == decision and each.requires_comment is True for each in row.options or ())


def decide(state: InboxState, filling: Filling) -> Step:
    state = _replace(state, prompt=None)
    return state, _act("decide", filling)


def save_draft(filling: Filling) -> Act:
    """What is filled in stays as a draft, whatever becomes of the hold."""
    return _act("draft", filling)


def draft_submission(filling: Filling) -> Submission:
    return Submission(
        decision=filling.decision or None, response_data=_data(filling), comment=filling.comment
    )


def _act(do: str, filling: Filling) -> Act:
    data, comment = _data(filling), filling.comment
    return Act(do=do, holds=(filling.hold,), decision=filling.decision, data=data, comment=comment)


def _data(filling: Filling) -> Any:
    return filling.values.get(DATA) if set(filling.values) == {DATA} else filling.values or None


def typed_so_far(state: InboxState) -> Filling | None:
    """The decision that is being made, with the line that is not entered yet."""
    filling, prompt, row = state.filling, state.prompt, state.current
    if filling is None or prompt is None or row is None:
        return filling
    if prompt.kind == "why":
        return _replace(filling, comment=prompt.text.strip() or None)
    if prompt.kind == "answer":
        return _replace(filling, decision=prompt.text.strip())
    field = field_named(row, filling.field)
    return (
        filling if field is None else _replace(filling, values=with_value(filling.values, field, prompt.text))
    )


# ---------------------------------------------------------------------- what is typed


def submit_line(state: InboxState, prompt: Prompt) -> Step:
    """Enter in a line that belongs to a decision."""
    row, filling, text = state.current, state.filling, prompt.text.strip()
    if row is None or filling is None or row.id != filling.hold:
        return with_message(_replace(state, prompt=None, filling=None), MOVED, alert=True), None
    if prompt.kind == "field":
        return _field(state, row, filling, prompt)
    if not text:
        return _replace(state, prompt=_replace(prompt, error="It must not be empty.")), None
    if prompt.kind == "why":
        filling = _replace(filling, comment=text)
        return decide(_replace(state, filling=filling), filling)
    filling = _replace(filling, decision=text)
    return ask_next(_replace(state, filling=filling, prompt=None), after=None)


def _field(state: InboxState, row: HoldRow, filling: Filling, prompt: Prompt) -> Step:
    field = field_named(row, filling.field)
    if field is None:
        return ask_next(_replace(state, prompt=None), after=filling.field)
    if field.get("kind") == FILE and prompt.text.strip():
        act = Act(do="attach", holds=(row.id,), text=prompt.text.strip(), field=field["field"])
        return state, act
    values = with_value(filling.values, field, prompt.text)
    wrong = field_problem(row, filling.decision, values, field["field"])
    if wrong:
        return _replace(state, prompt=_replace(prompt, error=f"{field['field']}: {wrong}")), None
    filling = _replace(filling, values=values)
    asked, act = ask_next(_replace(state, filling=filling, prompt=None), after=field["field"])
    return asked, act or save_draft(filling)
