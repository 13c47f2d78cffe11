"""Reads YAML with the scalars of YAML 1.2 core, from the events of PyYAML's parser.

PyYAML's own constructor follows YAML 1.1, where `no` is false, `12:30:00` is 45000 and `2026-01-01` a date:
these are text here. Tags, merge keys and several documents are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, cast

import yaml

from holdfast.frontends.document.limits import (
    FEWER_VALUES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DOCUMENT_VALUES,
    MAX_EXPANSION,
    MAX_PROBLEMS,
    TOO_MANY_VALUES,
)
from holdfast.frontends.document.source import PlaceTable, TextPlace, TextProblem
from holdfast.frontends.document.yaml_surrogates import MovedEscapes
from holdfast.types.text import clean_text

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_INT: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIXES: Final = {
    "mapping values are not allowed": 'quote a text that contains ": ", and check the indentation',
    "tab character": "indent with spaces",
    "did not find expected": "check the indentation, and that each quote and bracket above is closed",
    "unexpected end of stream": "close the quote or bracket",
    "cannot start any token": "quote a text that begins with this character",
}
"""By words of the parser's message."""
_MAX_DIGITS: Final = 400
_SMALL: Final = 1_000
"""Values and characters of a document that may become ten times larger in any case."""
_FIRST: Final = frozenset("0123456789-+.~ntfNTF")


def read_yaml(
    text: str, problems: list[TextProblem] | None = None, *, most: int = MAX_DOCUMENT_VALUES
) -> Any:
    """Raises TextProblem. `problems`: gets those with which the rest can still be read."""
    reader = _Reader(text, places=False, most=most)
    try:
        data = reader.read()
    finally:
        if problems is not None:
            problems += reader.problems
    if problems is None and reader.problems:
        raise reader.problems[0]
    return data


def places_of_yaml(text: str) -> PlaceTable:
    reader = _Reader(text, places=True, most=MAX_BYTES * MAX_EXPANSION)
    reader.read()
    return reader.places


class _Open:
    """A mapping or list that is not closed yet. `key`: of the value that comes next. `start`: line and
    column, from 0. `is_placeholder`: it is `{{name}}` without quotes. `count`: its values; `height`: the
    levels of lists and mappings, itself included."""

    __slots__ = (
        "anchor", "count", "height", "is_placeholder", "key", "path", "size", "start", "value", "waits",
    )  # fmt: skip

    value: Any

    def __init__(
        self, value: Any, path: tuple[str | int, ...], anchor: str | None, start: tuple[int, int]
    ) -> None:
        self.value, self.path, self.anchor, self.start = value, path, anchor, start
        self.is_placeholder = False
        self.key: str | None = None
        self.waits = isinstance(value, dict)
        self.size = self.count = self.height = 1


class _Anchored(NamedTuple):
    value: Any
    size: int = 1
    values: int = 1
    height: int = 0


