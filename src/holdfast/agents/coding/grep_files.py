"""Searches text files by a regular expression: the program that is run where ripgrep is not installed.

A process of its own, because a bad expression may take for ever, and could not be stopped in a thread.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.agents.coding.globs import files_below, glob_pattern

LARGEST: Final = 16 * 2**20
LONGEST: Final = 2000
"""Characters of a line that are shown."""


SKIPPED: Final = "(not searched, because larger than 16 MiB: "
"""Begins the last line, if files were left out."""
_NAMED: Final = 5


def matches(
    root: str, expression: re.Pattern[str], names: re.Pattern[str] | None, skipped: list[str]
) -> Iterator[str]:
    """`path:line:text`, of a folder or of one file. Files that are too large are added to `skipped`."""
    paths = files_below(root) if Path(root).is_dir() else iter([""])
    for path in paths:
        if names is not None and path and not names.match(path):
            continue
        where = os.path.normpath(f"{root}/{path}")
        for number, line in _lines(where, skipped):
            if expression.search(line):
                yield f"{where}:{number}:{line[:LONGEST]}"


def _lines(path: str, skipped: list[str]) -> Iterator[tuple[int, str]]:
    try:
        kind = os.lstat(path)
        if not stat.S_ISREG(kind.st_mode):
            return
        if kind.st_size > LARGEST:
            skipped.append(path)
            return
        with Path(path).open("rb") as file:
            data = file.read(LARGEST)
    except OSError:
        return
    if b"\0" in data:
        return
    yield from enumerate(data.decode(errors="replace").splitlines(), 1)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--glob", default="")
    parser.add_argument("--ignore-case", action="store_true")
    parser.add_argument("--max", type=int, default=100)
    parser.add_argument("pattern")
    parser.add_argument("path")
    given = parser.parse_args()
    try:
        expression = re.compile(given.pattern, re.IGNORECASE if given.ignore_case else 0)
        names = glob_pattern(given.glob) if given.glob else None
    except (re.error, ValueError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    count, skipped = 0, list[str]()
    for line in matches(given.path, expression, names, skipped):
        sys.stdout.write(line + "\n")
        count += 1
        if count >= given.max:
            break
    if skipped:
        more = f", and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
        sys.stdout.write(f"{SKIPPED}{', '.join(skipped[:_NAMED])}{more})\n")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
