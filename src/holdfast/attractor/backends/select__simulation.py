"""No model at all: each stage is answered by a fixed sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.frontends.dot.document import Stage


class Simulation:
    async def run(self, node: Stage, prompt: str, context: PipelineContext) -> str:
        return f"[Simulated] Response for stage: {node.id}"
