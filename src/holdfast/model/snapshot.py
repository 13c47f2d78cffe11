"""A position as plain data, for snapshot records and forks; and back."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.frames import DELETED
from holdfast.model.position import Position

_DELETED = ("holdfast", "deleted")


def dump_position(pos: Position) -> dict[str, Any]:
    """Values stay as they are (frozen); everything around them becomes dicts and lists."""
    plain = _plain(pos)
    plain["execs"] = list(plain["execs"].values())
    for key in ("cancelling", "cancel_rows"):
        plain.pop(key)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        if value is DELETED:
            return _DELETED
        return {name: _field(name, getattr(value, name)) for name in value.__struct_fields__}
    if type(value) is dict:
        return {k: _plain(v) for k, v in value.items()}  # type: ignore[misc]
    if type(value) is list:
        return [_plain(v) for v in value]  # type: ignore[misc]
    return value


def _field(name: str, value: Any) -> Any:
    # Overlays are built anew from their steps, and nobody owns a list that was just loaded.
    if name == "owned":
        return []
    return _plain(value)


def load_position(plain: dict[str, Any]) -> Position:
    given = _thawed(plain)
    given["execs"] = {(e["scope"], e["node"]): e for e in given["execs"]}
    given["timers"] = {k: tuple(v) for k, v in given["timers"].items()}
    pos = msgspec.convert(given, Position)
    for scope in pos.scopes.values():
        tree = scope.tree
        for frame in tree.frames.values():
            for inside in frame.over.values():
                for key, value in inside.items():
                    if value == _DELETED:
                        inside[key] = DELETED
        tree.values = tree.frames[0].over
    return pos


def _thawed(plain: dict[str, Any]) -> dict[str, Any]:
    """Containers of the position itself must be mutable again; the values inside stay frozen."""
    out = {k: v for k, v in plain.items()}
    out["execs"] = [dict(e) for e in plain["execs"]]
    out["scopes"] = {path: _thawed_scope(scope) for path, scope in plain["scopes"].items()}
    return out


def _thawed_scope(scope: Any) -> dict[str, Any]:
    out = dict(scope)
    tree = dict(scope["tree"])
    tree["values"] = {}
    tree["frames"] = {
        number: {**frame, "over": {p: dict(inside) for p, inside in frame["over"].items()}}
        for number, frame in scope["tree"]["frames"].items()
    }
    out["tree"] = tree
    out["walk"] = dict(scope["walk"])
    return out
