"""Runs every check even if an earlier one fails, and ends with a summary."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"

sys.path.insert(0, os.fspath(ROOT))

from tools import partners  # noqa: E402

# Those of partners outside the lock are checked where these are installed.
EXAMPLES = [path for path in sorted(ROOT.glob("examples/*.py")) if path not in partners.typed_files()]
CHECKS = {
    "format": [BIN / "ruff", "format", "--check", "--quiet", "--diff", "."],
    "lint": [BIN / "ruff", "check", "--quiet", "."],
    "types": [BIN / "python", "-m", "pyright"],
    "examples": [
        BIN / "python",
        "-m",
        "mypy",
        "--strict",
        "--cache-dir=build/mypy",
        "--no-error-summary",
        *EXAMPLES,
    ],
    "client": [BIN / "python", "tools/client.py", "check"],
    "names": [BIN / "python", "tools/names.py"],
    "imports": [BIN / "lint-imports", "--no-logo", "--no-cache"],
    "web": [BIN / "python", "tools/web.py", "check"],
}


def main() -> int:
    wanted = sys.argv[1:] or list(CHECKS)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        print(f"no check named {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    results = {name: run(name) for name in wanted}
    print("\n== summary")
    for name, (passed, seconds) in results.items():
        print(f"{name:8} {'ok' if passed else 'FAILED':6} {seconds:5.1f} s")
    return 0 if all(passed for passed, _ in results.values()) else 1


def run(name: str) -> tuple[bool, float]:
    print(f"\n== {name}", flush=True)
    started = time.monotonic()
    done = subprocess.run([os.fspath(part) for part in CHECKS[name]], cwd=ROOT)
    return done.returncode == 0, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
