"""Interprets a hold's declaration: what its expiry does, its default option, the hash of what was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from holdfast.model.template import json_bytes
from holdfast.types.hold import Option
from holdfast.types.terms import HoldTerms
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.model.graph import GraphSpec, HoldSpec

MAX_ASSIGNEE: Final = 500
BRANCH: Final = "branch:"
_NO_NAME: Final = re.compile(r"(?:user|group|role|service)\s*:", re.IGNORECASE)
_SEVERAL: Final = re.compile(r":.*[,;]\s*(?:user|group|role|service)\s*:", re.IGNORECASE)
_HIDDEN_FROM_FLOW: Final = frozenset(
    {"members", "auth_method", "channel", "authority", "on_behalf_of", "override_reason"}
)
EXCLUDABLE: Final = ("initiator", "earlier_approvers", "last_editor")
ASSIGNEE_KINDS: Final = ("user", "group", "role", "service", "delegated_user")
"""What may stand before the colon of an assignee."""
_PREFIX: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*:\s*(.*)", re.DOTALL)


class Expiry(NamedTuple):
    """The expiry action in the row. None: the hold expires, and the flow decides what follows."""

    action: str | None
    target: str | None = None


def expiry_of(on_timeout: str | None, terms: HoldTerms) -> Expiry:
    """A ladder starts at its first rung; the other action that `on_timeout` names applies after its last
    rung."""
    if terms.ladder:
        return Expiry("escalate", terms.ladder[0].to)
    action, _, target = (on_timeout or "").partition(":")
    if action == "escalate":
        return Expiry("escalate", target)
    if action in ("default", "default_option"):
        return Expiry("default_option")
    return Expiry("cancel") if action == "cancel" else Expiry(None)


def default_of(options: Sequence[Option] | None, terms: HoldTerms) -> str:
    """The answer at the timeout: the option marked as the default, else `default_option` (EX-5)."""
    flagged = next((option.id for option in options or () if option.default is True), None)
    return flagged or terms.default_option or "default"


def decision_of(resolution: Mapping[str, Any]) -> Any:
    """The decision as a flow sees it; after a timeout, the option that it stands for (EX-5)."""
    found = resolution.get("effective_decision")
    return resolution.get("decision") if found is None else found


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Older answers may not be mappings: they were accepted before forms were checked."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def decision_for_flow(resolution: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a resolution that a flow receives (RM-2). The right and channel by which a person decided,
    and their memberships, stay with the hold and never enter a run's state."""
    shown = {name: value for name, value in resolution.items() if name not in _HIDDEN_FROM_FLOW}
    if shown.get("votes"):
        shown["votes"] = [
            {name: value for name, value in vote.items() if name not in _HIDDEN_FROM_FLOW}
            for vote in shown["votes"]
        ]
    return shown


def read_option(given: Any) -> Option:
    """A bare text is both id and label. Raises ValueError that says what is wrong with it."""
    if isinstance(given, Option):
        return given
    if isinstance(given, str):
        return Option(given, given)
    option = cast("Mapping[str, Any]", given)
    wrong = f"{clean_text(repr(option), 200)} is not an option"
    if not isinstance(given, Mapping) or "id" not in option:
        raise ValueError(wrong)
    unknown = [name for name in option if name not in Option.__struct_fields__]
    if unknown:
        raise ValueError(f"{wrong}: unknown field {unknown[0]!r}")
    for flag in ("default", "requires_comment"):
        if not isinstance(option.get(flag, False), bool):
            # A value such as "yes" would silently be no requirement at all.
            raise ValueError(f"{flag} of option {option['id']!r} is not True or False")
    return Option(**{"label": option["id"], **option})


def assignee_fault(text: str) -> str | None:
    """Why this text cannot be an assignee."""
    if len(text) > MAX_ASSIGNEE:
        return f"it has {len(text):,} characters; the maximum is {MAX_ASSIGNEE}"
    hidden = next((letter for letter in text.strip() if not letter.isprintable()), None)
    if hidden is not None:
        return f"it has the invisible character {hidden!a}"
    # Such a hold would have no assignee: anyone who may decide such holds could decide it.
    if _NO_NAME.fullmatch(text.strip()):
        return "it has no name after its colon"
    return "it names several; a group or a role is one assignee" if _SEVERAL.search(text) else None


def unknown_kind(text: str) -> str | None:
    """`grp` of `grp:finance`: the whole text is then the name of one person, whom nobody is."""
    found = _PREFIX.match(text)
    return found[1] if found is not None and found[1].lower() not in ASSIGNEE_KINDS else None


def kind_fault(text: str) -> str | None:
    """Why nobody is meant by it. A person's id with a colon is written `user:urn:x`."""
    kind = unknown_kind(text)
    if kind is None:
        return None
    rest = text.partition(":")[2].strip()
    ways = f"write group:{rest} or role:{rest}; user:{text.strip()} if that is an id"
    return f"{kind!r} is no kind of assignee: {ways}"


def exclusion_fault(text: str) -> str | None:
    """Why this is not a valid exclusion. A typo in a keyword must not pass as a person's name."""
    return exclusion_word_fault(text) or (None if text in EXCLUDABLE else who_fault(text))


def who_fault(text: str) -> str | None:
    """Why nobody is meant by an entry of a rule: an unknown kind, a keyword in place of a name, or a
    placeholder."""
    kind, _, name = text.partition(":")
    if name.strip() in EXCLUDABLE:
        return f"that is a {kind.strip()} of this name; write {name.strip()!r} alone"
    if "," in text or ";" in text:
        return "it names several; write each one alone"
    if "{" in text:
        return "placeholders are not filled in here; a node can compute it: ctx.ask(approval=...)"
    return kind_fault(text)


def exclusion_word_fault(text: str) -> str | None:
    """The same, without its kind."""
    if text in EXCLUDABLE:
        return None
    if ":" not in text and "@" not in text:
        return f"it is neither one of {', '.join(EXCLUDABLE)} nor an assignee such as user:dana"
    return assignee_fault(text)


def voter_fault(text: str) -> str | None:
    """Why this text cannot be a voter."""
    return (assignee_fault(text) or who_fault(text)) if text.strip() else "it is empty"


def request_hash(prompt: str, options: Sequence[Option] | None, context: Any, schema: Any) -> str:
    """The hash of exactly what is shown: a decision is bound to it."""
    return "sha256:" + sha256(json_bytes((prompt, options, context, schema))).hexdigest()


def decision_fields(hold: HoldSpec) -> tuple[str, str]:
    """The fields of the state in which its decision is put."""
    return hold.bind, f"{hold.bind}_result"


def fields_of_hold(hold: HoldSpec) -> set[str]:
    """The same, with the field for the data of its form."""
    return {*decision_fields(hold), *([hold.into] if hold.into else [])}


def answer_fields(spec: GraphSpec) -> set[str]:
    """The fields in which the holds of a flow and of its sub-flows put their answers."""
    found = {field for node in spec.nodes if node.hold for field in fields_of_hold(node.hold)}
    return found.union(*(answer_fields(inner) for inner in spec.subgraphs))


def named_queues(spec: GraphSpec) -> Iterator[tuple[str, str]]:
    """(node, scope/queue) of each hold that asks in a queue, also in sub-graphs."""
    for node in spec.nodes:
        hold = node.hold
        if hold is not None and hold.target:
            yield node.id, hold.target.address
        elif hold is not None and hold.terms and hold.terms.queue:
            yield node.id, hold.terms.queue
    for inner in spec.subgraphs:
        yield from named_queues(inner)
