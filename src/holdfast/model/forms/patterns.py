"""Patterns of fields: only those that are told apart quickly, whatever the text."""

from __future__ import annotations

import re
from typing import Final

from holdfast.model.checks.patterns import is_explosive, overlapping_repeats

MAX_PATTERN: Final = 500
MAX_OVERLAP: Final = 1


def pattern_problem(pattern: str) -> str | None:
    if len(pattern) > MAX_PATTERN:
        return f"has {len(pattern)} characters; a pattern has at most {MAX_PATTERN}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if is_explosive(pattern):
        return "could take for ever on a text that almost fits; repeat no part that repeats"
    if overlapping_repeats(pattern) > MAX_OVERLAP:
        return "has endless repeats that could share one text (as in .*.*); put something sure between them"
    return None
