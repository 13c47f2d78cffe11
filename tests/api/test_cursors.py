"""Cursors of lists name the cell that gave them out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.types.cursor import encode_cursor
from tests.api.conftest import Server, serving

pytestmark = pytest.mark.anyio

LISTS = (
    "/v1/runs", "/v1/holds", "/v1/runs/pending", "/v1/threads", "/v1/schedules", "/v1/audit", "/v1/leases",
    "/v1/documents", "/v1/notices",
)  # fmt: skip
SHAPES = {"/v1/threads": [1, "t"], "/v1/schedules": ["s"], "/v1/documents": ["d"], "/v1/holds": [2, 1, 1, 1]}


@pytest.fixture
async def eu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """The server of a cell with a name."""
    monkeypatch.setenv("HOLDFAST_CELL", "eu-1")
    flow = Flow("small", effect="pure")
    flow.node(id="one")(_one)
    async with Holdfast(f"sqlite:{tmp_path}/h.db") as hf:
        for _ in range(3):
            await flow.run({}, on=hf)
        async with serving(hf) as server:
            yield server


async def _one() -> dict[str, object]:
    return {}


@pytest.mark.covers("SC2-4")
async def test_cursor_leads_to_the_next_page_in_its_cell_only(eu: Server) -> None:
    first = await eu.json("GET", "/v1/runs?limit=2")
    rest = await eu.json("GET", "/v1/runs?limit=2", params={"cursor": first["next"]})
    assert len({run["id"] for run in first["items"] + rest["items"]}) == 3
    eu.hf.cell = (await eu.hf.service()).runtime.cell = "us-1"
    refused = await eu.json("GET", "/v1/runs?limit=2", 400, params={"cursor": first["next"]})
    assert refused["code"] == "other_cell"


@pytest.mark.covers("SC2-4")
@pytest.mark.parametrize("path", LISTS)
async def test_cursor_of_another_cell_is_a_400_on_every_list(eu: Server, path: str) -> None:
    place = SHAPES.get(path, [1] if path in ("/v1/audit", "/v1/notices") else [1, 1])
    await eu.json("GET", path, params={"cursor": encode_cursor("eu-1", place)})
    refused = await eu.json("GET", path, 400, params={"cursor": encode_cursor("us-1", place)})
    assert refused["code"] == "other_cell"


async def test_cursor_without_a_cell_is_refused(eu: Server) -> None:
    """As lists gave them out before cells had names."""
    assert (await eu.json("GET", "/v1/runs", 422, params={"cursor": "WzEsMl0"}))["code"] == "bad_cursor"
