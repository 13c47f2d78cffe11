"""Reads and checks the terms of a hold as an author writes them: every problem is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypedDict, cast

import msgspec

from holdfast.model.hold_declaration import assignee_fault, exclusion_fault, voter_fault
from holdfast.types.duration import DurationError, format_duration, parse_duration, parse_length
from holdfast.types.hold import Option
from holdfast.types.queue_message import is_queue_address
from holdfast.types.terms import PRIORITIES, ApprovalTerms, HoldTerms, Rung
from holdfast.types.text import clean_text

Duration: TypeAlias = str | int | float | timedelta
Rungs: TypeAlias = Sequence[Rung | tuple[Duration, str] | Mapping[str, Any]]
Wrong: TypeAlias = Callable[[str, str, str | None], None]
"""Called with the rule, the problem, and the fix."""

FINAL: Final = ("cancel", "default_option")
CHOICES: Final = {
    "late_resolution": ("accept", "reject"),
    "on_cancel": ("cancel", "raise"),
    "links": ("view_only", "decide_low_risk", "login_required"),
}
ON_TIMEOUT: Final = ("cancel", "default", "default_option", "fail", "expired", "escalate")
MODES: Final = ("any", "quorum", "sequential")
_FLAGS: Final = ("strict_assignee", "strict_templates", "bulk", "allow_services", "guarded")
_TEXTS: Final = ("default_option", "calendar", "interaction", "auto")
_LISTS: Final = ("excluded", "guardrails")
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)


class HoldTermsOptions(TypedDict, total=False):
    """What governs a hold beyond its question: the keywords that `flow.hold` and `ctx.ask` share."""

    escalate: str | None
    ladder: Rungs | None
    final_action: str | None
    reminder: Duration | None
    max_reminders: int | None
    default_option: str | None
    approval: ApprovalTerms | Mapping[str, Any] | None
    tags: Sequence[str]
    strict_assignee: bool
    strict_templates: bool
    late_resolution: str
    calendar: str | None
    on_cancel: str
    bulk: bool
    undo: Duration | None
    step_up: Duration | None
    links: str | None
    allow_services: bool
    excluded: Sequence[str]
    interaction: str | None
    auto: str | None
    guardrails: Sequence[str]
    guarded: bool
    queue: str | None
    shadow: Any


NAMES: Final = frozenset(HoldTermsOptions.__annotations__)


class ParsedTerms(msgspec.Struct, frozen=True):
    """`on_timeout`: what remains of it beside a ladder."""

    terms: HoldTerms
    on_timeout: str | None
    reminder: int | None
    tags: tuple[str, ...]


def read_terms(given: Mapping[str, Any], on_timeout: str | None, wrong: Wrong) -> ParsedTerms:
    """Wrong terms are reported and left out."""
    reader = _Reader(given, wrong)
    on_timeout = reader.action(on_timeout)
    found: dict[str, Any] = {name: value for name in _FLAGS if (value := reader.flag(name)) is not None}
    found |= {name: value for name in _TEXTS if (value := reader.text(name)) is not None}
    if given.get("shadow") is not None:
        found["shadow"] = reader.judge("shadow")
    found |= {name: value for name in _LISTS if (value := reader.texts(name))}
    reader.exclusions(found.get("excluded", ()))
    found |= {name: value for name in CHOICES if (value := reader.choice(name)) is not None}
    found |= reader.ladder(on_timeout)
    if given.get("approval") is not None:
        found["approval"] = reader.approval(given["approval"])
    if given.get("queue") is not None:
        found["queue"] = reader.queue("queue")
    if given.get("max_reminders") is not None:
        found["max_reminders"] = reader.count("max_reminders")
    if given.get("undo") is not None:
        found["undo"] = reader.seconds("undo")
    if given.get("step_up") is not None:
        found["step_up"] = reader.at_least_a_second("step_up")
    return ParsedTerms(HoldTerms(**found), on_timeout, reader.minutes("reminder"), reader.texts("tags"))


class _Reader:
    def __init__(self, given: Mapping[str, Any], wrong: Wrong) -> None:
        self.given = given
        self.wrong = wrong

    def _no(self, name: str, why: str, fix: str | None = None) -> None:
        value = clean_text(repr(self.given.get(name)), 80)
        self.wrong(f"hold-{name.replace('_', '-')}", f"{name}={value} {why}", fix)

    def flag(self, name: str) -> bool | None:
        value = self.given.get(name)
        if value is None or isinstance(value, bool):
            return value
        self._no(name, "is neither True nor False")
        return None

    def text(self, name: str) -> str | None:
        value = self.given.get(name)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self._no(name, "is not text")
        return None

    def judge(self, name: str) -> str | None:
        value = self.given.get(name)
        if isinstance(value, str) and value.strip():
            return value
        fix = "write shadow=judge, or the name of one of Holdfast(judges={...})"
        self._no(name, "is neither a judge nor the name of one", fix)
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        values: Any = self.given.get(name) or ()
        found: list[Any] = [*cast("Any", values)] if isinstance(values, list | tuple) else [None]
        if all(isinstance(each, str) and each.strip() for each in found):
            return tuple(found)
        self._no(name, "is not a list of texts", f'write {name}=["one", "two"]')
        return ()

    def exclusions(self, found: Sequence[str]) -> None:
        for text in found:
            fault = exclusion_fault(text)
            if fault is not None:
                self._no("excluded", f"has {clean_text(repr(text), 80)}: {fault}")

    def queue(self, name: str) -> str | None:
        value = self.given.get(name)
        if isinstance(value, str) and is_queue_address(value):
            return value
        self._no(name, "is not the address of a queue", 'write scope/queue, as "support/reviews"')
        return None

    def choice(self, name: str) -> str | None:
        value = self.given.get(name)
        if value is None or value in CHOICES[name]:
            return value
        self._no(name, f"is not one of {', '.join(CHOICES[name])}")
        return None

    def count(self, name: str) -> int | None:
        value = self.given.get(name)
        if type(value) is int and value >= 1:
            return value
        self._no(name, "is not a whole number of 1 or more")
        return None

    def seconds(self, name: str) -> int | None:
        """Whole seconds, rounded up; zero gives None."""
        length = self._length(name, allow_zero=True)
        return None if length is None else -(-length // _SECOND)

    def at_least_a_second(self, name: str) -> int | None:
        length = self._length(name)
        return None if length is None else -(-length // _SECOND)

    def minutes(self, name: str) -> int | None:
        """Whole minutes, rounded up; less than one is refused (CP-13)."""
        length = None if self.given.get(name) is None else self._length(name)
        if length is None or length >= _MINUTE:
            return None if length is None else -(-length // _MINUTE)
        self._no(name, "is shorter than a minute", 'write for instance reminder="4h"')
        return None

    def _length(self, name: str, *, allow_zero: bool = False) -> timedelta | None:
        try:
            return parse_duration(self.given[name], allow_zero=allow_zero)
        except (DurationError, TypeError, ValueError) as error:
            self.wrong("duration", f"{name}: {error}", None)
        return None

    # ------------------------------------------------------------------ escalation
    def action(self, on_timeout: str | None) -> str | None:
        """`escalate=` is short for `on_timeout="escalate:..."`."""
        target = self.given.get("escalate")
        if target is None:
            return on_timeout
        if on_timeout is not None and on_timeout != f"escalate:{target}":
            self._no("escalate", f"contradicts on_timeout={on_timeout!r}", "remove one of them")
        return f"escalate:{target}"

    def ladder(self, on_timeout: str | None) -> dict[str, Any]:
        """A target in on_timeout is the first rung; any other action of it applies after the last rung."""
        given: Any = self.given.get("ladder") or ()
        rungs = [rung for each in given if (rung := self._rung(each)) is not None]
        found: dict[str, Any] = {}
        action, _, target = (on_timeout or "").partition(":")
        final = self.given.get("final_action") or (action if rungs else None)
        final = "default_option" if final == "default" else final
        if final in FINAL:
            found["final_action"] = final
        elif self.given.get("final_action") not in (None, "fail", "expired"):
            self._no("final_action", f"is not one of {', '.join(FINAL)}, fail")
        if rungs and action == "escalate" and rungs[0].to != target:
            rungs.insert(0, Rung(target))
        return {**found, "ladder": tuple(rungs)} if rungs else found

    def _rung(self, given: Any) -> Rung | None:
        pair: Any = (given.after, given.to) if isinstance(given, Rung) else given
        if isinstance(pair, Mapping):
            named = cast("Mapping[str, Any]", pair)
            pair = (named.get("after", ""), named.get("to"))
        if not isinstance(pair, (tuple, list)) or len(cast("Sequence[Any]", pair)) != 2:
            self._no("ladder", "has a rung that is not (after, to)", 'write ladder=[("4h", "role:lead")]')
            return None
        after, to = cast("Sequence[Any]", pair)
        fault = assignee_fault(to) if isinstance(to, str) and to.strip() else "it is empty"
        if fault is not None:
            self._no("ladder", f"has a rung to {clean_text(repr(to), 80)}: {fault}")
            return None
        return Rung(to, self._after(after))

    def _after(self, after: Any) -> str:
        """As written; other forms of a duration become text."""
        if after in ("", None):
            return ""
        try:
            length = parse_length(after)
        except (DurationError, TypeError, ValueError) as error:
            self.wrong("duration", f"ladder: {error}", None)
            return ""
        return (
            after if isinstance(after, str) or not isinstance(length, timedelta) else format_duration(length)
        )

    # ------------------------------------------------------------------ approval
    def approval(self, given: Any) -> ApprovalTerms:
        try:
            found = (
                given if isinstance(given, ApprovalTerms) else msgspec.convert(_plain(given), ApprovalTerms)
            )
        except msgspec.ValidationError as error:
            self._no("approval", f"cannot be read: {error}")
            return ApprovalTerms()
        fault = _approval_fault(found)
        if fault is not None:
            self._no("approval", fault)
        return found


def _plain(given: Any) -> dict[str, Any]:
    """`{"policy": {...}}` and `"sequential": true` are other ways of writing it."""
    if not isinstance(given, Mapping):
        raise msgspec.ValidationError("it is not a mapping such as {'mode': 'quorum', 'need': 2}")
    found = dict(cast("Mapping[str, Any]", given))
    found = dict(found["policy"]) if isinstance(found.get("policy"), Mapping) else found
    if found.pop("sequential", False) is True:
        found["mode"] = "sequential"
    unknown = sorted(found.keys() - set(ApprovalTerms.__struct_fields__))
    if unknown:
        raise msgspec.ValidationError(f"it has no {', '.join(map(str, unknown))}")
    if lacks_need(found):
        raise msgspec.ValidationError("a quorum says how many people it takes: add 'need': 2")
    return found


def lacks_need(approval: Mapping[str, Any]) -> bool:
    """Without a number one person would be enough."""
    return approval.get("mode") == "quorum" and approval.get("need") is None


def _approval_fault(found: ApprovalTerms) -> str | None:
    if found.mode not in MODES:
        return f"has a mode that is not one of {', '.join(MODES)}"
    if found.need < 1:
        return "needs fewer than one person"
    if found.mode == "any" and found.need > 1:
        return f"needs {found.need} people, but by its mode `any` one decides: write 'mode': 'quorum'"
    if found.mode == "sequential" and not found.of:
        return "is sequential but `of` is empty"
    barred = set(map(_seat, found.exclude)).intersection(map(_seat, found.veto))
    if barred:
        return f"has {':'.join(min(barred))!r} in `veto` and in `exclude`"
    return next(_people_faults(found), None) or (_seat_fault(found) if found.mode != "any" else None)


def seatless_veto(approval: ApprovalTerms, assignee: str | None) -> str | None:
    """Whose veto comes without a vote: they are not asked, and others approve without them."""
    seats = {_seat(text) for text in (*(approval.of or (assignee or "",)),)}
    named = (text for text in approval.veto if voter_fault(text) is None)
    return next((text for text in named if _seat(text) not in seats), None)


def _seat_fault(found: ApprovalTerms) -> str | None:
    """Seats that never have as many people as the rule needs."""
    seats = [_seat(text) for text in found.of]
    twice = next((text for i, text in enumerate(found.of) if seats[i] in seats[:i]), None)
    if twice is not None and found.distinct_people:
        return f"has {clean_text(repr(twice), 80)} twice in `of`, and each person has one vote"
    barred = set(map(_seat, found.exclude)).intersection(seats)
    if barred:
        return f"has {':'.join(min(barred))!r} in `of` and in `exclude`"
    # How many a group or a role has, or a template stands for, is not known.
    if (
        found.mode == "quorum"
        and seats
        and found.need > len(seats)
        and {kind for kind, _ in seats} == {"user"}
    ):
        return f"needs {found.need} approvals, but `of` has only {len(seats)} entries"
    return None


def _seat(text: str) -> tuple[str, str]:
    """Kind and name. Without a kind it is a person, whose address is the same in small letters."""
    kind, colon, name = text.partition(":")
    kind = kind.strip().lower()
    if not colon or kind not in ("user", "group", "role", "delegated_user"):
        kind, name = "user", text
    name = name.strip()
    return kind, name.lower() if kind == "user" and "@" in name else name


def _people_faults(found: ApprovalTerms) -> Iterator[str]:
    for field, texts in (("of", found.of), ("veto", found.veto), ("exclude", found.exclude)):
        for text in texts:
            fault = exclusion_fault(text) if field == "exclude" else voter_fault(text)
            if fault is not None:
                yield f"has {clean_text(repr(text), 80)} in `{field}`: {fault}"


def ask_faults(
    assignee: Any, priority: Any, agreed: ParsedTerms, options: Sequence[Option] | None
) -> Iterator[str]:
    """Problems of a question asked at run time, which no compiler has checked."""
    known = isinstance(assignee, str) or assignee is None
    fault = assignee_fault(assignee or "") if known else "it is not text"
    if fault is not None:
        yield f"assignee {clean_text(repr(assignee), 80)}: {fault}"
    if priority is not None and priority not in PRIORITIES:
        yield f"priority {clean_text(repr(priority), 80)} is not one of {', '.join(PRIORITIES)}"
    action, _, target = (agreed.on_timeout or "fail").partition(":")
    if action == "escalate" and not target.strip():
        yield "on_timeout has an escalation without a target"
    elif action not in ON_TIMEOUT or bool(target) != (action == "escalate"):
        known = "cancel, default_option, fail, escalate:<assignee>"
        yield f"on_timeout {agreed.on_timeout!r} is not one of {known}"
    ids = [option.id for option in options or ()]
    if ids and agreed.terms.default_option not in (None, *ids):
        yield f"default_option {agreed.terms.default_option!r} is not one of {', '.join(ids)}"
