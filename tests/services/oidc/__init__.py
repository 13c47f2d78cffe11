"""A real OpenID provider for tests: npm's oidc-provider, on the Node that comes as a wheel."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.deadlines import HANG
from tests.services import npm

HERE = Path(__file__).parent
SECRET = "a secret+with/odd characters"


@cache
def installed() -> Path:
    """The folder that it runs in. Ends the test where it cannot be had."""
    place = npm.installed("oidc", HERE)
    shutil.copy(HERE / "provider.js", place)
    return place


@contextmanager
def provider() -> Iterator[str]:
    """Its address, while it lives."""
    process = subprocess.Popen(
        [*npm.NODE, "provider.js"],
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
        process.wait(HANG)
        process.stdout.close()
