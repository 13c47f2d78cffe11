"""Labels of edges, with the shortcut key that some begin with: `[Y] Yes`, `Y) Yes` or `Y - Yes`."""

from __future__ import annotations

import re
from typing import Final

_WRITTEN: Final = re.compile(r"\s*(?:\[(\w+)\]|(\w)\)|(\w)\s+-(?=\s))\s*")


def split_label(label: str) -> tuple[str, str]:
    """The key as it is written, or nothing; and the label without it."""
    found = _WRITTEN.match(label)
    if found is None:
        return "", label.strip()
    return next(filter(None, found.groups())), label[found.end() :].strip()


def normal_label(label: str) -> str:
    """How labels are compared: without case and without their key."""
    return split_label(label)[1].lower()
