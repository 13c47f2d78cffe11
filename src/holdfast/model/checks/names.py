"""Which names an expression or a template may read: fields of the state, or what nodes are known to set."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, Union, cast

import msgspec

from holdfast.model.checks.value_sets import Read, ValueSet
from holdfast.model.checks.value_types import ANY, ValueType, part_of, type_of
from holdfast.model.diagnostics import Severity
from holdfast.model.expressions import PARTITIONS, Path
from holdfast.model.graph import GraphSpec, Node, NodeKind
from holdfast.model.syntax_tree import parse_expression

_EDGE: Final = frozenset({"outcome", "output"})
"""What a condition of an edge reads from its source."""
_WALK: Final = frozenset({"preferred_label", "context"})
_FIELDS: Final = frozenset({"scratch", "input"})
RESULT: Final = "_result"
"""Behind the name that a hold binds: the whole answer."""


CodeValue: TypeAlias = Callable[[Read], ValueSet]
"""What an expression of code can be, by the values of the fields that it reads."""


TRUTH: Final = "truth"
"""The operator of an expression of which only the truth counts: `if s.decision`."""
CONSTANT: Final = "constant"
"""The operator of a literal that stands beside a comparison: `s.decision == 'yes' or 'ok'`."""

FALLBACK: Final = "fallback"
"""The operator of what stands in for a missing value: `s.decision or "approve"`."""


class CodeComparison(msgspec.Struct, frozen=True, kw_only=True):
    operator: str
    left: CodeValue
    right: CodeValue
    left_text: str
    right_text: str
    line: int
    function: str = "the function"
    shared: bool = False  # of a function that is given values: it may compare others, too


class QuestionSlip(msgspec.Struct, frozen=True):
    """What weakens an approval in the code of a script."""

    rule: str
    message: str
    fix: str


class StateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the code says about the state, and a stored graph does not.

    `types`: the annotation of each field. `writes`: the names that the code of a node is known to set.
    `complete`: the nodes that set nothing else. `given`: the names of the input, if they are known. `values`:
    by node and field the values that its code sets. `compared`: the comparisons in the code of a node.
    `outcomes`: the words of its own that a node ends with, if its code shows them. `conditions`: by node the
    expressions that its code evaluates, each with what it is called. `reads`: by node the names in its code,
    None if it may read any field; `route_reads`: of the functions that choose its edges. `unread_asks`: by
    node the lines of questions whose answer its code does not read; `question_slips`: what weakens them.
    `children`: the same for sub-flows.
    """

    types: Mapping[str, Any] = {}
    writes: Mapping[str, frozenset[str]] = {}
    complete: frozenset[str] = frozenset()
    given: frozenset[str] | None = None
    values: Mapping[str, Mapping[str, CodeValue]] = {}
    compared: Mapping[str, tuple[CodeComparison, ...]] = {}
    outcomes: Mapping[str, tuple[str, ...]] = {}
    conditions: Mapping[str, tuple[tuple[str, str], ...]] = {}
    reads: Mapping[str, frozenset[str] | None] = {}
    route_reads: Mapping[str, frozenset[str] | None] = {}
    unread_asks: Mapping[str, tuple[int, ...]] = {}
    question_slips: Mapping[str, tuple[QuestionSlip, ...]] = {}
    children: Mapping[str, StateFacts] = {}


class NameProblem(msgspec.Struct, frozen=True):
    severity: Severity
    message: str
    fix: str


class ReadableNames:
    """Answers for one graph whether a path can have a value."""

    def __init__(self, spec: GraphSpec, facts: StateFacts | None) -> None:
        self._spec, self._facts = spec, facts or StateFacts()
        self._writers_unknown = facts is None
        self.typed = spec.fields is not None
        self._bound = _bound(spec.nodes)
        self._extra = _EDGE | _WALK if spec.traversal == "walk" else _EDGE

    def field(self, path: Path) -> Path | None:
        """The path as one from a field of the state; None for one of another partition."""
        parts = list(path[1:] if path[0] == "state" and len(path) > 1 else path)
        if parts[0] in PARTITIONS and len(parts) > 1:
            return tuple(parts[1:]) if parts[0] in _FIELDS else None
        return tuple(parts)

    def problem(
        self, path: Path, *, on_edge: bool = False, may_miss: bool = False, in_template: bool = False
    ) -> NameProblem | None:
        """Why it cannot have a value. `may_miss`: the expression or template says that it may be missing,
        which is no reason to accept a name that nothing sets."""
        inside = self.field(path)
        if inside is None or (on_edge and inside == path and path[0] in self._extra):
            return None
        if self.typed:
            return self._typed(inside)
        asks_caller = len(path) > len(inside) and "input" in path[:2]
        if asks_caller or self._writers_unknown:
            return None
        return self._untyped(inside[0], may_miss=may_miss, in_template=in_template)

    def type_at(self, path: Path, *, on_edge: bool = False) -> ValueType:
        """What is known of the values at a path."""
        inside = self.field(path)
        if inside is None or (on_edge and inside == path and path[0] in self._extra):
            return ANY
        annotation = self._annotation(inside[0])
        for part in inside[1:]:
            known, annotation = part_of(annotation, part)
            if not known:
                return ANY
        return type_of(annotation)

    def _annotation(self, field: str) -> Any:
        """Of the code; a graph without code names the types of its fields."""
        if not self._writers_unknown:
            return self._facts.types.get(field, Any)
        about: Any = (self._spec.fields or {}).get(field)
        named = cast("Mapping[str, Any]", about).get("type") if isinstance(about, Mapping) else None
        return annotation_of(named) if isinstance(named, str) else Any

    def _typed(self, path: Path) -> NameProblem | None:
        first, *rest = path
        fields = self._spec.fields or {}
        if first not in fields:
            return None if first in self._bound else _unknown(first, {*fields, *self._bound}, "the state")
        annotation, seen = self._annotation(first), first
        for part in rest:
            known, inner = part_of(annotation, part)
            if not known:
                return NameProblem(
                    Severity.error, f"reads {'.'.join(path)!r}, but {seen!r} has no part {part!r}",
                    near_name(part, _parts(annotation)) or "correct the path",
                )  # fmt: skip
            annotation, seen = inner, f"{seen}.{part}"
        return None

    @property
    def settable(self) -> set[str]:
        """The names that the state has, or that are known to be set or given."""
        facts = self._facts
        found = {*(self._spec.fields or ()), *self._bound, *(facts.given or ())}
        return found.union(*facts.writes.values())

    def _untyped(self, name: str, *, may_miss: bool, in_template: bool) -> NameProblem | None:
        facts = self._facts
        known = {"item", *self.settable}
        if name in known:
            return None
        if facts.given is not None and self._all_declare():
            return _unknown(name, known, "no node, and not the input,")
        near = near_name(name, known)
        given = "may" if may_miss else "has to"
        why = f"the caller {given} give it" if self._all_declare() else "no node is known to set it"
        advice = _advice(name, may_miss=may_miss, in_template=in_template)
        return NameProblem(
            Severity.warning, f"reads {name!r}: {why}", f"{near} Else {advice}" if near else advice
        )

    def _all_declare(self) -> bool:
        works = (NodeKind.task, NodeKind.guardrail)
        return all(node.id in self._facts.complete for node in self._spec.nodes if node.kind in works)


