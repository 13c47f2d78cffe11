"""What the source of a function shows about values: which it sets, and which it compares.

Only what is plain to see: constants, fields of the state, answers of `ctx.ask` with written options, local
variables, conditional expressions, and the usual methods of texts. Everything else is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from holdfast.frontends.python.code import (
    function_nodes,
    innermost,
    outcome_call,
    returned,
    shown_tree,
    update_of,
)
from holdfast.frontends.python.code_evaluation import CodeEvaluation
from holdfast.frontends.python.functions import context_name
from holdfast.model.checks.names import CodeComparison, CodeValue
from holdfast.model.checks.value_sets import PART_METHODS, FixedList, constants, union

_OPERATORS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}


class CodeFacts:
    """Of one function. Empty if its source is not known."""

    def __init__(self, fn: Callable[..., Any], takes: tuple[str, ...]) -> None:
        inner = innermost(fn)
        self._tree = shown_tree(inner)
        self._outer = _outer(inner)
        self._context = context_name(fn)
        self._state = self._first_parameter() if "state" in takes else None
        self._local = {} if self._tree is None else _bindings(self._tree)

    def _first_parameter(self) -> str | None:
        if self._tree is None:
            return None
        given = [a.arg for a in (*self._tree.args.posonlyargs, *self._tree.args.args)]
        return next((name for name in given if name not in (self._context, "self", "cls")), None)

    @cached_property
    def values(self) -> dict[str, CodeValue]:
        """By field: what the function sets it to."""
        if self._tree is None:
            return {}
        found: dict[str, list[ast.expr | None]] = {}
        for field, value in self._writes():
            found.setdefault(field, []).append(value)
        return {field: self._later(values) for field, values in found.items()}

    @cached_property
    def outcomes(self) -> tuple[str, ...] | None:
        """The words of its own that the function ends with; None if it may end with others."""
        if self._tree is None:
            return None
        words: list[str] = []
        for value in returned(self._tree):
            if value is None or isinstance(value, (ast.Constant, ast.Dict, ast.JoinedStr, ast.Compare)):
                continue
            status = _status_of(value)
            if status is None:
                return None
            words.append(status)
        return tuple(words)

    @cached_property
    def comparisons(self) -> tuple[CodeComparison, ...]:
        return () if self._tree is None else tuple(self._comparisons(self._tree))

    def returns(self, keys: Iterable[Any]) -> tuple[CodeComparison, ...]:
        """What the function returns, compared with the keys of a table that it chooses from."""
        if self._tree is None:
            return ()
        listed = frozenset({FixedList(tuple(constants([key]) for key in keys))})
        return (
            CodeComparison(
                operator="in",
                left=self._later(list(returned(self._tree))),
                right=lambda _read: listed,
                left_text="its result",
                right_text="the keys of its arms",
                line=1,
            ),
        )

    def _comparisons(self, tree: ast.AST) -> Iterator[CodeComparison]:
        for node in function_nodes(tree):
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
                operator = _OPERATORS[type(node.ops[0])]
                yield self._comparison(operator, node.left, node.comparators[0], node.lineno)
            elif isinstance(node, (ast.Subscript, ast.Call)):
                yield from self._calls(node)
            elif isinstance(node, ast.Match):
                for case in node.cases:
                    for pattern in ast.walk(case.pattern):
                        if isinstance(pattern, ast.MatchValue):
                            yield self._comparison("==", node.subject, pattern.value, pattern.lineno)

    def _calls(self, node: ast.Subscript | ast.Call) -> Iterator[CodeComparison]:
        """`{"approve": ...}[decision]`, `{...}.get(decision)` and `decision.startswith("appr")`."""
        if isinstance(node, ast.Subscript):
            table, key = node.value, node.slice
        elif isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in PART_METHODS:
                yield self._comparison(node.func.attr, node.func.value, node.args[0], node.lineno)
            if node.func.attr != "get":
                return
            table, key = node.func.value, node.args[0]
        else:
            return
        if isinstance(table, ast.Dict) and None not in table.keys:
            keys = ast.List([each for each in table.keys if each is not None], ast.Load())
            yield self._comparison("in", key, keys, node.lineno)

    def _comparison(self, operator: str, left: ast.expr, right: ast.expr, line: int) -> CodeComparison:
        return CodeComparison(
            operator=operator,
            left=self._later([left]),
            right=self._later([right]),
            left_text=ast.unparse(left),
            right_text=ast.unparse(right),
            line=line,
        )

    def _writes(self) -> Iterator[tuple[str, ast.expr | None]]:
        assert self._tree is not None
        for value in returned(self._tree):
            for each in self._own(value):
                update = update_of(each)
                if update is not None:
                    yield from _entries(update)
        for node in function_nodes(self._tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from self._set(target, node.value)
            elif isinstance(node, ast.AnnAssign):
                yield from self._set(node.target, node.value)
            elif isinstance(node, ast.AugAssign):
                yield from self._set(node.target, None)

    def _own(self, value: ast.expr | None) -> list[ast.expr | None]:
        """What a returned variable was assigned."""
        return (self.local(value.id) or []) if isinstance(value, ast.Name) else [value]

    def _set(self, target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                yield from self._set(each, None)
        field = self._field(target) or self._entry(target)
        if field is not None:
            yield field, value

    def _entry(self, node: ast.expr) -> str | None:
        """`update["field"]` of a variable, which may be what the function returns."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        values = [each.id for each in returned(self._tree) if isinstance(each, ast.Name)]  # type: ignore[arg-type]
        key = node.slice
        named = isinstance(key, ast.Constant) and isinstance(key.value, str) and node.value.id in values
        return key.value if named else None  # type: ignore[union-attr, return-value]

    def _field(self, node: ast.expr) -> str | None:
        """`s.field`, `s["field"]`."""
        if not isinstance(node, (ast.Attribute, ast.Subscript)) or not _is_name(node.value, self._state):
            return None
        if isinstance(node, ast.Attribute):
            return node.attr
        key = node.slice
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None

    def _later(self, values: list[ast.expr | None]) -> CodeValue:
        return lambda read: union(CodeEvaluation(self, read).value(each) for each in values)

    # For the evaluation.
    def local(self, name: str) -> list[ast.expr | None] | None:
        return self._local.get(name)

    def outer(self, name: str) -> Any:
        return self._outer.get(name, ...)

    def field_of(self, node: ast.expr) -> str | None:
        return self._field(node)

    def is_state(self, node: ast.expr) -> bool:
        return _is_name(node, self._state)

    def is_context(self, node: ast.expr) -> bool:
        return _is_name(node, self._context)


