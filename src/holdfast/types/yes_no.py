"""Which answers say yes, and which say no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.types.hold import Option

YES: Final = ("approve", "approved", "yes", "accept", "accepted", "allow", "confirm", "ok")
NO: Final = ("reject", "rejected", "no", "decline", "deny", "refuse", "abort")


def approves(decision: str, options: Sequence[Option] | None = None) -> bool:
    """Whether this answer lets something happen. By its word; where no option has a word for yes, the one
    that is shown as primary counts, so that no odd name slips past what watches over approvals."""
    word = decision.casefold()
    if word in YES or word in NO:
        return word in YES
    if any(option.id.casefold() in YES for option in options or ()):
        return False
    return any(option.id == decision and option.variant == "primary" for option in options or ())


def refuses(decision: str) -> bool:
    """Whether this answer says no, by its word alone: a button that is shown as dangerous deletes as often as
    it declines."""
    return decision.casefold() in NO


def refusing_answer(options: Sequence[Option] | None) -> str | None:
    """The answer that says no, where one is offered. Without options any text is one."""
    if not options:
        return "reject"
    return next((option.id for option in options if refuses(option.id)), None)


def approving_answer(options: Sequence[Option] | None) -> str | None:
    """The answer that says yes, where one is offered."""
    if not options:
        return "approve"
    return next((option.id for option in options if approves(option.id, options)), None)
