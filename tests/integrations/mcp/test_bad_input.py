"""Whatever an agent sends, it hears what is wrong with it; nothing slips."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.errors import HoldfastError
from holdfast.integrations.ask_people_flow import ask_people
from holdfast.integrations.mcp.caller import McpCaller, agent_here
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.resources import ignore_progress, read_resource
from holdfast.integrations.mcp.server import TOOLS
from tests.api.flows import refund

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-01")]

ODD: Final[list[Any]] = [
    "", "a\0b", "\ud800", "x" * 10_001, -1, 2**70, 1e308, None, [[]], {"\0": "\ud800"}, ["\0"], [{"id": ""}],
    {"type": "object", "properties": {"a b": {"type": "string", "pattern": "("}}}, "escalate:\0",
    "99999999999d",
]  # fmt: skip


@pytest.fixture
async def hf(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'm.db'}") as found, Worker(refund(), ask_people, on=found):
        yield found


def bot(hf: Holdfast) -> McpCaller:
    (route,) = routes.found
    return McpCaller(hf, agent_here("service:bot"), route, ApiSettings())


async def test_no_value_of_any_argument_is_a_slip_of_ours(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Any = await TOOLS["ask_people"].use(bot(hf), {"question": "?"}, ignore_progress)
    monkeypatch.setattr("holdfast.integrations.mcp.question_tools.OPENS_IN", 0.0)
    known = {"id": asked.id, "run": asked.run, "question": "?", "text": "t", "flow": "refund"}
    refused: list[str] = []
    for tool in TOOLS.values():
        fields = tool.takes.__struct_encode_fields__
        needed = {name: value for name, value in known.items() if name in fields}
        for name in fields:
            for value in ODD:
                try:
                    await tool.use(bot(hf), needed | {name: value}, ignore_progress)
                except HoldfastError as error:
                    refused.append(error.message)
    assert len(refused) > 300
    assert all(refused)


@pytest.mark.parametrize(
    "uri", ["", "runs", "holdfast://runs/", "holdfast://runs/\0", "holdfast://questions/x"]
)
async def test_address_that_names_nothing_is_reported(hf: Holdfast, uri: str) -> None:
    with pytest.raises(HoldfastError):
        await read_resource(bot(hf), uri)
