"""Flows with a described input, for the pages of flows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast import Flow


@dataclass
class Parcel:
    number: str
    weight: float
    speed: Literal["normal", "express"] = "normal"
    tags: list[str] = field(default_factory=list[str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    label: str = ""


def _flow(name: str) -> Flow:
    flow = Flow(name, state=Parcel, effect="pure")

    @flow.node
    async def weigh(s: Parcel) -> dict[str, Any]:
        if s.weight > 30:
            raise ValueError(f"{s.weight:g} kg is too heavy")
        return {"label": f"{s.number}-{s.speed}"}

    @flow.node
    async def send(_s: Parcel) -> None:
        return None

    flow.start(weigh)
    flow.chain(weigh, send)
    return flow


parcel = _flow("Päckchen eins")
slashed = _flow("post/größe")
untyped = Flow("untyped", effect="pure")


@untyped.node
async def only(_s: dict[str, Any]) -> None:
    return None


untyped.start(only)


returns = Flow[Any]("returns", effect="pure")


@returns.node
async def receive(_s: dict[str, Any]) -> None:
    return None


returns.chain(receive, returns.hold("judge", prompt="Take it back?", options=["yes", "no"], bind="said"))