def _advice(name: str, *, may_miss: bool, in_template: bool) -> str:
    if may_miss:
        return f"write input.{name} if the caller gives it, or declare the state's type"
    if in_template:
        missing = f"{{{{input.{name} | default('...')}}}}"
    else:
        missing = f"exists(input.{name}) or input.{name} | default(...)"
    given = f"write input.{name} if the caller gives it"
    return f"{given}, {missing} if it may be missing, or declare the state's type"


def _unknown(name: str, known: Iterable[str], what: str) -> NameProblem:
    found = sorted(known)
    has = "which the state does not have" if what == "the state" else f"which {what} sets"
    listed = f"use one of {', '.join(found[:20])}" if found else "remove it"
    fix = near_name(name, found) or f"declare the field, or {listed}"
    return NameProblem(Severity.error, f"reads {name!r}, {has}", fix)


def near_name(name: str, known: Iterable[str]) -> str:
    """A question about the most similar of the known names; empty if none is similar."""
    from difflib import get_close_matches

    some = sorted(known)[:500]
    near = [each for each in some if each.lower() == name.lower()]
    near = near or get_close_matches(name, some, n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}?" if near else ""


def _parts(annotation: Any) -> list[str]:
    from holdfast.model.checks.value_types import fields_of_type, members_of

    return [name for member in members_of(annotation) for name in fields_of_type(member) or ()]


def bound_by(node: Node) -> list[str]:
    """The fields that a node fills without code: decisions, results of maps, outputs of sub-flows."""
    if node.hold is not None:
        return [
            node.hold.bind,
            *([node.hold.into] if node.hold.into else []),
            *(node.hold.modifies or {}).values(),
        ]
    if node.map is not None:
        return [node.map.into]
    if node.subflow is not None:
        return list(node.subflow.outputs or ())
    return []


def bound_names(nodes: Iterable[Node]) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes:
        names += bound_by(node)
    return tuple(dict.fromkeys(names))


def _bound(nodes: Iterable[Node]) -> frozenset[str]:
    found = set(bound_names(nodes))
    return frozenset(found | {node.hold.bind + RESULT for node in nodes if node.hold is not None})


_PLAIN: Final[dict[str, Any]] = {"int": int, "float": float, "str": str, "bool": bool, "None": None}
_LISTS: Final[dict[str, Any]] = {"list": list, "dict": dict}
_LONGEST: Final = 2_000


@lru_cache(maxsize=512)
def annotation_of(text: str) -> Any:
    """The type of a field as a stored graph names it (`int`, `None | str`, `Literal['a', 'b']`), as an
    annotation; Any if the text says nothing that is certain.

    A graph that is sent over HTTP has no code, but its fields name their types: what is plain there is
    checked as in code. Records, enums and generic types stay unknown."""
    if len(text) > _LONGEST:
        return Any
    try:
        return _annotation(parse_expression(text))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return Any


def _annotation(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _PLAIN.get(node.id, _LISTS.get(node.id, Any))
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (_annotation(node.left), _annotation(node.right))
        return Any if Any in sides else Union[sides]  # noqa: UP007
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id == "Literal":
            return Literal[_values(node.slice)]  # type: ignore[valid-type]
        # What is inside may be a type that has no name here.
        return _LISTS.get(node.value.id, Any)
    return Any


def _values(node: ast.expr) -> tuple[Any, ...]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    found = tuple(ast.literal_eval(item) for item in items)
    if not all(isinstance(value, (str, int, bool, type(None))) for value in found):
        raise ValueError("a member of an enum")
    return found
