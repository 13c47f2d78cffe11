"""The package of the last release, kept so that its code can be run on today's schema.

`python -m tests.upgrade.last_release COMMIT` makes the archive (about 0.6 MB) and writes the commit's name
down; that is done once, when a release is out. Tests, demos and the torture chamber are left out of it.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent / "releases"
ARCHIVE = FOLDER / "last.tar.xz"
COMMIT = FOLDER / "last.txt"
ROOT = Path(__file__).parents[2]
_LEFT_OUT = ("testing", "torture", "demo")


def make(commit: str) -> None:
    named = _git("rev-parse", commit).decode().strip()
    parts = [f":(exclude)src/holdfast/{name}" for name in _LEFT_OUT]
    tar = _git("archive", "--format=tar", named, "src/holdfast", *parts)
    FOLDER.mkdir(exist_ok=True)
    ARCHIVE.write_bytes(lzma.compress(tar, preset=9 | lzma.PRESET_EXTREME))
    COMMIT.write_text(f"{named}\n")


def unpack(folder: Path) -> Path:
    """What goes first on the path of a process that runs the last release's code."""
    with tarfile.open(ARCHIVE) as archive:
        # Debian 12 has Python 3.11.2, which knows no filters; the archive is our own.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safely)
    return folder / "src"


def environment(package: Path | None) -> dict[str, str]:
    """Of a process with that package; None: with the one of today."""
    paths = [str(ROOT)] if package is None else [str(package), str(ROOT)]
    side = "new" if package is None else "old"
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SIDE": side, "PYTHONWARNINGS": "ignore"}


def _git(*args: str) -> bytes:
    return subprocess.run(["git", *args], check=True, capture_output=True, cwd=ROOT).stdout


if __name__ == "__main__":
    make(sys.argv[1])
