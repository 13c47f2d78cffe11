"""The same source without an event loop: names are exchanged, `async` and `await` go."""

from __future__ import annotations

import io
import re
import tokenize

NAMES = {
    "AsyncIterator": "Iterator",
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
    "aio": "sync",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "anyio": "time",
    "aread": "read",
}
OURS = re.compile(r"Async([A-Z]\w*)")


def unasync(source: str) -> str:
    """Raises ValueError for a name that begins with Async and has no counterpart by rule."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found: list[str] = []
    row, column, gone = 1, 0, 0
    lines = source.splitlines(keepends=True)
    for token in tokens:
        if token.type == tokenize.ENDMARKER:
            break
        if token.start[0] > row:
            row, column = token.start[0], 0
        found.append(lines[row - 1][column : token.start[1]][gone:] if row <= len(lines) else "")
        gone = 0
        row, column = token.end
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            gone = 1  # the space behind it
            continue
        found.append(_exchanged(token))
    return "".join(found)


def _exchanged(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return name_of(token.string)
    if token.type in (tokenize.STRING, tokenize.COMMENT):
        text = re.sub(r"\b(async|await) ", "", token.string)
        return re.sub(r"\w+", lambda word: name_of(word[0]), text)
    return token.string


def name_of(name: str) -> str:
    ours = OURS.fullmatch(name)
    return NAMES.get(name, ours[1] if ours else name)
