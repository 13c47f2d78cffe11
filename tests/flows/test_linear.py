from __future__ import annotations

import pytest

from holdfast import Flow, Holdfast


@pytest.mark.anyio
@pytest.mark.covers("CORE-FLOW-03", "CORE-RUN-01")
async def test_steps_see_what_came_before_when_they_follow_each_other(hf: Holdfast) -> None:
    flow = Flow("line", effect="pure")

    @flow.node()
    async def one(s: dict[str, int]) -> dict[str, int]:
        return {"x": s["x"] + 1}

    @flow.node()
    async def two(s: dict[str, int]) -> dict[str, int]:
        return {"x": s["x"] * 10}

    flow.edge(one, two)
    result = await flow.run({"x": 1}, on=hf)
    assert result.completed
    assert result.state == {"x": 20}
