"""What row J is compared with: workflows as one writes them with the vendor's SDK alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow

_LIMIT = timedelta(minutes=10)


@workflow.defn(name="bench.line")
class LineWorkflow:
    """Activities one after the other, each given the state and returning its update."""

    @workflow.run
    async def run(self, steps: int) -> dict[str, Any]:
        state: dict[str, Any] = {"limit": 0, "n": 0}
        for _ in range(steps):
            update = await workflow.execute_activity(
                "bench.step", state, result_type=dict[str, Any], start_to_close_timeout=_LIMIT
            )
            state = {**state, **update}
        return state


@workflow.defn(name="bench.person")
class PersonWorkflow:
    """A step, an answer from outside, and another step."""

    def __init__(self) -> None:
        self._answer: str | None = None
        self._waits = False

    @workflow.update(name="waits")
    async def on_waits(self) -> None:
        """Until it waits for the answer."""
        await workflow.wait_condition(lambda: self._waits)

    @workflow.signal(name="answer")
    def on_answer(self, decision: str) -> None:
        self._answer = decision

    @workflow.run
    async def run(self) -> dict[str, Any]:
        state: dict[str, Any] = {"limit": 0, "n": 0}
        for _ in range(2):
            state = await workflow.execute_activity(
                "bench.step", state, result_type=dict[str, Any], start_to_close_timeout=_LIMIT
            )
            self._waits = True
            await workflow.wait_condition(lambda: self._answer is not None)
        return state
