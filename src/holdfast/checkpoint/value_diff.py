"""Compares two values: what was added, removed, changed, and where. Pure; no user code runs (D-26)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, cast

import msgspec

from holdfast.checkpoint.json_view import jsonable

MISSING: Final = msgspec.UNSET
LARGE: Final = 2_000
"""Characters of JSON beyond which a value is shown by its size and digest."""
LINES: Final = 400
"""Lines of a comparison of two texts that are shown."""
COMPARED_LINES: Final = 10_000
"""Lines of two texts beyond which they are not compared line by line: that takes longer than anyone waits."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: added, removed or changed; `path` such as `lines[2].price`."""

    path: str
    kind: str
    before: Any = None
    after: Any = None


def changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """What leads from one value to the other, in order. MISSING on one side: added or removed."""
    if before is MISSING or after is MISSING:
        if before is not after:
            yield _change(path, before, after)
        return
    one, other = _parts(before), _parts(after)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        yield from _of_mappings(cast("Mapping[Any, Any]", one), cast("Mapping[Any, Any]", other), path)
    elif isinstance(one, list) and isinstance(other, list):
        yield from _of_lists(cast("list[Any]", one), cast("list[Any]", other), path)
    elif not _same_leaf(before, after):
        yield _change(path, before, after)


def _change(path: str, before: Any, after: Any) -> Change:
    if before is MISSING:
        return Change(path=path, kind="added", after=after)
    if after is MISSING:
        return Change(path=path, kind="removed", before=before)
    return Change(path=path, kind="changed", before=before, after=after)


def _parts(value: Any) -> Any:
    """A value of named parts as a mapping, an ordered one as a list, anything else unchanged."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, (list, tuple)):
        return list(cast("Sequence[Any]", value))
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _same_leaf(before: Any, after: Any) -> bool:
    """1, 1.0 and True differ; NaN equals NaN."""
    if type(before) is not type(after):
        return False
    return before is after or bool(before == after) or (before != before and after != after)


def is_same(before: Any, after: Any) -> bool:
    return before is after or next(changes(before, after), None) is None


def _of_mappings(before: Mapping[Any, Any], after: Mapping[Any, Any], path: str) -> Iterator[Change]:
    for key in dict.fromkeys([*before, *after]):
        yield from changes(before.get(key, MISSING), after.get(key, MISSING), join(path, key))


def join(path: str, key: Any) -> str:
    """The path of a part: `.name` where that reads well, else `["odd name"]`."""
    if isinstance(key, str) and key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    name = msgspec.json.encode(key).decode() if isinstance(key, str) else repr(key)
    return f"{path}[{name}]"


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    """By position, after the common beginning and before the common end."""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if not is_same(before[i], after[i])), shorter)
    left = shorter - head
    tail = next((i for i in range(left) if not is_same(before[-1 - i], after[-1 - i])), left)
    one, other = before[head : len(before) - tail], after[head : len(after) - tail]
    for i in range(max(len(one), len(other))):
        old = one[i] if i < len(one) else MISSING
        new = other[i] if i < len(other) else MISSING
        yield from changes(old, new, f"{path}[{head + i}]")


def text_lines(change: Change, limit: int = LINES) -> list[str]:
    """Texts of several lines, compared line by line, as `diff -u` writes them; empty for other values and for
    texts that are too long to compare. At most `limit` lines; one more says how many are left out."""
    import difflib

    before, after = change.before, change.after
    if not (isinstance(before, str) and isinstance(after, str) and "\n" in before + after):
        return []
    one, other = before.splitlines(), after.splitlines()
    if len(one) + len(other) > COMPARED_LINES:
        return []
    lines = list(difflib.unified_diff(one, other, lineterm="", n=1))[2:]
    more = len(lines) - limit
    return lines[:limit] + ([f"… and {more} lines more"] if more > 0 else [])


class ChangeList(msgspec.Struct, kw_only=True):
    """Some of the changes, and the number of the others."""

    shown: list[Change] = []
    left_out: int = 0


def limit_changes(found: Iterable[Change], limit: int) -> ChangeList:
    """At most `limit` (0: all) in full; the rest is counted."""
    source = iter(found)
    shown = list(islice(source, limit)) if limit else list(source)
    return ChangeList(shown=shown, left_out=sum(1 for _ in source))


def show(value: Any, large: int = LARGE) -> Any:
    """A value as a comparison shows it, JSON-safe: a large one by its size and digest."""
    plain = jsonable(value)
    try:
        text = msgspec.json.encode(plain)
    except (OverflowError, ValueError):
        plain = _without_huge(plain)
        text = msgspec.json.encode(plain)
    if len(text) <= large:
        return plain
    kind = "text" if isinstance(plain, str) else "list" if isinstance(plain, list) else "object"
    inside = len(cast("Sequence[Any]", plain)) if isinstance(plain, (str, list, dict)) else 1
    return {"large": kind, "length": inside, "bytes": len(text), "sha256": sha256(text).hexdigest()[:16]}


def _without_huge(value: Any) -> Any:
    """Python writes no decimal of more than 4,300 digits: such numbers are shown in a notation without a
    limit."""
    if isinstance(value, dict):
        return {k: _without_huge(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_huge(part) for part in cast("list[Any]", value)]
    return hex(value) if isinstance(value, int) and value.bit_length() > 14_000 else value


def show_text(value: Any, limit: int = 120) -> str:
    """The same on one line."""
    plain = show(value)
    if isinstance(plain, dict) and "sha256" in plain and "large" in plain:
        result = cast("dict[str, Any]", plain)
        unit = {"text": "characters", "list": "items", "object": "entries"}[result["large"]]
        size = f"{result['length']:,} {unit}, {result['bytes']:,} bytes"
        return f"<{result['large']} of {size}, {result['sha256'][:8]}>"
    text = msgspec.json.encode(plain).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
