"""TypeScript's own compiler, from npm."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.services.node import program
from tests.services.npm import installed


def checked(*files: Path) -> str:
    """What it has against them, read as strictly as it can. Ends the test where there is no compiler."""
    place = installed("typescript", Path(__file__).parent)
    options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--moduleDetection", "force"]
    options += ["--target", "es2022", "--module", "nodenext"]
    options += ["--lib", "es2022,dom,dom.iterable,dom.asynciterable"]
    command = [str(program()), str(place / "node_modules/typescript/bin/tsc"), *options, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100).stdout
