"""The numbers of calls inside branches of a script (`ctx.gather`, `ctx.first`, `ctx.race`, `ctx.map`).

A combinator takes one number of the code around it, such as `2`. The calls of its branches are numbered
inside that: `2/0/0` is the first call of its first branch, `2/1/=paid` a call with a key in its second one. A
combinator or an item with a key has that instead of its number: `+import/+A17/0`. What was decided among the
branches (which one won, which one failed) is recorded under `2/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from holdfast.model.position import Sub

BRANCH: Final = "branch"
"""In the value of a decision: the segment of the branch that it is about; empty if it is about none."""


def segment(number: int, key: str | None) -> str:
    """Of a combinator or a branch. A key has no slash of its own, so that no key can be taken for a path."""
    return str(number) if key is None else f"+{quote(key, safe='')}"


def is_inside_branch(ordinal: str) -> bool:
    # A key may have any characters, also a slash.
    return "/" in ordinal and not ordinal.startswith("=")


def shown_call(ordinal: str) -> str:
    """`3rd call` for `2`, `2nd branch, 1st call` for `0/1/0`, `branch 'A17', key 'paid'` for
    `+import/+A17/=paid`."""
    # A key may have slashes of its own.
    around, keyed, key = f"/{ordinal}".partition("/=")
    last = f"key {key!r}"
    if not keyed:
        around, _, number = around.rpartition("/")
        last = f"{_nth(number)} call" if number.isdecimal() else repr(number)
    # Each combinator, whose own number tells nothing, is followed by its branch.
    branches = around.split("/")[2::2]
    return ", ".join([*map(_shown_branch, branches), last])


def _shown_branch(part: str) -> str:
    return f"{_nth(part)} branch" if part.isdecimal() else f"branch {unquote(part.removeprefix('+'))!r}"


def _nth(part: str) -> str:
    """People count from one."""
    number = int(part) + 1
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"


def has_branches(subs: Mapping[str, Sub]) -> bool:
    return any(is_inside_branch(ordinal) for ordinal in subs)


def is_decision(ordinal: str) -> bool:
    return is_inside_branch(ordinal) and ordinal.endswith("/") and "/=" not in ordinal


def outside_winner(ordinal: str, decided: Mapping[str, str]) -> bool:
    """Whether the call is in a branch that was given up. `decided`: the branch of each decision."""
    return any(
        ordinal.startswith(path)
        and ordinal != path
        and not (winner and ordinal.startswith(f"{path}{winner}/"))
        for path, winner in decided.items()
    )


def decisions_of(subs: Mapping[str, Sub]) -> dict[str, str]:
    return {
        ordinal: str(sub.value[BRANCH])
        for ordinal, sub in subs.items()
        if is_decision(ordinal) and sub.done and sub.value
    }


def given_up(subs: Mapping[str, Sub], path: str, winner: str) -> Iterator[tuple[str, Sub]]:
    """The open waits of the branches that a decision ends."""
    decided = {path: winner}
    for ordinal, sub in subs.items():
        if not sub.done and outside_winner(ordinal, decided):
            yield ordinal, sub
