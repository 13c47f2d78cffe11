"""What the notation of the shared modules means in MariaDB, and how values are written into a statement.

The driver sends text: values are escaped here, so a list has the length that it has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec
from asyncmy import converters

CLOCK = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"
"""The server's time in microseconds, as of the beginning of the statement."""

_HEX = 4 << 20
_driver: Any = converters  # half annotated
_Kind = Literal["value", "list", "flag", "now"]

_NOTATION = (
    # `a <> ALL (empty list)` is true, and `a IN (NULL)` is neither: so it is asked whether it is true.
    (re.compile(r"([\w.]+) <> ALL ?\((\?::\w+\[\])\)"), r"(\1 IN \2) IS NOT TRUE"),
    (re.compile(r"= ANY ?\((\?::\w+\[\])\)"), r"IN \1"),
    (re.compile(r"@now\(NULL\)"), CLOCK),
    # An index is named where a locking read must not look at other rows.
    (re.compile(r"@(\w+)\[(queue_messages_ready)\]( AS \w+)?"), r"\1\3 FORCE INDEX (\2)"),
    (re.compile(r"(?<!@)@(?!@|now\b)(\w+)(?:\[\w+\])?"), r"\1"),
    (re.compile(r"\bDELETE FROM (\w+) AS \1\b"), r"DELETE FROM \1"),
    (re.compile(r"\bstrpos\("), "instr("),
    (re.compile(r"\blength\("), "char_length("),
    (re.compile(r"([\w.]+) IS NOT DISTINCT FROM ([\w.?']+)"), r"\1 <=> \2"),
    (re.compile(r"([\w.]+) IS DISTINCT FROM ([\w.?:']+)"), r"NOT (\1 <=> \2)"),
    (re.compile(r"\bFOR (KEY )?SHARE\b"), "LOCK IN SHARE MODE"),
    (re.compile(r"\bFOR UPDATE OF \w+"), "FOR UPDATE"),
    # Generated columns stand for the partial indexes of the other dialects.
    (re.compile(r"(?<![.\w])worker IS NULL AND ready_at\b"), "claimable = 1 AND ready_at"),
    (re.compile(r"coalesce\(holds\.resolved_at, holds\.closed_at\)"), "holds.resumes_at"),
    (re.compile(r"(?<=\w)::(bigint|int|text|bytea)\b|(?<=\))::(bigint|int|text|bytea)\b"), ""),
    # Reserved words that are columns here; keywords are written in capitals.
    (re.compile(r"(?<![`.\w'])(key|schema)\b(?!')"), r"`\1`"),
)
_LEASED = re.compile(r"(?<![.\w])worker IS NOT NULL\b")
_NOTHING = re.compile(r"\s+ON CONFLICT(?: \([^)]*\))? DO NOTHING\b")
_UPSERT = re.compile(r"\s+ON CONFLICT \([^)]*\)\s+DO UPDATE\s+SET\b")
_EXCLUDED = re.compile(r"\bexcluded\.(\w+)")
_ALIAS = re.compile(r"INSERT INTO @(\w+) AS (\w+)")
_ARGUMENT = re.compile(r"@now\(\?(?:::\w+)?\)|\?::\w+\[\](?= IS NULL)|\?::\w+\[\]|\?(?:::\w+)?")


class Statement(msgspec.Struct, frozen=True):
    """A translated text: `parts` stand around the arguments, whose `kinds` say how each is written."""

    parts: tuple[str, ...]
    kinds: tuple[_Kind, ...]
    ignores_duplicates: bool  # ON CONFLICT DO NOTHING: a duplicate is no error, and nothing is written

    def filled(self, args: Sequence[Any]) -> str:
        if len(args) != len(self.kinds):
            raise TypeError(f"{len(self.kinds)} arguments are needed, not {len(args)}.")
        found = [self.parts[0]]
        for kind, value, part in zip(self.kinds, args, self.parts[1:], strict=True):
            found.append(literal(value) if kind == "value" else _written(kind, value))
            found.append(part)
        return "".join(found)


@lru_cache(2048)
def statement(text: str) -> Statement:
    duplicates = _NOTHING.search(text) is not None
    text = _NOTHING.sub("", text)
    text = _insert(text)
    if text.lstrip().startswith("SELECT"):
        text = _LEASED.sub("leased = 1", text)
    for pattern, meaning in _NOTATION:
        text = pattern.sub(meaning, text)
    found = list(_ARGUMENT.finditer(text))
    ends = [0, *(each.end() for each in found)]
    starts = [*(each.start() for each in found), len(text)]
    parts = tuple(text[a:b] for a, b in zip(ends, starts, strict=True))
    return Statement(parts, tuple([_kind(each) for each in found]), duplicates)


def _kind(found: re.Match[str]) -> _Kind:
    text = found[0]
    if text.startswith("@now"):
        return "now"
    if not text.endswith("[]"):
        return "value"
    return "flag" if found.string.startswith(" IS NULL", found.end()) else "list"


def _insert(text: str) -> str:
    """The alias of the row that is there already has no place in MariaDB: its columns have no prefix."""
    alias = _ALIAS.search(text)
    if alias is not None:
        text = re.sub(rf"\b{alias[2]}\.", "", text.replace(alias[0], f"INSERT INTO @{alias[1]}", 1))
    if _UPSERT.search(text):
        text = _EXCLUDED.sub(r"VALUES(\1)", _UPSERT.sub(" ON DUPLICATE KEY UPDATE", text))
    return text


def literal(value: Any) -> str:
    kind = cast("Any", type(value))
    if kind is str:
        return f"'{_driver.escape_string(value)}'"
    if kind is int:
        return str(value)
    if value is None:
        return "NULL"
    if kind is bytes:
        return _bytes(value)
    return _unusual(value)


def _bytes(value: bytes) -> str:
    """In hex, which is written much sooner; what would be too long for a packet then is escaped."""
    return f"X'{value.hex()}'" if len(value) <= _HEX else _driver.escape_bytes_prefixed(value)


def _unusual(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        return f"'{_driver.escape_string(str(value))}'"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (bytearray, memoryview)):
        return _bytes(bytes(cast("bytearray", value)))
    if isinstance(value, list):
        return f"'{_driver.escape_string(msgspec.json.encode(cast('list[Any]', value)).decode())}'"
    raise TypeError(f"MariaDB stores no {type(value).__name__}.")


def _written(kind: _Kind, value: Any) -> str:
    if kind == "now":
        return CLOCK if value is None else str(value)
    if kind == "flag":
        return "NULL" if value is None else "0"
    values: Sequence[Any] = value or ()
    return f"({', '.join(map(literal, values)) or 'NULL'})"
