"""Which answers mean yes, and which mean no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.types.hold import Option

YES: Final = ("approve", "approved", "yes", "accept", "accepted", "allow", "confirm", "ok")
NO: Final = ("reject", "rejected", "no", "decline", "deny", "refuse", "abort")


def approves(decision: str, options: Sequence[Option] | None = None) -> bool:
    """Whether this answer approves. Decided by its word; if no option has a word for yes, the option that is
    shown as primary counts, so that an unusual name does not bypass the guardrails on approvals."""
    word = decision.casefold()
    if word in YES or word in NO:
        return word in YES
    if any(option.id.casefold() in YES for option in options or ()):
        return False
    return any(option.id == decision and option.variant == "primary" for option in options or ())


def refuses(decision: str) -> bool:
    """Whether this answer means no, by its word alone: an option with the variant `danger` may as well mean
    "delete" as "decline"."""
    return decision.casefold() in NO


def refusing_answer(options: Sequence[Option] | None) -> str | None:
    """The answer that means no, if one is offered. Without options any text is an answer."""
    if not options:
        return "reject"
    return next((option.id for option in options if refuses(option.id)), None)


def approving_answer(options: Sequence[Option] | None) -> str | None:
    """The answer that means yes, if one is offered."""
    if not options:
        return "approve"
    return next((option.id for option in options if approves(option.id, options)), None)
