"""Reads values, keys and ids as they are written; a deviation from the grammar gives a warning."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Final

from holdfast.frontends.dot.lex import NUMBER, STRING
from holdfast.frontends.dot.syntax_errors import Faults
from holdfast.frontends.dot.values import Value, duration_of

IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
RESERVED: Final = frozenset({"strict", "graph", "digraph", "subgraph", "node", "edge"})
LONGEST_NUMBER: Final = 400
"""Maximum number of characters: enough for the largest float, which has 309 digits."""
LONGEST_ID: Final = 200

_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?[0-9]*\.[0-9]+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {'"': '"', "n": "\n", "t": "\t", "\\": "\\"}
# An id is the name of the stage's folder: no separators, no control characters, neither `.` nor `..`.
_NO_ID = re.compile(r"[\x00-\x1f\x7f/\\]|^\.\.?$|^\s|\s$")
_QUOTE: Final = "put it in quotes"


def value_of(kind: str, text: str, start: int, faults: Faults) -> Value:
    """The value of a word, number or string."""
    if kind == STRING:
        return text[1:-1] if "\\" not in text else unescaped(text, start, faults)
    if kind == NUMBER:
        return _number(text, start, faults)
    if text == "true":
        return True
    if text == "false":
        return False
    if not text.isascii():
        faults.lenient(f"the bare value {text} has characters that need quotes", start, fix=_QUOTE)
    return text


def unescaped(text: str, start: int, faults: Faults) -> str:
    """A string's content. An unknown escape stays as written, because shell commands and patterns need
    that."""

    def one(found: re.Match[str]) -> str:
        known = _ESCAPES.get(found[1])
        if known is not None:
            return known
        at = start + 1 + found.start()
        if found[1] == "\n":
            faults.lenient("a backslash at the end of a line", at, fix="remove it: strings may span lines")
            return ""
        faults.lenient(f"\\{found[1]} is not an escape and was kept", at, fix=f"write \\\\{found[1]}")
        return found[0]

    return _ESCAPE.sub(one, text[1:-1])


def _number(text: str, start: int, faults: Faults) -> Value:
    if len(text) > LONGEST_NUMBER:
        message = f"the number has {len(text)} characters; the maximum is {LONGEST_NUMBER}"
        faults.error(message, start, fix=_QUOTE)
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return _finite(text)
    result = duration_of(text)
    if result is not None:
        return result
    faults.lenient(f"the bare value {text} is neither a number nor a duration", start, fix=_QUOTE)
    return text


def _finite(text: str) -> float | str:
    found = float(text)
    # Too large for a float: the text is kept, because infinity would not be what the author wrote.
    return found if isfinite(found) else text


def check_key(kind: str, key: str, start: int, faults: Faults) -> None:
    if key.endswith(":"):
        faults.error(f"{key} is not an attribute", start, fix=f"write {key[:-1]}=...")
    elif not key:
        faults.error("the attribute has no name", start, fix="write key=value")
    elif kind == STRING and KEY.fullmatch(key):
        faults.lenient(f"the attribute {key} is quoted", start, fix="write it without quotes")
    elif not KEY.fullmatch(key):
        fix = "use letters, digits, _ and dots between"
        faults.lenient(f"the attribute {key} has characters that are not allowed in names", start, fix=fix)


def id_of(kind: str, text: str, start: int, faults: Faults, fail: Callable[[str, int, str], None]) -> str:
    """The id of a token. `fail` is called for an invalid one, and does not return."""
    name = text if kind != STRING else (text[1:-1] if "\\" not in text else unescaped(text, start, faults))
    if kind != STRING:
        name = _bare_id(name, start, faults, fail)
    if not name:
        fail("the id is empty", start, "give the stage a name")
    if len(name) > LONGEST_ID:
        fail(
            f"the id has {len(name)} characters; the maximum is {LONGEST_ID}",
            start,
            "put the text in a label",
        )
    if _NO_ID.search(name):
        fail(f"{name!r} cannot be an id", start, "it is the name of the stage's folder: use letters")
    if IDENTIFIER.fullmatch(name) and kind == STRING:
        faults.lenient(f"the id {name} is quoted", start, fix="write it without quotes")
    elif not IDENTIFIER.fullmatch(name):
        fix = "use letters, digits and _, and put the text in a label"
        faults.lenient(f"the id {name} has characters that are not allowed in ids", start, fix=fix)
    elif name.lower() in RESERVED:
        faults.lenient(f"the id {name} is a keyword", start, fix="choose another id")
    return name


def _bare_id(text: str, start: int, faults: Faults, fail: Callable[[str, int, str], None]) -> str:
    if "--" in text:
        fail("edges of a pipeline are directed", start + text.index("--"), "write -> instead of --")
    if text.endswith("-"):
        fail(f"{text} is not an id", start, "write -> between stages")
    name, colon, _ = text.partition(":")
    if colon:
        faults.lenient(f"the port of {name} was ignored", start + len(name), fix=f"write {name} alone")
    return name
