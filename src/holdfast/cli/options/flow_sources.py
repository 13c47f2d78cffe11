"""Whether the code of a flow's version is still at its last known location: files change."""

from __future__ import annotations

import msgspec

from holdfast.app.flow import Flow
from holdfast.app.loader import load_flows, split
from holdfast.cli.options.store import known_sources
from holdfast.errors import HoldfastError
from holdfast.frontends.document.compile import DIALECT as CANVAS
from holdfast.model.fingerprint import CODED, dialect_of


class SourceStatus(msgspec.Struct, frozen=True):
    """`here`: the code of this version can be loaded. `why`: the reason if it cannot."""

    here: bool
    place: str = ""
    why: str = ""


class Sources:
    """Loads each file once. Loading executes the module, as `resume` does."""

    def __init__(self, store: str | None) -> None:
        self._noted = known_sources(store)
        self._loaded: dict[str, list[Flow] | str] = {}

    def of(self, version: str) -> SourceStatus:
        spec = self._noted.get(version)
        # A document that was run with functions has their file noted, which need not define a flow.
        if dialect_of(version) == CANVAS or (spec is None and dialect_of(version) != CODED):
            return SourceStatus(True, "the store")  # a document or pipeline: its graph is all that it needs
        if spec is None:
            return SourceStatus(False, why="the location of its code is unknown")
        place = split(spec)[0]
        found = self._flows(place)
        if isinstance(found, str):
            return SourceStatus(False, place, found)
        if any(flow.program().version == version for flow in found):
            return SourceStatus(True, place)
        return SourceStatus(False, place, f"{place} has another version now")

    def _flows(self, place: str) -> list[Flow] | str:
        if place not in self._loaded:
            try:
                flows = load_flows(place)
                for flow in flows:
                    flow.program()
                self._loaded[place] = flows
            except HoldfastError as error:
                self._loaded[place] = f"its code cannot be loaded: {error.message}"
        return self._loaded[place]
