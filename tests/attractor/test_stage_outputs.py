"""What a stage leaves for people and later stages: whole outputs of every visit, references, preambles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import StageOutcome
from holdfast.attractor.export import export_directory
from holdfast.attractor.handlers import codergen
from holdfast.attractor.preamble import BUDGETS, tokens
from holdfast.attractor.preamble_parts import equal_shares
from holdfast.attractor.recorded_stage import read_stage
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from holdfast.attractor.stage_outputs import LARGEST, bounded, tail_cut
from holdfast.errors import RequirementsMissingError
from tests.agents.provider import Answer, Provider
from tests.attractor.models import asked, backend, nearby
from tests.attractor.repositories import made
from tests.attractor.run import dot, line, run, written
from tests.cli.conftest import Cli, cli, logs

__all__ = ["cli", "logs", "nearby"]
pytestmark = pytest.mark.anyio
TOOL = "shape=parallelogram, tool_command"
LONG = "for n in $(seq 1 20000); do echo line $n of $HOLDFAST_VISIT; done"


def long_output(visit: int) -> str:
    return "".join(f"line {n} of {visit}\n" for n in range(1, 20001))


class Changes:
    def execute(self, node: Any, context: Any, graph: Any, logs_root: Path, *, visit: Any) -> StageOutcome:
        visit.outputs.diff = "--- a\n+++ b\n"
        return StageOutcome()


@pytest.mark.covers("CP2-I1")
async def test_every_visit_leaves_its_whole_outputs(hf: Holdfast, tmp_path: Path) -> None:
    """In files of the directory, and in the journal: a directory that is made from it has the same."""
    seen: list[str] = []

    def answer(node: Any, prompt: str) -> Any:
        seen.append(node.id)
        again = seen.count("check") < 2
        return (
            f"answer {len(seen)} " + "w" * 90_000
            if node.id == "a"
            else StageOutcome(preferred_label="again" if again else "ok", notes=f"note {len(seen)}")
        )

    text = dot(
        f't [{TOOL}="{LONG}; echo err $HOLDFAST_VISIT >&2"]; a [prompt="A"]; check; m [type=mine];',
        "start -> t -> a -> check; check -> t [label=again]; check -> m [label=ok]; m -> done",
    )
    registry = HandlerRegistry({"mine": Changes()})
    logs = tmp_path / "logs"
    result = await run(hf, text, logs, backend=answer, registry=registry)
    assert result.succeeded
    for visit in (1, 2):
        assert written(logs / "t" / "visits" / f"{visit}.stdout") == long_output(visit)
        assert written(logs / "t" / "visits" / f"{visit}.stderr") == f"err {visit}\n"
        verdict = json.loads(written(logs / "check" / "visits" / f"{visit}.verdict.json"))
        assert verdict["notes"] == f"note {visit * 2}"
    assert [len(written(logs / "a" / "visits" / f"{n}.response.md")) for n in (1, 2, 3)] == [90009, 90009, 0]
    assert written(logs / "m" / "visits" / "1.diff") == "--- a\n+++ b\n"
    assert len(result.context["tool.output"]) < 70_000
    service = await hf.service()
    await export_directory(service, result.run_id, tmp_path / "again")
    files = {path.relative_to(logs) for path in logs.glob("*/visits/*")}
    assert len(files) == 2 * 3 + 2 * 2 + 2 + 2
    for path in files:
        assert (tmp_path / "again" / path).read_bytes() == (logs / path).read_bytes()


@pytest.mark.covers("CP2-I1", "CP2-I2")
async def test_the_changes_of_a_worktree_are_an_artifact(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", **{"base.txt": "one\n"})
    asked: list[str] = []

    def answer(node: Any, prompt: str) -> str:
        asked.append(prompt)
        return "ok"

    text = dot(
        f'fan [shape=component, workspace=worktree]; a [{TOOL}="seq 1 30000 > made.txt"]; b [{TOOL}="true"]; '
        'join [shape=tripleoctagon]; z [prompt="{{branches.a.diff}}"];',
        "start -> fan; fan -> a -> join; fan -> b -> join; join -> z -> done",
        f'goal=g, workdir="{repo}"',
    )
    logs = tmp_path / "logs"
    result = await run(hf, text, logs, backend=answer)
    diff = written(logs / "a" / "visits" / "1.diff")
    assert "".join(f"\n+{n}" for n in range(1, 30001)) in diff
    assert not (logs / "b" / "visits" / "1.diff").exists()
    assert asked == [diff]
    assert result.context["parallel.results"][0]["artifacts"]["a"]["diff"] == "a/visits/1.diff"
    service = await hf.service()
    await export_directory(service, result.run_id, tmp_path / "again")
    assert written(tmp_path / "again" / "a" / "visits" / "1.diff") == diff
    found = await read_stage(service, await service.get(result.run_id), "a")
    assert found.require_output("diff") == diff


async def test_a_retried_attempt_leaves_only_the_outputs_of_the_last_one(
    hf: Holdfast, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    text = line(
        f't [{TOOL}="test -e {flag} && echo good || {{ touch {flag}; echo bad >&2; exit 1; }}", '
        "max_retries=2, retry.base=1ms];",
        "t",
    )
    logs = tmp_path / "logs"
    result = await run(hf, text, logs)
    assert result.succeeded
    await export_directory(await hf.service(), result.run_id, tmp_path / "again")
    for root in (logs, tmp_path / "again"):
        names = sorted(path.name for path in (root / "t" / "visits").iterdir())
        assert names == ["1.stdout", "1.verdict.json"]
        assert written(root / "t" / "visits" / "1.stdout") == "good\n"


def test_an_output_has_at_most_64_mebibytes() -> None:
    found = bounded("BEGIN" + "é" * (LARGEST // 2) + "END")
    assert LARGEST - 100 < len(found.encode()) <= LARGEST
    assert found.startswith("BEGIN")
    assert found.endswith("END")
    assert "bytes left out" in found


@pytest.mark.covers("CP2-I2")
async def test_a_reference_gets_the_whole_of_a_long_output(hf: Holdfast, tmp_path: Path) -> None:
    asked: dict[str, str] = {}

    def answer(node: Any, prompt: str) -> str:
        asked[node.id] = prompt
        return "ok"

    text = line(
        f'm [type=mine]; t [{TOOL}="{LONG}"]; u [{TOOL}="{LONG}"]; a [prompt="{{{{stages.t.stdout}}}}"]; '
        'b [prompt="{{stages.u.stdout | head(12)}}|{{stages.u.stdout | tail(7)}}|{{stages.u.outcome}}|'
        '{{stages.m.diff}}"];',
        "m", "t", "u", "a", "b",
    )  # fmt: skip
    registry = HandlerRegistry({"mine": Changes()})
    result = await run(hf, text, tmp_path, backend=answer, registry=registry)
    assert asked["a"] == long_output(1)
    assert asked["b"] == "line 1 of 1\n|0 of 1\n|success|--- a\n+++ b\n"
    # Only what prompts use is kept.
    assert len(result.context["stage.output.u"]["stdout"]) == 12 + 7


@pytest.mark.covers("CP2-I2")
async def test_a_branch_is_referred_to_by_its_last_stage_that_left_something(
    hf: Holdfast, tmp_path: Path
) -> None:
    asked: dict[str, str] = {}

    def answer(node: Any, prompt: str) -> str:
        asked[node.id] = prompt
        return f"said {node.id}"

    text = dot(
        f'f [shape=component]; x; xt [{TOOL}="echo x out"]; y; yt [{TOOL}="echo y out; exit 2"]; '
        'j [shape=tripleoctagon]; z [prompt="{{branches.x.stdout}}|{{branches.x.response}}|'
        '{{branches.y.stdout}}|{{branches.y.outcome}}|{{branches.y.failure_reason}}|{{branches.y.verdict}}"];',
        "start -> f; f -> x -> xt -> j; f -> y -> yt -> j; j -> z -> done",
    )
    await run(hf, text, tmp_path, backend=answer)
    *parts, verdict = asked["z"].split("|")
    assert parts == ["x out\n", "said x", "y out\n", "fail", "exit code 2: y out"]
    assert json.loads(verdict)["outcome"] == "fail"


Heard = dict[str, str]


def listener(heard: Heard, said: dict[str, Any] | None = None) -> Any:
    def answer(node: Any, prompt: str, context: Any, preamble: str) -> Any:
        heard[node.id] = preamble
        return (said or {}).get(node.id) or f"answer of {node.id}"

    return answer


MODES = ["compact", "summary:low", "summary:medium", "summary:high"]


@pytest.mark.covers("CP2-I3")
@pytest.mark.parametrize("mode", ["truncate", *MODES])
@pytest.mark.parametrize("much", ["answer", "failure", "value", "answers", "branches"])
async def test_a_preamble_is_full_if_there_is_enough_to_tell(
    hf: Holdfast, tmp_path: Path, mode: str, much: str
) -> None:
    """Whatever there is enough of: one long answer, one long failure, one long value, many short answers."""
    if mode == "summary:low" and much == "value":
        pytest.skip("this mode tells no values")
    heard: Heard = {}
    goal = "g" * 30_000 if mode == "truncate" else "ship it"
    said: dict[str, Any] = {}
    given: dict[str, Any] = {}
    stages, path = "a; b; c;", "start -> a -> b -> c -> last -> done"
    if much == "answer":
        said["b"] = "ü" * 20_000
    elif much == "answers":
        said |= {name: f"{name} " + "word " * 800 for name in "abc"}
    elif much == "value":
        given["thing"] = {"deep": "z " * 20_000}
    elif much == "failure":
        stages = f't [{TOOL}="{LONG}; exit 1"];'
        path = 'start -> t; t -> last [condition="outcome=fail"]; t -> done; last -> done'
    else:
        stages = "f [shape=component]; x; y; j [shape=tripleoctagon];"
        path = "start -> f; f -> x -> j; f -> y -> j; j -> last -> done"
        said |= {"x": "x" * 20_000, "y": "y" * 20_000}
    text = dot(f'{stages} last [fidelity="{mode}"];', path, f'goal="{goal}"')
    await run(hf, text, tmp_path, backend=listener(heard, said), context=given)
    told = heard["last"]
    assert BUDGETS[mode] * 0.8 <= tokens(told) <= BUDGETS[mode]


@pytest.mark.covers("CP2-I4")
@pytest.mark.parametrize("mode", MODES)
async def test_the_parts_of_a_preamble_are_in_order_and_name_their_artifacts(
    hf: Holdfast, tmp_path: Path, mode: str
) -> None:
    heard: Heard = {}
    text = dot(
        f'a; lint [{TOOL}="echo LINT; exit 1"]; t [{TOOL}="{LONG}; echo THE END; exit 3"]; '
        f'last [fidelity="{mode}"];',
        'start -> a -> lint; lint -> t [condition="outcome=fail"]; lint -> done; '
        't -> last [label="Fix it", condition="outcome=fail"]; t -> done; last -> done',
    )
    said = {"a": "ANSWER " * 3000}
    await run(hf, text, tmp_path, backend=listener(heard, said), context={"ticket": "T-1"})
    told = heard["last"]
    order = [
        'last follows t, by the edge "Fix it" because outcome=fail.',
        "The verdict of t: fail: exit code 3: THE END",
        "Last failure, of t: exit code 3: THE END",
        "the whole is in t/visits/1.stdout",
        "line 20000 of 1\nTHE END",
    ]
    if mode in ("summary:medium", "summary:high"):
        order += ["Other failures:\nlint: exit code 1: LINT\nLINT", "Answers, the latest first:\na:\n"]
        order += ["the whole is in a/visits/1.response.md"]
    if mode != "summary:low":
        order += ["Completed stages:", "Context:"]
    places = [told.index(each) for each in order]
    assert places == sorted(places)
    assert long_output(1)[-900:] + "THE END" in told


async def test_of_a_cut_a_fifth_is_the_beginning(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    text = dot(f't [{TOOL}="{LONG}; exit 3"]; last;',
               'start -> t; t -> last [condition="outcome=fail"]; t -> done; last -> done')  # fmt: skip
    await run(hf, text, tmp_path, backend=listener(heard))
    output = heard["last"].split("Its output:\n")[1].split("\nCompleted stages:")[0]
    head, tail = re.split(
        r"\n\[\.\.\. \d+ bytes left out; the whole is in t/visits/1.stdout \.\.\.\]\n", output
    )
    assert long_output(1).startswith(head)
    assert long_output(1).strip().endswith(tail)
    assert 3.8 < len(tail) / len(head) < 4.2
    left = int(re.findall(r"(\d+) bytes left out", output)[0])
    assert left + len(head) + len(tail) == len(long_output(1).strip())


@pytest.mark.covers("CP2-I6")
async def test_after_a_fan_in_each_branch_is_told_with_an_equal_share(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    verdict = '\n```json\n{"outcome": "partial_success", "notes": "half", "score": 3}\n```'
    said = {"x": "x" * 50_000 + " X-END", "y": "short y", "z": "z" * 50_000 + verdict}
    text = dot(
        f'f [shape=component]; x; xt [{TOOL}="echo tested"]; y; z; w [{TOOL}="echo no >&2; exit 4"]; '
        'j [shape=tripleoctagon]; last [fidelity="summary:high"];',
        "start -> f; f -> x -> xt -> j; f -> y -> j; f -> z -> j; f -> w -> j; j -> last -> done",
    )
    result = await run(hf, text, tmp_path, backend=listener(heard, said))
    found = {each["id"]: each for each in result.context["parallel.results"]}
    assert {name: each["outcome"] for name, each in found.items()} == {
        "x": "success", "y": "success", "z": "partial_success", "w": "fail",
    }  # fmt: skip
    assert found["z"]["notes"] == "half"
    assert (found["z"]["verdict"]["score"], found["z"]["verdict"]["outcome"]) == (3, "partial_success")
    assert found["w"]["verdict"]["failure_reason"] == found["w"]["failure_reason"] == "exit code 4: no"
    assert found["w"]["artifacts"] == {
        "w": {"stderr": "w/visits/1.stderr", "verdict": "w/visits/1.verdict.json"}
    }
    assert sorted(found["x"]["artifacts"]) == ["x", "xt"]
    for each in found.values():
        for names in each["artifacts"].values():
            assert all((tmp_path / name).is_file() for name in names.values())
    told = heard["last"]
    part = told.split("Branches:\n")[1].split("\nAnswers")[0]
    assert "- y: success: short y" in part
    assert "- w: fail: exit code 4: no" in part
    # Only x2's last stage left a short text; z has a long one, of which the end is shown.
    assert "half" in part
    assert "- x: success" in part
    assert "tested" in part
    assert "the whole is in z/visits/1.response.md ...]\nz" in part
    assert tokens(told) > BUDGETS["summary:high"] * 0.8


def test_shares_are_equal_and_unused_ones_are_passed_on() -> None:
    assert equal_shares([100, 100, 100], 90) == [30, 30, 30]
    assert equal_shares([10, 100, 100], 90) == [10, 40, 40]
    assert equal_shares([10, 30, 100], 90) == [10, 30, 50]
    assert equal_shares([0, 500], 90) == [0, 90]
    assert equal_shares([5, 5], 90) == [5, 5]
    assert tail_cut("x" * 200 + "END", 60, "a").endswith("xEND")
    assert "whole is in a" in tail_cut("x" * 200 + "END", 60, "a")


@pytest.mark.covers("CP2-I5")
async def test_a_conversation_learns_what_happened_outside_of_it(hf: Holdfast, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def answer(node: Any, prompt: str, preamble: str, session: Any) -> str:
        seen.append((node.id, preamble))
        return "I said NUMBER" if node.id == "code" else f"{node.id} is fine"

    text = dot(
        f'code [fidelity=full, thread_id=t]; look; t [{TOOL}="echo RED {"x" * 300}; exit 1"]; '
        "repair [fidelity=full, thread_id=t]; more [fidelity=full, thread_id=t];",
        'start -> code -> look -> t; t -> repair [condition="outcome=fail"]; t -> done; '
        "repair -> more -> done",
    )
    assert (await run(hf, text, tmp_path, backend=answer)).succeeded
    told = dict(seen)
    assert told["code"] == ""
    repair = told["repair"]
    assert repair.startswith("Since your last turn in this conversation:\nrepair follows t, by the edge")
    assert "Last failure, of t: exit code 1" in repair
    assert "Its output:\nRED xxx" in repair
    assert "- look: success: look is fine" in repair
    # What the thread itself said is in its messages.
    assert "NUMBER" not in repair
    assert "- code:" not in repair
    # Nothing happened between the two.
    assert told["more"] == ""


@pytest.mark.parametrize("mode", ["compact", "summary:low", "summary:high", "full"])
@pytest.mark.parametrize("gate", [False, True])
async def test_a_loop_of_code_test_and_repair_converges(
    hf: Holdfast, tmp_path: Path, mode: str, gate: bool
) -> None:
    """The model repairs only what it is told by name, and each run of the tests names one failure."""
    work = tmp_path / "work"
    work.mkdir()
    script = tmp_path / "tests.sh"
    script.write_text(
        f"cd {work}\nfor n in $(seq 1 3000); do echo collecting $n; done\n"
        "for each in test_alpha test_beta test_gamma; do\n"
        '  test -e $each || { echo "FAILED $each: assert 1 == 2"; exit 1; }\ndone\necho all passed\n'
    )
    repaired: list[str] = []

    def answer(node: Any, prompt: str, preamble: str) -> str:
        if node.id == "code" and not preamble.count("FAILED "):
            return "written"
        named = re.findall(r"FAILED (test_\w+)", preamble)
        for each in named[-1:]:
            (work / each).touch()
            repaired.append(each)
        return f"repaired {named[-1:]}"

    test = f'test [{TOOL}="sh {script}"'
    if gate:
        text = line(f"code [fidelity=\"{mode}\", thread_id=t]; {test}, goal_gate=true, retry_target=code];",
                    "code", "test")  # fmt: skip
    else:
        text = dot(
            f'code [fidelity="{mode}", thread_id=t]; {test}]; repair [fidelity="{mode}", thread_id=t];',
            'start -> code -> test; test -> repair [condition="outcome=fail"]; repair -> test; '
            'test -> done [condition="outcome=success"]',
        )
    result = await run(hf, text, tmp_path / "logs", backend=answer)
    assert result.succeeded
    assert repaired == ["test_alpha", "test_beta", "test_gamma"]


class Once:
    """A backend that keeps its conversations, and is not there the first time."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def answer(self, visit: Any, prompt: str) -> str:
        self.heard.append(prompt)
        if len(self.heard) == 1:
            raise RequirementsMissingError("gone", missing=["agent:x"])
        return "ok"


