"""A pipeline as its file describes it: stages, links, attributes, and the place of each. It is immutable.

The specification calls these Graph, Node and Edge; here those words belong to the compiled graph.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from holdfast.frontends.dot.values import Value, as_flag, as_integer, as_microseconds, as_text


class SourceLocation(msgspec.Struct, frozen=True, gc=False):
    """A place in the source. Lines and columns count from 1; 0 means that there is none."""

    line: int = 0
    column: int = 0


NOWHERE = SourceLocation()


def place_at(lines: Sequence[int], offset: int) -> SourceLocation:
    """`lines`: the offset at which each line begins."""
    line = bisect_right(lines, offset)
    return SourceLocation(line, offset - lines[line - 1] + 1)


class SourceLocations(Mapping[str, SourceLocation]):
    """Locations by attribute, computed on access, because almost none is ever used."""

    __slots__ = ("_lines", "_offsets")

    def __init__(self, offsets: Mapping[str, int], lines: Sequence[int]) -> None:
        self._offsets = offsets
        self._lines = lines

    def __getitem__(self, key: str) -> SourceLocation:
        return place_at(self._lines, self._offsets[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


class Attributes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of what has attributes. A value is read as the type that its key requires; one that does not fit
    reads as the default, and validation reports it. `gc=False` is safe: no instance refers to itself."""

    attrs: Mapping[str, Value] = {}
    places: Mapping[str, SourceLocation] = {}
    """Where each attribute was written."""

    def text(self, key: str, default: str = "") -> str:
        value = self.attrs.get(key)
        return default if value is None else as_text(value)

    def integer(self, key: str, default: int = 0) -> int:
        value = self.attrs.get(key)
        found = None if value is None else as_integer(value)
        return default if found is None else found

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.attrs.get(key)
        found = None if value is None else as_flag(value)
        return default if found is None else found

    def microseconds(self, key: str) -> int | None:
        value = self.attrs.get(key)
        return None if value is None else as_microseconds(value)


class Stage(Attributes, frozen=True, kw_only=True, gc=False):
    """A node of the pipeline."""

    id: str
    classes: tuple[str, ...] = ()
    """The classes of its `class` attribute, then those of the subgraphs around it, outermost first."""
    derived: tuple[str, ...] = ()
    """The classes that come from subgraphs: the innermost is the stage's thread with fidelity `full`."""
    explicit: frozenset[str] = frozenset()
    """Keys that the stage itself sets; the others come from defaults or a transform."""
    declared: bool = True
    """False: only edges name it."""
    origin: str = ""
    """The file that it was included from."""
    place: SourceLocation = NOWHERE

    @property
    def label(self) -> str:
        return self.text("label") or self.id

    @property
    def shape(self) -> str:
        return self.text("shape") or "box"

    @property
    def type(self) -> str:
        return self.text("type")

    @property
    def prompt(self) -> str:
        return self.text("prompt")


class Link(Attributes, frozen=True, kw_only=True, gc=False):
    """An edge of the pipeline."""

    source: str
    target: str
    place: SourceLocation = NOWHERE

    @property
    def label(self) -> str:
        return self.text("label")

    @property
    def condition(self) -> str:
        return self.text("condition")

    @property
    def weight(self) -> int:
        return self.integer("weight")


class Pipeline(Attributes, frozen=True, kw_only=True, dict=True, gc=True):
    """The whole file. Stages are in the order in which the file first names them."""

    name: str
    stages: Mapping[str, Stage] = {}
    links: tuple[Link, ...] = ()
    source: str = ""
    """The text that it was read from."""
    path: str = ""
    """The file that it was read from, for messages and for what it includes."""
    submitted: bool = False
    """Whether a caller of a server sent it: its commands run only on workers that allow that."""
    children: Mapping[str, Pipeline] = {}
    """The child pipelines of its managers, by the name that the manager uses."""
    requires: frozenset[str] | None = None
    """What a worker must have to run it (`attractor.worker_requirements`); None: not known."""

    @property
    def goal(self) -> str:
        return self.text("goal")

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {name: [] for name in self.stages}
        for link in self.links:
            found.setdefault(link.source, []).append(link)
        return {name: tuple(links) for name, links in found.items()}

    @cached_property
    def incoming(self) -> Mapping[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {name: [] for name in self.stages}
        for link in self.links:
            found.setdefault(link.target, []).append(link)
        return {name: tuple(links) for name, links in found.items()}

    def start(self) -> Stage | None:
        """By shape first, then by id."""
        return self._ending("Mdiamond", ("start",))

    def exit(self) -> Stage | None:
        return self._ending("Msquare", ("exit", "end"))

    def _ending(self, shape: str, names: tuple[str, ...]) -> Stage | None:
        for stage in self.stages.values():
            if stage.shape == shape:
                return stage
        return next((stage for stage in self.stages.values() if stage.id.lower() in names), None)
