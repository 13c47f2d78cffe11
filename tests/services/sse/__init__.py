"""Parsers of server-sent events that other projects use, from npm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.deadlines import HANG
from tests.services.node import program
from tests.services.npm import installed

HERE = Path(__file__).parent


def parsed(stream: bytes) -> dict[str, list[dict[str, Any]]]:
    """What each parser hands to its caller: `id`, `event` and `data`. Ends the test where there is none."""
    place = installed("sse", HERE)
    script = shutil.copy(HERE / "parsers.mjs", place)  # beside its packages, where Node looks for them
    command = [str(program()), str(script)]
    done = subprocess.run(command, input=stream, capture_output=True, timeout=HANG)
    assert done.returncode == 0, done.stderr.decode()
    return {each["name"]: each["told"] for each in map(msgspec.json.decode, done.stdout.splitlines())}
