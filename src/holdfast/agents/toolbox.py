"""The tools of one conversation: their call counts, and their workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.messages import ToolCall
from holdfast.agents.tool_call import PlannedCall, SubAgent, ToolResult, gather_results, perform, read_call
from holdfast.agents.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent


class Toolbox:
    def __init__(
        self,
        agent: Agent,
        at: AgentScope,
        uploads: Mapping[str, bytes],
        delegate: SubAgent,
    ) -> None:
        self.agent = agent
        self.at = at
        self.space = Workspace(agent.sandbox, uploads, agent.max_file_bytes)
        self.delegate = delegate
        self.calls: Counter[str] = Counter()

    async def use(self, calls: Sequence[ToolCall], turn: int) -> list[ToolResult]:
        """The results of the calls, in their order."""
        plans = self._plans(calls)

        def work(index: int) -> Awaitable[ToolResult]:
            at = self.at.below(f"{turn}/tool/{index}")
            return perform(at, plans[index], self.agent.name, turn, self.space, self.delegate)

        return await self._made(work, plans)

    def _plans(self, calls: Sequence[ToolCall]) -> list[PlannedCall]:
        """Planned in their order, before any is made: counts do not depend on timing."""
        return [self._plan(call) for call in calls]

    def _plan(self, call: ToolCall) -> PlannedCall:
        tool = self.agent.tool(call.name)
        if tool is None:
            known = ", ".join(spec.name for spec in self.agent.tool_specs) or "none"
            return PlannedCall(call, None, f"there is no tool {call.name!r}; known: {known}", malformed=True)
        problem = read_call(tool, call)
        if problem:
            return PlannedCall(call, tool, problem, malformed=True)
        self.calls[tool.name] += 1
        if tool.max_calls is not None and self.calls[tool.name] > tool.max_calls:
            times = "once" if tool.max_calls == 1 else f"{tool.max_calls} times"
            return PlannedCall(call, tool, f"{tool.name!r} may be called only {times}")
        return PlannedCall(call, tool)

    async def _made(
        self, work: Callable[[int], Awaitable[ToolResult]], plans: Sequence[PlannedCall]
    ) -> list[ToolResult]:
        """Concurrent tools do not see each other's files before the end of the turn."""
        found: list[ToolResult] = []
        for group in self._groups(plans):
            results = await gather_results(map(work, group))
            for result in results:
                self.space.take(result.changes)
            found += results
        return found

    def _groups(self, plans: Sequence[PlannedCall]) -> list[list[int]]:
        """The calls that run together: neighbours, unless one of them keeps the order of the reply."""
        groups: list[list[int]] = []
        alone = True
        for index, plan in enumerate(plans):
            keeps_order = not self.agent.parallel or (plan.tool is not None and plan.tool.ordered)
            if alone or keeps_order:
                groups.append([])
            groups[-1].append(index)
            alone = keeps_order
        return groups
