"""The model stylesheet: the model, provider and effort of stages that do not set these themselves.

    * { llm_model: claude-sonnet-4-5; llm_provider: anthropic }
    .code { llm_model: claude-opus-4-6 }
    #review { reasoning_effort: high }

A rule for an id wins over one for a class, then a shape, then `*`; of equals the later wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from holdfast.frontends.dot.document import NOWHERE, Pipeline, SourceLocation, Stage
from holdfast.frontends.dot.values import Value

ATTRIBUTE: Final = "model_stylesheet"
PROPERTIES: Final = ("llm_model", "llm_provider", "reasoning_effort")
LONGEST: Final = 1_000_000
ALIASES: Final = {"model": "llm_model", "provider": "llm_provider"}
"""Other names of two properties, which some files use."""

_TOKEN: Final = re.compile(
    r"""(?P<gap>\s+|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
      | (?P<mark>[{};:=])
      | (?P<word>[^\s{};:="']+)
      | (?P<wrong>["'].*|.)""",
    re.VERBOSE | re.DOTALL,
)
_SELECTOR: Final = re.compile(r"\*|[#.]?[A-Za-z0-9_-]+")
_UNESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class StyleRule(NamedTuple):
    """`selector` as it was written: `*`, `box`, `.class` or `#id`."""

    selector: str
    declarations: Mapping[str, str]


class StylesheetProblem(NamedTuple):
    message: str
    offset: int
    fix: str = ""


class Stylesheet(NamedTuple):
    rules: tuple[StyleRule, ...]
    faults: tuple[StylesheetProblem, ...]
    aliases: tuple[StylesheetProblem, ...] = ()
    """Properties under another name: accepted, with a warning."""


class StylesheetTransform:
    """Sets the properties that the stylesheet has for a stage, except those that the stage sets itself."""

    def apply(self, pipeline: Pipeline) -> Pipeline:
        text = pipeline.text(ATTRIBUTE)
        rules = parse_stylesheet(text).rules if text else ()
        if not rules:
            return pipeline
        found = _Index(rules)
        place = pipeline.places.get(ATTRIBUTE, NOWHERE)
        stages = {name: _styled(stage, found.of(stage), place) for name, stage in pipeline.stages.items()}
        return replace(pipeline, stages=stages)


def _styled(stage: Stage, given: Mapping[str, str], place: SourceLocation) -> Stage:
    new: dict[str, Value] = {key: value for key, value in given.items() if key not in stage.explicit}
    if not new:
        return stage
    places = {**stage.places, **dict.fromkeys(new, place)}
    return replace(stage, attrs={**stage.attrs, **new}, places=places)


class _Index:
    """Rules by selector, so that only the rules of a stage are looked up."""

    def __init__(self, rules: Iterable[StyleRule]) -> None:
        self._merged: dict[str, dict[str, str]] = {}
        self._order: dict[tuple[str, str], int] = {}
        for number, rule in enumerate(rules):
            self._merged.setdefault(rule.selector, {}).update(rule.declarations)
            for key in rule.declarations:
                self._order[rule.selector, key] = number

    def of(self, stage: Stage) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for selectors in (("*",), (stage.shape,), [f".{name}" for name in stage.classes], (f"#{stage.id}",)):
            found.update(self._level([each for each in selectors if each in self._merged]))
        return found

    def _level(self, selectors: list[str]) -> Mapping[str, str]:
        """If a stage has several classes, the later rule wins, property by property."""
        won: dict[str, tuple[int, str]] = {}
        for selector in selectors:
            for key, value in self._merged[selector].items():
                offer = (self._order[selector, key], value)
                won[key] = max(won.get(key, offer), offer)
        return {key: value for key, (_, value) in won.items()}


def parse_stylesheet(text: str) -> Stylesheet:
    """The rules that can be read, and every fault with its offset in the text."""
    if len(text) > LONGEST:
        message = f"the stylesheet has {len(text):,} characters; the maximum is {LONGEST:,}"
        return Stylesheet((), (StylesheetProblem(message, 0),))
    return _Parser(text).sheet()


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "gap":
            yield _Token(found.lastgroup or "", found[0], found.start())
    yield _Token("end", "the end", len(text))


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._faults: list[StylesheetProblem] = []
        self._aliases: list[StylesheetProblem] = []

    def sheet(self) -> Stylesheet:
        rules: list[StyleRule] = []
        while self._next.kind != "end":
            rule = self._rule()
            if rule is None:
                self._skip_rule()
            else:
                rules.append(rule)
        return Stylesheet(tuple(rules), tuple(self._faults), tuple(self._aliases))

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _wrong(self, wanted: str, token: _Token) -> None:
        self._faults.append(StylesheetProblem(f"{wanted}, not {token.text[:40]}", token.offset))

    def _rule(self) -> StyleRule | None:
        selector = self._take()
        if selector.kind != "word" or not _SELECTOR.fullmatch(selector.text):
            self._wrong("a rule starts with *, a shape, .class or #id", selector)
            return None
        if self._next.text != "{":
            self._wrong(f"expected {{ after {selector.text}", self._next)
            return None
        self._take()
        return self._body(selector.text)

    def _body(self, selector: str) -> StyleRule | None:
        found: dict[str, str] = {}
        while self._next.text != "}":
            if not self._declaration(found):
                return None
            if self._next.text == ";":
                self._take()
            elif self._next.text != "}":
                self._wrong("expected ; between declarations", self._next)
                return None
        self._take()
        if not found:
            self._faults.append(
                StylesheetProblem(f"the rule for {selector} is empty", self._tokens[self._at - 1].offset)
            )
        return StyleRule(selector, found)

    def _declaration(self, found: dict[str, str]) -> bool:
        name = self._take()
        key = ALIASES.get(name.text, name.text)
        if key != name.text:
            message = f"{name.text} is read as {key}"
            self._aliases.append(StylesheetProblem(message, name.offset, f"write {key}"))
        if name.kind != "word" or key not in PROPERTIES:
            self._wrong(f"a property must be one of {', '.join(PROPERTIES)}", name)
            return False
        if self._next.text == "=":
            message = f"= after {name.text} is read as :"
            self._aliases.append(StylesheetProblem(message, self._next.offset, f"write {key}: VALUE"))
        elif self._next.text != ":":
            self._wrong(f"expected : after {name.text}", self._next)
            return False
        self._take()
        value = self._value()
        if value:
            found[key] = value
        else:
            self._wrong(f"expected a value for {name.text}", self._next)
        return bool(value)

    def _value(self) -> str:
        """A text in quotes, or a word. Names of models may have colons, such as `llama3:70b`."""
        if self._next.kind == "text":
            return _UNESCAPE.sub(r"\1", self._take().text[1:-1])
        parts: list[str] = []
        end = self._next.offset
        while self._next.offset == end and (self._next.kind == "word" or self._next.text in ":="):
            parts.append(self._take().text)
            end += len(parts[-1])
        return "".join(parts)

    def _skip_rule(self) -> None:
        while self._next.kind != "end":
            if self._take().text == "}":
                return
