"""Pipelines for tests: a text around stages, run on a house."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.attractor.runner import PipelineResult, Runner
from tests.deadlines import HANG


async def until(check: Callable[[], Any]) -> None:
    async with asyncio.timeout(HANG):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def either(first: str, then: str, otherwise: str = "fail") -> str:
    """Edges out of a stage: to the end after a success, else over another stage."""
    return (
        f'start -> {first}; {first} -> done [condition="outcome=success"]; '
        f'{first} -> {then} [condition="outcome={otherwise}"]; {then} -> done'
    )


def whole(path: Path) -> str:
    return str(path.resolve())


def listed(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def begun(logs: Path) -> list[Path]:
    """The folders of commands that have begun."""
    return [found.parent for found in logs.glob("*/tool-*/pid")]


ENDS = "start [shape=Mdiamond]; done [shape=Msquare]; "


def dot(stages: str, links: str, graph: str = 'goal="ship it"') -> str:
    return f"digraph g {{ graph [{graph}]; {ENDS} {stages} {links} }}"


def line(stages: str, *names: str, graph: str = 'goal="ship it"') -> str:
    """One stage after the other."""
    return dot(stages, " -> ".join(("start", *names, "done")), graph)


async def run(hf: Holdfast, text: str, logs: Path, **options: Any) -> PipelineResult:
    of_run = {name: options.pop(name) for name in ("context",) if name in options}
    return await Runner(hf, logs_root=logs, **options).run(text, **of_run)
