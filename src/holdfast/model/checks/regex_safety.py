"""Regular expressions that could take for ever on a text that almost fits.

A repeat is harmless where each character leads one way: to the repeat once more, or past it. Where a
character inside a repeat leads two ways (`(a+)+`, `(\\w+\\s?)*`), a text that does not fit in the end is
tried in exponentially many ways. So the ways are counted: the positions of an expression, which may
follow which, and by how many ways (a Glushkov automaton whose edges are a multiset). Choices that are
made once multiply as well: `a?a?a?` before `aaa`, or `(a|a)(a|a)(a|a)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple

_parser: Any = re._parser  # type: ignore[attr-defined]
MAX_PATTERN: Final = 500
_LONGEST: Final = (1_000, 1_000, 1_000, 200, 60)
OVERLAPPING: Final = (
    "has endless repeats that could share one text (as in .*.*); put something sure between them"
)
# More copies of a part that comes a fixed number of times tell nothing new.
_COPIES: Final = 3
# A repeat of so many at most is not called endless.
_FEW: Final = 10
# Ways in which a text may be tried, beside those of endless repeats.
_WAYS: Final = 1_000
_LETTERS: Final = frozenset([*map(chr, range(128)), "é", "ß", "中", "٣", "\u2003", "\U0001f600"])
_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda c: c.isalnum() or c == "_",
}


def pattern_problem(pattern: str) -> str | None:
    """Why no text can be held against it quickly, however short; none: some can (`longest_text`)."""
    if len(pattern) > MAX_PATTERN:
        return f"has {len(pattern)} characters; a pattern has at most {MAX_PATTERN}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if is_explosive(pattern):
        return (
            "repeats something in more than one way, so that a text which almost fits could take for ever; "
            "let each character lead one way, as in ^[a-z]+(-[a-z]+)*$"
        )
    return OVERLAPPING if longest_text(pattern) == 0 else None


@cache
def longest_text(pattern: str) -> int:
    """How many characters a text may have that is held against it: the fewer, the higher the power of its
    length that the time grows by. Where it need not begin at the start, all starts are tried."""
    power = overlapping_repeats(pattern) + (not _is_anchored(pattern))
    return _LONGEST[power] if power < len(_LONGEST) else 0


def _is_anchored(pattern: str) -> bool:
    tree: Any = _parser.parse(pattern)
    first = tree[0] if len(tree) else None
    return first is not None and str(first[0]) == "AT" and str(first[1]).startswith("AT_BEGINNING")


def is_explosive(pattern: str) -> bool:
    """Whether matching can take exponentially long. Only of an expression that compiles."""
    tree: Any = _parser.parse(pattern)
    automaton = _Automaton(tree.state.flags)
    try:
        automaton.sequence(tree)
        pieces = list(_pieces(automaton, tree, sure=True))
    except RecursionError:
        return True
    return automaton.explosive or automaton.choices * _lengths(pieces) > _WAYS


def _lengths(pieces: list[_Piece]) -> int:
    """In how many ways the parts of few repeats can share out a text among them and what follows."""
    found = 1
    for index, piece in enumerate(pieces):
        if piece.ways > 1 and any(_meet(pieces, index, later) for later in range(index + 1, len(pieces))):
            found *= piece.ways
    return found


def overlapping_repeats(pattern: str) -> int:
    """How many endless repeats can share one stretch of text (`.*.*` two, `a*-a*` one): time grows by
    that power of the length. Only of an expression that compiles; what is not sure counts."""
    tree: Any = _parser.parse(pattern)
    try:
        pieces = list(_pieces(_Automaton(tree.state.flags), tree, sure=True))
    except RecursionError:
        return len(pattern)
    chains: list[int] = []
    for index, piece in enumerate(pieces):
        before = (chains[at] for at in range(index) if piece.endless and _shares(pieces, at, index))
        chains.append(1 + max(before, default=0) if piece.endless else 0)
    return max(chains, default=0)


class _Piece(NamedTuple):
    """`ways`: how many lengths it may have, where these are few."""

    letters: frozenset[str]
    endless: bool
    sure: bool
    ways: int = 1


def _shares(pieces: list[_Piece], one: int, two: int) -> bool:
    return pieces[one].endless and _meet(pieces, one, two)


def _meet(pieces: list[_Piece], one: int, two: int) -> bool:
    """Whether what the first takes the second could take as well: nothing sure between them parts them."""
    both = pieces[one].letters & pieces[two].letters
    between = pieces[one + 1 : two]
    return bool(both) and all(each.letters & both for each in between if each.sure)


def _pieces(automaton: _Automaton, items: Any, *, sure: bool) -> Iterator[_Piece]:
    for kind, value in items:
        name = str(kind)
        if name.endswith("_REPEAT"):
            least, most, inner = value
            within = list(_pieces(automaton, inner, sure=sure and least > 0))
            if most <= _FEW and within:
                yield within[0]._replace(ways=within[0].ways * (most - least + 1))
                yield from within[1:]
            elif within:
                yield _Piece(
                    frozenset[str]().union(*(each.letters for each in within)), True, sure and least > 0
                )
        elif name == "BRANCH":
            for way in value[1]:
                yield from _pieces(automaton, way, sure=False)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            yield from _pieces(automaton, value[3] if name == "SUBPATTERN" else value, sure=sure)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _pieces(automaton, value[1], sure=False)
        elif name != "AT":
            yield _Piece(automaton.letters_of(name, value), name.startswith("GROUPREF"), sure)


class _Part(NamedTuple):
    """Of a part of the expression: may it be empty, and the positions that it begins and ends with."""

    empty: bool
    first: list[int]
    last: list[int]


_NOTHING: Final = _Part(True, [], [])


class _Automaton:
    def __init__(self, flags: int) -> None:
        self.fold = bool(flags & re.IGNORECASE)
        self.letters: list[frozenset[str]] = []
        self.follow: list[list[int]] = []
        self.explosive = False
        # In how many ways its branches can be taken, and how many parts can be empty in several ways.
        self.choices = 1
        self.hollow = 0

    def sequence(self, items: Iterable[tuple[Any, Any]]) -> _Part:
        whole = _NOTHING
        for kind, value in items:
            whole = self._joined(whole, self._part(str(kind), value))
        return whole

    def _joined(self, one: _Part, two: _Part) -> _Part:
        self._lead(one.last, two.first)
        first = one.first + two.first if one.empty else one.first
        last = one.last + two.last if two.empty else two.last
        return _Part(one.empty and two.empty, first, last)

    def _lead(self, sources: list[int], targets: list[int]) -> None:
        for source in sources:
            self.follow[source] += targets

    def _part(self, kind: str, value: Any) -> _Part:
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeat(*value)
        if kind == "BRANCH":
            return self._either([self.sequence(each) for each in value[1]])
        if kind == "SUBPATTERN":
            return self.sequence(value[3])
        if kind == "ATOMIC_GROUP":
            return self.sequence(value)
        if kind in ("ASSERT", "ASSERT_NOT"):
            self.sequence(value[1])  # looked at by itself: it consumes nothing
            return _NOTHING
        if kind == "GROUPREF_EXISTS":
            ways = [self.sequence(value[1]), self.sequence(value[2]) if value[2] is not None else _NOTHING]
            return self._either(ways)
        return _NOTHING if kind == "AT" else self._position(kind, value)

    def _either(self, ways: list[_Part]) -> _Part:
        first = [p for way in ways for p in way.first]
        last = [p for way in ways for p in way.last]
        hollow = sum(way.empty for way in ways) > 1
        self.hollow += hollow
        if hollow or self._overlap(first):
            self.choices *= len(ways)
        return _Part(any(way.empty for way in ways), first, last)

    def _repeat(self, least: int, most: int, inner: Any) -> _Part:
        shortest, longest = inner.getwidth()
        hollow, choices = self.hollow, self.choices
        if least == most and shortest == longest:
            part = self.sequence(list(inner) * min(least, _COPIES))
            self.explosive = self.explosive or (least > _FEW and self.choices > choices)
            return part
        start = len(self.follow)
        part = self.sequence(inner)
        if most > 1:
            self.explosive = self.explosive or self.hollow > hollow
            self._lead(part.last, part.first)
            # Which of thirty parts are empty can be chosen in many ways.
            chosen = part.empty and _COPIES < int(most) < int(_parser.MAXREPEAT)
            ways = chosen or self._leads_two_ways(range(start, len(self.follow)), part)
            self.explosive = self.explosive or ways
        # Not taken at all, or taken and empty: whatever repeats this has the choice each time.
        self.hollow += part.empty and (least == 0 or most > 1)
        return _Part(part.empty or least == 0, part.first, part.last)

    def _leads_two_ways(self, inside: range, part: _Part) -> bool:
        return self._overlap(part.first) or any(self._overlap(self.follow[p]) for p in inside)

    def _overlap(self, positions: Sequence[int]) -> bool:
        return any(self.letters[p] & self.letters[q] for p, q in combinations(positions, 2))

    def _position(self, kind: str, value: Any) -> _Part:
        self.letters.append(self.letters_of(kind, value))
        self.follow.append([])
        here = len(self.follow) - 1
        return _Part(False, [here], [here])

    def letters_of(self, kind: str, value: Any) -> frozenset[str]:
        if kind in ("LITERAL", "NOT_LITERAL"):
            own = self._folded({chr(value)})
            return own if kind == "LITERAL" else _LETTERS - own
        if kind != "IN":
            return _LETTERS
        negated = any(str(part[0]) == "NEGATE" for part in value)
        own = self._folded(set[str]().union(*(self._members(str(k), v) for k, v in value)))
        return _LETTERS - own if negated else own

    def _members(self, kind: str, value: Any) -> set[str]:
        if kind == "LITERAL":
            return {chr(value)}
        if kind == "RANGE":
            return {chr(value[0]), chr(value[1]), *(c for c in _LETTERS if value[0] <= ord(c) <= value[1])}
        if kind == "CATEGORY":
            name, without = str(value).removeprefix("CATEGORY_"), "NOT_" in str(value)
            test = _CLASSES.get(name.replace("NOT_", "").removeprefix("UNI_"))
            return set(_LETTERS) if test is None else {c for c in _LETTERS if bool(test(c)) is not without}
        return set()

    def _folded(self, letters: set[str]) -> frozenset[str]:
        return frozenset({*letters, *(c.swapcase() for c in letters)} if self.fold else letters)
