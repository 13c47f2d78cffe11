"""The values that stages share: flat keys, plain JSON values; thread-safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import RLock
from typing import Any, cast

from holdfast.errors import ValueNotStorableError
from holdfast.model.pipeline_conditions import as_text
from holdfast.types.text import clean_text

MAX_DEPTH = 64


class PipelineContext:
    """The context of a stage. It tracks changes: changed keys become part of the stage's record."""

    def __init__(self, values: Mapping[str, Any] | None = None, logs: list[str] | None = None) -> None:
        self._lock = RLock()
        self._values: dict[str, Any] = dict(values or {})
        self._changed: dict[str, None] = {}
        self._logs = list(logs or ())
        self._logged = len(self._logs)

    def set(self, key: str, value: Any) -> None:
        """Raises ValueNotStorableError, which names the key."""
        plain = storable(key, value)
        with self._lock:
            self._values[key] = plain
            self._changed[key] = None

    def get(self, key: str, default: Any = None) -> Any:
        with self._lock:
            found = self._values.get(key, default)
            return copied(found)

    def get_string(self, key: str, default: str = "") -> str:
        """In the notation of conditions: `true`, not `True`."""
        found = self.get(key)
        return default if found is None else as_text(found)

    def append_log(self, entry: str) -> None:
        with self._lock:
            self._logs.append(entry)

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """All of them, or none if one cannot be stored."""
        plain = {key: storable(key, value) for key, value in updates.items()}
        with self._lock:
            self._values.update(plain)
            self._changed.update(dict.fromkeys(plain))

    def snapshot(self) -> dict[str, Any]:
        """A deep copy: changes to it do not affect this context."""
        with self._lock:
            return {key: copied(value) for key, value in self._values.items()}

    def beginning_with(self, prefix: str) -> dict[str, Any]:
        """Copies of the values whose keys have this prefix."""
        with self._lock:
            return {key: copied(value) for key, value in self._values.items() if key.startswith(prefix)}

    def clone(self) -> PipelineContext:
        """A separate context with the same values, for a branch."""
        with self._lock:
            return PipelineContext(self.snapshot(), self._logs)

    @property
    def logs(self) -> list[str]:
        with self._lock:
            return list(self._logs)

    def new_logs(self) -> list[str]:
        """What was appended since this context was made."""
        with self._lock:
            return self._logs[self._logged :]

    def changes(self) -> dict[str, Any]:
        """What was set since this context was made."""
        with self._lock:
            return {key: copied(self._values[key]) for key in self._changed}


def storable(key: object, value: Any) -> Any:
    """A copy of plain JSON values. Raises ValueNotStorableError."""
    if not isinstance(key, str):
        raise ValueNotStorableError(
            f"a context key is a {type(key).__name__} ({clean_text(repr(key), 80)}).", hint="Keys are text."
        )
    return _plain(key, key, value, 0)


def _plain(key: str, where: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value if type(value) in (str, bool, type(None)) else str(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth > MAX_DEPTH:
        raise _refused(key, where, "is nested too deeply", "Keep it flat, or keep it as an artifact.")
    if isinstance(value, Mapping):
        return _mapping(key, where, cast("Mapping[Any, Any]", value), depth)
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [_plain(key, f"{where}[{i}]", item, depth + 1) for i, item in enumerate(items)]
    what = f"is {value}" if isinstance(value, float) else f"is a {type(value).__name__}"
    raise _refused(key, where, what, "Use text, numbers, true, false, null, lists and objects.")


def _mapping(key: str, where: str, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    for name in value:
        if not isinstance(name, str):
            raise _refused(
                key, where, f"has the key {clean_text(repr(name), 80)}", "Keys of JSON objects are text."
            )
    return {name: _plain(key, f"{where}.{name}", item, depth + 1) for name, item in value.items()}


def _refused(key: str, where: str, what: str, hint: str) -> ValueNotStorableError:
    inside = "" if where == key else f" ({where})"
    return ValueNotStorableError(f"the context key {key!r}{inside} {what}.", hint=hint)


def copied(value: Any) -> Any:
    """A deep copy of plain data; frozen containers of the state become ordinary ones."""
    if isinstance(value, Mapping):
        return {name: copied(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in cast("list[Any]", value)]
    return value
