"""A flow document that passes the places where a worker can die, with effects in the world of the flows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from holdfast import Context, Holdfast, Result
from holdfast.app.flow import advance
from holdfast.documents.program import default_site, program_for
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.read import read_text
from holdfast.model.program import Program
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.crash import flows

NAME = "document"
GIVEN = {"n": 1, "items": [1, 2, 3]}
DOCUMENT = """
holdfast: "1.0"
name: document
input: {type: object, required: [n, items], properties: {n: {}, items: {}}}
variables: {turns: {type: integer, default: 0}}
nodes:
  - {id: start, type: start}
  - {id: pay, type: python, config: {function: act, args: {value: "{{n}}"}}}
  - {id: each, type: map, config: {over: items, into: found, concurrency: 1}}
  - {id: item_done, type: python, parent: each, config: {function: act, args: {value: "{{item}}"}}}
  - {id: doc_ask, type: checkpoint, config: {prompt: "Ship {{pay}}?", options: [ship, stop]}}
  - {id: pause, type: wait, config: {duration: 20ms}}
  - {id: twice, type: loop, config: {while: "turns < 2", max_turns: 5}}
  - {id: again, type: python, parent: twice, config: {function: next_turn, args: {turns: "{{turns}}"}, bind: turns, effect: pure}}
  - {id: ship, type: python, config: {function: act, args: {value: "{{decision}}"}, idempotency_key: "{{run.id}}-ship"}}
  - {id: done, type: end, config: {output: {shipped: "{{ship}}", found: "{{found}}", turns: "{{turns}}"}}}
edges:
  - {source: start, target: pay}
  - {source: pay, target: each}
  - {source: each, target: doc_ask}
  - {source: doc_ask, source_port: ship, target: pause}
  - {source: doc_ask, source_port: stop, target: done}
  - {source: pause, target: twice}
  - {source: twice, source_port: done, target: ship}
  - {source: ship, target: done}
"""  # noqa: E501


async def act(value: Any, ctx: Context) -> Any:
    """In the world once; whoever repeats it with its key finds the first answer."""
    update = {ctx.node: value}
    return (flows.keyed if ctx.node == "ship" else flows.once)(ctx, update)[ctx.node]


def next_turn(turns: int) -> int:
    return turns + 1


class DocumentFlow:
    """What the lives of runs use of a `Flow`."""

    @cached_property
    def _program(self) -> Program:
        functions = {"act": act, "next_turn": next_turn}
        site = msgspec.structs.replace(default_site(), functions=functions)
        return program_for(compile_document(read_text(DOCUMENT, "yaml"), site), site)

    def program(self) -> Program:
        return self._program

    async def resume(self, run: str, *, on: Holdfast) -> Result[Any]:
        service = await on.service()
        row = await service.get(run)
        if row.status is RunStatus.failed:
            await service.request_resume(row.id)
        return await advance(service, self._program, RunId(row.id))


DOCUMENT_FLOW = DocumentFlow()