class _Reader:
    def __init__(self, text: str, *, places: bool, most: int) -> None:
        self.text, self._most = text, most
        self.places: dict[tuple[tuple[str | int, ...], bool], TextPlace] = {}
        self.problems: list[TextProblem] = []
        self._with_places = places
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._root: list[Any] = []
        self._written = self._expanded = self._skipped = self._values = 0
        self._escapes = MovedEscapes("")

    def read(self) -> Any:
        try:
            self._escapes = MovedEscapes(self.text)
            for event in _events(self._escapes.text):
                if not self._take(event):
                    break
        except TextProblem as problem:
            if problem not in self.problems:
                self.problems.append(problem)
            raise
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
            self._stop("yaml", f"this is not YAML: {error.problem or error}", line, column)
        except yaml.reader.ReaderError as error:
            line, column = _place_of(self.text, error.position)
            why = f"the character {error.character!a} is not allowed"
            self._stop("yaml", f"this is not YAML: {why}", line, column)
        except yaml.YAMLError as error:
            self._stop("yaml", f"this is not YAML: {error}", 1, 1)
        return self._root[0] if self._root else None

    def _stop(self, rule: str, message: str, line: int, column: int) -> NoReturn:
        fix = next((fix for words, fix in _FIXES.items() if words in message), "correct the text there")
        self.problems.append(TextProblem(rule, message, line, column, fix))
        raise self.problems[-1] from None

    def _take(self, event: Any) -> bool:
        """False: the rest is not read."""
        kind = cast("type[Any]", type(event))
        if self._skipped:
            self._count(event, 1)
            self._skip(event, kind)
        elif kind is yaml.ScalarEvent:
            self._count(event, 1)
            self._scalar(event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._count(event, 1)
            self._begin(event, {} if kind is yaml.MappingStartEvent else [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end(event)
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent and self._root:
            self._refuse(event, "several-documents", "there is more than one document", "keep one of them")
            return False
        return len(self.problems) < MAX_PROBLEMS

    def _refuse(self, event: Any, rule: str, message: str, fix: str) -> None:
        """Reports it; the caller has a stand-in."""
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        self.problems.append(TextProblem(rule, message, line, column, fix))

    def _refuse_all(self, event: Any, rule: str, message: str, fix: str) -> NoReturn:
        """The rest cannot be read."""
        self._refuse(event, rule, message, fix)
        raise self.problems[-1]

    def _count(self, event: Any, more: int) -> None:
        self._values += more
        if self._values > self._most:
            self._refuse_all(event, "document-size", TOO_MANY_VALUES, FEWER_VALUES)

    def _begin(self, event: Any, value: Any) -> None:
        self._refuse_tag(event)
        self._require_depth(event, 1)
        path = self._path(event, False)
        if path is None:
            fix = 'write a text as the key; quote a placeholder: "{{name}}"'
            around = self._open[-1]
            if around.start != (event.start_mark.line, event.start_mark.column - 1):
                self._refuse_all(event, "key-text", "a key is a list or a mapping", fix)
            # A placeholder without quotes: `{{`. It is read as the text that it is meant to be.
            self._refuse(event, "key-text", "a key is a list or a mapping", fix)
            around.key, around.waits, around.is_placeholder, self._skipped = "", False, True, 1
            return
        self._written += 1
        mark = event.start_mark
        self._open.append(_Open(value, path, event.anchor, (mark.line, mark.column)))

    def _require_depth(self, event: Any, more: int) -> None:
        if len(self._open) + more > MAX_DEPTH + 2:
            message = f"it is nested more than {MAX_DEPTH} levels deep"
            self._refuse_all(event, "document-depth", message, "use a sub-flow, or flatter data")

    def _skip(self, event: Any, kind: type[Any]) -> None:
        """What is inside of a key that is a mapping."""
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._skipped += 1
            if self._skipped > MAX_DEPTH:
                message = f"it is nested more than {MAX_DEPTH} levels deep"
                self._refuse_all(event, "document-depth", message, "use a sub-flow, or flatter data")
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._skipped -= 1

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        if done.is_placeholder:
            # On one line: more lines are no placeholder.
            line, column = done.start
            text = self.text.split("\n")[line] if line == event.end_mark.line else ""
            done.value = text[column : event.end_mark.column]
        found = _Anchored(done.value, done.size, done.count, done.height)
        if done.anchor is not None:
            self._anchors[done.anchor] = found
        self._put(found)

    def _scalar(self, event: Any) -> None:
        self._refuse_tag(event)
        size = _size(event.value)
        self._written += size
        around = self._open[-1] if self._open else None
        value: Any = self._escapes.back(event)
        plain = event.implicit[0]
        if plain:
            value = self._resolved(event, value)
        elif _has_surrogates(value):
            value = self._joined(event, value)
        if around is not None and around.waits:
            self._key(event, around, value)
            return
        self._path(event, plain or event.style in ("'", '"'))
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, size)
        self._put(_Anchored(value, size))

    def _key(self, event: Any, around: _Open, key: Any) -> None:
        if not isinstance(key, str):
            shown = "empty" if key is None else f"the value {event.value}"
            self._refuse(event, "key-text", f"a key is {shown}, not text", "put it in quotes")
            key = str(event.value)
        if key in around.value:
            message = f"the key {clean_text(key, 80)!r} is given twice in this mapping"
            self._refuse(event, "duplicate-key", message, "remove one of them")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(key, _size(key))
        around.key, around.waits = key, False
        around.count += 1
        around.size += _size(key)
        if self._with_places:
            quoted = event.style in ("'", '"')
            place = TextPlace(event.start_mark.line + 1, event.start_mark.column + 1, True, int(quoted))
            self.places[(*around.path, str(key)), True] = place

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            message = f"the alias *{event.anchor} contains itself, or names nothing"
            self._refuse(event, "alias", message, "write the value out")
        found = self._anchors.get(event.anchor, _Anchored(None))
        self._count(event, found.values)
        self._count_alias(event, found.size)
        self._require_depth(event, found.height)
        value = found.value
        around = self._open[-1] if self._open else None
        if around is not None and around.waits:
            if not isinstance(value, str):
                message = "a key is an alias of something that is not text"
                self._refuse_all(event, "key-text", message, "write the key out")
            self._key(event, around, value)
            return
        self._path(event, False)
        self._put(found._replace(value=_copied(value)))

    def _count_alias(self, event: Any, size: int) -> None:
        self._written += 1
        self._expanded += size
        if self._expanded > MAX_EXPANSION * max(self._written, _SMALL):
            message = f"aliases make the document more than {MAX_EXPANSION} times larger"
            self._refuse_all(event, "alias", message, "write the values out")

    def _put(self, found: _Anchored) -> None:
        value = found.value
        if not self._open:
            self._root.append(value)
            return
        around = self._open[-1]
        around.size += found.size
        around.count += found.values
        around.height = max(around.height, 1 + found.height)
        if around.key is not None:
            around.value[around.key] = value
            around.waits = True
        else:
            around.value.append(value)

    def _path(self, event: Any, inline: bool) -> tuple[str | int, ...] | None:
        """Of the value that this event begins; None for a key."""
        path: tuple[str | int, ...] = ()
        if self._open:
            around = self._open[-1]
            if around.waits:
                return None
            step = around.key if isinstance(around.value, dict) else len(around.value)
            path = (*around.path, step if step is not None else "")
        if self._with_places:
            mark, end = event.start_mark, event.end_mark
            quoted = int(getattr(event, "style", None) in ("'", '"'))
            text: Any = getattr(event, "value", None)
            # The column inside of a text is known where it stands as it is.
            as_it_is = inline and mark.line == end.line and end.column - mark.column == len(text) + 2 * quoted
            self.places[path, False] = TextPlace(mark.line + 1, mark.column + 1, as_it_is, quoted)
        return path

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            self._refuse(event, "tag", f"the tag {event.tag!r} is not allowed", "remove it; quote a text")

    def _resolved(self, event: Any, text: str) -> Any:
        """A scalar without quotes, as YAML 1.2 core reads it."""
        if text in _WORDS:
            return _WORDS[text]
        if not text or text[0] not in _FIRST:
            return text
        if _INT.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                self._refuse(event, "number-range", f"a number has {len(text)} digits", "write it as text")
                return text
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, "number", f"{text} is no JSON number", "write null, or quote a text")
        return text

    def _joined(self, event: Any, text: str) -> str:
        """PyYAML reads the escapes of one character beyond the basic plane as two halves."""
        joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        if _has_surrogates(joined):
            self._refuse(event, "surrogate", "a text has half of a surrogate pair", "write both halves")
            return joined.encode(errors="replace").decode()
        return joined


def is_plain_text(text: str) -> bool:
    """Whether it is still text when it is written without quotes."""
    if text in _WORDS:
        return False
    numbers = (_INT, _BASED, _FLOAT, _NOT_FINITE)
    return not any(number.fullmatch(text) for number in numbers)


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _size(text: str) -> int:
    """Of a scalar: each character counts, as each value does."""
    return 1 + len(text)


def _copied(value: Any) -> Any:
    """Each use of an alias is a value of its own."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_copied(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _events(text: str) -> Iterator[Any]:
    """By libyaml where PyYAML has it."""
    loader: Any = getattr(yaml, "CSafeLoader", None) or yaml.SafeLoader
    return cast("Any", yaml).parse(text, Loader=loader)


def _place_of(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")
