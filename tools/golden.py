"""Writes the golden files of the current envelope version: tests/upgrade/golden/v<version>/.

    python tools/golden.py

Each case is a sealed body (`.bin`) and a description of what is in it (`.json`); a blob case is a spilled
value's blob. Files that exist are left alone: what was released once must stay readable as it is. To
cover more, add a case; to change the format, raise the version (see holdfast.checkpoint.upcast).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from holdfast.checkpoint import VERSION, TypeRegistry, encode_body, pack, record_digest, spill
from holdfast.types.record import Body
from holdfast.types.value import BlobRef, freeze

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "upgrade" / "golden"
COLUMNS = (6, 1_800_000_000_123_456, "think", "branch/1", 3, "completed")


class GoldenBody(Body):
    name: str
    value: Any


class Colour(enum.Enum):
    red = 1
    green = "g"


class Rights(enum.Flag):
    read = 1
    write = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0


class Line(msgspec.Struct, frozen=True):
    start: Any
    end: Any = None


REGISTRY = TypeRegistry(Colour, Rights, Point, Line)

CASES: dict[str, Any] = {
    "plain": {"text": "Zürich 🏔", "n": -7, "f": 1.5, "yes": True, "none": None, "raw": b"\x00\xff"},
    "lists": [1, [2, [3, []]], {"a": [{}]}],
    "integers": [0, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**40, -(10**40)],
    "floats": [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 0.1],
    "tuples": (1, (2, ()), [3, (4,)]),
    "sets": frozenset({"b", "a", (1, 2), None, 2**70}),
    "keys": {1: "int", "1": "text", None: 0, 1.5: "f", b"k": "bytes"},
    "exact_keys": {(1, "a"): 1, Decimal("1.0"): 2, date(2026, 1, 2): 3, Colour.red: 4, 2**80: 5, "s": 6},
    "decimals": [Decimal("1.500"), Decimal("-0"), Decimal("NaN"), Decimal("1E+30"), Decimal("-Infinity")],
    "datetimes": [
        datetime(2026, 2, 28, 23, 59, 59, 999999),  # noqa: DTZ001 - naive on purpose
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"), fold=1),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
        date(9999, 12, 31),
        time(12, 30, 1, 5),
        time(1, 2, tzinfo=UTC, fold=1),
        timedelta(days=-1, microseconds=1),
    ],
    "others": [UUID(int=2**127 + 5), complex(-0.0, math.inf), BlobRef(b"\x01" * 32, 123456)],
    "registered": [
        Colour.green,
        Rights.read | Rights.write,
        Point((1,), "y"),
        Line(Point(1), frozenset({1})),
    ],
    "compressed": {"lines": [f"line {i} of a long and repetitive text" for i in range(200)]},
}
BLOB_CASE = freeze([("a large text, " * 8000, 1), 2**70])


def describe(value: Any) -> Any:
    """A value as JSON that tells every type and bit apart."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return {kind: [[describe(k), describe(v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {kind: [describe(item) for item in value]}
    if isinstance(value, frozenset):
        return {kind: sorted((describe(item) for item in value), key=json.dumps)}
    if isinstance(value, Point):
        return {kind: describe((value.x, value.y))}
    if isinstance(value, Line):
        return {kind: describe((value.start, value.end))}
    if isinstance(value, str) and len(value) > 1000:
        return {kind: [len(value), sha256(value.encode()).hexdigest()]}
    if isinstance(value, float):
        return {kind: value.hex()}
    if value is None or type(value) in (str, bool):
        return value
    # Enums print differently from one Python to the next.
    return {kind: str(value.value) if isinstance(value, enum.Enum) else repr(value)}


def frozen(name: str) -> Any:
    return freeze(CASES[name], REGISTRY.adopt)


def encoded(name: str) -> bytes:
    return encode_body(GoldenBody(name, pack(frozen(name), REGISTRY)))


def main() -> int:
    folder = FOLDER / f"v{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        data = encoded(name)
        facts = {
            "kind": "body",
            "digest": record_digest(*COLUMNS, data).hex(),
            "value": describe(frozen(name)),
        }
        write(folder, name, data, facts)
    _, (blob,) = spill(pack(BLOB_CASE))
    facts = {"kind": "blob", "digest": blob.ref.digest.hex(), "value": describe(BLOB_CASE)}
    write(folder, "blob", blob.data, facts)
    return 0


def write(folder: Path, name: str, data: bytes, facts: dict[str, Any]) -> None:
    if (folder / f"{name}.bin").exists():
        return
    (folder / f"{name}.bin").write_bytes(data)
    (folder / f"{name}.json").write_text(json.dumps(facts, ensure_ascii=True) + "\n")
    print(f"wrote {folder.name}/{name}")


if __name__ == "__main__":
    sys.exit(main())
