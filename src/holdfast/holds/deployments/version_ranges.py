"""Versions of skills, and ranges of versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from holdfast.errors import InputError
from holdfast.types.text import clean_text, require_text

Key = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]

# Without leading zeros: one version has one name.
_NUMBER = r"(0|[1-9]\d{0,8})"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]{{1,64}}))?", re.ASCII)
_PART = re.compile(r"(\^|~|>=|<=|>|<|==?)?\s*(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")
ANY = frozenset({"", "*", "latest"})

Holds = Callable[[str], bool]


def parse_version(text: str) -> str:
    """`1.2.0` or `1.2.0-rc.1`. Raises InputError."""
    if not _VERSION.fullmatch(require_text(text, "the version of a skill")):
        raise InputError(
            f"{clean_text(repr(text), 80)} is not a version.",
            hint="Write three numbers: 1.2.0, or 1.2.0-rc.1.",
        )
    return text


def order_of(version: str) -> Key:
    """Sorted by number; a pre-release comes before its release."""
    found = _VERSION.fullmatch(version)
    assert found is not None
    major, minor, patch, pre = found.groups()
    parts = (pre or "").split(".") if pre else []
    words = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return (int(major), int(minor), int(patch)), pre is None, words


def is_exact(versions: str) -> bool:
    return _VERSION.fullmatch(versions) is not None


def check_range(versions: str) -> str:
    """Raises InputError if it is not a range of versions."""
    require_text(versions, "the versions of a skill")
    _parts(versions)
    return versions


def newest(versions: str, known: Iterable[str]) -> str | None:
    """The newest that fits. Pre-releases fit only if they are named exactly."""
    if is_exact(versions):
        return versions if versions in known else None
    tests = _parts(versions)
    fitting = [each for each in known if "-" not in each and all(test(each) for test in tests)]
    return max(fitting, key=order_of, default=None)


def _parts(versions: str) -> list[Holds]:
    if versions.strip() in ANY or is_exact(versions):
        return []
    return [_test(part.strip(), versions) for part in versions.split(",")]


def _test(part: str, versions: str) -> Holds:
    found = _PART.fullmatch(part.removesuffix(".*").removesuffix(".x"))
    if found is None:
        raise InputError(
            f"{clean_text(repr(versions), 80)} is not a range of versions.",
            hint="Write 1.2.0, ^1.2, ~1.2, 1.*, >=1.2,<3, or latest.",
        )
    sign, *numbers = found.groups()
    given = [int(number) for number in numbers if number is not None]
    low = _filled(given)
    if sign in (None, "=", "=="):
        return _between(low, _after(given, len(given)))
    if sign == "^":
        return _between(low, _after(given, _first_that_counts(given)))
    if sign == "~":
        return _between(low, _after(given, min(len(given), 2)))
    return _compared(sign, low, _after(given, len(given)))


def _first_that_counts(given: list[int]) -> int:
    """`^1.2` stays below 2, `^0.3` below 0.4: before 1.0 the second number breaks."""
    return next((place for place, number in enumerate(given, 1) if number), len(given))


def _filled(given: list[int]) -> tuple[int, ...]:
    return (*given, 0, 0)[:3]


def _after(given: list[int], places: int) -> tuple[int, ...]:
    """The first version beyond those that begin with these numbers."""
    head = given[:places]
    return _filled([*head[:-1], head[-1] + 1])


def _between(low: tuple[int, ...], high: tuple[int, ...]) -> Holds:
    return lambda version: low <= order_of(version)[0] < high


def _compared(sign: str, low: tuple[int, ...], after: tuple[int, ...]) -> Holds:
    """`<=1.2` includes 1.2.9, and `>1.2` does not."""
    bound = after if sign in ("<=", ">") else low
    if sign in (">=", ">"):
        return lambda version: order_of(version)[0] >= bound
    return lambda version: order_of(version)[0] < bound
