"""TypeScript's own compiler, from npm."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.services.node import program
from tests.services.npm import installed


def checked(file: Path, *, node: bool = False) -> str:
    """What it has against a file, read as strictly as it can: with a browser's names, or with Node's alone.
    Ends the test where there is no compiler."""
    modules = installed("typescript", Path(__file__).parent) / "node_modules"
    options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--moduleDetection", "force"]
    options += ["--skipDefaultLibCheck"]  # TypeScript's own files
    options += ["--target", "es2022", "--module", "nodenext"]
    if node:
        options += ["--lib", "es2022", "--types", "node", "--typeRoots", str(modules / "@types")]
    else:
        options += ["--lib", "es2022,dom,dom.iterable,dom.asynciterable"]
    command = [str(program()), str(modules / "typescript/bin/tsc"), *options, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100).stdout
