"""A text file with the numbers of its lines."""

from __future__ import annotations

import os
from typing import Final

from holdfast.agents.coding.project_folder import ProjectFolder
from holdfast.agents.tools import ToolError

MOST: Final = 16 * 2**20
"""Bytes of lines in one answer."""
_BINARY: Final = 8192


def numbered_lines(folder: ProjectFolder, path: str, first: int, count: int) -> str:
    """`12 | text`. Only these lines are kept, whatever the size of the file. Raises ToolError."""
    first, count = max(1, first), max(1, count)
    found: list[str] = []
    size, number = 0, 0
    with folder.open_file(folder.place(path)) as fd, os.fdopen(os.dup(fd), "rb") as file:
        if b"\0" in file.peek(_BINARY)[:_BINARY]:
            raise ToolError(f"{path} is a binary file")
        # A line may be as long as the file.
        while line := file.readline(MOST):
            number += 1
            if number < first:
                continue
            text = line.decode(errors="replace").rstrip("\r\n")
            found.append(f"{number} | {text}")
            size += len(line)
            if len(found) == count or size >= MOST:
                more = bool(file.peek(1))
                break
        else:
            more = False
    if not found:
        return "The file is empty." if not number else f"The file has only {number} lines."
    return "\n".join([*found, f"(there are more lines; read on with offset={number + 1})"] if more else found)
