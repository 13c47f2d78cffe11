"""A flow document, and a server that it is deployed to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from holdfast import Worker
from tests.api.conftest import Server

REFUND: Final = """\
# Refunds above the limit need a person.
holdfast: "1.0"
name: refund
description: Pays money back
config: {scaiqueue: {scope: support}}
input: {type: object, required: [amount], properties: {amount: {type: number}}}
nodes:
  - {id: start, type: start}
  - {id: ask, type: hitl_review, label: Review, position: {x: 240, y: 0},
     config: {queue: reviews, timeout: 2d, on_timeout: cancel, prompt: "Refund {{amount}}?",
              sections: [{type: decision, options: [approve, reject]}]}}
  - {id: paid, type: set, config: {values: {paid: "{{amount}}"}}}
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: paid}
  - {source: ask, source_port: reject, target: done}
  - {source: paid, target: done}
"""
YAML: Final = {"Content-Type": "application/yaml"}
OTHER: Final = REFUND.replace("Refund {{amount}}?", "Pay {{amount}} back?")


async def deploy(server: Server, text: str = REFUND, status: int = 201, query: str = "") -> Any:
    return await server.json("POST", f"/v1/flows{query}", status, content=text.encode(), headers=YAML)


@pytest.fixture
async def working(server: Server) -> AsyncIterator[Server]:
    """With a worker that has no flow at all."""
    async with Worker(on=server.hf):
        yield server
