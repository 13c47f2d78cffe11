"""Three sources in parallel, two are enough; then every finding is summarised, two at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from holdfast import Flow, append, quorum


@dataclass
class Research:
    question: str = "What holds a ship?"
    findings: Annotated[list[str], append] = field(default_factory=list[str])
    summaries: list[str] = field(default_factory=list[str])
    report: str = ""


research = Flow("research", state=Research, effect="read")


@research.node
async def plan(_s: Research) -> None:
    """Changes nothing: the next nodes read the question."""


@research.node
async def library(s: Research) -> dict[str, list[str]]:
    return {"findings": [f"library: an anchor ({s.question})"]}


@research.node
async def archive(s: Research) -> dict[str, list[str]]:
    return {"findings": [f"archive: a holdfast ({s.question})"]}


@research.node
async def telephone(_s: Research) -> dict[str, list[str]]:
    await asyncio.sleep(30)
    return {"findings": ["telephone: answered at last"]}


@research.node(join=quorum(2, cancel_losers=True))
async def collect(s: Research) -> None:
    assert len(s.findings) == 2


async def summarise(finding: str) -> str:
    return finding.upper()


shorten = research.map("shorten", over="findings", body=summarise, into="summaries", concurrency=2)


@research.node
async def write(s: Research) -> dict[str, str]:
    return {"report": " / ".join(s.summaries)}


research.start(plan)
for source in (library, archive, telephone):
    research.chain(plan, source, collect)
research.chain(collect, shorten, write)


if __name__ == "__main__":
    print(research.run_sync().expect().state.report)
