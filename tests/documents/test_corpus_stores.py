"""Documents of the corpus on the other databases: the same questions, trace and result."""

from __future__ import annotations

import json
from secrets import token_hex

import pytest

from holdfast import Holdfast
from tests.documents.test_corpus import CORPUS, found_of
from tests.services import mariadb, postgres

pytestmark = pytest.mark.anyio

# Each way of waiting, branching, repeating and failing once.
NAMES = (
    "breakpoint", "guardrail_sanitizes", "hitl_review", "join_quorum", "loop_of_questions", "map_collect",
    "map_of_questions", "parallel_join", "python_retry_error", "reducers", "router_all",
)  # fmt: skip


@pytest.mark.covers("PLATFORM-PROOF-01")
@pytest.mark.parametrize("store", ["postgres", "mariadb"])
async def test_documents_run_on_this_database_as_they_do_in_memory(store: str) -> None:
    if store == "mariadb":
        address = mariadb.emptied("documents")
    else:
        address = postgres.with_setting(postgres.database(), schema=f"t_{token_hex(4)}")
    async with Holdfast(address) as hf:
        for name in NAMES:
            golden = json.loads((CORPUS / f"{name}.golden.json").read_text())
            assert await found_of(hf, name) == golden, name
