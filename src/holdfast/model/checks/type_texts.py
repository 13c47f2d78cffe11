"""Types of fields as a stored graph names them (`int`, `None | str`, `Literal['a', 'b']`), as annotations.

A graph that is sent over HTTP has no code, but its fields name their types: what is plain there is checked as
in code. Records, enums and generic types stay unknown.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, Final, Literal, Union

from holdfast.model.syntax_tree import parse_expression

_PLAIN: Final[dict[str, Any]] = {"int": int, "float": float, "str": str, "bool": bool, "None": None}
_LISTS: Final[dict[str, Any]] = {"list": list, "dict": dict}
_LONGEST: Final = 2_000


@lru_cache(maxsize=512)
def annotation_of(text: str) -> Any:
    """The annotation; Any if the text says nothing that is certain."""
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
