"""Compiles an expression: text to tree to closures. Its shape is decided once, not at each evaluation.

Loops are used here instead of `all` and `any`, because a generator costs a third of the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, assert_never

from holdfast.errors import MissingNameError
from holdfast.model.expressions.errors import ExprSyntaxError
from holdfast.model.expressions.nodes import (
    AllOf,
    AnyOf,
    Choose,
    Comparison,
    Default,
    Exists,
    Items,
    Literal,
    Name,
    Node,
    Not,
    names_in,
    spell,
)
from holdfast.model.expressions.parse import parse
from holdfast.model.expressions.resolve import Path, Resolve
from holdfast.model.expressions.values import (
    MISSING,
    ORDER,
    STRICT_ORDER,
    clearly_contains,
    clearly_equal,
    clearly_strictly_equal,
    contains,
    equal,
    is_small,
    require_alike,
    strictly_equal,
    truthy,
)
from holdfast.model.expressions.visit_limit import counted

if TYPE_CHECKING:
    from holdfast.model.expressions.resolve import Path, Resolve

Evaluate: TypeAlias = Callable[[Resolve], object]
Relation: TypeAlias = Callable[[object, object], bool]


def _negated(relation: Relation) -> Relation:
    return lambda left, right: not relation(left, right)


def _equality(
    same: Relation, strictly_same: Relation, has: Callable[[object, object], bool]
) -> dict[str, Relation]:
    return {
        "==": same,
        "!=": _negated(same),
        "===": strictly_same,
        "!==": _negated(strictly_same),
        "in": lambda item, container: has(container, item),
        "not in": lambda item, container: not has(container, item),
    }


_EQUALITY: Final = _equality(equal, strictly_equal, contains)
_LENIENT: Final[dict[str, Relation]] = {**_EQUALITY, **ORDER}
_STRICT: Final[dict[str, Relation]] = {
    **_equality(clearly_equal, clearly_strictly_equal, clearly_contains),
    **STRICT_ORDER,
}


def closure(node: Node, *, strict: bool = True) -> Evaluate:
    """`strict`: a name without a value and values without an order raise; else they compare as false."""
    return _Compiler(strict=strict).closure(node)


def _no_value(path: Path) -> NoReturn:
    name = ".".join(path)
    raise MissingNameError(
        f"{name!r} has no value",
        hint=f"Correct the name, or write exists({name}) or {name} | default(...) if it may be missing.",
        name=name,
    )


class _Compiler:
    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._relations = _STRICT if strict else _LENIENT

    def closure(self, node: Node) -> Evaluate:
        match node:
            case Literal(value):
                return lambda resolve: value
            case Name(path):
                return self._name(path)
            case Exists(path):
                return lambda resolve: resolve(path) is not MISSING
            case Default(path, fallback):
                return self._default(path, fallback)
            case Items(items):
                return self._list(items)
            case Not(operand):
                inner = self.closure(operand)
                return lambda resolve: not truthy(inner(resolve))
            case AllOf(operands):
                return self._all(operands)
            case AnyOf(operands):
                return self._any(operands)
            case Comparison():
                return self._compare(node)
            case Choose():
                return self._choose(node)
            case _:
                assert_never(node)

    def _name(self, path: Path) -> Evaluate:
        if not self._strict:
            return lambda resolve: resolve(path)

        def evaluate(resolve: Resolve) -> object:
            value = resolve(path)
            if value is MISSING:
                _no_value(path)
            return value

        return evaluate

    def _default(self, path: Path, fallback: Node) -> Evaluate:
        other = self.closure(fallback)

        def evaluate(resolve: Resolve) -> object:
            value = resolve(path)
            return other(resolve) if value is MISSING else value

        return evaluate

    def _list(self, items: tuple[Node, ...]) -> Evaluate:
        parts = [self.closure(item) for item in items]

        def evaluate(resolve: Resolve) -> object:
            found = [part(resolve) for part in parts]
            # A list may leave the expression as its result, and the sentinel must not leave inside it.
            return [None if value is MISSING else value for value in found]

        return evaluate

    def _all(self, operands: tuple[Node, ...]) -> Evaluate:
        parts = [self.closure(operand) for operand in operands]

        def evaluate(resolve: Resolve) -> object:
            for part in parts:  # noqa: SIM110
                if not truthy(part(resolve)):
                    return False
            return True

        return evaluate

    def _any(self, operands: tuple[Node, ...]) -> Evaluate:
        parts = [self.closure(operand) for operand in operands]

        def evaluate(resolve: Resolve) -> object:
            for part in parts:  # noqa: SIM110
                if truthy(part(resolve)):
                    return True
            return False

        return evaluate

    def _choose(self, node: Choose) -> Evaluate:
        test, then, otherwise = map(self.closure, (node.test, node.then, node.otherwise))
        return lambda resolve: then(resolve) if truthy(test(resolve)) else otherwise(resolve)

    def _compare(self, node: Comparison) -> Evaluate:
        if node.operator in ("in", "not in") and isinstance(node.right, Items):
            return self._among(node.left, node.right.items, wanted=node.operator == "in")
        relation = self._relations[node.operator]
        if isinstance(node.left, Name) and isinstance(node.right, Literal):
            return self._name_with_literal(relation, node.left.path, node.right.value)
        left, right = self.closure(node.left), self.closure(node.right)
        if not self._strict:
            return lambda resolve: relation(left(resolve), right(resolve))

        def evaluate(resolve: Resolve) -> object:
            first, second = left(resolve), right(resolve)
            if is_small(second):
                return relation(first, second)
            return counted(relation, first, second, resolve)

        return evaluate

    def _name_with_literal(self, relation: Relation, path: Path, literal: object) -> Evaluate:
        """The most common condition, with two calls less."""
        if not self._strict:
            return lambda resolve: relation(resolve(path), literal)

        def evaluate(resolve: Resolve) -> object:
            value = resolve(path)
            if value is MISSING:
                _no_value(path)
            return relation(value, literal)

        return evaluate

    def _among(self, left: Node, items: tuple[Node, ...], *, wanted: bool) -> Evaluate:
        """Membership in a written-out list is `==` with each item, in order until one is equal."""
        item, members = self.closure(left), [self.closure(member) for member in items]
        strict = self._strict

        def evaluate(resolve: Resolve) -> object:
            value = item(resolve)
            others: list[object] = []
            for member in members:
                other = member(resolve)
                if equal(value, other) if is_small(other) else counted(equal, value, other, resolve):
                    return wanted
                others.append(other)
            for other in others if strict else ():
                require_alike(value, other)
            return not wanted

        return evaluate


MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 100


class Expr:
    """A compiled expression. Immutable; equal to every expression with the same canonical text.

    `evaluate(resolve)` calls `resolve` with each path that it needs, in order, and returns the raw result:
    a boolean for a condition, any value for a bare path or a ternary. It raises MissingNameError for a path
    that leads nowhere, NotComparableError for values without an order, and what `resolve` raises.
    `lenient(resolve)` raises only what `resolve` raises: a missing path gives MISSING, and comparisons with
    it or without an order are false. `str(expr)` is the canonical text, `names` are the paths it reads.
    """

    __slots__ = ("_canonical", "_lenient", "evaluate", "names", "node", "text")

    text: Final[str]
    node: Final[Node]
    names: Final[frozenset[Path]]
    evaluate: Final[Evaluate]

    def __init__(self, text: str, node: Node, canonical: str) -> None:
        self.text = text
        self.node = node
        self.names = names_in(node)
        self.evaluate = closure(node)
        self._canonical: Final = canonical
        self._lenient: Evaluate | None = None

    def lenient(self, resolve: Resolve) -> object:
        if self._lenient is None:
            self._lenient = closure(self.node, strict=False)
        return self._lenient(resolve)

    def __str__(self) -> str:
        return self._canonical

    def __repr__(self) -> str:
        return f"compile_expr({self._canonical!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr):
            return NotImplemented
        return self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)


def compile_expr(text: str) -> Expr:
    """Compile a condition. Raises ExprSyntaxError, which says where, what was expected and what to do."""
    _check_length(text, text)
    node = parse(text, max_depth=MAX_DEPTH)
    canonical = spell(node)
    # What is written back out must compile again, so the canonical text obeys the same bound.
    _check_length(canonical, text)
    return Expr(text, node, canonical)


def _check_length(measured: str, text: str) -> None:
    if len(measured) > MAX_LENGTH:
        hint = f"at most {MAX_LENGTH} characters: move the decision into a router node"
        raise ExprSyntaxError(f"{len(measured)} characters long", text=text, column=MAX_LENGTH + 1, hint=hint)
