"""Eight branches with worktrees, beside the git commands that they cannot do without."""

from __future__ import annotations

import asyncio
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Lock
from time import perf_counter

from bench.lines import Line
from bench.measure import Measure, Plan, aimed, interleaved, line, ratios
from holdfast import Holdfast
from holdfast.attractor.git import git_fault
from holdfast.attractor.runner import Runner

BRANCHES, AT_ONCE, FILES = 8, 4, 1_000
_NAME = "8 worktrees, by the bare git commands"
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0")


async def worktree_lines(plan: Plan, place: Path) -> list[Line]:
    fault = git_fault()
    if fault:
        return [aimed("T", _NAME, None, "x", "T-worktrees", note=fault)]
    repository = _repository(place / "repository")
    async with Holdfast("memory:") as hf:
        found = await interleaved(
            plan.some, run=running(hf, repository, place), bare=bare(repository, place / "bare")
        )
    return [
        line("T", _NAME, ratios(found["run"], found["bare"]), "x", target="T-worktrees"),
        line("T", "8 branches with worktrees and their merge", found["run"], "ms", scale=1e3),
    ]


def running(hf: Holdfast, repository: Path, place: Path) -> Measure:
    names = [f"s{number}" for number in range(BRANCHES)]
    stages = "; ".join(f'{name} [shape=parallelogram, tool_command="echo x >{name}"]' for name in names)
    links = "; ".join(f"fan -> {name} -> join" for name in names)
    fan = f"fan [shape=component, workspace=worktree, max_parallel={AT_ONCE}]; join [shape=tripleoctagon]"
    ends = f'graph [workdir="{repository}"]; start; exit; start -> fan; join -> exit'
    text = f"digraph w {{ {ends}; {fan}; {stages}; {links} }}"
    number = count()

    async def measure() -> float:
        began = perf_counter()
        found = await Runner(hf).run(text, logs_root=place / f"worktree-logs-{next(number)}")
        assert found.succeeded, found.outcome
        return perf_counter() - began

    return measure


def bare(repository: Path, place: Path) -> Measure:
    """A worktree and a commit for each branch, their merge, and a worktree of it."""
    place.mkdir()
    adding = Lock()

    def branch(number: int) -> str:
        at = place / str(number)
        with adding:  # git fails beside another one
            _git(repository, "worktree", "add", "--detach", "--quiet", str(at), "HEAD")
        (at / f"s{number}").write_text("x\n")
        _git(at, "add", "--all")
        _git(at, "commit", "--quiet", "--message", "work")
        return _git(at, "rev-parse", "HEAD")

    def whole() -> float:
        began = perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ours, *others = pool.map(branch, range(BRANCHES))
        for theirs in others:
            tree = _git(repository, "merge-tree", "--write-tree", ours, theirs)
            ours = _git(repository, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", "merge")
        for number in range(BRANCHES):
            _git(repository, "worktree", "remove", "--force", str(place / str(number)))
        return perf_counter() - began

    async def measure() -> float:
        return await asyncio.to_thread(whole)

    return measure


def _repository(at: Path) -> Path:
    at.mkdir()
    _git(at, "init", "--quiet")
    for number in range(FILES):
        path = at / f"folder-{number % 50}" / f"file-{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    _git(at, "add", "--all")
    _git(at, "commit", "--quiet", "--message", "first")
    return at


def _git(at: Path, *words: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    called = ["git", *_WHO, *words]
    done = subprocess.run(called, cwd=at, env=clean, capture_output=True, text=True, check=True)
    return done.stdout.strip()
