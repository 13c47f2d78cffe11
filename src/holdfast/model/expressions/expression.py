from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.model.expressions.compile import Evaluate, closure
from holdfast.model.expressions.errors import ExprSyntaxError
from holdfast.model.expressions.nodes import Node, names_in, spell
from holdfast.model.expressions.parse import parse

if TYPE_CHECKING:
    from holdfast.model.expressions.resolve import Path, Resolve

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
