"""Pipelines with handlers of a test's own: what the engine makes of a lowered graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import Context, Holdfast, Outcome
from holdfast.app.flow import advance, make_result
from holdfast.app.result import Result
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.program import NodeHandler, Program
from holdfast.model.state_schema import StateSchema
from holdfast.types.ids import RunId

Work = Callable[[Context, dict[str, Any]], Awaitable[Outcome]]
"""What a stage does: its context, and the pipeline's context as it sees it."""


class Stages:
    """A pipeline whose stages tell their names; `said` has what those do that a test gives more to do."""

    def __init__(self, source: str, **said: Work | Outcome | list[Outcome]) -> None:
        self.said = said
        self.trace: list[str] = []
        self.spec = lower(parse(source).pipeline)

    def program(self) -> Program:
        return self._program(self.spec)

    def _program(self, spec: GraphSpec) -> Program:
        graph = Graph(spec)
        handlers = {node.id: self._handler(node.id) for node in spec.nodes if not node.parallel}
        return Program(
            graph,
            version=graph_fingerprint(spec),
            code=dict.fromkeys(handlers, "test"),
            handlers=handlers,
            routers={},
            schema=StateSchema(),
            children={inner.name: self._program(inner) for inner in spec.subgraphs},
        )

    def _handler(self, name: str) -> NodeHandler:
        async def work(state: dict[str, Any], ctx: Context) -> Outcome:
            self.trace.append(ctx.scope + name)
            said = self.said.get(name, Outcome())
            if isinstance(said, list):
                return said.pop(0) if said else Outcome()
            return said if isinstance(said, Outcome) else await said(ctx, dict(state))

        return NodeHandler(fn=work, is_async=True, takes=("state", "ctx"))

    async def run(
        self, hf: Holdfast, *, run_id: str | None = None, mode: str | None = None, **given: Any
    ) -> Result:
        """Until it ends or waits."""
        program = self.program()
        hf.register(program)
        service = await hf.service()
        started = await service.start(program, given, run_id=run_id, mode=mode)
        assert isinstance(started, tuple)
        claim, pos = started
        status, pos = await service.runtime.drive(claim, pos)
        return await make_result(service, program, claim.run.id, status, pos)

    async def go_on(self, hf: Holdfast, run: str) -> Result:
        program = self.program()
        hf.register(program)
        service = await hf.service()
        return await advance(service, program, RunId(run))
