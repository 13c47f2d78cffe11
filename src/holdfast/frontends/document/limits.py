"""How large a document may be. A document comes from outside; each limit is checked before the work that it
bounds."""

from __future__ import annotations

from typing import Any, Final, cast

MAX_BYTES: Final = 4_000_000
MAX_NODES: Final = 2_000
MAX_EDGES: Final = 10_000
MAX_DEPTH: Final = 64
MAX_DOCUMENT_VALUES: Final = 250_000
"""Keys, values, lists and mappings, with what aliases stand for: reading takes as long as there are many."""
MAX_NESTED: Final = 32
"""Maps and loops around a node: each one more is a graph inside of a graph."""
MAX_GRAPH_NODES: Final = 10_000
"""Of a document with all of its sub-flows: each is a part of its graph, with those inside of it."""
MAX_GRAPH_BYTES: Final = 32_000_000
"""Of all of its sub-flows, as they are stored."""
MAX_CONFIG_BYTES: Final = 256_000
MAX_TEXT: Final = 16_000_000
"""Characters of a text that a template makes when its node runs."""
MAX_PROBLEMS: Final = 200
MAX_EXPANSION: Final = 10
"""How many times larger aliases may make a YAML document."""
MAX_VALUES: Final = 1_000_000
"""Of data that a node puts together from several placeholders."""


def has_more_values(data: Any, most: int) -> bool:
    """More keys and values than so many, however deep."""
    count, todo = 0, [data]
    while todo and count <= most:
        each: Any = todo.pop()
        count += 1
        if isinstance(each, dict):
            inside = cast("dict[str, Any]", each)
            count += len(inside)
            todo += inside.values()
        elif isinstance(each, list):
            todo += cast("list[Any]", each)
    return count > most


TOO_MANY_VALUES: Final = f"it has more than {MAX_DOCUMENT_VALUES:,} keys and values"
FEWER_VALUES: Final = "split it into sub-flows, keep data outside"
