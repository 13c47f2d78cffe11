"""The values that an expression of Python can have, as far as it is plain to see."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, Protocol

from holdfast.model.checks.value_sets import (
    DECISION,
    UNKNOWN,
    Constant,
    FixedList,
    Read,
    ValueSet,
    constants,
    is_decided,
    truths,
    union,
)
from holdfast.model.hold_rules import read_option
from holdfast.types.hold import Option

_DEEPEST: Final = 20
_TEXT_METHODS: Final = ("upper", "lower", "strip", "lstrip", "rstrip", "title", "capitalize", "casefold")
_CERTAIN_TIMEOUTS: Final = ("fail", "cancel", "default_option", "escalate")
ANSWER: Final = "the answer"


class FunctionNames(Protocol):
    """What the names in a function mean."""

    def local(self, name: str) -> list[ast.expr | None] | None: ...

    def outer(self, name: str) -> Any: ...

    def field_of(self, node: ast.expr) -> str | None: ...

    def is_state(self, node: ast.expr) -> bool: ...

    def is_context(self, node: ast.expr) -> bool: ...


class CodeEvaluation:
    def __init__(self, code: FunctionNames, read: Read) -> None:
        self._code, self._read, self._depth = code, read, 0

    def value(self, node: ast.expr | None) -> ValueSet:
        if node is None or self._depth > _DEEPEST:
            return UNKNOWN
        self._depth += 1
        try:
            return self._value(node)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr) -> ValueSet:
        match node:
            case ast.Constant():
                return constants([node.value])
            case ast.Name():
                return self._name(node)
            case ast.IfExp():
                return union((self.value(node.body), self.value(node.orelse)))
            case ast.BoolOp():
                return union(self.value(each) for each in node.values)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._list(node)
            case ast.Compare():
                return truths(*(self.value(each) for each in (node.left, *node.comparators)))
            case ast.Await() | ast.NamedExpr():
                return self.value(node.value)
            case ast.Call():
                return self._call(node)
            case ast.Attribute() | ast.Subscript():
                return self._part(node)
            case _:
                return UNKNOWN

    def _name(self, node: ast.Name) -> ValueSet:
        bound = self._code.local(node.id)
        if bound is not None:
            return union(self.value(each) for each in bound)
        return _of_plain(self._code.outer(node.id))

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> ValueSet:
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return UNKNOWN
        return frozenset({FixedList(tuple(self.value(each) for each in node.elts))})

    def _part(self, node: ast.Attribute | ast.Subscript) -> ValueSet:
        field = self._code.field_of(node)
        if field is not None:
            return self._read((field,))
        if isinstance(node, ast.Attribute):
            # A Reply equals its decision; its other parts are free.
            inside = self.value(node.value) if node.attr == "decision" else UNKNOWN
            return inside if _is_answer(inside) else UNKNOWN
        if isinstance(node.value, ast.Dict):
            return self._looked_up(node.value, self.value(node.slice))
        return UNKNOWN

    def _looked_up(self, table: ast.Dict, key: ValueSet) -> ValueSet:
        """`{"approve": "yes", "reject": "no"}[s.decision]`: one decision in other words."""
        found = union(self.value(each) for each in table.values)
        if not is_decided(key):
            return found
        name = next(each.name for each in key if isinstance(each, Constant) and each.source == DECISION)
        return frozenset(
            Constant(each.value, DECISION, name, each.family) if isinstance(each, Constant) else each
            for each in found
        )

    def _call(self, node: ast.Call) -> ValueSet:
        called = node.func
        if isinstance(called, ast.Name) and called.id == "str" and len(node.args) == 1:
            return _mapped(self.value(node.args[0]), str)
        if not isinstance(called, ast.Attribute):
            return UNKNOWN
        if called.attr == "ask" and self._code.is_context(called.value):
            return self._answer(node)
        if called.attr == "get" and 1 <= len(node.args) <= 2:
            return self._got(called.value, node.args)
        if called.attr in _TEXT_METHODS and not node.args:
            return _mapped(self.value(called.value), lambda text: getattr(text, called.attr)())
        return UNKNOWN

    def _got(self, owner: ast.expr, given: list[ast.expr]) -> ValueSet:
        other = self.value(given[1]) if len(given) == 2 else constants([None])
        key = given[0]
        if self._code.is_state(owner) and isinstance(key, ast.Constant) and isinstance(key.value, str):
            return union((self._read((key.value,)), other))
        if isinstance(owner, ast.Dict):
            return union((self._looked_up(owner, self.value(key)), other))
        return UNKNOWN

    def _answer(self, node: ast.Call) -> ValueSet:
        """Options that are computed are not known, and neither is an answer without options."""
        given = {each.arg: each.value for each in node.keywords}
        timeout = given.get("on_timeout")
        certain = isinstance(timeout, ast.Constant) and str(timeout.value).startswith(_CERTAIN_TIMEOUTS)
        if None in given or "form" in given or (timeout is not None and not certain):
            return UNKNOWN
        written = _plain_of(given.get("options"), self._code)
        try:
            options = [read_option(each) for each in written] if isinstance(written, (list, tuple)) else []  # type: ignore[misc]
        except (TypeError, ValueError):
            options = []
        if not options:
            return UNKNOWN
        return constants([option.id for option in options], DECISION, ANSWER)


def _plain_of(node: ast.expr | None, code: FunctionNames) -> Any:
    """Options as written, or as a variable of the module has them."""
    if node is None:
        return None
    if isinstance(node, ast.Name):
        bound = code.local(node.id)
        if bound is None:
            return code.outer(node.id)
        return _plain_of(bound[0], code) if len(bound) == 1 else None
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_plain_of(each, code) for each in node.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option":
        first = node.args[0] if node.args else None
        name = first.value if isinstance(first, ast.Constant) else None
        return Option(name, name) if isinstance(name, str) else None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _of_plain(value: Any) -> ValueSet:
    """A variable of the module: texts, numbers, and lists of them."""
    if isinstance(value, (list, tuple)):
        return frozenset({FixedList(tuple(_of_plain(each) for each in value))})  # type: ignore[misc]
    if value is not ... and isinstance(value, (str, int, float, bool)):
        return constants([value])
    return UNKNOWN


def _mapped(values: ValueSet, change: Callable[[str], str]) -> ValueSet:
    if not all(isinstance(each, Constant) and isinstance(each.value, str) for each in values):
        return UNKNOWN
    return frozenset(
        Constant(change(each.value), each.source, each.name, each.family)
        for each in values
        if isinstance(each, Constant)
    )


def _is_answer(values: ValueSet) -> bool:
    return bool(values) and all(isinstance(e, Constant) and e.name == ANSWER for e in values)
