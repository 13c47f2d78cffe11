"""A PgBouncer of our own in front of the test database, pooling by transactions unless told otherwise."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.deadlines import HANG
from tests.services import absent, postgres
from tests.services.pgcluster import UNPRIVILEGED, free_port, wait_for_port

CONFIG = """
[databases]
{name} = host={host} port={server} dbname={name} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 4
"""


@contextmanager
def pooler(mode: str = "transaction", to: str | None = None) -> Iterator[str]:
    """The address of the test database (or `to`) through it. Few connections behind it: clients have to
    share."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        absent("pgbouncer", "pgbouncer is not installed")
    parts = urlsplit(to or postgres.database())
    folder, port = Path(tempfile.mkdtemp(prefix="holdfast-pool-", dir="/tmp")), free_port()
    config = CONFIG.format(
        name=parts.path[1:],
        host=parts.hostname,
        server=parts.port or 5432,
        user=parts.username,
        password=f" password={parts.password}" if parts.password else "",
        port=port,
        mode=mode,
    )
    (folder / "pgbouncer.ini").write_text(config)
    user = UNPRIVILEGED if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, str(folder / "pgbouncer.ini")], user=user, stdout=log, stderr=log, cwd=folder
        )
    try:
        wait_for_port(port)
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
    finally:
        process.terminate()
        process.wait(HANG)
        shutil.rmtree(folder, ignore_errors=True)
