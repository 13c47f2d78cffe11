"""A place in a list of tokens: how reading fails there, and where it goes on."""

from __future__ import annotations

from typing import NoReturn

from holdfast.frontends.dot.faults import Faults
from holdfast.frontends.dot.lex import BAD, END, Tokens


class SkipError(Exception):
    """The statement here is lost; its fault has been told."""


class Reader:
    def __init__(self, tokens: Tokens, faults: Faults) -> None:
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.faults = faults
        self.at: int = 0
        self.is_cut: bool = len(self.kinds) > 1 and self.kinds[-2] == BAD
        """Something has no end and the text ends in it: what else is open there is no fault."""

    def forget(self) -> None:
        """The tokens: what is built next may have their memory."""
        self.kinds, self.texts, self.starts = [], [], []

    def fail(self, message: str, start: int, fix: str) -> NoReturn:
        self.faults.error(message, start, fix=fix)
        raise SkipError

    def recover(self) -> None:
        """To what may be the next statement. Braces are never passed, so that subgraphs stay matched."""
        line = self.faults.line(self.starts[self.at])
        while self.kinds[self.at] not in ("{", "}", END):
            kind = self.kinds[self.at]
            self.at += 1
            if kind in (";", "]") or self.faults.line(self.starts[self.at]) > line:
                return
