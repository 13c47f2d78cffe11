"""A server that is started again: the same store, the same address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.web.conftest import FLOWS, WebServer


def restarted(old: WebServer, folder: Path) -> WebServer:
    """After the old one has ended."""
    old.child.wait(30)
    if old.child.stdout is not None:
        old.child.stdout.close()
    new = WebServer.__new__(WebServer)
    store = f"sqlite:{folder / 'web.db'}"
    port = old.address.rpartition(":")[2]
    serve = ["serve", str(FLOWS), "--port", port, "--json", "--store", store]
    command = [sys.executable, "-m", "holdfast", *serve]
    with (folder / "serve-again.log").open("w") as errors:
        new.child = subprocess.Popen(
            command,
            env=dict(os.environ),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert new.child.stdout is not None
    said = json.loads(new.child.stdout.readline())
    new.address, new.token, new.sign_in = said["address"], said["token"], said["sign_in"]
    return new
