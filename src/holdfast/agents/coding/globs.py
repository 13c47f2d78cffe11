"""Files by name patterns, as shells have them: `**` for any number of folders, `{a,b}` for one of them.

Only the standard library is used: the search for text imports this into a process of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

SKIPPED_FOLDERS: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that are not searched, unless the search begins inside them."""
_MOST: Final = 500_000


def glob_pattern(pattern: str) -> re.Pattern[str]:
    """For paths relative to the folder of the search. A pattern without a slash is for names in any folder.
    Raises ValueError."""
    whole = pattern.removeprefix("./")
    if "/" not in whole:
        whole = f"**/{whole}"
    try:
        return re.compile(_translated(whole.lstrip("/")) + r"\Z", re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is not valid: {error}") from error


def _translated(pattern: str) -> str:
    found, at, depth = "", 0, 0
    while at < len(pattern):
        sign, rest = pattern[at], pattern[at:]
        if rest.startswith("**/"):
            found, at = found + "(?:[^/]+/)*", at + 2
        elif rest.startswith("**"):
            found, at = found + ".*", at + 1
        elif sign == "*":
            found += "[^/]*"
        elif sign == "?":
            found += "[^/]"
        elif sign == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inside = rest[1:end].replace("\\", "\\\\")
            found, at = found + f"[{'^' + inside[1:] if inside[0] == '!' else inside}]", at + end
        elif sign == "{" and "}" in rest:
            found, depth = found + "(?:", depth + 1
        elif sign == "}" and depth:
            found, depth = found + ")", depth - 1
        elif sign == "," and depth:
            found += "|"
        else:
            found += re.escape(sign)
        at += 1
    return found


def files_below(root: str) -> Iterator[str]:
    """Paths relative to it, in order. Links are not followed."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in SKIPPED_FOLDERS)
        for name in sorted(names):
            count += 1
            if count > _MOST:
                return
            yield os.path.relpath(f"{folder}/{name}", root)
