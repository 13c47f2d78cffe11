"""What was called, in any process: lines of a file."""

from __future__ import annotations

from pathlib import Path


class Notes:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "calls"

    def add(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []
