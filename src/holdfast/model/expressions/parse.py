"""Tokens to tree: precedence climbing, a few stack frames for each level of nesting."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

from holdfast.model.expressions.errors import ExprSyntaxError
from holdfast.model.expressions.lex import END, LITERAL, NAME, OPERATOR, ExprToken, tokenize
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
    Precedence,
)

if TYPE_CHECKING:
    from holdfast.model.expressions.resolve import Path

_COMPARISONS = frozenset({"===", "!==", "==", "!=", ">=", "<=", ">", "<", "in"})
_HINT_AFTER_NAME = {
    "(": "the only function is exists(name)",
    "|": "use || or the word or; a name that may be missing is written name | default(value)",
    "[": "write items.0 for the first item, not items[0]",
}


def parse(text: str, *, max_depth: int) -> Node:
    return _Parser(text, max_depth).whole()


class _Parser:
    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._position = 0
        self._depth_left = max_depth

    def whole(self) -> Node:
        node = self._expression(Precedence.CHOOSE)
        if self._next.kind != END:
            raise self._fault("an operator or the end", _HINT_AFTER_NAME.get(self._next.source, ""))
        return node

    def _expression(self, power: int) -> Node:
        node = self._operand(power)
        if power <= Precedence.COMPARE:
            node = self._comparison(node)
        if power <= Precedence.ALL and self._sees("&&"):
            node = self._all(node)
        if power <= Precedence.ANY and self._sees("||"):
            node = self._any(node)
        if power <= Precedence.CHOOSE and self._sees("?"):
            node = self._choice(node)
        return node

    def _operand(self, power: int) -> Node:
        token = self._take()
        if token.kind == NAME:
            return self._named(token)
        if token.kind == LITERAL:
            return Literal(cast("str | int | float | bool | None", token.value))
        if token.value == "(" and token.kind == OPERATOR:
            return self._group(token)
        if token.value == "[" and token.kind == OPERATOR:
            return self._list(token)
        if token.value == "!":
            return Not(self._nested(token, Precedence.NOT))
        if token.value == "not" and power <= Precedence.NOT_WORD:
            # Its canonical form may need parentheses too, and must fit the same bound: hence two levels.
            return Not(self._nested(token, Precedence.COMPARE, levels=2))
        self._position -= 1
        raise self._fault("a value", "use ! here, or parentheses" if token.value == "not" else "")

    def _named(self, token: ExprToken) -> Node:
        path = cast("Path", token.value)
        if path == ("exists",) and self._accept("("):
            asked = self._take()
            if asked.kind != NAME:
                self._position -= 1
                raise self._fault("a name", "exists(name) asks whether the name has a value")
            self._expect(")")
            return Exists(cast("Path", asked.value))
        if not self._sees("|"):
            return Name(path)
        bar = self._take()
        word = self._take()
        if word.kind != NAME or word.value != ("default",):
            self._position -= 1
            raise self._fault("default", _HINT_AFTER_NAME["|"])
        self._expect("(")
        fallback = self._nested(bar, Precedence.CHOOSE)
        self._expect(")")
        return Default(path, fallback)

    def _comparison(self, left: Node) -> Node:
        operator = self._take_comparison()
        if operator is None:
            return left
        node = Comparison(operator, left, self._expression(Precedence.NOT))
        if self._next_is_comparison():
            raise self._fault(
                "an operator that joins conditions", "comparisons do not chain: join them with &&"
            )
        return node

    def _take_comparison(self) -> str | None:
        if not self._next_is_comparison():
            return None
        operator = cast("str", self._take().value)
        if operator != "not":
            return operator
        self._expect("in")
        return "not in"

    def _next_is_comparison(self) -> bool:
        token = self._next
        return token.kind == OPERATOR and (token.value in _COMPARISONS or token.value == "not")

    def _all(self, first: Node) -> Node:
        operands = [first]
        while self._accept("&&"):
            operands.append(self._expression(Precedence.NOT_WORD))
        flat = (each.operands if isinstance(each, AllOf) else (each,) for each in operands)
        return AllOf(tuple(chain.from_iterable(flat)))

    def _any(self, first: Node) -> Node:
        operands = [first]
        while self._accept("||"):
            operands.append(self._expression(Precedence.ALL))
        flat = (each.operands if isinstance(each, AnyOf) else (each,) for each in operands)
        return AnyOf(tuple(chain.from_iterable(flat)))

    def _choice(self, test: Node) -> Node:
        token = self._take()
        then = self._nested(token, Precedence.CHOOSE)
        self._expect(":")
        return Choose(test, then, self._nested(token, Precedence.CHOOSE))

    def _group(self, opening: ExprToken) -> Node:
        node = self._nested(opening, Precedence.CHOOSE)
        self._expect(")")
        return node

    def _list(self, opening: ExprToken) -> Node:
        items: list[Node] = []
        while not self._accept("]"):
            if items:
                self._expect(",")
            items.append(self._nested(opening, Precedence.CHOOSE))
        return Items(tuple(items))

    def _nested(self, opening: ExprToken, power: int, levels: int = 1) -> Node:
        if self._depth_left < levels:
            raise ExprSyntaxError("nested too deeply", text=self._text, column=opening.column)
        self._depth_left -= levels
        node = self._expression(power)
        self._depth_left += levels
        return node

    @property
    def _next(self) -> ExprToken:
        return self._tokens[self._position]

    def _take(self) -> ExprToken:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _sees(self, operator: str) -> bool:
        return self._next.kind == OPERATOR and self._next.value == operator

    def _accept(self, operator: str) -> bool:
        if not self._sees(operator):
            return False
        self._position += 1
        return True

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise self._fault(repr(operator))

    def _fault(self, expected: str, hint: str = "") -> ExprSyntaxError:
        problem = f"expected {expected}, found {self._next.describe()}"
        return ExprSyntaxError(problem, text=self._text, column=self._next.column, hint=hint)
