"""How conditions and templates read the state."""

from __future__ import annotations

from typing import Any

from holdfast.model.expressions import MISSING as EXPR_MISSING
from holdfast.model.expressions import PARTITIONS, Path, Resolve, walk
from holdfast.model.frames import FrameTree
from holdfast.model.secrets import Paths, hide_at
from holdfast.model.values import MISSING


def masking_resolver(resolve: Resolve, secrets: Paths) -> Resolve:
    """For texts that people see: values of secret fields are masked, also inside other values."""

    def hidden(path: Path) -> object:
        parts: list[str] = list(map(str, path))
        if len(parts) > 1 and parts[0] == "state":
            del parts[0]
        if len(parts) > 1 and parts[0] in PARTITIONS:
            del parts[0]
        return hide_at(resolve(path), tuple(parts), secrets)

    return hidden


def resolver(
    tree: FrameTree, frame: int, extra: dict[str, Any] | None = None, *, records: bool = True
) -> Resolve:
    """How conditions and templates read the state as a frame sees it: a bare name is scratch, then input.
    `records`: see `model.expressions.walk`."""

    def resolve(path: Path) -> object:
        parts, first = path, path[0]
        if first == "state" and len(path) > 1:
            parts = path[1:]
            first = parts[0]
        if extra is not None and first in extra:
            return walk(extra[first], parts[1:], records=records)
        if first in PARTITIONS and len(parts) > 1:
            value = tree.read(frame, first, parts[1])
            return EXPR_MISSING if value is MISSING else walk(value, parts[2:], records=records)
        value = tree.read(frame, "scratch", first)
        if value is MISSING:
            value = tree.read(frame, "input", first)
        if value is MISSING:
            return EXPR_MISSING
        return value if len(parts) == 1 else walk(value, parts[1:], records=records)

    return resolve
