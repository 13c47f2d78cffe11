"""The condition language of pipelines: clauses joined by `&&`.

    outcome=success && context.tests_passed=true
    preferred_label!="Needs work"

A clause compares the value of a key with a literal, as text: `=` and `!=`; a bare key tests whether there is
a value. `outcome` and `preferred_label` are of the stage that just ended; every other key is looked up in the
context, `context.k` as written and then as `k`. A key without a value is the empty text.

Where the specification is silent:

* The first operator of a clause splits it, so that literals may contain `=`. `&&` inside quotes is text.
* A bare key is false if its value is missing, the empty text, `false` or `0`.
* Outcome words are compared by what they mean: `SUCCESS` and `succeeded` are `success`. A word that no
  dialect knows is compared as it is.
* `||`, `>`, `>=`, `<`, `<=` and `contains` are read, and reported by `problems_of` unless they are allowed:
  a pipeline has to allow them. `&&` binds tighter than `||`. A comparison with something that is not a number
  is false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast

from holdfast.model.expressions import MAX_LENGTH, MISSING, ExprSyntaxError, Path, Resolve

OUTCOME_ALIASES: Final = {
    "succeeded": "success",
    "ok": "success",
    "partially_succeeded": "partial_success",
    "partial": "partial_success",
    "failed": "fail",
    "failure": "fail",
    "error": "fail",
}
"""Words of other dialects. Any other word is an outcome by itself (AT-A16)."""
OUTCOMES: Final = frozenset({"success", "partial_success", "retry", "fail", "skipped"})

_BARE: Final = re.compile(r"[\w.:-]+", re.ASCII)
WRONG_IN_BARE: Final = re.compile(
    r"""["<>&|()]|(?:(?<=\s)|^)(?:and|or|not|contains|matches)(?=\s|$)""", re.IGNORECASE
)
NUMBERS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}
TRUTH: Final = ""


class Clause(NamedTuple):
    """`operator` is empty for a bare key."""

    key: str
    operator: str = TRUTH
    literal: str = ""

    def holds(self, resolve: Resolve) -> bool:
        found = _look_up(self.key, resolve)
        text = as_text(found)
        if self.operator == TRUTH:
            return text not in ("", "false", "0")
        wanted = self.literal
        if self.key in ("outcome", "context.outcome"):
            text, wanted = outcome_word(text), outcome_word(wanted)
        if self.operator in ("=", "!="):
            return (text == wanted) == (self.operator == "=")
        return _contains(found, wanted) if self.operator == "contains" else self._compares(text)

    def _compares(self, text: str) -> bool:
        try:
            return NUMBERS[self.operator](float(text), float(self.literal))
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.operator == TRUTH:
            return self.key
        space = " " if self.operator == "contains" else ""
        plain = _BARE.fullmatch(self.literal) and not WRONG_IN_BARE.search(self.literal)
        return f"{self.key}{space}{self.operator}{space}{self.literal if plain else _quoted(self.literal)}"


def outcome_word(word: str) -> str:
    """The standard word for an outcome; a word that no dialect knows is returned as it is."""
    low = word.lower()
    return low if low in OUTCOMES else OUTCOME_ALIASES.get(low, word)


def as_text(value: object) -> str:
    """As the specification compares it: `true`, `3`, the empty text for nothing."""
    if isinstance(value, str):
        return value
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        return str(value)


