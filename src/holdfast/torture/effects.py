"""Effects that handlers report, for the comparison of trials.

A fake of the outside world (a fake bank, a fake mailer) calls `record("paid 250 to c-9", key=key)`. Without a
key each line is a separate effect; with one, the same key twice is one effect, as for a service with
idempotency keys. Outside a trial nothing is written. Programs in other languages append lines to the file
that `HOLDFAST_TORTURE_LOG` names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

ENVIRONMENT = "HOLDFAST_TORTURE_LOG"


class EffectLine(msgspec.Struct, frozen=True):
    what: str
    key: str | None = None


def record(what: str, *, key: str | None = None) -> None:
    """Report an effect."""
    place = os.environ.get(ENVIRONMENT)
    if place:
        file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, msgspec.json.encode(EffectLine(what, key)) + b"\n")
        finally:
            os.close(file)


def read(files: Iterable[Path]) -> Counter[str]:
    """How often each effect happened. The same key counts once."""
    seen: Counter[str] = Counter()
    keyed: set[tuple[str, str]] = set()
    for text in (line for file in files for line in _lines(file)):
        line = _line(text)
        if line.key is None:
            seen[line.what] += 1
        elif (line.what, line.key) not in keyed:
            keyed.add((line.what, line.key))
            seen[f"{line.what} (key {line.key})"] += 1
    return seen


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except FileNotFoundError:
        return []


def _line(text: str) -> EffectLine:
    """One of our lines, or any other text."""
    try:
        return msgspec.json.decode(text, type=EffectLine)
    except msgspec.DecodeError:
        return EffectLine(text.strip())
