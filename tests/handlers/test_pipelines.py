"""The code that pipelines call: handlers, backends and interviewers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, RunSettings, RunStatus
from holdfast.attractor.interviewers import CallbackInterviewer
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from tests.attractor.run import line
from tests.deadlines import HANG
from tests.handlers.misbehaviours import OF_TASKS, RAISED, as_coroutine

pytestmark = pytest.mark.anyio
Bad = Callable[[], Any]


class Handler:
    """A stage of a user's own type."""

    def __init__(self, bad: Bad) -> None:
        self.bad = bad

    def execute(self, *_args: Any) -> Any:
        return self.bad()


def handler(bad: Bad) -> tuple[str, dict[str, Any], set[RunStatus]]:
    return line('work [type="own"];', "work"), {"registry": HandlerRegistry({"own": Handler(bad)})}, {FAILED}


def backend(bad: Bad) -> tuple[str, dict[str, Any], set[RunStatus]]:
    return line("work;", "work"), {"backend": lambda _prompt: bad()}, {FAILED}


def interviewer(bad: Bad) -> tuple[str, dict[str, Any], set[RunStatus]]:
    """The question stays open for people."""
    text = 'work [shape=hexagon, label="Ship?"]; work -> work [label="N"];'
    asks = CallbackInterviewer(lambda _question: bad())
    return line(text, "work"), {"interviewer": asks}, {RunStatus.pending_input, FAILED}


FAILED = RunStatus.failed
CASES = [
    pytest.param(kind, bad, id=f"{kind.__name__}-{bad.__name__}")
    for kind in (handler, backend, interviewer)
    for bad in (*RAISED, *map(as_coroutine, OF_TASKS))
]


@pytest.mark.covers("SAFE-HANDLER-01", "SAFE-HANDLER-02")
@pytest.mark.parametrize(("kind", "bad"), CASES)
async def test_only_the_stage_fails_when_its_code_misbehaves(kind: Any, bad: Bad, tmp_path: Path) -> None:
    text, options, ends = kind(bad)
    async with Holdfast("memory:", settings=RunSettings(poll=0.02)) as hf, asyncio.timeout(HANG):
        result = await Runner(hf, logs_root=tmp_path, **options).run(text)
        row = await (await hf.service()).get(result.run_id)
        assert row.status in ends
