"""A pipeline's text as tokens. One pattern finds them all; what fits nothing is told of, and is `bad`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from holdfast.frontends.dot.faults import Faults

WORD, NUMBER, STRING, BAD, END = "word", "number", "string", "bad", "end"
ARROW, UNDIRECTED = "->", "--"

_TOKEN: Final = re.compile(
    r"""
    \s*(?:(?://[^\n]*|/\*(?s:.*?)\*/)\s*)*
    (?:
      (?P<word>[^\W\d][\w.:]*(?:-(?!>)[\w.:]*)*)
    | (?P<string>"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+")
    | (?P<sign>->|--|[{}\[\];,=:+])
    | (?P<number>-?\.?[0-9][\w.:]*(?:-(?!>)[\w.:]*)*)
    | (?P<end>\Z)
    | (?P<bad>(?s:.))
    )
    """,
    re.VERBOSE,
)
_CLOSING: Final = {"'": "'", "\u2018": "\u2019", "\u201c": "\u201d", "`": "`"}
_RUN = re.compile(r"[^\s,;=\[\]{}\"]+")
_BRACKET = re.compile(r"[<>]")


class Tokens(msgspec.Struct, frozen=True):
    """Three lists side by side: what each token is, how it was written, and where. The last is `end`."""

    kinds: list[str]
    texts: list[str]
    starts: list[int]


def tokens_of(source: str, faults: Faults) -> Tokens:
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    at = 0
    while at >= 0:
        at = _run(source, at, faults, kinds, texts, starts)
    return Tokens(kinds, texts, starts)


def _run(source: str, at: int, faults: Faults, kinds: list[str], texts: list[str], starts: list[int]) -> int:
    """Up to what is no token, and where to go on behind it; -1 at the end."""
    for found in _TOKEN.finditer(source, at):
        kind = found.lastgroup or END
        text = found[kind]
        start = found.end() - len(text)
        if text == "#" and source[start - 1 : start].isspace():
            faults.lenient("# does not begin a comment", start, fix="write // instead")
            return _end_of_line(source, start)
        kinds.append(text if kind == "sign" else kind)
        texts.append(text)
        starts.append(start)
        if kind == BAD:
            return _skip(source, start, faults)
        if kind == END:
            return -1
    raise AssertionError("the pattern ends in any character or the end")


def _skip(source: str, start: int, faults: Faults) -> int:
    """Says what is wrong with what begins here; where to go on."""
    first = source[start]
    if first == '"':
        faults.error("this string has no end", start, fix='close it with "')
        return len(source)
    if source.startswith("/*", start):
        faults.error("this comment has no end", start, fix="close it with */")
        return len(source)
    if first == "<":
        faults.error("an HTML label is no value of a pipeline", start, fix='write a text in "quotes"')
        return _end_of_html(source, start)
    if first in _CLOSING:
        faults.error(f"{first} does not begin a string", start, fix='put texts in "double quotes"')
        return _end_of_quoted(source, start)
    run = _RUN.match(source, start)
    end = start + 1 if run is None else run.end()
    shown = source[start : min(end, start + 20)]
    faults.error(f"{shown!r} cannot stand here", start, fix='put texts in "double quotes"')
    return end


def _end_of_line(source: str, start: int) -> int:
    end = source.find("\n", start)
    return len(source) if end < 0 else end


def _end_of_html(source: str, start: int) -> int:
    """Behind the bracket that closes this one, else at the end of the line."""
    depth = 0
    for bracket in _BRACKET.finditer(source, start):
        depth += 1 if bracket[0] == "<" else -1
        if depth == 0:
            return bracket.end()
    return _end_of_line(source, start)


def _end_of_quoted(source: str, start: int) -> int:
    line = _end_of_line(source, start)
    end = source.find(_CLOSING[source[start]], start + 1, line)
    return line if end < 0 else end + 1
