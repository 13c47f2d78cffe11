"""The corpus: pipelines in files, each with what its models say, what people answer and what comes of it.

`name.toml` beside `name.dot`: `trace` is what ran at the top, in order, as `stage`, or `stage=outcome` where
it was no success; `branches` the same for each scope; `says` what the backend answers stage by stage,
one visit after the other, text or the fields of an outcome; `answers` what people decide, `gate: choice`;
`shows` names behaviours that no attribute tells of.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from holdfast import Holdfast
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.parse import parse
from tests.attractor.repositories import git
from tests.deadlines import HANG

FOLDER = Path(__file__).parent / "corpus"
NOBODY = "(nobody)"


class Case(msgspec.Struct, forbid_unknown_fields=True):
    trace: str
    status: str = "success"
    reason: str = ""
    branches: dict[str, str] = {}
    context: dict[str, Any] = {}
    files: list[str] = []
    """Below the run's directory, when it has ended."""
    warnings: list[str] = []
    """The rules that `validate` warns by."""
    says: dict[str, list[str | dict[str, Any]]] = {}
    answers: list[str] = []
    shows: list[str] = []
    given: dict[str, Any] = {}
    name: str = ""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.dot"

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def pipeline(self) -> Pipeline:
        """As it is written, before any transform."""
        return parse(self.source, path=str(self.path)).pipeline


def cases() -> list[Case]:
    return [_case(path) for path in sorted(FOLDER.glob("*.dot"))]


def _case(path: Path) -> Case:
    found = msgspec.convert(tomllib.loads(path.with_suffix(".toml").read_text("utf-8")), Case)
    found.name = path.stem
    return found


class Scripted:
    """A backend that says what the case tells it to; a stage that it says nothing of is simulated."""

    def __init__(self, case: Case) -> None:
        self._said = {stage: deque(answers) for stage, answers in case.says.items()}

    def run(self, node: Stage, prompt: str, context: PipelineContext) -> str | StageOutcome:
        left = self._said.get(node.id)
        said = left.popleft() if left else f"[Simulated] Response for stage: {node.id}"
        return said if isinstance(said, str) else StageOutcome(**said)

    def unsaid(self) -> dict[str, Any]:
        return {stage: list(left) for stage, left in self._said.items() if left}


class Counting:
    """A handler of the corpus's own: `type=count` counts its visits."""

    def execute(
        self, node: Stage, context: PipelineContext, graph: Pipeline, logs_root: Path
    ) -> StageOutcome:
        count = int(context.get("count", 0)) + 1
        context.append_log(f"{node.id} counted to {count}")
        return StageOutcome(context_updates={"count": count}, notes=f"counted to {count}")


async def live(
    hf: Holdfast,
    case: Case,
    folder: Path,
    worker: Callable[[Runner], AbstractAsyncContextManager[object]] = nullcontext,
) -> tuple[PipelineResult, Scripted]:
    """Until it has ended, with every answer given in turn. `worker`: for the runs of this runner."""
    backend = Scripted(case)
    runner = Runner(hf, backend=backend, logs_root=folder / "logs",
                    registry=HandlerRegistry({"count": Counting()}))  # fmt: skip
    work = folder / "work"
    work.mkdir(parents=True)
    if "workspace=worktree" in case.source:
        git(work, "init", "--quiet")
    given = {"internal.workdir": str(work), **case.given}
    async with worker(runner):
        result = await runner.run(case.path, context=given)
        for answer in case.answers:
            result = await _answered(hf, runner, result, answer)
    return result, backend


async def _answered(hf: Holdfast, runner: Runner, result: PipelineResult, answer: str) -> PipelineResult:
    gate, _, choice = (part.strip() for part in answer.partition(":"))
    service = await hf.service()
    found = [each for each in result.holds if each.node == gate]
    if choice == NOBODY:
        # It may have expired already, and on a cluster the run then waits for a worker without a question.
        async with asyncio.timeout(HANG):
            while result.status == "waiting" and all(each.node == gate for each in result.holds):
                await asyncio.sleep(0.01)
                result = await runner.resume(result.run_id)
        return result
    (hold,) = found
    await service.answer(hold.id, choice)
    return await runner.resume(result.run_id)


async def traces(hf: Holdfast, run: str) -> dict[str, str]:
    """What ran in each scope, in order; the top is the scope ""."""
    found: dict[str, list[str]] = {}
    for each in (await (await hf.service()).latest(run)).executions:
        if each.outcome != "unknown":
            word = each.node if each.outcome == "success" else f"{each.node}={each.outcome}"
            found.setdefault(each.scope.rstrip("/"), []).append(word)
    return {scope: " ".join(words) for scope, words in found.items()}


def part_of(whole: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: whole.get(key) for key in keys}
