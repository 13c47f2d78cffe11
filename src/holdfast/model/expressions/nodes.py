"""The syntax tree of an expression, and its one canonical spelling."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TypeAlias, assert_never

import msgspec

from holdfast.model.expressions.resolve import Path


class Precedence(enum.IntEnum):
    """How tightly each form binds; the parser and the printer share it so that they cannot disagree."""

    CHOOSE = 1
    ANY = 2
    ALL = 3
    NOT_WORD = 4
    COMPARE = 5
    NOT = 6
    ATOM = 7


class Literal(msgspec.Struct, frozen=True):
    value: str | int | float | bool | None


class Name(msgspec.Struct, frozen=True):
    path: Path


class Exists(msgspec.Struct, frozen=True):
    """`exists(x)`: whether the path leads to a value; null is one."""

    path: Path


class Default(msgspec.Struct, frozen=True):
    """`x | default(y)`: the value at the path, or that of `fallback` if it leads nowhere."""

    path: Path
    fallback: Node


class Items(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Not(msgspec.Struct, frozen=True):
    operand: Node


class AllOf(msgspec.Struct, frozen=True):
    """A flat chain: nesting two by two would let a long chain exhaust the stack."""

    operands: tuple[Node, ...]


class AnyOf(msgspec.Struct, frozen=True):
    operands: tuple[Node, ...]


class Comparison(msgspec.Struct, frozen=True):
    operator: str
    left: Node
    right: Node


class Choose(msgspec.Struct, frozen=True):
    test: Node
    then: Node
    otherwise: Node


Node: TypeAlias = Literal | Name | Exists | Default | Items | Not | AllOf | AnyOf | Comparison | Choose


def names_in(node: Node) -> frozenset[Path]:
    """Every path that the expression reads, those that may be missing too."""
    own = frozenset({node.path}) if isinstance(node, (Name, Exists, Default)) else frozenset[Path]()
    return own.union(*(names_in(child) for child in children_of(node)))


def required_names(node: Node) -> frozenset[Path]:
    """The paths without which it cannot be evaluated to its end: not those that it says may be missing."""
    own = frozenset({node.path}) if isinstance(node, Name) else frozenset[Path]()
    asked = {n.path for n in _walk(node) if isinstance(n, (Exists, Default))}
    return own.union(*(required_names(child) for child in children_of(node))) - asked


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children_of(node):
        yield from _walk(child)


def children_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Literal() | Name() | Exists():
            return ()
        case Default(_, fallback):
            return (fallback,)
        case Items(items):
            return items
        case Not(operand):
            return (operand,)
        case AllOf(operands) | AnyOf(operands):
            return operands
        case Comparison(_, left, right):
            return (left, right)
        case Choose(test, then, otherwise):
            return (test, then, otherwise)
        case _:
            assert_never(node)


def spell(node: Node, within: int = Precedence.CHOOSE) -> str:
    """Canonical text, in parentheses only where `within` binds tighter than the node itself."""
    text, power = _spelling(node)
    return text if power >= within else f"({text})"


def _spelling(node: Node) -> tuple[str, int]:
    match node:
        case Literal(value):
            return spell_literal(value), Precedence.ATOM
        case Name(path):
            return ".".join(path), Precedence.ATOM
        case Exists(path):
            return f"exists({'.'.join(path)})", Precedence.ATOM
        case Default(path, fallback):
            return f"{'.'.join(path)} | default({spell(fallback)})", Precedence.ATOM
        case Items(items):
            return f"[{', '.join(spell(item) for item in items)}]", Precedence.ATOM
        case Not(operand):
            return f"!{spell(operand, Precedence.NOT)}", Precedence.NOT
        case AllOf(operands):
            return " && ".join(spell(each, Precedence.COMPARE) for each in operands), Precedence.ALL
        case AnyOf(operands):
            return " || ".join(spell(each, Precedence.ALL) for each in operands), Precedence.ANY
        case Comparison(operator, left, right):
            return (
                f"{spell(left, Precedence.NOT)} {operator} {spell(right, Precedence.NOT)}",
                Precedence.COMPARE,
            )
        case Choose(test, then, otherwise):
            return f"{spell(test, Precedence.ANY)} ? {spell(then)} : {spell(otherwise)}", Precedence.CHOOSE
        case _:
            assert_never(node)


def spell_literal(value: str | int | float | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{''.join(map(_spell_character, value))}'"
    return repr(value)


_SHORT_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _spell_character(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    # Control characters and Unicode's line breaks would make a one-line text look like two.
    if character < " " or "\x7f" <= character <= "\x9f" or character in "\u2028\u2029":
        return f"\\u{ord(character):04x}"
    return character
