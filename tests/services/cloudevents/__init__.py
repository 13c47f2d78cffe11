"""The official JavaScript library of CloudEvents, from npm."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.deadlines import HANG
from tests.services.node import program
from tests.services.npm import installed

HERE = Path(__file__).parent


def read(messages: Iterable[tuple[Mapping[str, str], bytes]]) -> list[dict[str, Any]]:
    """The events of messages (headers and body). Ends the test where the library cannot be had."""
    place = installed("cloudevents", HERE)
    script = shutil.copy(HERE / "reader.mjs", place)  # beside its packages, where Node looks for them
    lines = [
        json.dumps({"headers": dict(headers), "body": b64encode(body).decode()}) for headers, body in messages
    ]
    done = subprocess.run(
        [str(program()), str(script)], input="\n".join(lines), capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