@pytest.mark.covers("CP2-I7")
async def test_a_stage_that_is_entered_again_asks_the_same(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the code that makes its preamble has changed in between."""
    once = Once()
    runner = Runner(hf, backend=once, logs_root=tmp_path)
    text = line('a [prompt="Do it", verdict=true];', "a")
    run_id = "0d1f5a9c-8b5e-4e51-9b9e-2f1f4f0b7a11"
    with pytest.raises(RequirementsMissingError):
        await runner.run(text, run_id=run_id)
    monkeypatch.setattr(codergen, "preamble", lambda visit, mode: "something else")
    second = await runner.resume(run_id)
    assert second.succeeded
    assert once.heard[0] == once.heard[1]
    service = await hf.service()
    row = await service.get(run_id)
    found = [(await read_stage(service, row, "a")).prompt for _ in range(2)]
    assert found == once.heard
    assert written(tmp_path / "a" / "prompt.md") == "Do it"


SCRIPT = """
from pathlib import Path

def answer(node, prompt, context, preamble):
    Path(node.id + ".heard").write_text(preamble + "\\n\\n" + prompt)
    return "answer of " + node.id
"""


@pytest.mark.covers("CP2-I7")
def test_the_command_line_prints_prompts_and_outputs(cli: Cli) -> None:
    Path("mine.py").write_text(SCRIPT)
    text = line(f't [{TOOL}="{LONG}; exit 0"]; a [prompt="Say é"]; b [prompt="B"];', "t", "a", "b")
    Path("x.dot").write_text(text)
    run_id = cli("run", "x.dot", "--backend", "mine.py:answer", "--json").json["id"]
    for stage in "ab":
        said = cli("show", run_id, stage, "--prompt")
        assert said.code == 0, said.err
        assert said.out == Path(f"{stage}.heard").read_text()
    assert cli("show", run_id, "a", "--output", "response").out == "answer of a"
    assert cli("show", run_id, "t", "--output", "stdout", "--visit", "1").out == long_output(1)
    assert json.loads(cli("show", run_id, "t", "--output", "verdict").out)["outcome"] == "success"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prompt"], "no stage is named"),
        (["a"], "give --prompt or --output"),
        (["a", "--prompt", "--output", "stdout"], "give --prompt or --output"),
        (["a", "--output", "colour"], "unknown output 'colour'"),
        (["a", "--output", "stdout"], "left no stdout: it has response, verdict"),
        (["t", "--prompt"], "has asked no model"),
        (["nobody", "--prompt"], "no record of stage 'nobody'"),
        (["a", "--prompt", "--visit", "7"], "no record of visit 7 of stage 'a'"),
    ],
)
def test_wrong_questions_about_stages_are_refused(cli: Cli, words: list[str], said: str) -> None:
    Path("x.dot").write_text(line(f't [{TOOL}=true]; a [prompt="A"];', "t", "a"))
    run_id = cli("run", "x.dot", "--simulate", "--json").json["id"]
    found = cli("show", run_id, *words)
    assert found.code == 2
    assert said in found.err
    assert found.out == ""


@pytest.mark.covers("CP2-I7")
async def test_the_prompt_of_a_model_is_shown_once_and_a_restored_directory_has_the_same(
    hf: Holdfast, nearby: Provider, tmp_path: Path
) -> None:
    nearby.says(Answer(text="A"), Answer(calls=[("c", "glob", {"pattern": "*"})]), Answer(text="B"))
    text = line('a [prompt="Do A"]; b [prompt="Do B"];', "a", "b")
    found = await Runner(hf, backend=backend(nearby, kits=["coding"]), logs_root=tmp_path / "x").run(text)
    service = await hf.service()
    row = await service.get(found.run_id)
    for number, stage in ((0, "a"), (1, "b")):
        assert (await read_stage(service, row, stage)).prompt == asked(nearby.seen[number])
    await export_directory(service, found.run_id, tmp_path / "again")
    for name in ("prompt.md", "preamble.md", "response.md"):
        assert written(tmp_path / "again/b" / name) == written(tmp_path / "x/b" / name)
