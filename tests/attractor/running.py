"""Pipelines for tests: a text around stages, run on a house."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.attractor.runner import PipelineResult, Runner

ENDS = "start [shape=Mdiamond]; done [shape=Msquare]; "


def dot(stages: str, links: str, graph: str = 'goal="ship it"') -> str:
    return f"digraph g {{ graph [{graph}]; {ENDS} {stages} {links} }}"


def line(stages: str, *names: str, graph: str = 'goal="ship it"') -> str:
    """One stage after the other."""
    return dot(stages, " -> ".join(("start", *names, "done")), graph)


async def run(house: Holdfast, text: str, logs: Path, **options: Any) -> PipelineResult:
    of_run = {name: options.pop(name) for name in ("context",) if name in options}
    return await Runner(house, logs_root=logs, **options).run(text, **of_run)
