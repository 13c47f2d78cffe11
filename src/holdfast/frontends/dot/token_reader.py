"""A position in a list of tokens: how errors are reported there, and where parsing continues."""

from __future__ import annotations

import sys
from typing import NoReturn

from holdfast.frontends.dot.lex import END, TokenBuffer
from holdfast.frontends.dot.syntax_errors import Faults


class SkipError(Exception):
    """The statement here is skipped; its error has been reported."""


WINDOW = 4096  # tokens that are read at once
AHEAD = 32


class TokenReader:
    """Looks at most `AHEAD` tokens ahead between two calls of `refill`."""

    def __init__(self, tokens: TokenBuffer, faults: Faults) -> None:
        self._tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.faults = faults
        self.at: int = 0
        self._enough = 0
        self._is_open = False

    def refill(self) -> None:
        if self.at < self._enough:
            return
        self._tokens.drop(self.at)
        self.at = 0
        self._tokens.read(WINDOW + AHEAD)
        self._enough = sys.maxsize if self._tokens.is_whole else len(self.kinds) - AHEAD

    @property
    def is_cut(self) -> bool:
        """The text ends inside something that is not closed; what else is open there is not reported."""
        return self._is_open or self._tokens.is_cut

    def cut(self) -> None:
        self._is_open = True

    def fail(self, message: str, start: int, fix: str) -> NoReturn:
        self.faults.error(message, start, fix=fix)
        raise SkipError

    def recover(self) -> None:
        """Skip to the next possible statement. Braces are never skipped, so that subgraphs stay matched."""
        line = self.faults.line(self.starts[self.at])
        while self.kinds[self.at] not in ("{", "}", END):
            self.refill()
            kind = self.kinds[self.at]
            self.at += 1
            if kind in (";", "]") or self.faults.line(self.starts[self.at]) > line:
                return
