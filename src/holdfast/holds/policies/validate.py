"""Validates rules: reports every problem at once, each with its rule and field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from holdfast.errors import HoldfastError, PolicyInvalidError
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.holds.policies.deadlines import read_on_timeout
from holdfast.holds.policies.facts import NAMES
from holdfast.holds.policies.judge import Judges
from holdfast.holds.policies.rules import Rule
from holdfast.model.expressions import ExprSyntaxError, compile_expr
from holdfast.model.expressions.nodes import Comparison, Items, Literal, Name, Node, children_of
from holdfast.model.hold_declaration import exclusion_word_fault, kind_fault, who_fault
from holdfast.types.duration import parse_duration, parse_length
from holdfast.types.terms import PRIORITIES, ApprovalTerms
from holdfast.types.text import clean_text

MODES: Final = ("any", "quorum", "sequential")
NEAR: Final = 0.85
"""How similar a name is to a fact, from which it counts as misspelt."""


class PolicyFault(msgspec.Struct, frozen=True):
    """`rule`: its name, or its number if it has none. `line`: its line in a file."""

    rule: str
    field: str
    problem: str
    line: int | None = None
    place: int = -1  # of the rule among the rules

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        what = f"rule {self.rule!r}" if self.rule else "the policy"
        return f"{place}{what}{f', {self.field}' if self.field else ''}: {self.problem}"


def require_valid(name: str, rules: Sequence[Rule], judges: Judges | None, *, written: bool) -> None:
    """Raises PolicyInvalidError."""
    faults = faults_in(name, rules, judges, written=written)
    if faults:
        raise invalid(name, faults)


def invalid(name: str, faults: Iterable[PolicyFault]) -> PolicyInvalidError:
    listed = list(faults)
    count = "1 problem" if len(listed) == 1 else f"{len(listed)} problems"
    lines = "".join(f"\n  - {clean_text(str(fault), 500)}" for fault in listed)
    return PolicyInvalidError(
        f"policy {clean_text(name, 80)!r} has {count}:{lines}",
        hint="The policy is not in force.",
        problems=listed,
    )


def faults_in(name: str, rules: Sequence[Rule], judges: Judges | None, *, written: bool) -> list[PolicyFault]:
    """`judges`: those that the rules may name; None: not checked. `written`: also names of an unknown kind
    and misspelt conditions, which older releases stored: with an error, none of the rules there would be in
    force."""
    found = [] if name and "/" not in name else [PolicyFault("", "name", "it needs a name without '/'")]
    seen: set[str] = set()
    for place, rule in enumerate(rules):
        faults = [*_faults(rule), *((*_kind_faults(rule), *_condition_faults(rule)) if written else ())]
        if judges is not None and rule.judge is not None and rule.judge not in judges:
            known = ", ".join(sorted(judges)) or "none"
            faults.append(("judge", f"the judge {rule.judge!r} does not exist; known: {known}"))
        if rule.name in seen:
            faults.append(("name", "another rule has this name"))
        seen.add(rule.name)
        label = rule.name or str(place + 1)
        found += [PolicyFault(label, field, problem, place=place) for field, problem in faults]
    return found


def _faults(rule: Rule) -> Iterator[tuple[str, str]]:
    if not rule.name or "/" in rule.name:
        yield "name", "it needs a name without '/'"
    for field, read in _READERS.items():
        value = getattr(rule, field)
        problem = None if value is None else _problem(read, value)
        if problem:
            yield field, problem
    yield from _approval_faults(rule.approval)
    for place, rung in enumerate(rule.ladder):
        problem = _problem(parse_length, rung.after) if rung.after else None
        problem = problem or (None if rung.to.strip() else "it has no target")
        if problem:
            yield f"ladder[{place}]", problem
    yield from _automatic_faults(rule)


def _kind_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    approval = rule.approval or ApprovalTerms()
    named = {
        "assign": (rule.assign,) if isinstance(rule.assign, str) else (),
        "ladder": tuple(rung.to for rung in rule.ladder),
        **{f"approval.{field}": getattr(approval, field) for field in ("of", "veto", "exclude")},
    }
    for field, texts in named.items():
        # An assignee has placeholders, a rule of several people has none.
        fault_of = who_fault if field.startswith("approval.") else kind_fault
        yield from ((field, fault) for text in texts if (fault := fault_of(text)) is not None)


def _condition_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    """What is no fact is looked up in the context, where a misspelt fact is never found."""
    from difflib import get_close_matches

    try:
        found = compile_expr(rule.when) if isinstance(rule.when, str) and rule.when else None
    except ExprSyntaxError:
        return  # reported
    if found is None:
        return
    for name in sorted({path[0] for path in found.names} - set(NAMES)):
        near = get_close_matches(name, NAMES, n=1, cutoff=NEAR)
        if near:
            own = f"write context.{name} if it is a field of the context"
            yield "when", f"{name!r} is no fact; did you mean {near[0]!r}? ({own})"
    for text in sorted({each for each in _compared_with(found.node, "priority") if each not in PRIORITIES}):
        yield "when", f"`priority` is never {text!r}; it is one of {', '.join(PRIORITIES)}"


def _compared_with(node: Node, fact: str) -> Iterator[str]:
    """The texts that a fact is compared with."""
    if isinstance(node, Comparison) and Name((fact,)) in (node.left, node.right):
        for side in (node.left, node.right):
            for each in side.items if isinstance(side, Items) else (side,):
                if isinstance(each, Literal) and isinstance(each.value, str):
                    yield each.value
    for child in children_of(node):
        yield from _compared_with(child, fact)


def _automatic_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.decide is not None and rule.judge is not None:
        yield "judge", "it has both decide and judge; remove one of them"
    approval = rule.approval or ApprovalTerms()
    if rule.is_automatic and (approval.mode != "any" or approval.exclude):
        yield "approval", "a hold that certain people must decide cannot be decided automatically"
    if rule.on_timeout is not None and rule.timeout is None:
        yield "on_timeout", "it has no timeout"


def _approval_faults(approval: ApprovalTerms | None) -> Iterator[tuple[str, str]]:
    if approval is None:
        return
    if approval.mode not in MODES:
        yield "approval.mode", f"{approval.mode!r} is not one of {', '.join(MODES)}"
    if approval.mode == "any" and approval.need > 1:
        yield "approval.need", 'by the mode `any` one person decides: write mode = "quorum"'
    if approval.mode == "quorum" and approval.need < 1:
        yield "approval.need", "it must be 1 or more"
    if approval.mode == "sequential" and not approval.of:
        yield "approval.of", "sequential needs the list of approvers"
    for field in ("of", "veto"):
        for place, who in enumerate(getattr(approval, field)):
            problem = _problem(_require_assignee, who)
            if problem:
                yield f"approval.{field}[{place}]", problem
    for place, who in enumerate(approval.exclude):
        fault = exclusion_word_fault(who)
        if fault is not None:
            yield f"approval.exclude[{place}]", f"{who!r}: {fault}"


def _problem(read: Callable[[Any], object], value: Any) -> str | None:
    try:
        read(value)
    except HoldfastError as error:
        return str(error)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _require_when(when: Any) -> None:
    if isinstance(when, str):
        compile_expr(when)
    elif not callable(when):
        raise ValueError("it is neither an expression nor a function")


def _require_assignee(text: Any) -> None:
    if parse_assignee(text).type == "unrouted":
        raise ValueError("it is empty; write user:NAME, group:KEY or role:KEY")


def _require_priority(text: Any) -> None:
    if text not in PRIORITIES:
        raise ValueError(f"{text!r} is not one of {', '.join(PRIORITIES)}")


def _require_share(number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1:
        raise ValueError(f"{number!r} is not between 0 and 1")


def _require_count(number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{number!r} is not a whole number of 1 or more")


def _require_answer(text: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it is empty; name an option")


_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "when": _require_when,
    "assign": _require_assignee,
    "timeout": parse_length,
    "on_timeout": read_on_timeout,
    "priority": _require_priority,
    "reminder": parse_duration,
    "max_reminders": _require_count,
    "decide": _require_answer,
    "threshold": _require_share,
    "judge_timeout": parse_duration,
}
