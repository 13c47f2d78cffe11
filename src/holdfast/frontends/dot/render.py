"""Renders a pipeline as DOT: one text for one meaning, which the strict grammar accepts if the ids fit it.

Attributes that a stage does not set itself are written as defaults of an unnamed subgraph around it, and its
derived classes as labels of such subgraphs. Parsing the text therefore gives the same document, except for
places and `declared`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from math import isfinite
from typing import Final

from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.literals import IDENTIFIER, KEY, LONGEST_NUMBER, RESERVED
from holdfast.frontends.dot.scopes import MOST_DEFAULTS
from holdfast.frontends.dot.values import Duration, Value, duration_of

WIDTH: Final = 100
_INDENT: Final = "    "
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})
_Around = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


def render(pipeline: Pipeline) -> str:
    """Canonical DOT: parsing it and rendering the result gives the same text."""
    parts = [
        _lines_of(_block("graph", pipeline.attrs, _INDENT) if pipeline.attrs else ""),
        _stages(pipeline.stages.values()),
        [_INDENT + _link(link) for link in pipeline.links],
    ]
    body = "".join("\n" + "".join(f"{line}\n" for line in part) for part in parts if part)
    return f"digraph {_id(pipeline.name)} {{{body}}}\n"


def _lines_of(text: str) -> list[str]:
    return [_INDENT + text] if text else []


def _stages(stages: Iterable[Stage]) -> list[str]:
    return [line for around, group in groupby(stages, _around) for line in _group(around, list(group))]


def _around(stage: Stage) -> _Around:
    """The subgraphs that a stage is in, and the attributes that it inherits from the innermost."""
    own = _own(stage)
    taken = {key: value for key, value in stage.attrs.items() if key not in own}
    return stage.derived, tuple(_written(taken))


def _own(stage: Stage) -> Collection[str]:
    """Keys that are written at the stage itself: all, if more than `MOST_DEFAULTS` would be defaults."""
    given = sum(key not in stage.explicit for key in stage.attrs)
    return stage.explicit if given <= MOST_DEFAULTS else stage.attrs


def _group(around: _Around, stages: list[Stage]) -> Iterator[str]:
    labels, defaults = around
    depth = len(labels) if labels else int(bool(defaults))
    for level in range(1, depth + 1):
        yield _INDENT * level + "subgraph {"
        if labels:
            yield _INDENT * (level + 1) + f"label={value_text(labels[level - 1])}"
    indent = _INDENT * (depth + 1)
    if defaults:
        yield indent + _joined("node", defaults, indent)
    for stage in stages:
        own = _own(stage)
        attrs = {key: value for key, value in stage.attrs.items() if key in own}
        yield indent + (_block(_id(stage.id), attrs, indent) if attrs else _id(stage.id))
    for level in range(depth, 0, -1):
        yield _INDENT * level + "}"


def _link(link: Link) -> str:
    ends = f"{_id(link.source)} -> {_id(link.target)}"
    return _block(ends, link.attrs, _INDENT) if link.attrs else ends


def _block(head: str, attrs: Mapping[str, Value], indent: str) -> str:
    return _joined(head, _written(attrs), indent)


def _joined(head: str, written: Iterable[tuple[str, str]], indent: str) -> str:
    pairs = [f"{key}={value}" for key, value in written]
    line = f"{head} [{', '.join(pairs)}]"
    if len(indent) + len(line) <= WIDTH:
        return line
    inner = ",\n".join(indent + _INDENT + pair for pair in pairs)
    return f"{head} [\n{inner}\n{indent}]"


def _written(attrs: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Sorted by name, because the order of attributes in a text has no meaning."""
    return sorted((key if KEY.fullmatch(key) else _quoted(key), value_text(attrs[key])) for key in attrs)


def _id(name: str) -> str:
    plain = IDENTIFIER.fullmatch(name) and name.lower() not in RESERVED
    return name if plain else _quoted(name)


def value_text(value: Value) -> str:
    """The value as DOT: a bare word only if Graphviz accepts it too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        text = str(value)
        return text if len(text) <= LONGEST_NUMBER else _quoted(text)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Duration):
        return value.text if duration_of(value.text) == value else _quoted(value.text)
    bare = IDENTIFIER.fullmatch(value) and value.lower() not in RESERVED and value not in ("true", "false")
    return value if bare else _quoted(value)


def _float(value: float) -> str:
    if not isfinite(value):
        return _quoted(str(value))
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else f"{text}.0"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
