"""What the pages about stores promise is what the code knows."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from holdfast.store import protocols
from holdfast.store.open import FORMS, open_store

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "stores.md").read_text()
CHECK = (DOCS / "adr" / "0009-protocols-fit-postgresql-and-mariadb.md").read_text()

pytestmark = pytest.mark.anyio


async def test_stores_page_names_every_address_when_the_code_knows_it() -> None:
    for form in re.findall(r"^  (\S+)", FORMS, re.MULTILINE):
        assert f"`{form}`" in PAGE, form


@pytest.mark.covers("CORE-STORE-06")
@pytest.mark.parametrize(("query", "level"), [("", 2), ("?sync=normal", 1)])
async def test_sqlite_syncs_as_the_page_says_when_it_is_opened(
    tmp_path: Path, query: str, level: int
) -> None:
    assert "sync=normal" in PAGE
    assert "power cut" in PAGE
    store = await open_store(f"sqlite:{tmp_path}/s.db{query}")
    found = {
        connection.pragma("synchronous")
        for connection in apsw.connections()
        if connection.filename.startswith(str(tmp_path)) and not connection.readonly("main")
    }
    await store.close()
    assert found == {level}


@pytest.mark.covers("CORE-STORE-10")
async def test_check_of_the_protocols_speaks_of_each_call_that_a_dialect_could_refuse() -> None:
    hard = [
        "settle",
        "claim",
        "park",
        "change_hold",
        "append_audit",
        "claim_outbox",
        "send",
        "fire_timers",
        "wait_change",
    ]
    known = set(dir(protocols.Store))
    for call in hard:
        assert call in known
        assert f"`{call}`" in CHECK, call
    assert "PostgreSQL" in CHECK
    assert "MariaDB" in CHECK
