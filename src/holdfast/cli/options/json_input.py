"""JSON input: on the command line, in a file (`@file`) or on stdin (`-`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import InputError


def read_json(text: str | None, what: str) -> Any:
    """None if nothing was given. Raises InputError with the position of the problem."""
    if text is None:
        return None
    raw = _raw(text, what)
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise InputError(
            f"{what} is not JSON: {error}.",
            hint="Write JSON in quotes, such as '{\"amount\": 250}', or give @file, or - for stdin.",
        ) from error


def _raw(text: str, what: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise InputError(f"{what}: {text[1:]} cannot be read: {error.strerror}.") from error
