"""Encrypted connections: where the server wants them, and only to a server whose certificate is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.store.sql.mariadb import MariadbStore
from tests.holds.notify.servers import Certificate
from tests.services import absent, mariadb
from tests.services.mariadb_server import MariadbServer, programs

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-1")]
CIPHER = "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'"
USER = "CREATE USER careful@'127.0.0.1' REQUIRE SSL"


@pytest.fixture
def server() -> Iterator[MariadbServer]:
    if programs() is None:
        absent("mariadb", "mariadbd is not installed")
    own = MariadbServer()
    file = own.folder / "server.pem"
    file.write_bytes(Certificate.of("127.0.0.1").file)
    own.options = (f"--ssl-cert={file}", f"--ssl-key={file}")
    own.start()
    yield own
    own.remove()


async def test_connection_is_encrypted_if_the_certificate_of_the_server_is_trusted(
    server: MariadbServer, tmp_path: Path
) -> None:
    for sql in ("CREATE DATABASE runs", USER, "GRANT ALL ON runs.* TO careful@'127.0.0.1'"):
        mariadb.execute(sql, server.address)
    address = f"mariadb://careful@127.0.0.1:{server.port}/runs"
    with pytest.raises(StoreUnavailableError, match="refused"):
        await open_store(address)
    other = tmp_path / "other.pem"
    other.write_bytes(Certificate.of("127.0.0.1").file)
    with pytest.raises(StoreUnavailableError, match="certificate verify failed"):
        await open_store(f"{address}?tls=verify&ca={other}")
    for how in ("on", f"verify&ca={server.folder / 'server.pem'}"):
        store = await open_store(f"{address}?tls={how}")
        assert isinstance(store, MariadbStore)
        found = await store._pools.read(lambda conn: conn.row(CIPHER))
        await store.close()
        assert found is not None
        assert found[0].startswith("TLS")
