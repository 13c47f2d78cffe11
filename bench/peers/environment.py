"""The environment that the peers are installed into: `.peers`, made from a lock, apart from ours."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from tools import setup

LOCK = Path(__file__).parent / "requirements.lock"
PLACE = setup.ROOT / ".peers"
PYTHON = PLACE / "bin" / "python"
STAMP = PLACE / "holdfast-peers"


def make() -> str:
    """Installs the peers; answers why that cannot be, or nothing. A second call returns at once."""
    wanted = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return ""
    print("bench: installing the peers into .peers (once; about 300 MB)", file=sys.stderr, flush=True)
    steps = (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(PLACE)],
        ["pip", "sync", "--quiet", "--require-hashes", "--python", str(PYTHON), str(LOCK)],
    )
    for step in steps:
        done = subprocess.run(
            [setup.find_uv(), *step],
            cwd=setup.ROOT,
            env=setup.uv_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            return f"not installed: {said[0] if said else 'uv failed'}"
    STAMP.write_text(wanted)
    return ""
