"""How many values the expressions and templates of one node may visit.

They have no loops, but each comparison of lists, `in` and `join` visits every value of what it reads: many of
them over large data would keep everything else on the server waiting. What is spent is counted with the
resolver, which is made for one evaluation of a node.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, cast

from holdfast.errors import NotComparableError

MAX_VISITS: Final = 2_000_000
CHARACTERS: Final = 32
"""Of a text that count as one value."""
_SPENT: Final = "__visits__"


class _Current(threading.local):
    """What the comparison that is evaluated now may still visit; without one there is no limit."""

    left: float = math.inf


_current: Final = _Current()


def visit(count: int) -> None:
    """Raises NotComparableError."""
    _current.left -= count
    if _current.left < 0:
        raise NotComparableError(
            f"the conditions of the node compare more than {MAX_VISITS:,} values",
            hint="Decide it in a function, or on less data.",
        )


def spend(resolve: Callable[..., object], count: int) -> bool:
    """False if that is more than is left."""
    spent = _spent(resolve)
    spent[0] += count
    return spent[0] <= MAX_VISITS


def counted(
    relation: Callable[[object, object], bool], left: object, right: object, resolve: Callable[..., object]
) -> bool:
    """Whether the relation holds. Raises NotComparableError."""
    spent = _spent(resolve)
    _current.left = allowed = float(MAX_VISITS - spent[0])
    try:
        return relation(left, right)
    finally:
        spent[0] += int(allowed - _current.left)
        _current.left = math.inf


def _spent(resolve: Any) -> list[int]:
    """Other callables are the methods of something that lives longer than one evaluation."""
    if not isinstance(resolve, FunctionType):
        return [0]
    return cast("list[int]", resolve.__dict__.setdefault(_SPENT, [0]))
