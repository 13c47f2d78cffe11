"""Parses the first line of a pipeline, and checks that nothing follows its end."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from holdfast.frontends.dot.attribute_lists import AttributeReader
from holdfast.frontends.dot.lex import BAD, END, NUMBER, STRING, WORD, TokenBuffer
from holdfast.frontends.dot.literals import IDENTIFIER
from holdfast.frontends.dot.syntax_errors import Faults
from holdfast.frontends.dot.values import as_text

NAMES: Final = frozenset({WORD, STRING, NUMBER, BAD})


class HeaderReader(AttributeReader):
    def __init__(self, tokens: TokenBuffer, faults: Faults, path: str) -> None:
        super().__init__(tokens, faults)
        self.path = path

    def header(self) -> tuple[str, int]:
        """`digraph NAME {`: the name, and the position of the brace."""
        self.refill()
        if self.kinds[0] == END:
            self.fail("the text has no pipeline", self.starts[0], "write digraph NAME { ... }")
        if self.is_keyword("strict"):
            self.faults.error("a pipeline cannot be strict", self.starts[self.at], fix="remove strict")
            self.at += 1
        if self.is_keyword("graph"):
            self.faults.error("edges of a pipeline are directed", self.starts[self.at], fix="write digraph")
        elif not self.is_keyword("digraph"):
            self.faults.forget()
            self.fail("a pipeline begins with digraph", self.starts[self.at], "write digraph NAME { ... }")
        elif self.texts[self.at] != "digraph":
            self.faults.lenient("digraph must be lower case", self.starts[self.at], fix="write digraph")
        self.at += 1
        name = self._graph_name()
        if self.kinds[self.at] != "{":
            self.fail("the pipeline's { is missing", self.starts[self.at], "write digraph NAME { ... }")
        self.at += 1
        return name, self.starts[self.at - 1]

    def is_keyword(self, word: str) -> bool:
        return self.kinds[self.at] == WORD and self.texts[self.at].lower() == word

    def _graph_name(self) -> str:
        kind, start = self.kinds[self.at], self.starts[self.at]
        if kind == "{":
            self.faults.lenient("the pipeline has no name", start, fix="write digraph NAME { ... }")
            return PurePath(self.path).stem or "pipeline"
        if kind not in NAMES:
            self.fail("the pipeline's name is missing", start, "write digraph NAME { ... }")
        name = as_text(self.value()) if kind == STRING else self.texts[self.at]
        self.at += 0 if kind == STRING else 1
        if kind == STRING or not IDENTIFIER.fullmatch(name):
            fix = "use letters, digits and _, without quotes, and put the text in a label"
            self.faults.lenient(f"the name {name!r} is not a plain name", start, fix=fix)
        return name

    def require_end(self) -> None:
        while self.kinds[self.at] == ";":
            self.refill()
            self.at += 1
        if self.kinds[self.at] == END:
            return
        start = self.starts[self.at]
        if any(map(self.is_keyword, ("digraph", "graph", "strict"))):
            self.fail("a second graph in one file", start, "put each pipeline into its own file")
        self.fail("unexpected text after the end of the pipeline", start, "remove it, or a } before it")
