"""Splits a pipeline's text into tokens with one pattern; text that does not match is reported and is
`bad`."""

from __future__ import annotations

import re
from typing import Final

from holdfast.frontends.dot.syntax_errors import Faults

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


class TokenBuffer:
    """Tokens as three parallel lists: the kind, the text and the offset of each. The last token is `end`.

    They are read on demand and dropped after use, because all tokens of a long text would fill the memory."""

    def __init__(self, source: str, faults: Faults) -> None:
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.is_cut = False
        """A string or comment is not closed."""
        self._source = source
        self._faults = faults
        self._next = 0

    @property
    def is_whole(self) -> bool:
        return bool(self.kinds) and self.kinds[-1] == END

    def drop(self, count: int) -> None:
        del self.kinds[:count], self.texts[:count], self.starts[:count]

    def read(self, count: int) -> None:
        """Read so many more tokens, or all that are left."""
        wanted = len(self.kinds) + count
        while len(self.kinds) < wanted and not self.is_whole:
            self._next = self._run(wanted)

    def _run(self, wanted: int) -> int:
        """Read tokens up to the first invalid text. Returns the offset at which to continue."""
        kinds, texts, starts = self.kinds, self.texts, self.starts
        for found in _TOKEN.finditer(self._source, self._next):
            kind = found.lastgroup or END
            text = found[kind]
            end = found.end()
            start = end - len(text)
            if kind == BAD and text == "#" and (not start or self._source[start - 1].isspace()):
                self._faults.lenient("# does not start a comment", start, fix="write // instead")
                return _end_of_line(self._source, start)
            kinds.append(text if kind == "sign" else kind)
            texts.append(text)
            starts.append(start)
            if kind == BAD:
                return self._skip(start)
            if len(kinds) >= wanted or kind == END:
                return end
        raise AssertionError("the pattern matches any character and the end")

    def _skip(self, start: int) -> int:
        end = _skip(self._source, start, self._faults)
        self.is_cut = self.is_cut or end == len(self._source)
        return end


def _skip(source: str, start: int, faults: Faults) -> int:
    """Report the invalid text that begins here. Returns the offset at which to continue."""
    first = source[start]
    if first == '"':
        faults.error("this string is not closed", start, fix='close it with "')
        return len(source)
    if source.startswith("/*", start):
        faults.error("this comment is not closed", start, fix="close it with */")
        return len(source)
    if first == "<":
        faults.error("an HTML label cannot be a value in a pipeline", start, fix='write a text in "quotes"')
        return _end_of_html(source, start)
    if first in _CLOSING:
        faults.error(f"{first} does not start a string", start, fix='put texts in "double quotes"')
        return _end_of_quoted(source, start)
    run = _RUN.match(source, start)
    end = start + 1 if run is None else run.end()
    shown = source[start : min(end, start + 20)]
    faults.error(f"{shown!r} is not allowed here", start, fix='put texts in "double quotes"')
    return end


def _end_of_line(source: str, start: int) -> int:
    end = source.find("\n", start)
    return len(source) if end < 0 else end


def _end_of_html(source: str, start: int) -> int:
    """After the bracket that closes this one, else at the end of the line."""
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
