"""What the source of a function shows about values: which it sets, and which it compares.

Only what is plain to see: constants, fields of the state, answers of `ctx.ask` with written options, local
variables, conditional expressions, and the usual methods of texts. Everything else is unknown.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import FunctionType
from typing import Any, Final

import msgspec

from holdfast.frontends.python.code import (
    function_nodes,
    innermost,
    outcome_call,
    returned,
    shown_tree,
    update_of,
)
from holdfast.frontends.python.code_evaluation import CodeEvaluation, PlainDefault
from holdfast.frontends.python.code_tests import (
    Compared,
    asked_for_truth,
    constant_operands,
    fallbacks,
    looked_into,
    matched,
)
from holdfast.frontends.python.code_unread_answers import asks, unread_asks
from holdfast.frontends.python.function_parameters import context_name
from holdfast.model.checks.names import TRUTH, CodeComparison, CodeValue, QuestionSlip
from holdfast.model.checks.value_sets import (
    PART_METHODS,
    UNKNOWN,
    FixedList,
    Read,
    ValueSet,
    constants,
    is_decided,
    union,
)

_OPERATORS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}


_YIELDS: Final = (ast.Yield, ast.YieldFrom)
_MOST_CALLS: Final = 4
_READS: Final = frozenset({"get", "keys", "values", "items", "copy", "index", "count"})


class CodeFacts:
    """Of one function. Empty if its source is not known."""

    def __init__(self, fn: Callable[..., Any], takes: tuple[str, ...], state: str | None = None) -> None:
        """`state`: the parameter that gets the state, if it is not the first."""
        inner = innermost(fn)
        self._tree = shown_tree(inner)
        self._outer = _outer(inner)
        self._context = context_name(fn)
        self._state = state or (self._first_parameter() if "state" in takes else None)
        self._local = {} if self._tree is None else _bindings(self._tree)
        self._changed = set[str]() if self._tree is None else _changed_in_place(self._tree)
        self._module = getattr(inner, "__globals__", None)

    def _first_parameter(self) -> str | None:
        if self._tree is None:
            return None
        given = [a.arg for a in (*self._tree.args.posonlyargs, *self._tree.args.args)]
        return next((name for name in given if name not in (self._context, "self", "cls")), None)

    @property
    def tree(self) -> ast.FunctionDef | ast.AsyncFunctionDef:
        assert self._tree is not None
        return self._tree

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
    def reads(self) -> frozenset[str] | None:
        """The names and texts in its source, among them the fields that it reads; None if it may read any
        field: its source is not known, or it hands on the state."""
        if self._tree is None:
            return None
        found, parts = set[str](), set[int]()
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and self.is_state(node.value):
                parts.add(id(node.value))
            parts |= {id(each) for each in looked_into(node) if self.is_state(each)}
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
        handed = (n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and self.is_state(n))
        return None if any(id(each) not in parts for each in handed) else frozenset(found)

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
    def unread_asks(self) -> tuple[int, ...]:
        """The lines of questions with options whose answer is not read before something acts."""
        if self._tree is None or self._context is None:
            return ()
        here = CodeEvaluation(self, lambda _path: UNKNOWN)

        def chooses(asked: ast.Call) -> bool:
            found = here.value(asked)
            return is_decided(found) and len(found) > 1

        return unread_asks(self._tree, self.is_context, chooses)

    @cached_property
    def question_slips(self) -> tuple[QuestionSlip, ...]:
        if self._tree is None or self._context is None or not asks(self._tree, self.is_context):
            return ()
        from holdfast.frontends.python.code_question_slips import question_slips

        return question_slips(self._tree, self.is_context)

    @cached_property
    def comparisons(self) -> tuple[CodeComparison, ...]:
        if self._tree is None:
            return ()
        inside = self._in_helpers(lambda read: CodeEvaluation(self, read), Counter())
        return (*self._comparisons(self._tree), *inside)

    def _in_helpers(
        self, evaluation: Callable[[Read], CodeEvaluation], followed: Counter[str]
    ) -> list[CodeComparison]:
        """The comparisons in functions of the module that this one calls, with what they are called with."""
        found: list[CodeComparison] = []
        for node in function_nodes(self.tree):
            called = self.helper(node) if isinstance(node, ast.Call) else None
            # Also against functions that call each other.
            if called is None or followed[called.name] >= _MOST_CALLS:
                continue
            followed[called.name] += 1

            def inner(read: Read, called: Helper = called) -> CodeEvaluation:
                return CodeEvaluation(called.names, read, evaluation(read).given_to(called))

            own = called.names._comparisons(called.names.tree, inner)
            shared = called.names._state is None
            found += (msgspec.structs.replace(each, function=called.name, shared=shared) for each in own)
            found += called.names._in_helpers(inner, followed)
        return found

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

    def _comparisons(
        self, tree: ast.AST, evaluation: Callable[[Read], CodeEvaluation] | None = None
    ) -> Iterator[CodeComparison]:
        for operator, left, right, line in self._compared(tree):
            yield CodeComparison(
                operator=operator,
                left=self._later([left], evaluation),
                right=self._later([right], evaluation),
                left_text=ast.unparse(left),
                right_text=ast.unparse(right),
                line=line,
            )

    def _compared(self, tree: ast.AST) -> Iterator[Compared]:
        for node in function_nodes(tree):
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
                yield _OPERATORS[type(node.ops[0])], node.left, node.comparators[0], node.lineno
            elif isinstance(node, (ast.Subscript, ast.Call)):
                yield from self._calls(node)
            elif isinstance(node, ast.Match):
                for case in node.cases:
                    yield from matched(node.subject, case.pattern)
            elif isinstance(node, ast.BoolOp):
                yield from constant_operands(node)
            yield from fallbacks(node)
            for asked in asked_for_truth(node):
                yield TRUTH, asked, asked, asked.lineno

    def _calls(self, node: ast.Subscript | ast.Call) -> Iterator[Compared]:
        """`{"approve": ...}[decision]`, `{...}.get(decision)` and `decision.startswith("appr")`."""
        if isinstance(node, ast.Subscript):
            table, key = node.value, node.slice
        elif isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in PART_METHODS:
                yield node.func.attr, node.func.value, node.args[0], node.lineno
            if node.func.attr != "get":
                return
            table, key = node.func.value, node.args[0]
        else:
            return
        keys = self._keys(table)
        if keys is not None:
            yield "in", key, ast.List(keys, ast.Load()), node.lineno

    def _keys(self, table: ast.expr) -> list[ast.expr] | None:
        """Of a table that is written there, in a variable, or in the module."""
        if isinstance(table, ast.Dict):
            return None if None in table.keys else [each for each in table.keys if each is not None]
        if not isinstance(table, ast.Name):
            return None
        bound = self.local(table.id)
        if bound is not None:
            single = bound[0] if len(bound) == 1 and self.is_fixed(table.id) else None
            return self._keys(single) if isinstance(single, ast.Dict) else None
        known = self.outer(table.id)
        return [ast.Constant(key) for key in known] if isinstance(known, dict) else None  # type: ignore[misc]

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

    def _later(
        self, values: list[ast.expr | None], evaluation: Callable[[Read], CodeEvaluation] | None = None
    ) -> CodeValue:
        def found(read: Read) -> ValueSet:
            here = CodeEvaluation(self, read) if evaluation is None else evaluation(read)
            return union(here.value(each) for each in values)

        return found

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

    def is_fixed(self, name: str) -> bool:
        return name not in self._changed

    def helper(self, node: ast.Call) -> Helper | None:
        if not isinstance(node.func, ast.Name) or self.local(node.func.id) is not None:
            return None
        fn = self.outer(node.func.id)
        if not isinstance(fn, FunctionType) or fn.__globals__ is not self._module:
            return None
        return Helper.called(fn, node, self)


class Helper(msgspec.Struct, frozen=True):
    """A function of the module that is called; `given`: what each of its parameters gets."""

    name: str
    names: CodeFacts
    given: dict[str, ast.expr | PlainDefault]

    @classmethod
    def called(cls, fn: FunctionType, node: ast.Call, caller: CodeFacts) -> Helper | None:
        tree = shown_tree(fn)
        if tree is None or tree.decorator_list or any(isinstance(n, _YIELDS) for n in function_nodes(tree)):
            return None
        if any(isinstance(each, ast.Starred) for each in node.args) or any(not k.arg for k in node.keywords):
            return None
        signature = inspect.signature(fn)
        try:
            bound = signature.bind(*node.args, **{str(each.arg): each.value for each in node.keywords})
        except TypeError:
            return None
        given: dict[str, Any] = {
            name: PlainDefault(each.default) for name, each in signature.parameters.items()
        }
        given |= bound.arguments
        if any(isinstance(each, (tuple, dict)) for each in given.values()):
            return None  # *args or **kwargs
        state = next((n for n, v in given.items() if isinstance(v, ast.expr) and caller.is_state(v)), None)
        return cls(f"{fn.__name__}()", CodeFacts(fn, (), state), given)

    def returned(self) -> Iterator[ast.expr | None]:
        tree = self.names.tree
        yield from returned(tree)
        if not isinstance(tree.body[-1], (ast.Return, ast.Raise)):
            yield ast.Constant(None)  # it may end without a return


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


def _changed_in_place(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Local names whose lists and mappings may be changed: written into, given to others, or under another
    name too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            found |= _first_names([node.value])
        elif isinstance(node, ast.Call):
            found |= _first_names([*node.args, *(each.value for each in node.keywords)])
            if isinstance(node.func, ast.Attribute) and node.func.attr not in _READS:
                found |= _first_names([node.func.value])
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            found |= _first_names([node.value] if node.value is not None else [])
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            found |= _first_names(node.elts)
    return found


def _first_names(nodes: Iterable[ast.expr]) -> set[str]:
    """`a` of `a`, `a.b` and `a["b"]["c"]`."""
    found: set[str] = set()
    for each in nodes:
        node = each
        while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            node = node.value
        if isinstance(node, ast.Name):
            found.add(node.id)
    return found
