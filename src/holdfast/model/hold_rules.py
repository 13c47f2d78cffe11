"""What a hold's declaration means: what its expiry does, which option is its default, what was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from holdfast.model.template import json_bytes
from holdfast.types.hold import Option
from holdfast.types.terms import HoldTerms
from holdfast.types.text import clean_text

MAX_ASSIGNEE: Final = 500
BRANCH: Final = "branch:"
_HIDDEN_FROM_FLOW: Final = frozenset(
    {"members", "auth_method", "channel", "authority", "on_behalf_of", "override_reason"}
)
EXCLUDABLE: Final = ("initiator", "earlier_approvers", "last_editor")


class Expiry(NamedTuple):
    """What the row says: an action of its own, or none: then it expires, and the run knows what follows."""

    action: str | None
    target: str | None = None


def expiry_of(on_timeout: str | None, terms: HoldTerms) -> Expiry:
    """A ladder is climbed from its first rung on; what `on_timeout` names besides is its end."""
    if terms.ladder:
        return Expiry("escalate", terms.ladder[0].to)
    action, _, target = (on_timeout or "").partition(":")
    if action == "escalate":
        return Expiry("escalate", target)
    if action in ("default", "default_option"):
        return Expiry("default_option")
    return Expiry("cancel") if action == "cancel" else Expiry(None)


def default_of(options: Sequence[Option] | None, terms: HoldTerms) -> str:
    """What nobody's decision comes to: the option that is flagged, else the one that is named (EX-5)."""
    flagged = next((option.id for option in options or () if option.default is True), None)
    return flagged or terms.default_option or "default"


def decision_of(resolution: Mapping[str, Any]) -> Any:
    """What a flow sees as the decision: of one that nobody made, the option that it comes to (EX-5)."""
    found = resolution.get("effective_decision")
    return resolution.get("decision") if found is None else found


def decision_for_flow(resolution: Mapping[str, Any]) -> dict[str, Any]:
    """What a flow is told of a decision (RM-2). By what right and over which way somebody decided, and what
    they belonged to, is kept with the hold and goes into no run's state."""
    told = {name: value for name, value in resolution.items() if name not in _HIDDEN_FROM_FLOW}
    if told.get("votes"):
        told["votes"] = [
            {name: value for name, value in vote.items() if name not in _HIDDEN_FROM_FLOW}
            for vote in told["votes"]
        ]
    return told


def read_option(given: Any) -> Option:
    """A bare text is both id and label. Raises ValueError that says what is wrong with it."""
    if isinstance(given, Option):
        return given
    if isinstance(given, str):
        return Option(given, given)
    said = cast("Mapping[str, Any]", given)
    wrong = f"{clean_text(repr(said), 200)} is not an option"
    if not isinstance(given, Mapping) or "id" not in said:
        raise ValueError(wrong)
    unknown = [name for name in said if name not in Option.__struct_fields__]
    if unknown:
        raise ValueError(f"{wrong}: there is no {unknown[0]!r}")
    for flag in ("default", "requires_comment"):
        if not isinstance(said.get(flag, False), bool):
            # What is only nearly true would be no demand at all.
            raise ValueError(f"{flag} of option {said['id']!r} is not True or False")
    return Option(**{"label": said["id"], **said})


def assignee_fault(text: str) -> str | None:
    """Why nobody can be meant by this text."""
    if len(text) > MAX_ASSIGNEE:
        return f"it has {len(text):,} characters, and at most {MAX_ASSIGNEE} are read"
    hidden = next((letter for letter in text.strip() if not letter.isprintable()), None)
    return None if hidden is None else f"it holds the character {hidden!a}, which cannot be seen"


def exclusion_fault(text: str) -> str | None:
    """Why this excludes nobody. A slip in one of our words must not pass for somebody's name."""
    if text in EXCLUDABLE:
        return None
    if ":" not in text and "@" not in text:
        return f"it is none of {', '.join(EXCLUDABLE)}, and no assignee such as user:dana"
    return assignee_fault(text)


def voter_fault(text: str) -> str | None:
    """Why this gives nobody a vote."""
    return assignee_fault(text) if text.strip() else "it names nobody"


def request_hash(prompt: str, options: Sequence[Option] | None, context: Any, schema: Any) -> str:
    """Of exactly what is shown: a decision is bound to it."""
    return "sha256:" + sha256(json_bytes((prompt, options, context, schema))).hexdigest()
