"""A flow whose node does what its skill says, and the parts that tests of skills share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

from holdfast import Context, Flow, Holdfast, append
from holdfast.types.deployment import Deployment
from holdfast.types.hold import HoldRow


@dataclass
class Refund:
    amount: int = 0
    decision: str = ""
    said: Annotated[list[str], append] = field(default_factory=list)


def a_flow(name: str = "refund", *, holds: int = 1) -> Flow:
    """Asks, then writes what its skill says; `holds`: so many times."""
    flow = Flow(name, state=Refund)
    before: Any = None
    for number in range(holds):
        asked = flow.hold(
            f"approve{number}",
            prompt="Refund {{amount}}?",
            options=["approve", "reject"],
            assignee="user:dana@acme",
        )
        if before is None:
            flow.start(asked)
        else:
            flow.edge(before, asked)
        before = flow.node(id=f"write{number}", effect="pure")(write)
        flow.edge(asked, before)
    return flow


async def write(state: Refund, ctx: Context) -> dict[str, Any]:
    skill = ctx.skills["refunds"]
    return {"said": [f"{skill.instructions} (up to {skill.tools[0].settings['limit']})"]}


async def publish(hf: Holdfast, version: str, says: str, limit: int = 100) -> None:
    tool: Any = {"name": "pay", "settings": {"limit": limit}}
    await (await hf.skills()).publish("refunds", version, instructions=says, tools=[tool])


async def deploy(hf: Holdfast, flow: Flow, **settings: Any) -> Deployment:
    settings.setdefault("skills", ["refunds@^1"])
    return await hf.deploy("desk", flow, **settings)


def pins(hold: HoldRow) -> Any:
    return json.loads(hold.context).get("resolved_skills")


def versions(hold: HoldRow) -> dict[str, str]:
    return {pin["id"]: pin["version"] for pin in pins(hold)}
