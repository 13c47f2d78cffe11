"""A flow with something of everything: retries, a map, a sub-flow, a question, costs, a branch not taken."""

from __future__ import annotations

from pathlib import Path

NEWS = """
from dataclasses import dataclass, field
from holdfast import Flow, Retry

@dataclass
class News:
    items: list[int] = field(default_factory=lambda: [1, 2, 3])
    out: list[int] = field(default_factory=list)
    decision: str = ""
    sent: str = ""

desk = Flow("desk", state=News, effect="read")

@desk.node
async def check(s, ctx):
    ctx.spent(tokens=5, cost=0.25)
    return {"sent": "checked"}

desk.start(check)

news = Flow("news", state=News, effect="read")
tries = []

@news.node(retry=Retry(3, delay="1ms"))
async def gather(s, ctx):
    tries.append(1)
    ctx.emit("reading the <wires>")
    ctx.log.info("asks %d wires", 3)
    if len(tries) % 2:
        raise ValueError("the wire was cut")
    ctx.spent(tokens=100, cost=0.5)

@news.node
async def apologise(s):
    return {"sent": "sorry"}

async def shorten(item: int) -> int:
    return item * 2

each = news.map("each", over="items", body=shorten, into="out")
desked = news.subflow("desked", desk, outputs={"sent": "state.sent"})
ask = news.hold("ask", prompt="Publish?", options=["yes", "no"], assignee="group:editors")

@news.node
async def publish(s):
    return {"sent": "out"}

news.start(gather)
news.edge(gather, each, when="sent == ''")
news.edge(gather, apologise, otherwise=True)
news.chain(each, desked, ask)
news.edge(ask, publish, when="decision == 'yes'")
"""


def write_news(folder: Path, name: str = "news") -> Path:
    file = folder / f"{name}.py"
    file.write_text(NEWS)
    return file
