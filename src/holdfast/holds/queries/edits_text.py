"""What a person changed of a proposal, in words: `amount 900.00 (proposed 1,840.00)`."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from holdfast.holds.forms.validate_answer import form_of
from holdfast.holds.queries.decided_values import DecidedValue, decided_values
from holdfast.types.hold import HoldRow

MOST: Final = 3
LONGEST: Final = 60
_NUMBERS: Final = frozenset({"currency", "number", "integer", "percent"})
_SECRETS: Final = frozenset({"secret", "secret-reference"})


def edits_of(row: HoldRow) -> str:
    """At most three of them, then how many more. Empty if the proposal was confirmed, or there was none."""
    form = form_of(row)
    kinds = {each.get("field"): each.get("kind", "text") for each in (form or {}).get("sections", ())}
    edited = [each for each in decided_values(row) if each.edited and kinds.get(each.field) not in _SECRETS]
    shown = [_edit(each, str(kinds.get(each.field, ""))) for each in edited[:MOST]]
    more = len(edited) - len(shown)
    if more:
        shown.append(f"{more} more change{'s' if more > 1 else ''}")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _edit(each: DecidedValue, kind: str) -> str:
    value, proposed = _text(each.value, kind), _text(each.proposed, kind)
    name = _name(each.label)
    if value is None or proposed is None:
        return f"another value of {name}"
    return f"{name} {value} (proposed {proposed})"


def _name(label: str) -> str:
    """In the middle of a sentence: `Amount` is amount, `VAT id` stays."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _text(value: Any, kind: str) -> str | None:
    """None: too much for a sentence."""
    if isinstance(value, dict):
        money = cast("dict[str, Any]", value)
        amount = _text(money.get("amount"), "currency") if money.keys() == {"amount", "currency"} else None
        return None if amount is None else f"{amount} {money['currency']}"
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return None
    text = " ".join(str(value).split())
    if kind in _NUMBERS or isinstance(value, int | float):
        text = _grouped(text)
    return text if len(text) <= LONGEST else None


def _grouped(text: str) -> str:
    """`1840.00` is 1,840.00: no digit is lost."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return f"{number:,f}" if number.is_finite() else text
