"""A coding task from end to end: failing tests, agents in worktrees, a merge, a repair loop, a person who
agrees. Its process is killed, and its directory continues on another store: each effect happens once."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.attractor.kill import CRASHED, Place, place
from tests.attractor.repositories import files, git, made, refs, state
from tests.services import postgres

__all__ = ["place"]
pytestmark = [pytest.mark.timeout(900), pytest.mark.covers("CP2-P5")]

TOOL = "shape=parallelogram, tool_command"
TASK = f"""digraph task {{ graph [goal="make the tests pass", workdir="repo"]; start; end
    before [{TOOL}="echo before >>LEDGER; python3 -B check.py"]
    fan  [shape=component, workspace=worktree]; join [shape=tripleoctagon]
    add  [agent=codex, prompt="Fix add. $goal"]
    look [{TOOL}="echo look >>LEDGER; python3 -B check.py add"]
    mul  [agent=claude, prompt="Fix mul. $goal"]
    test [{TOOL}="echo test >>LEDGER; python3 -B check.py"]; check [shape=diamond]
    repair [agent=codex, prompt="Repair it: {{{{stages.test.stdout}}}}"]
    ask  [shape=hexagon, label="Ship it?"]
    ship [{TOOL}="echo ship >>LEDGER; cat calc.py"]
    start -> before; before -> fan [condition="outcome=fail"]; before -> end [condition="outcome=success"]
    fan -> add -> look -> join; fan -> mul -> join; join -> test -> check
    check -> ask [condition="outcome=success"]; check -> repair [condition="outcome=fail"]; repair -> test
    ask -> ship [label=Yes]; ask -> end [label=No]; ship -> end }}"""
CALC = "def add(a, b):\n    return a - b\n\n\n# between\n\n\ndef mul(a, b):\n    return a + b\n"
CHECK = """import sys
import calc
wanted = {"add": (calc.add(2, 5), 7), "mul": (calc.mul(2, 5), 10)}
names = sys.argv[1:] or wanted
wrong = [name for name, (found, right) in wanted.items() if found != right and name in names]
print("wrong:", *wrong)
sys.exit(bool(wrong))
"""
# What each stage's agent changes. The first try of `mul` is wrong.
EDITS = {"add": ("a - b", "a + b"), "mul": ("a + b", "a ** b"), "repair": ("a ** b", "a * b")}
AGENT = """#!{python} -I
import json, os, sys
stage, asked = os.environ["HOLDFAST_NODE"], sys.stdin.read()
before, after = {edits!r}[stage]
with open({ledger!r}, "a") as ledger:
    ledger.write(stage + chr(10))
if stage == "repair":
    assert "wrong: mul" in asked, asked
head, mark, tail = open("calc.py").read().partition("# between")
if stage == "add":
    head = head.replace(before, after)
else:
    tail = tail.replace(before, after)
with open("calc.py", "w") as file:
    file.write(head + mark + tail)
for event in {events!r}:
    print(json.dumps(event))