def _outer(fn: Any) -> dict[str, Any]:
    """The variables around the function: of its module, and of the functions around it."""
    found: dict[str, Any] = dict(getattr(fn, "__globals__", {}))
    code = getattr(fn, "__code__", None)
    for name, cell in zip(
        code.co_freevars if code else (), getattr(fn, "__closure__", None) or (), strict=False
    ):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            found[name] = ...
    return found


def _is_name(node: ast.expr, name: str | None) -> bool:
    return name is not None and isinstance(node, ast.Name) and node.id == name


def _entries(update: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(update.keys, update.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _status_of(value: ast.expr) -> str | None:
    call = outcome_call(value)
    if call is None or any(each.arg is None for each in call.keywords):
        return None
    named = {each.arg: each.value for each in call.keywords}
    status = call.args[0] if call.args else named.get("status", ast.Constant("success"))
    return status.value if isinstance(status, ast.Constant) and isinstance(status.value, str) else None


def _bindings(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr | None]]:
    """By local name: what it is assigned; None for anything but a plain assignment."""
    found: dict[str, list[ast.expr | None]] = {}
    plain: set[int] = set()
    for node in function_nodes(tree):
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                plain.add(id(target))
                found.setdefault(target.id, []).append(value)
    arguments = tree.args
    names = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    for each in names:
        if each is not None:
            found.setdefault(each.arg, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in plain:
            found.setdefault(node.id, []).append(None)
    return found
