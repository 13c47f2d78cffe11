"""Parses attribute lists: `[key=value, ...]`."""

from __future__ import annotations

from typing import Final

from holdfast.frontends.dot.lex import BAD, END, NUMBER, STRING, WORD, TokenBuffer
from holdfast.frontends.dot.literals import check_key, value_of
from holdfast.frontends.dot.scopes import Block
from holdfast.frontends.dot.syntax_errors import Faults
from holdfast.frontends.dot.token_reader import SkipError, TokenReader
from holdfast.frontends.dot.values import Value, as_text

ALIASES: Final = {"node_type": "type", "llm_prompt": "prompt", "script": "tool_command"}
"""Names that files of other runners use for attributes of stages."""
_TEXTS: Final = frozenset({WORD, NUMBER, STRING, BAD})
_ENDS: Final = frozenset({"{", "}", "[", "->", END})


class AttributeReader(TokenReader):
    def __init__(self, tokens: TokenBuffer, faults: Faults) -> None:
        super().__init__(tokens, faults)
        self._keys: dict[str, str] = {}

    def attributes(self, *, of_stage: bool) -> Block:
        """Parse `[key=value, ...]`, and any further blocks that follow directly."""
        found = Block()
        self._block(found)
        while self.kinds[self.at] == "[":
            self.faults.lenient("a second block of attributes", self.starts[self.at], fix="write one block")
            self._block(found)
        if of_stage and not ALIASES.keys().isdisjoint(found.attrs):
            self._rename(found)
        return found

    def _block(self, into: Block) -> None:
        self.refill()
        opened = self.starts[self.at]
        self.at += 1
        if self.kinds[self.at] == "]":
            self.faults.lenient("a block without attributes", opened, fix="leave it out")
        warned = False
        while self.kinds[self.at] != "]":
            if self.kinds[self.at] in _ENDS or self.kinds[self.at + 1] in ("->", "["):
                self._unclosed(opened)
                return
            try:
                self.attribute(into)
                warned = self._separator(warned=warned)
            except SkipError:
                self._recover_inside()
        self.at += 1

    def _unclosed(self, opened: int) -> None:
        """Report a block that is cut off by the end of the text or by another statement."""
        is_last = self.kinds[self.at] == END
        if not (is_last and self.is_cut):
            self.faults.error("this [ is not closed", opened, fix="close it with ]")
        if is_last:
            self.cut()

    def _separator(self, *, warned: bool) -> bool:
        """Read what separates two attributes. Each block is reported at most once."""
        kind = self.kinds[self.at]
        if kind == ",":
            self.at += 1
            if self.kinds[self.at] == "]" and not warned:
                self.faults.lenient("a comma before ]", self.starts[self.at - 1], fix="leave it out")
            return warned
        if kind == "]":
            return warned
        if self._is_glued():
            fix = 'write \\" for a quote inside a text'
            self.fail("the text ends at this quote, and more follows", self.starts[self.at] - 1, fix)
        if not warned and kind not in _ENDS:
            text = "a ; between attributes" if kind == ";" else "no comma between attributes"
            self.faults.lenient(text, self.starts[self.at], fix="write a comma")
        self.at += 1 if kind == ";" else 0
        return True

    def _is_glued(self) -> bool:
        """Whether a string directly touches a token that is not the next attribute: the string was meant to
        continue, and a quote in it is not escaped."""
        before, end = self.at - 1, self.starts[self.at]
        touches = self.kinds[before] == STRING and self.starts[before] + len(self.texts[before]) == end
        return touches and self.kinds[self.at] in _TEXTS and self.kinds[self.at + 1] != "="

    def attribute(self, into: Block) -> None:
        """`key = value`."""
        self.refill()
        kind, text, start = self.kinds[self.at], self.texts[self.at], self.starts[self.at]
        if kind not in (WORD, STRING):
            self.fail(f"an attribute cannot start with {text or 'the end'}", start, "write key=value")
        key = self._keys.get(text)
        if key is None:
            key = self._keys[text] = self._key(kind, text, start)
        self.at += 1
        if self.kinds[self.at] != "=":
            fix = key.replace(":", "=", 1) if ":" in key else f"{key}=value"
            self.fail(f"the attribute {key} has no value", start, f"write {fix}")
        self.at += 1
        into.attrs[key] = self.value()
        into.places[key] = start

    def _key(self, kind: str, text: str, start: int) -> str:
        key = as_text(value_of(kind, text, start, self.faults))
        check_key(kind, key, start, self.faults)
        return key

    def value(self) -> Value:
        kind, text, start = self.kinds[self.at], self.texts[self.at], self.starts[self.at]
        if kind == BAD:
            raise SkipError
        if kind not in (STRING, WORD, NUMBER):
            self.fail("a value is missing here", start, 'write a word, a number or a text in "quotes"')
        self.at += 1
        found = value_of(kind, text, start, self.faults)
        return self._joined(as_text(found)) if self.kinds[self.at] == "+" else found

    def _joined(self, first: str) -> str:
        """Join texts that have + between them."""
        self.faults.lenient("texts joined with +", self.starts[self.at], fix="write one text")
        parts = [first]
        while self.kinds[self.at] == "+":
            self.refill()
            self.at += 1
            kind, text, start = self.kinds[self.at], self.texts[self.at], self.starts[self.at]
            if kind != STRING:
                self.fail("a text is missing after +", start, "write one text")
            parts.append(as_text(value_of(kind, text, start, self.faults)))
            self.at += 1
        return "".join(parts)

    def _recover_inside(self) -> None:
        """Skip to the next possible attribute of the block, or to its end."""
        while self.kinds[self.at] != "]" and self.kinds[self.at] not in _ENDS:
            self.refill()
            if self.kinds[self.at] in (",", ";"):
                self.at += 1
                return
            self.at += 1
            if self.kinds[self.at] == WORD and self.kinds[self.at + 1] == "=":
                return

    def _rename(self, block: Block) -> None:
        for alias, key in ALIASES.items():
            if alias not in block.attrs:
                continue
            value, place = block.attrs.pop(alias), block.places.pop(alias)
            if key not in block.attrs:
                block.attrs[key], block.places[key] = value, place
            self.faults.lenient(f"{alias} is another runner's word for {key}", place, fix=f"write {key}")