"""
CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}},
]
CLAUDE = [
    {"type": "system", "subtype": "init", "session_id": "s"},
    {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s",
     "total_cost_usd": 0.1, "usage": {"input_tokens": 1, "output_tokens": 1}},
]  # fmt: skip
ONCE = Counter({"before": 1, "add": 1, "look": 1, "mul": 1, "test": 2, "repair": 1, "ship": 1})
POINTS = ("after_intent", "after_substep", "after_handler", "inside_settle", "after_settle", "after_park")


class CodingTask:
    """The task in a folder of its own, with a repository, programs and a ledger outside of both."""

    def __init__(self, here: Place) -> None:
        self.here = here
        ledger = here.folder / "ledger"
        (here.folder / "x.dot").write_text(TASK.replace("LEDGER", str(ledger)))
        self.repo = made(here.folder / "repo", **{"check.py": CHECK, ".gitignore": "__pycache__\n"})
        (self.repo / "calc.py").write_text(CALC)
        self.before = state(self.repo)
        programs = here.folder / "bin"
        programs.mkdir()
        for name, events in (("codex", CODEX), ("claude", CLAUDE)):
            text = AGENT.format(python=sys.executable, edits=EDITS, ledger=str(ledger), events=events)
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        here.environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    @property
    def effects(self) -> Counter[str]:
        path = self.here.folder / "ledger"
        return Counter(path.read_text().split() if path.exists() else ())

    @property
    def reply(self) -> dict[str, Any]:
        lines = self.here.calls[-1].told.splitlines()
        return json.loads([line for line in lines if line.startswith("{")][-1])

    def start(self, crash: str = "", store: str = "") -> int:
        words = ["run", "x.dot", "--logs", "D", "--json", *(["--store", store] if store else [])]
        return self.here.call(*words, crash=crash).end()

    def resume(self, store: str, crash: str = "") -> int:
        """Continue the directory on a store that knows nothing of it."""
        if not (self.here.folder / "D/checkpoint.json").exists():
            return self.start(crash, store)
        return self.here.call("run", "--resume", "D", "--json", "--store", store, crash=crash).end()

    def finish(self, store: str) -> None:
        """A person agrees, and answers what nobody else can know by a look at the ledger."""
        code = self.resume(store)
        for _ in range(20):
            if code != 3:
                break
            for hold in self.reply["holds"]:
                stage = (hold["context"] or {}).get("stage")
                known = "it succeeded" if self.effects[stage] else "run again"
                answer = "Yes" if "Ship it?" in hold["prompt"] else known
                answered = self.here.call("answer", hold["id"], answer, "--store", store)
                assert answered.end() == 0, answered.told
            code = self.resume(store)
        assert code == 0, self.here.calls[-1].told

    def check(self, what: object) -> None:
        assert self.effects == ONCE, (what, self.effects)
        assert state(self.repo) == self.before, what
        done = CALC.replace("a - b", "a + b", 1)
        right = done[: done.index("#")] + done[done.index("#") :].replace("a + b", "a * b")
        # Of the last run: the one before it has a result of its own.
        result = refs(self.repo, self.reply["id"])["result"]
        assert files(self.repo, result)["calc.py"] == right.strip(), what
        assert git(self.repo, "worktree", "list", "--porcelain").count("worktree ") == 1, what


@pytest.fixture
def task(place: Callable[[str], Place]) -> Callable[[], CodingTask]:
    return lambda: CodingTask(place(TASK))


def test_coding_task_is_done_from_end_to_end(task: Callable[[], CodingTask]) -> None:
    calm = task()
    assert calm.start() == 3, calm.here.calls[-1].told
    assert calm.reply["holds"][0]["prompt"].startswith("Ship it?")
    calm.finish("sqlite:.holdfast/holdfast.db")
    calm.check("calm")
    result = refs(calm.repo)["result"]
    subjects = git(calm.repo, "log", "--first-parent", "--format=%s", result).splitlines()
    assert subjects == [
        "ship: success", "test: success", "repair: success", "test: fail", "Merge mul",
        "look: success", "add: success", "The work in progress", "first",
    ]  # fmt: skip


@pytest.mark.parametrize("crash", ["after_substep:9", "inside_settle:7"])
def test_coding_task_continues_on_another_store(task: Callable[[], CodingTask], crash: str) -> None:
    """A few boundaries; all of them in the soak."""
    continued(task(), crash, "sqlite:other.db")


def test_coding_task_continues_on_postgresql(task: Callable[[], CodingTask]) -> None:
    continued(task(), "after_substep:16", postgres.database())


def continued(killed: CodingTask, crash: str, store: str) -> None:
    assert killed.start(crash) == CRASHED, killed.here.calls[-1].told
    killed.finish(store)
    killed.check((crash, store))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_coding_task_continues_wherever_its_process_dies(
    task: Callable[[], CodingTask], point: str, store: str
) -> None:
    for nth in range(1, 200):
        killed = task()
        if killed.start(f"{point}:{nth}") != CRASHED:
            assert nth > 1, point
            return
        killed.finish(postgres.database() if store == "postgres" else "sqlite:other.db")
        killed.check((point, nth, store))
    pytest.fail("it never ends")
