"""A MariaDB server of our own, from the programs that a package installed: for faults and restarts too."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.services.pgcluster import UNPRIVILEGED, free_port

PATIENCE = 60.0
INSTALLS = 3
"""Tries of mariadb-install-db, which now and then fails on a busy machine (1051, mysql.tmp_user_sys)."""


@cache
def programs() -> tuple[str, str] | None:
    """mariadb-install-db and mariadbd."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    found = [shutil.which(name, path=path) for name in ("mariadb-install-db", "mariadbd")]
    return (found[0], found[1]) if found[0] and found[1] else None


class MariadbServer:
    """One server on loopback, in a folder that goes with it. As root it runs as an unprivileged user."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-my-", dir="/tmp"))
        self.port = free_port()
        self.options = options
        self._child: subprocess.Popen[bytes] | None = None
        self._user = UNPRIVILEGED if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)

    @property
    def address(self) -> str:
        return f"mariadb://root@127.0.0.1:{self.port}/mysql"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        """Servers of one process are copies of the first, which are made sooner."""
        if not self.data.exists():
            subprocess.run(["cp", "-a", str(_template()), str(self.data)], check=True)

    def start(self) -> None:
        self.make()
        found = programs()
        assert found is not None
        with (self.folder / "log").open("ab") as log:
            self._child = subprocess.Popen(
                [
                    found[1], "--no-defaults", f"--datadir={self.data}", f"--socket={self.folder / 's'}",
                    f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={self.folder / 'pid'}",
                    "--innodb-buffer-pool-size=32M", "--skip-name-resolve", *self.options,
                ],
                user=self._user, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError(f"mariadbd did not start:\n{(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """In order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9: no word to anybody, as when a machine dies."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self._child is not None:
            self._child.send_signal(how)
            self._child.wait(PATIENCE)
            self._child = None


@cache
def _template() -> Path:
    found = programs()
    assert found is not None
    folder = Path(tempfile.mkdtemp(prefix="holdfast-my-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user = UNPRIVILEGED if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    command = [
        found[0], "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
        "--skip-test-db", "--skip-name-resolve",
    ]  # fmt: skip
    for _ in range(INSTALLS):
        with _one_at_a_time():
            done = subprocess.run(command, check=False, user=user, capture_output=True, text=True, cwd=folder)
        if done.returncode == 0:
            return data
        shutil.rmtree(data, ignore_errors=True)
    raise AssertionError(f"mariadb-install-db failed:\n{(done.stdout + done.stderr)[-2000:]}")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """mariadb-install-db sometimes fails beside others: of all test processes of this user one calls it."""
    with Path(f"/tmp/holdfast-my-{os.getuid()}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
