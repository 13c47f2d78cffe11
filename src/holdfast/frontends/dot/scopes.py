"""The parser's state: the open subgraphs, and the stages with the attributes that they inherit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.frontends.dot.document import SourceLocation, SourceLocations, Stage
from holdfast.frontends.dot.values import Value, as_text

MOST_DEFAULTS: Final = 100
"""Maximum number of attributes that a stage may inherit from `node [...]`, or a link from `edge [...]`."""
DEEPEST: Final = 100
"""Maximum depth of subgraphs, and maximum number of classes that a stage may get from them."""

_APART: Final = re.compile(r"[,\s]+")
_NO_CLASS: Final = re.compile(r"[^a-z0-9-]+")


class Block(msgspec.Struct, frozen=True, gc=False):
    """Attributes as written, with their offsets in the text. A block that several share is never changed."""

    attrs: dict[str, Value] = {}
    places: dict[str, int] = {}

    def under(self, other: Block) -> Block:
        """Both blocks; the other one wins."""
        if not other.attrs:
            return self
        if not self.attrs:
            return other
        return Block({**self.attrs, **other.attrs}, {**self.places, **other.places})

    def over(self, base: Block) -> Block:
        """Both blocks; this one wins. It is changed in place unless it is empty."""
        if not self.attrs:
            return base
        for key, value in base.attrs.items():
            if key not in self.attrs:
                self.attrs[key] = value
                self.places[key] = base.places[key]
        return self

    def update(self, other: Block) -> None:
        self.attrs.update(other.attrs)
        self.places.update(other.places)


NOTHING: Final = Block()


class Chain:
    """An edge statement that waits for the end of a subgraph in it: its stages so far, group by group."""

    __slots__ = ("groups", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.groups: list[list[str]] = []


class SubgraphScope:
    """The graph or a subgraph: the defaults in force in it, inherited and its own."""

    def __init__(self, parent: SubgraphScope | None, start: int, chain: Chain | None = None) -> None:
        self.parent = parent
        self.start = start
        """The offset of its brace."""
        self.chain = chain
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.nodes: Block = NOTHING if parent is None else parent.nodes
        self.edges: Block = NOTHING if parent is None else parent.edges
        self.own_nodes = NOTHING
        self.alone = [self]
        """Shared by the stages that are in this scope only."""
        self.label = ""
        self.members: list[str] = []
        self._classes: tuple[str, ...] | None = None

    def default_nodes(self, block: Block) -> None:
        self.nodes = self.nodes.under(block)
        self.own_nodes = self.own_nodes.under(block)

    def default_edges(self, block: Block) -> None:
        self.edges = self.edges.under(block)

    def classes(self) -> tuple[str, ...]:
        """From the labels of this subgraph and those around it, outermost first. Call it after parsing: a
        label may follow the stages."""
        if self._classes is None:
            outer = () if self.parent is None else self.parent.classes()
            derived = class_of(self.label)
            self._classes = (*outer, derived) if derived and derived not in outer else outer
        return self._classes


class StageDraft(msgspec.Struct, gc=False):
    """A stage while the text is parsed.

    It inherits the defaults at its first statement; if only edges name it, those at the first edge. If it is
    declared again in a subgraph, it joins that subgraph and inherits what it lacks from the subgraph's own
    defaults.
    """

    place: SourceLocation
    base: Block
    scopes: list[SubgraphScope]
    own: Block = NOTHING
    declared: bool = False

    def declare(self, scope: SubgraphScope, block: Block, place: SourceLocation) -> None:
        if not self.declared:
            self.declared = True
            self.base = scope.nodes
            self.scopes = scope.alone
            self.place = place
        elif scope is not self.scopes[-1]:
            self._join(scope)
        if self.own is NOTHING:
            self.own = block
        else:
            self.own.update(block)

    def _join(self, scope: SubgraphScope) -> None:
        if len(self.scopes) == 1:
            self.base = Block(dict(self.base.attrs), dict(self.base.places))
            self.scopes = list(self.scopes)
        self.scopes.append(scope)
        for key, value in scope.own_nodes.attrs.items():
            if key not in self.base.attrs:
                self.base.attrs[key] = value
                self.base.places[key] = scope.own_nodes.places[key]

    def stage(self, name: str, shared: SharedAttributes) -> Stage:
        explicit = shared.explicit(self.own)
        block = self.own.over(self.base)
        derived = self.scopes[0].classes()
        if len(self.scopes) > 1:
            derived = tuple(dict.fromkeys(one for scope in self.scopes for one in scope.classes()))
        return Stage(
            id=name,
            attrs=block.attrs,
            places=SourceLocations(block.places, shared.lines),
            classes=shared.classes(block.attrs["class"], derived) if "class" in block.attrs else derived,
            derived=derived,
            explicit=explicit,
            declared=self.declared,
            place=self.place,
        )


class SharedAttributes:
    """Values that many stages have in common are made once."""

    def __init__(self, lines: Sequence[int]) -> None:
        self.lines = lines
        self._explicit: dict[tuple[str, ...], frozenset[str]] = {}
        self._classes: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def explicit(self, own: Block) -> frozenset[str]:
        keys = tuple(own.attrs)
        return self._explicit.get(keys) or self._explicit.setdefault(keys, frozenset(keys))

    def classes(self, given: Value, derived: tuple[str, ...]) -> tuple[str, ...]:
        key = as_text(given), derived
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = tuple(dict.fromkeys((*classes_in(given), *derived)))
        return found


def class_of(label: str) -> str:
    """`Loop A` is `loop-a`; a label without a letter or digit of ASCII gives no class."""
    return _NO_CLASS.sub("", re.sub(r"\s", "-", label.strip().lower()))


def classes_in(value: Value) -> tuple[str, ...]:
    return tuple(filter(None, _APART.split(as_text(value))))