def _plain(value: object) -> object:
    """Frozen lists and mappings of a state as what JSON knows."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return list(cast("Sequence[object]", value)) if isinstance(value, Sequence) else str(value)


def _contains(found: object, wanted: str) -> bool:
    if isinstance(found, Sequence) and not isinstance(found, (str, bytes)):
        return any(as_text(item) == wanted for item in cast("Sequence[object]", found))
    return wanted in as_text(found)


def _look_up(key: str, resolve: Resolve) -> object:
    for path in paths_of(key):
        found = resolve(path)
        if found is not None and found is not MISSING:
            return found
    return MISSING


def paths_of(key: str) -> tuple[Path, ...]:
    if key in ("outcome", "preferred_label"):
        return ((key,),)
    if key.startswith("context."):
        return (("scratch", key), ("scratch", key.removeprefix("context.")))
    return (("scratch", key),)


def _quoted(text: str) -> str:
    for char, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(char, written)
    return f'"{text}"'


_QUOTED = r'"(?:[^"\\]|\\.)*"'
# A quote that is not closed takes the rest: looking for its end again from each later one is quadratic.
_JOINT: Final = re.compile(rf'{_QUOTED}|&&|\|\||".*', re.DOTALL)
_OPERATOR: Final = re.compile(r"!==|!=|===|==|=~|>=|<=|=>|=|>|<|~|(?<=\s)(?:[A-Za-z]+)(?=\s|$)")
_KEY: Final = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_EXTENDED: Final = frozenset({*NUMBERS, "contains"})
_ADVICE: Final = {
    "==": "write =",
    "===": "write =",
    "!==": "write !=",
    "&": "write &&",
    "and": "write &&",
}


class ConditionProblem(NamedTuple):
    """`column` counts characters of the condition from 1."""

    message: str
    column: int


class Clauses:
    """A compiled condition: alternatives, each of clauses that must all hold; none at all always holds.

    Used as an `Expr` is: `evaluate(resolve)` raises only what `resolve` raises, `str()` is canonical.
    """

    __slots__ = ("alternatives", "names", "text")

    def __init__(self, text: str, alternatives: tuple[tuple[Clause, ...], ...]) -> None:
        self.text: Final = text
        self.alternatives: Final = alternatives
        self.names: Final = frozenset(
            path for clauses in alternatives for clause in clauses for path in paths_of(clause.key)
        )

    def evaluate(self, resolve: Resolve) -> bool:
        return any(all(clause.holds(resolve) for clause in clauses) for clauses in self.alternatives)

    def lenient(self, resolve: Resolve) -> bool:
        """The same: by specification a missing key is the empty text."""
        return self.evaluate(resolve)

    def __str__(self) -> str:
        return " || ".join(" && ".join(map(str, clauses)) for clauses in self.alternatives)

    def __repr__(self) -> str:
        return f"compile_clauses({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.alternatives == other.alternatives if isinstance(other, Clauses) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.alternatives)


def compile_clauses(text: str) -> Clauses:
    """Extended operators too: validation decides whether a pipeline may use them. Raises ExprSyntaxError."""
    read = read_clauses(text)
    if read.problems:
        first = read.problems[0]
        raise ExprSyntaxError(first.message, text=text, column=first.column)
    return Clauses(text, read.alternatives)


def problems_of(text: str, *, extended: bool = False) -> list[ConditionProblem]:
    """Everything that is wrong with a condition, in the order of columns."""
    return read_clauses(text).all_problems(extended=extended)


class ParsedCondition(NamedTuple):
    """A parsed condition and its problems; uses of extended operators are listed separately."""

    alternatives: tuple[tuple[Clause, ...], ...]
    problems: tuple[ConditionProblem, ...]
    extensions: tuple[ConditionProblem, ...]

    def all_problems(self, *, extended: bool) -> list[ConditionProblem]:
        """In the order of columns."""
        found = [*self.problems, *(() if extended else self.extensions)]
        return sorted(found, key=lambda each: each.column)


@lru_cache(maxsize=4096)
def read_clauses(text: str) -> ParsedCondition:
    reader = _Reader()
    if len(text) > MAX_LENGTH:
        message = f"the condition has {len(text)} characters; the maximum is {MAX_LENGTH}"
        reader.wrong(message, MAX_LENGTH)
    else:
        for joint, piece, start in _pieces(text):
            reader.piece(joint, piece, start)
        reader.done(len(text))
    return ParsedCondition(
        tuple(map(tuple, reader.alternatives)), tuple(reader.problems), tuple(reader.extensions)
    )


def _pieces(text: str) -> Iterator[tuple[str, str, int]]:
    """(what joins it to the piece before, the piece, where it begins); quoted text is not split."""
    joint, start = "", 0
    for found in _JOINT.finditer(text):
        if found[0] in ("&&", "||"):
            yield joint, text[start : found.start()], start
            joint, start = found[0], found.end()
    yield joint, text[start:], start


class _Reader:
    def __init__(self) -> None:
        self.alternatives: list[list[Clause]] = [[]]
        self.problems: list[ConditionProblem] = []
        self.extensions: list[ConditionProblem] = []
        self.filled = False

    def wrong(self, message: str, offset: int) -> None:
        self.problems.append(ConditionProblem(message, offset + 1))

    def extension(self, operator: str, offset: int) -> None:
        known = "conditions have only =, != and &&"
        self.extensions.append(
            ConditionProblem(f"the operator {operator} is an extension: {known}", offset + 1)
        )

    def piece(self, joint: str, piece: str, start: int) -> None:
        if joint == "||":
            self.extension("||", start - 2)
            if not self.filled:
                self.wrong("a clause is missing before ||", start - 2)
            self.alternatives.append([])
            self.filled = False
        if piece.strip():
            self.filled = True
            clause = self._clause(piece.strip(), start + len(piece) - len(piece.lstrip()))
            if clause is not None:
                self.alternatives[-1].append(clause)

    def done(self, end: int) -> None:
        if len(self.alternatives) > 1 and not self.filled:
            self.wrong("a clause is missing after ||", end)

    def _clause(self, piece: str, start: int) -> Clause | None:
        found = _OPERATOR.search(piece)
        before = piece if found is None else piece[: found.start()]
        key = before.strip()
        if not key:
            self.wrong(f"a key is missing before {piece}", start)
            return None
        if not _KEY.fullmatch(key):
            self._wrong_key(key, start)
            return None
        if found is None:
            return Clause(key)
        operator = found[0].lower() if found[0].isalpha() else found[0]
        if operator in _EXTENDED:
            self.extension(operator, start + found.start())
        elif operator not in ("=", "!="):
            self._no_operator(found[0], start + found.start())
            return None
        literal = self._literal(piece[found.end() :], start + found.end(), operator)
        return None if literal is None else Clause(key, operator, literal)

    def _no_operator(self, what: str, offset: int) -> None:
        advice = _ADVICE.get(what.lower(), "conditions have =, != and &&")
        self.wrong(f"{what} is not an operator: {advice}", offset)

    def _wrong_key(self, key: str, place: int) -> None:
        at = next((i for i, char in enumerate(key) if not (char.isalnum() or char in "_.- ")), 0)
        if key[at] in "!&|()'":
            self._no_operator(key[at], place + at)
        else:
            self.wrong(f"{key} is not a key: use outcome, preferred_label or context.name", place)

    def _literal(self, rest: str, start: int, operator: str) -> str | None:
        raw = rest.strip()
        place = start + len(rest) - len(rest.lstrip())
        if not raw:
            self.wrong(f'a literal is missing after {operator} (the empty text is "")', place)
            return None
        if raw[0] == '"':
            return self._in_quotes(raw, place)
        if raw[0] == "'":
            self.wrong('single quotes are not supported: write "..."', place)
            return None
        found = WRONG_IN_BARE.search(raw)
        if found is not None:
            advice = _ADVICE.get(found[0].lower(), "it is not allowed here")
            self.wrong(
                f"{found[0]} in a literal: {advice}, or put the literal in quotes", place + found.start()
            )
            return None
        return raw

    def _in_quotes(self, raw: str, place: int) -> str | None:
        found = re.match(_QUOTED, raw, re.DOTALL)
        if found is None:
            self.wrong("a quote is not closed", place)
            return None
        if found.end() < len(raw):
            self.wrong(
                f"unexpected text after the literal: {raw[found.end() :].strip()}", place + found.end()
            )
            return None
        return _ESCAPE.sub(_unescaped, raw[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}.get(found[1], found[1])
