"""A branch that has to start before a question repeats no outside effect unless its caller says so."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route
from holdfast.errors import EffectsRepeatedError
from holdfast.runs.service import RunService
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-04")]

TWO: dict[str, Any] = {
    "options": ["approve", "reject"],
    "assignee": "group:finance",
    "approval": {"mode": "quorum", "need": 2},
}
MEDIA = {"Content-Type": "application/octet-stream"}


def effect_in_a_node(done: list[str]) -> Flow:
    flow = Flow("effect-in-a-node", effect="pure")
    gate = flow.hold("gate", prompt="Pay?", bind="said", **TWO)

    @flow.node(effect="external")
    async def pay(s: dict[str, Any]) -> None:
        done.append("paid")

    flow.chain(gate, pay, flow.hold("receipt", prompt="Send a receipt?", options=["yes", "no"]))
    return flow


def effect_in_a_step(done: list[str]) -> Flow:
    flow = Flow("effect-in-a-step", effect="pure")

    @flow.script
    async def work(s: dict[str, Any], ctx: Context) -> None:
        await ctx.ask("Pay?", **TWO)
        await ctx.step("pay", done.append, "paid")

    flow.chain(work, flow.hold("receipt", prompt="Send a receipt?", options=["yes", "no"]))
    return flow


FLOWS = {each.__name__: each for each in (effect_in_a_node, effect_in_a_step)}


async def paid_run(harness: Harness, flow: Flow) -> str:
    asked = await flow.run({}, on=harness.hf, started_by="user:kim")
    for name in ("dana", "sam"):
        assert (await harness.decide(name, asked.holds[0].id)).status_code == 200
    assert (await flow.resume(asked.run_id, on=harness.hf)).status == "pending_input"
    return asked.run_id


class Branch:
    """One way to make a branch; `allowed`: what the caller adds to say that effects may be repeated."""

    def __init__(self, harness: Harness, run: str, checkpoint: str, file: bytes) -> None:
        self.harness, self.run, self.checkpoint, self.file = harness, run, checkpoint, file

    async def of(self, way: str, **allowed: Any) -> Any:
        if way == "/runs/import":
            params = {"as_new_run": "true", **dict.fromkeys(allowed, "true")}
            more: dict[str, Any] = {"params": params, "content": self.file, "headers": MEDIA}
            return await self.harness.send("ada", "POST", "/v1/runs/import", **more)
        path = way.format(run=self.run, checkpoint=self.checkpoint)
        mode = {"mode": "fork"} if "resume" in way else {}
        return await self.harness.send("ada", "POST", f"/v1{path}", {**mode, **allowed})


# A route that can make a branch of a run for its caller declares the error, and so has to be here.
WAYS = [
    "/graph/checkpoints/{checkpoint}/fork",
    "/runs/import",
    "/runs/{run}/fork",
    "/runs/{run}/resume",
    "/runs/{run}/rewind",
]


def _branching() -> list[Route]:
    return [route for theme in THEMES for route in theme.found if EffectsRepeatedError in route.raises]


def test_every_route_that_makes_a_branch_is_tried_here() -> None:
    assert sorted(route.path.removeprefix("/v1") for route in _branching()) == WAYS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", FLOWS)
async def test_no_outside_effect_is_repeated_unless_the_caller_says_so(kind: str, way: str) -> None:
    async with harness_of() as harness:
        done: list[str] = []
        flow = FLOWS[kind](done)
        run = await paid_run(harness, flow)
        assert done == ["paid"]
        file = (await harness.send("ada", "GET", f"/v1/runs/{run}/export")).content
        listed = await harness.ask("ada", "GET", f"/v1/runs/{run}/checkpoints")
        branch = Branch(harness, run, listed["items"][0]["id"], file)
        if way == "/runs/import":
            service = await harness.hf.service()
            await service.cancel(run)
            await flow.resume(run, on=harness.hf)
            await RunService.delete(service, run)
        before = await harness.ask("ada", "GET", "/v1/runs")
        refused = await branch.of(way)
        assert (refused.status_code, refused.json()["code"]) == (409, "repeats_effects"), refused.text
        assert refused.json()["nodes"] == ["pay" if kind == "effect_in_a_node" else "work"]
        assert await harness.ask("ada", "GET", "/v1/runs") == before
        if way.endswith(("/fork", "/rewind")):
            # The preview says so beforehand.
            action = {"action": way.rpartition("/")[2]}
            said = await harness.ask("ada", "POST", f"/v1/runs/{run}/preview", action)
            assert said["refused_without_consent"] == refused.json()["nodes"]
            assert any(refused.json()["nodes"][0] in line and "once more" in line for line in said["text"])
        made = await branch.of(way, repeat_effects=True)
        assert made.status_code == 201, made.text
        new = made.json().get("id") or made.json()["runId"]
        assert (await flow.resume(new, on=harness.hf)).status == "pending_input"
        assert done == ["paid"]
