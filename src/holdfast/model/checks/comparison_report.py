"""Compares two sets of values and reports the literals that nothing on the other side equals."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.outcomes import is_near_outcome
from holdfast.model.checks.value_sets import (
    DECISION,
    INITIAL,
    LITERAL,
    OUTCOME,
    PART_METHODS,
    TYPE,
    Alternative,
    AnyValue,
    Constant,
    FixedList,
    FixedMap,
    ValueSet,
    can_be_ordered,
    can_equal,
    can_have_part,
    computed_from,
    is_decided,
    leaves,
    members,
    union,
)
from holdfast.model.checks.value_types import family_of
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.expressions import Path
from holdfast.model.graph import Edge

_ORDER: Final = ("<", "<=", ">", ">=")


class ComparisonPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What is checked, for people, and where it is."""

    what: str
    node: str | None = None
    edge: Edge | None = None


class ComparisonReport:
    """Compares two sets of values, and reports what never holds."""

    def __init__(self, view: ValidationView, place: ComparisonPlace) -> None:
        self._view, self._place = view, place
        self.unsure = False
        """Whether code that does not show what it sets may set what is compared."""

    def note(self, found: ValueSet, path: Path | None) -> None:
        """These values are compared. Only the field that a hold binds is certainly its decision."""
        values = self._view.values
        copied = is_decided(found) and path is not None and path[0] not in values.bound
        self.unsure = self.unsure or (copied and values.hides_writes)

    def compare(self, operator: str, left: ValueSet, right: ValueSet, *texts: str) -> None:
        for side, other, text in ((left, right, texts[0]), (right, left, texts[1])):
            self._uncertain(side, other, text)
        if operator in _ORDER:
            self._order(operator, left, right, texts)
        elif operator in ("in", "not in"):
            self._among(operator, left, right, texts)
        elif operator in PART_METHODS:
            if not can_have_part(operator, left, right):
                found = f"asks whether {texts[0]} {operator} {texts[1]}, which none of its options does"
                self._report("unknown-option", found, [e.value for e in leaves(left) if e.source == DECISION])
        else:
            self._equal(left, right, texts)

    def truth(self, found: ValueSet, text: str, beside: ValueSet | None) -> None:
        """`if s.decision`, which is true whatever is decided; with `beside`, a literal where a comparison
        with this belongs. Before the decision it may be false: then it is only a warning."""
        texts = sorted(str(e.value) for e in leaves(found) if e.source == DECISION and e.value)
        known = all(isinstance(each, Constant) for each in found)
        if not texts or not is_decided(found):
            return
        if beside is not None:
            written = next(repr(each.value) for each in leaves(beside))
            message = f"has {written} where a comparison with {text} belongs"
            self._report("constant-operand", message, (), fix=f"write {text} in [{texts[0]!r}, ...]")
        elif all(e.value for e in leaves(found) if e.source == DECISION):
            sure = known and all(each.value for each in found if isinstance(each, Constant))
            message = f"asks whether {text} is true, which it is whatever is decided"
            fix = f"compare it: {text} == {texts[0]!r}"
            self._report("decision-truth", message, (), fix=fix, warns=not sure)

    def _uncertain(self, side: ValueSet, other: ValueSet, text: str) -> None:
        """A literal beside something that is computed from a decision: nobody can say whether it is right."""
        source = computed_from(side)
        written = sorted(e.value for e in leaves(other) if e.source == LITERAL and isinstance(e.value, str))
        if source and written:
            found = f"compares {text} with {written[0]!r}, and cannot be checked: {text} is computed from"
            fix = f"compare {source!r} itself, or choose by a table: {{'approve': ...}}[{source}]"
            self._report("uncertain-option", f"{found} the decision {source!r}", (), fix=fix, warns=True)

    def _equal(self, left: ValueSet, right: ValueSet, texts: tuple[str, ...]) -> None:
        # Both, and not only the first that is found: each is a slip of its own.
        wrong = [*self._dead(left, right, texts[1]), *self._dead(right, left, texts[0])]
        if wrong or can_equal(left, right):
            return
        if _is_written(left) and _is_written(right):
            self._constant(f"{texts[0]} with {texts[1]}")
            return
        self._report(
            _rule(left | right, None), f"compares {texts[0]} with {texts[1]}, which are never equal", ()
        )

    def _dead(self, written: ValueSet, other: ValueSet, text: str) -> list[Constant]:
        """The literals on one side that equal nothing on the other, each reported."""
        if not _reads(other):
            return []
        found: list[Constant] = []
        for each in written:
            if isinstance(each, Constant):
                if each.source == LITERAL and not can_equal(frozenset({each}), other):
                    self._literal(each, other, text)
                    found.append(each)
                elif each.source == LITERAL and is_near_outcome(each.value, other):
                    self._literal(each, other, text, warns=True)
            elif isinstance(each, FixedList):
                found += self._dead_members(each, other, text)
        return found

    def _dead_members(self, each: FixedList, other: ValueSet, text: str) -> list[Constant]:
        """`[decision] != ['rejct']`: item by item, where there is a list of the same length."""
        same = [o for o in other if isinstance(o, FixedList) and len(o.members) == len(each.members)]
        if not same or any(isinstance(o, AnyValue) for o in other):
            return []
        found: list[Constant] = []
        for i, member in enumerate(each.members):
            found += self._dead(member, union(o.members[i] for o in same), text)
        return found

    def _among(self, operator: str, left: ValueSet, right: ValueSet, texts: tuple[str, ...]) -> None:
        if any(isinstance(each, Constant) for each in right) and self._letters(operator, left | right):
            return
        listed = members(right)
        wrong = self._dead(listed, left, texts[0])
        if all(isinstance(each, FixedList) for each in right):
            wrong += self._dead(left, listed, texts[1])
            if not wrong and listed and not can_equal(left, listed):
                found = f"compares {texts[0]} with {texts[1]}, which are never equal"
                self._report(_rule(left | listed, None), found, ())

    def _order(self, operator: str, left: ValueSet, right: ValueSet, texts: tuple[str, ...]) -> None:
        if self._letters(operator, left | right) or can_be_ordered(left, right):
            return
        self._report("type-mismatch", f"puts {texts[0]} and {texts[1]} in order, which have none", ())

    def _letters(self, operator: str, values: ValueSet) -> bool:
        """`decision not in 'reject'` and `decision >= 'approve'` are about letters, not about options."""
        decided = [e for e in values if isinstance(e, Constant) and e.source == DECISION]
        texts = sorted(e.value for e in decided if isinstance(e.value, str))
        if not texts:
            return False
        name = decided[0].name
        fix = f"compare it as a whole: {name} == {texts[0]!r}"
        found = f"uses {operator!r} on the decision {name!r}, which compares letters"
        self._report("decision-part", found, (), fix=fix)
        return True

    def _literal(self, wrong: Constant, other: ValueSet, text: str, *, warns: bool = False) -> None:
        rule = _rule(other, wrong)
        shown = f"compares {text} with {wrong.value!r}"
        values = [each.value for each in leaves(other) if each.source in (DECISION, OUTCOME, TYPE)]
        why = {
            "unknown-option": "which is not one of its options",
            "unknown-outcome": "which no node here ends with",
        }.get(rule, "which it never is")
        if rule == "type-mismatch":
            families = sorted({f for each in other for f in _kinds(each)})
            shown = f"compares {text} ({' or '.join(families)}) with {wrong.value!r}"
        self._report(rule, f"{shown}, {why}", values, wrong=wrong.value, warns=warns)

    def _constant(self, shown: str) -> None:
        if self._place.edge is not None:
            self._report(
                "constant-operand",
                f"compares {shown}, and reads no name",
                (),
                fix="write the name without quotes: decision == 'approve'",
            )

    def _report(
        self,
        rule: str,
        message: str,
        values: Any,
        *,
        wrong: object = None,
        fix: str | None = None,
        warns: bool = False,
    ) -> None:
        from difflib import get_close_matches

        known = list(dict.fromkeys(v for v in sorted(values, key=repr) if v not in ("", None)))
        listed = ", ".join(repr(value) for value in known[:20])
        advice = fix or (f"use one of {listed}" if listed else "correct the name or the literal")
        texts = [value for value in known if isinstance(value, str)]
        near = get_close_matches(wrong, texts, n=1) if isinstance(wrong, str) else []
        if near and fix is None:
            advice = f"did you mean {near[0]!r}? {advice[0].upper()}{advice[1:]}"
        edge = self._place.edge
        self._view.problems.append(
            GraphProblem(
                rule=rule,
                severity=Severity.warning if warns or self.unsure else Severity.error,
                message=f"{self._place.what} {message}",
                node=self._place.node,
                edge=edge.id if edge is not None else None,
                fix=advice,
            )
        )


def _is_written(values: ValueSet) -> bool:
    """Only literals: no name is read."""
    inner = [m for each in values if isinstance(each, FixedList) for m in each.members]
    flat = all(isinstance(e, FixedList) or (isinstance(e, Constant) and e.source == LITERAL) for e in values)
    return flat and all(map(_is_written, inner))


def _reads(values: ValueSet) -> bool:
    """Whether a name is read, and all of its values are known."""
    return not _is_written(values)


def _rule(values: ValueSet, wrong: Constant | None) -> str:
    sources = {each.source for each in leaves(values)}
    if DECISION in sources or (INITIAL in sources and wrong is None):
        return "unknown-option"
    if OUTCOME in sources:
        return "unknown-outcome"
    families = {family for each in values for family in _kinds(each)}
    same = wrong is not None and family_of(wrong.value) in families
    return "unknown-value" if same else "type-mismatch"


def _kinds(each: Alternative) -> frozenset[str]:
    if isinstance(each, Constant):
        return frozenset({family_of(each.value)})
    if isinstance(each, FixedMap):
        return frozenset({"record"})
    return (each.families or frozenset()) if isinstance(each, AnyValue) else frozenset({"list"})
