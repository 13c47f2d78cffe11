"""Text to tokens."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from holdfast.model.expressions.errors import ExprSyntaxError

END = "end"
NAME = "name"
LITERAL = "literal"
OPERATOR = "operator"

_WORD_LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_WORD_OPERATORS = {"and": "&&", "or": "||", "not": "not", "in": "in"}
# Python refuses to read integers of more digits than a process-wide setting, never below this.
_MAX_DIGITS = 640

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<name>[^\W\d]\w*(?:\.(?:[^\W\d]\w*|[0-9]+))*)
    | (?P<number>-?[0-9]+(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<operator>===|!==|==|!=|>=|<=|&&|\|\||[<>!?:()\[\],|])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"} | {c: c for c in "\\'\"/"}
_SURROGATE = re.compile("[\ud800-\udfff]")

_HINTS = {
    "=": "use == to compare",
    "&": "use && or the word and",
    "{": "write names without braces here",
    "'": "this string is never closed",
    '"': "this string is never closed",
    ".": "a path is names and indices joined by dots, such as items.0.price",
} | dict.fromkeys("+-*/%", "there is no arithmetic: compute the value in a node")


class ExprToken(NamedTuple):
    kind: str
    value: object
    column: int
    source: str

    def describe(self) -> str:
        return "the end" if self.kind == END else repr(self.source)


def tokenize(text: str) -> list[ExprToken]:
    tokens: list[ExprToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, position)
        if match.lastgroup != "space":
            tokens.append(_token(text, match))
        position = match.end()
    tokens.append(ExprToken(END, None, len(text) + 1, ""))
    return tokens


def _token(text: str, match: re.Match[str]) -> ExprToken:
    source, column = match.group(), match.start() + 1
    if match["name"] is not None:
        return _name_token(source, column)
    if match["number"] is not None:
        return ExprToken(LITERAL, _number(text, match), column, source)
    if match["string"] is not None:
        return ExprToken(LITERAL, _string(text, source, column), column, source)
    return ExprToken(OPERATOR, source, column, source)


def _name_token(source: str, column: int) -> ExprToken:
    if source in _WORD_LITERALS:
        return ExprToken(LITERAL, _WORD_LITERALS[source], column, source)
    if source in _WORD_OPERATORS:
        return ExprToken(OPERATOR, _WORD_OPERATORS[source], column, source)
    return ExprToken(NAME, tuple(source.split(".")), column, source)


def _number(text: str, match: re.Match[str]) -> int | float:
    source = match.group()
    if match["fraction"] is None and match["exponent"] is None and len(source) <= _MAX_DIGITS:
        return int(source)
    value = float(source)
    if math.isinf(value) or (match["fraction"] is None and match["exponent"] is None):
        raise ExprSyntaxError("number too large", text=text, column=match.start() + 1)
    return value


def _string(text: str, source: str, column: int) -> str:
    def unescape(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is not None:
            return chr(int(code, 16))
        if match[3] not in _ESCAPED:
            at = column + 1 + match.start()
            hint = r"known escapes: \\ \' \" \/ \n \r \t \b \f \0 \xHH \uHHHH"
            raise ExprSyntaxError(f"unknown escape {match.group()!r}", text=text, column=at, hint=hint)
        return _ESCAPED[match[3]]

    value = _ESCAPE.sub(unescape, source[1:-1])
    if _SURROGATE.search(value) is None:
        return value
    return _joined_surrogates(value, text, column)


def _joined_surrogates(value: str, text: str, column: int) -> str:
    r"""JSON writes one emoji as two \u escapes. A half without its other half can be stored nowhere."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExprSyntaxError("half a surrogate pair in a string", text=text, column=column) from None


def _stray(text: str, position: int) -> ExprSyntaxError:
    character = text[position]
    if character.isascii() and character.isdigit():
        hint = "a number is digits, with an optional fraction and exponent; a name starts with a letter"
        return ExprSyntaxError("malformed number", text=text, column=position + 1, hint=hint)
    hint = _HINTS.get(character, "")
    return ExprSyntaxError(f"unexpected {character!r}", text=text, column=position + 1, hint=hint)
