#!/usr/bin/env python3
"""Makes the environment that the Makefile's targets need; standard library only.

    python3 tools/setup.py runtime     what the library itself needs (make demo)
    python3 tools/setup.py dev         the same plus tests and checks (make test, make check)
    python3 tools/setup.py lock        write requirements/*.lock anew

The environment is `.venv`, made from the interpreter that runs this script. A stamp inside it makes a second
call with nothing changed return at once. uv comes from PATH, or from a private environment in `.tools`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools"
REQUIREMENTS = ROOT / "requirements"
STAMP = VENV / "holdfast-setup.json"
PYTHON = VENV / "bin" / "python"

# Each layer contains the ones before it. A later layer whose lock does not exist yet cannot be asked for.
LAYERS = ("runtime", "dev", "services")
OLDEST_PYTHON = (3, 11)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/setup.py", description="Set up Holdfast's environment.")
    parser.add_argument("what", choices=[*available_layers(), "lock"])
    parser.add_argument("--upgrade", action="store_true", help="with lock: take the newest versions allowed")
    asked = parser.parse_args()
    if sys.version_info < OLDEST_PYTHON:
        stop(f"Holdfast needs Python 3.11 or newer, not {sys.version.split()[0]}: make PYTHON=python3.11 ...")
    with one_at_a_time():
        if asked.what == "lock":
            write_locks(upgrade=asked.upgrade)
        else:
            set_up(asked.what)
    return 0


def stop(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(2)


def print_message(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two targets of one `make -j` must not build the same environment at once."""
    import fcntl

    try:
        handle = (ROOT / ".setup.lock").open("a")
    except PermissionError:
        stop(f"{ROOT} is not writable for this user: clone the repository as the user who runs make.")
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# --- the environment ------------------------------------------------------------------------------


def set_up(layer: str) -> None:
    stamp = read_stamp()
    if is_current(stamp, layer):
        return
    # Never take tools away that an earlier call put in: demo after test keeps the test tools.
    layer = max(layer, str(stamp.get("layer", layer)), key=LAYERS.index)
    STAMP.unlink(missing_ok=True)
    if stamp.get("python") != python_identity() or not PYTHON.exists():
        print_message(f"making .venv with Python {sys.version.split()[0]}")
        uv("venv", "--quiet", "--clear", "--python", sys.executable, str(VENV))
    print_message(f"installing the {layer} requirements")
    uv(
        "pip",
        "sync",
        "--quiet",
        "--compile-bytecode",
        "--require-hashes",
        "--python",
        str(PYTHON),
        str(lock_file(layer)),
    )
    install_project()
    STAMP.write_text(json.dumps({"layer": layer, "digest": digest(layer), "python": python_identity()}))


def read_stamp() -> dict[str, object]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    known = isinstance(stamp, dict) and stamp.get("layer") in available_layers()
    return stamp if known else {}


def is_current(stamp: dict[str, object], layer: str) -> bool:
    if not stamp or not PYTHON.exists():
        return False
    present = str(stamp["layer"])
    return (
        LAYERS.index(present) >= LAYERS.index(layer)
        and stamp.get("digest") == digest(present)
        and stamp.get("python") == python_identity()
    )


def python_identity() -> str:
    """Also holds the folder: an environment that was moved or copied has wrong paths in its scripts."""
    return f"{sys.version} {os.path.realpath(sys.executable)} {VENV}"


def digest(layer: str) -> str:
    """Of everything that decides what an environment contains."""
    seen = hashlib.sha256()
    for name in LAYERS[: LAYERS.index(layer) + 1]:
        seen.update(lock_file(name).read_bytes())
    for file in (Path(__file__), ROOT / "src/holdfast/_version.py"):
        seen.update(file.read_bytes())
    seen.update(entry_points(project_scripts()).encode())
    return seen.hexdigest()


def lock_file(layer: str) -> Path:
    return REQUIREMENTS / f"{layer}.lock"


def available_layers() -> list[str]:
    return [layer for layer in LAYERS if lock_file(layer).exists()]


# --- the project itself, in place -----------------------------------------------------------------


