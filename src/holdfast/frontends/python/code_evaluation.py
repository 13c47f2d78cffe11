"""The values that an expression of Python can have, as far as it is plain to see."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, Final, Protocol, cast

import msgspec

from holdfast.model.checks.value_sets import (
    DECISION,
    FREE_ANSWER,
    INITIAL,
    LITERAL,
    UNKNOWN,
    AnyValue,
    Constant,
    FixedList,
    FixedMap,
    Read,
    ValueSet,
    computed_from,
    constants,
    entries,
    is_decided,
    leaves,
    truths,
    union,
)
from holdfast.model.checks.value_types import TEXT
from holdfast.model.hold_declaration import read_option
from holdfast.types.hold import Option

_DEEPEST: Final = 20
_MOST_TEXTS: Final = 100
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

    def is_fixed(self, name: str) -> bool:
        """Whether what is bound to this local name is never changed in place, as far as the code shows."""
        ...

    def helper(self, node: ast.Call) -> HelperCall | None:
        """A call of a function of the same module, whose code is known."""
        ...


class HelperCall(Protocol):
    """A function that is called, with what its parameters get."""

    @property
    def names(self) -> FunctionNames: ...

    @property
    def given(self) -> Mapping[str, ast.expr | Any]: ...

    def returned(self) -> Iterable[ast.expr | None]: ...


class PlainDefault(msgspec.Struct, frozen=True):
    """The default of a parameter."""

    value: Any


class CodeEvaluation:
    """`given`: the values of parameters, where a function is followed into another."""

    def __init__(
        self, code: FunctionNames, read: Read, given: Mapping[str, ValueSet] | None = None, depth: int = 0
    ) -> None:
        self._code, self._read, self._depth = code, read, depth
        self._given = given or {}
        self._known: dict[ast.expr, ValueSet] = {}

    def value(self, node: ast.expr | None) -> ValueSet:
        if node is None or self._depth > _DEEPEST:
            return UNKNOWN
        if node not in self._known:
            # A variable that is computed from itself.
            self._known[node] = UNKNOWN
            self._depth += 1
            found = self._value(node)
            self._known[node] = found if found != UNKNOWN else self._computed(node)
            self._depth -= 1
        return self._known[node]

    def _computed(self, node: ast.expr) -> ValueSet:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and self._code.is_context(called.value):
            return UNKNOWN  # an answer is not computed from what is shown with its question
        source = next((name for each in _operands(node) if (name := self._source(each))), "")
        return frozenset({AnyValue(None, source)}) if source else UNKNOWN

    def _source(self, node: ast.expr) -> str:
        """The decision that this is, or is computed from."""
        found = self.value(node)
        decided = (e.name for e in leaves(found) if e.source == DECISION and isinstance(e.value, str))
        return next(decided, "") or computed_from(found)

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
            case ast.Dict():
                return self._map(node)
            case ast.JoinedStr():
                return self._joined([_formatted(each) for each in node.values], (str, int))
            case ast.BinOp(op=ast.Add()):
                return self._joined([node.left, node.right], str)
            case _:
                return UNKNOWN

    def _name(self, node: ast.Name) -> ValueSet:
        bound = self._code.local(node.id)
        if bound is None:
            return _of_plain(self._code.outer(node.id))
        if bound == [None] and node.id in self._given:
            return self._given[node.id]
        found = union(self.value(each) for each in bound)
        # What a variable holds may have been changed in place since.
        changeable = any(isinstance(each, (FixedList, FixedMap)) for each in found)
        return UNKNOWN if changeable and not self._code.is_fixed(node.id) else found

    def _map(self, node: ast.Dict) -> ValueSet:
        keys = [each.value if isinstance(each, ast.Constant) else ... for each in node.keys]
        if ... in keys:
            return UNKNOWN
        pairs = zip(keys, node.values, strict=True)
        return frozenset({FixedMap(tuple((key, self.value(value)) for key, value in pairs))})

    def _joined(self, parts: list[ast.expr | None], kinds: type | tuple[type, ...]) -> ValueSet:
        """A text put together: every combination, which stands for the decision if a part does."""
        sets = [[each for each in self.value(part) if isinstance(each, Constant)] for part in parts]
        whole = all(len(one) == len(self.value(part)) for one, part in zip(sets, parts, strict=True))
        texts = all(isinstance(each.value, kinds) for one in sets for each in one)
        if not whole or not texts or not 0 < prod(map(len, sets)) <= _MOST_TEXTS:
            return UNKNOWN
        return frozenset(_text_of(each) for each in product(*sets))

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
        return self._looked_up(self.value(node.value), self.value(node.slice))

    def _looked_up(self, table: ValueSet, key: ValueSet) -> ValueSet:
        """`{"approve": "yes", "reject": "no"}[s.decision]`: one decision in other words."""
        found = entries(table, key)
        if not is_decided(key):
            return found
        name = next(each.name for each in key if isinstance(each, Constant) and each.source == DECISION)
        return frozenset(
            Constant(each.value, DECISION, name, each.family) if isinstance(each, Constant) else each
            for each in found
        )

    def _call(self, node: ast.Call) -> ValueSet:
        called = node.func
        if isinstance(called, ast.Name) and called.id == "getattr" and 2 <= len(node.args) <= 3:
            return self._attribute(node.args)
        if isinstance(called, ast.Name) and called.id == "str" and len(node.args) == 1:
            return _mapped(self.value(node.args[0]), str)
        if not isinstance(called, ast.Attribute):
            return self._helped(node)
        if called.attr == "ask" and self._code.is_context(called.value):
            return self._answer(node)
        if called.attr == "get" and 1 <= len(node.args) <= 2:
            return self._got(called.value, node.args)
        if called.attr in _TEXT_METHODS and not node.args:
            return _mapped(self.value(called.value), lambda text: getattr(text, called.attr)())
        return UNKNOWN

    def _attribute(self, given: list[ast.expr]) -> ValueSet:
        """`getattr(s, "decision", None)`."""
        owner, name = given[:2]
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            return UNKNOWN
        found = self._part(ast.copy_location(ast.Attribute(owner, name.value, ast.Load()), owner))
        return union((found, self.value(given[2]))) if len(given) == 3 and found != UNKNOWN else found

    def _got(self, owner: ast.expr, given: list[ast.expr]) -> ValueSet:
        other = self.value(given[1]) if len(given) == 2 else constants([None])
        key = given[0]
        if self._code.is_state(owner) and isinstance(key, ast.Constant) and isinstance(key.value, str):
            return union((self._read((key.value,)), other))
        return union((self._looked_up(self.value(owner), self.value(key)), other))

    def _helped(self, node: ast.Call) -> ValueSet:
        """What a function of the same module returns for these arguments."""
        called = self._code.helper(node)
        if called is None:
            return UNKNOWN
        inner = CodeEvaluation(called.names, self._read, self.given_to(called), self._depth)
        return union(inner.value(each) for each in called.returned())

    def given_to(self, called: HelperCall) -> dict[str, ValueSet]:
        """The values of the parameters of a function that is called here."""
        return {
            name: _of_plain(each.value) if isinstance(each, PlainDefault) else self.value(each)
            for name, each in called.given.items()
        }

    def _answer(self, node: ast.Call) -> ValueSet:
        """Options that are computed are not known, and neither is an answer without options."""
        given = {each.arg: each.value for each in node.keywords}
        timeout = given.get("on_timeout")
        certain = isinstance(timeout, ast.Constant) and str(timeout.value).startswith(_CERTAIN_TIMEOUTS)
        if None in given or "form" in given or (timeout is not None and not certain):
            return UNKNOWN
        if given.keys().isdisjoint(("options", "schema")):
            return FREE_ANSWER
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
    """A variable of the module: texts, numbers, and lists and tables of them."""
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        if len(table) > _MOST_TEXTS or not all(isinstance(key, (str, int)) for key in table):
            return UNKNOWN
        return frozenset({FixedMap(tuple((key, _of_plain(each)) for key, each in table.items()))})
    if isinstance(value, (list, tuple)):
        return frozenset({FixedList(tuple(_of_plain(each) for each in value))})  # type: ignore[misc]
    if value is not ... and isinstance(value, (str, int, float, bool)):
        return constants([value])
    return UNKNOWN


def _mapped(values: ValueSet, change: Callable[[str], str]) -> ValueSet:
    if not all(isinstance(each, Constant) and isinstance(each.value, str) for each in values):
        return values if values == FREE_ANSWER else UNKNOWN
    return frozenset(
        Constant(change(each.value), each.source, each.name, each.family)
        for each in values
        if isinstance(each, Constant)
    )


def _is_answer(values: ValueSet) -> bool:
    if values == FREE_ANSWER:
        return True
    return bool(values) and all(isinstance(e, Constant) and e.name == ANSWER for e in values)


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression computes its value from; not what it only chooses or reads by."""
    match node:
        case ast.Call():
            yield from node.args
            yield from (each.value for each in node.keywords)
            if isinstance(node.func, ast.Attribute):
                yield node.func.value
        case ast.BinOp():
            yield from (node.left, node.right)
        case ast.JoinedStr():
            yield from (each.value for each in node.values if isinstance(each, ast.FormattedValue))
        case ast.Subscript():
            yield from (node.value, node.slice)
        case _:
            return


def _formatted(part: ast.expr) -> ast.expr | None:
    """None for a part that is formatted in some other way than `str` does."""
    if not isinstance(part, ast.FormattedValue):
        return part
    return part.value if part.conversion in (-1, ord("s")) and part.format_spec is None else None


def _text_of(parts: tuple[Constant, ...]) -> Constant:
    sources = {each.source: each.name for each in parts}
    source = next((each for each in (DECISION, INITIAL) if each in sources), LITERAL)
    return Constant("".join(str(each.value) for each in parts), source, sources.get(source, ""), TEXT)