def install_project() -> None:
    """What an editable install leaves behind, written by hand.

    A real one would run the build backend, which wants the network and packages that no lock pins.
    """
    site = Path(ask_python("import sysconfig; print(sysconfig.get_path('purelib'))"))
    version = ask_python("import runpy; print(runpy.run_path('src/holdfast/_version.py')['__version__'])")
    scripts = project_scripts()
    info = site / f"holdfast-{version}.dist-info"
    for old in site.glob("holdfast-*.dist-info"):
        shutil.rmtree(old)
    info.mkdir()
    files = {
        site / "holdfast.pth": f"{ROOT / 'src'}\n",
        info / "METADATA": f"Metadata-Version: 2.1\nName: holdfast\nVersion: {version}\n",
        info / "INSTALLER": "holdfast tools/setup.py\n",
        info / "entry_points.txt": entry_points(scripts),
        **{VENV / "bin" / name: script(target) for name, target in scripts.items()},
    }
    for file, text in files.items():
        file.write_text(text)
    for name in scripts:
        (VENV / "bin" / name).chmod(0o755)
    # uv removes the package by this list when it syncs the environment to a changed lock.
    record = info / "RECORD"
    record.write_text("".join(f"{os.path.relpath(file, site)},,\n" for file in [*files, record]))


def ask_python(code: str) -> str:
    done = subprocess.run(
        [str(PYTHON), "-I", "-c", code], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def project_scripts() -> dict[str, str]:
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def entry_points(scripts: dict[str, str]) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {target}\n" for name, target in scripts.items())


def script(target: str) -> str:
    """Starts by way of /bin/sh, since a shebang can hold neither a long path nor one with a space."""
    module, function = target.split(":")
    return (
        "#!/bin/sh\n"
        f"'''exec' {shlex.quote(str(PYTHON))} \"$0\" \"$@\"\n"
        "' '''\n"
        "import sys\n"
        f"from {module} import {function}\n"
        f"sys.exit({function}())\n"
    )


# --- locks ----------------------------------------------------------------------------------------


def write_locks(*, upgrade: bool) -> None:
    compile_lock("tools", "requirements/tools.in", upgrade=upgrade)
    compile_lock("runtime", "pyproject.toml", upgrade=upgrade)
    compile_lock(
        "dev",
        "pyproject.toml",
        *(word for extra in locked_extras() for word in ("--extra", extra)),
        "--group",
        "dev",
        "--constraints",
        "requirements/runtime.lock",
        upgrade=upgrade,
    )


# Extras whose partners do not agree with the rest or are large: tools/partners.py has environments for them.
UNLOCKED_EXTRAS = ("claude-agent", "openai-agents")


def locked_extras() -> list[str]:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [extra for extra in extras if extra not in UNLOCKED_EXTRAS]


def compile_lock(name: str, *sources: str, upgrade: bool) -> None:
    output = lock_file(name)
    options = ["--universal", "--generate-hashes", "--python-version", "3.11", "--quiet"]
    options += ["--custom-compile-command", "make lock", "--output-file", str(output.relative_to(ROOT))]
    uv("pip", "compile", *sources, *options, *(["--upgrade"] if upgrade else []))
    # A lock with an address works only where that address is reachable.
    if "://" in output.read_text():
        stop(f"{output} holds a registry address; remove the option or setting that put it there.")


# --- uv -------------------------------------------------------------------------------------------


def uv(*arguments: str) -> None:
    done = subprocess.run([find_uv(), *arguments], cwd=ROOT, env=uv_environment(), stdin=subprocess.DEVNULL)
    if done.returncode:
        stop(f"setup: uv {arguments[0]} failed; its message is above.")


def find_uv() -> str:
    on_path = shutil.which("uv")
    if on_path and runs(on_path):
        return on_path
    own = TOOLS / "bin" / "uv"
    if not own.exists() or not runs(str(own)):
        install_uv()
    return str(own)


def runs(program: str) -> bool:
    """A version manager's shim may be on PATH without a program behind it."""
    try:
        return subprocess.run([program, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def install_uv() -> None:
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        stop("setup: this Python cannot make environments: apt-get install python3-venv")
    print_message("installing uv into .tools")
    pip = [str(TOOLS / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    lock = str(lock_file("tools"))
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(TOOLS)],
        [*pip, "install", "--require-hashes", "--requirement", lock],
    ):
        if subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode:
            stop("setup: could not install uv; the message is above.")


def uv_environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop("VIRTUAL_ENV", None)
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    # Trust what the machine trusts: companies put their own authority there, and pip looks there too.
    environment.setdefault("UV_SYSTEM_CERTS", "1")
    if "PIP_INDEX_URL" in environment:
        environment.setdefault("UV_DEFAULT_INDEX", environment["PIP_INDEX_URL"])
    if "UV_CACHE_DIR" not in environment and not home_is_writable():
        environment["UV_CACHE_DIR"] = str(TOOLS / "cache")
    return environment


def home_is_writable() -> bool:
    try:
        home = Path.home()
    except RuntimeError:
        return False
    return home.is_dir() and os.access(home, os.W_OK)


if __name__ == "__main__":
    sys.exit(main())
