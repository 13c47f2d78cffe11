"""A worktree per branch: its base, its commits, and how they are merged."""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import branch_worktree
from holdfast.attractor.git import GitCommandError, Repository
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.attractor.worktree_folders import LOCK, add_folder, remove_worktree
from holdfast.errors import InputError, PipelineInvalidError
from holdfast.store.rows import RunFilter
from holdfast.types.ids import new_run_id
from tests.attractor.repositories import files, git, made, refs, state
from tests.attractor.run import dot, until
from tests.cli.conftest import Cli

pytestmark = pytest.mark.anyio

TOOL = "shape=parallelogram, tool_command"
ENDS = "fan -> a -> join; fan -> b -> join; start -> fan; join -> after -> done"


def pipeline(repo: Path, a: str, b: str, *, after: str = "true", fan: str = "", more: str = "") -> str:
    stages = (
        f"fan [shape=component, workspace=worktree{fan}]; join [shape=tripleoctagon];"
        f'a [{TOOL}="{a}"]; b [{TOOL}="{b}"]; after [{TOOL}="{after}"];{more}'
    )
    return dot(stages, ENDS, f'goal="ship it", workdir="{repo}"')


async def ran(hf: Holdfast, logs: Path, source: str, **more: Any) -> PipelineResult:
    return await Runner(hf, logs_root=logs, **more).run(source)


@pytest.mark.covers("CP2-G2", "CP2-G4")
async def test_branches_work_on_copies_and_the_following_stages_on_the_merge(
    hf: Holdfast, tmp_path: Path
) -> None:
    repo = made(tmp_path / "repo", **{"base.txt": "one\n", "kept.txt": "k\n"})
    (repo / "base.txt").write_text("one, changed\n")
    (repo / "new file.txt").write_text("untracked\n")
    git(repo, "rm", "--cached", "--quiet", "kept.txt")
    before = state(repo)
    look = "cat base.txt 'new file.txt' *.made; pwd; ls"
    found = await ran(
        hf,
        tmp_path / "logs",
        pipeline(repo, "pwd; echo a > a.made; ls", "echo b > b.made; rm kept.txt", after=look),
    )
    assert found.succeeded, found.outcome
    assert state(repo) == before
    said = found.context["tool.output"].splitlines()
    assert said[:4] == ["one, changed", "untracked", "a", "b"]
    assert said[4] == str(tmp_path / "logs/worktrees/result")
    assert "kept.txt" not in said
    known = refs(repo, found.run_id)
    assert set(known) == {"base/fan.1", "branches/fan.1.0", "branches/fan.1.1", "result"}
    assert files(repo, known["base/fan.1"]) == {
        "base.txt": "one, changed",
        "kept.txt": "k",
        "new file.txt": "untracked",
    }
    assert set(files(repo, known["branches/fan.1.0"])) == {"base.txt", "kept.txt", "new file.txt", "a.made"}
    assert files(repo, known["result"]) == {
        "base.txt": "one, changed",
        "new file.txt": "untracked",
        "a.made": "a",
        "b.made": "b",
    }
    assert git(repo, "rev-parse", "main") == git(repo, "rev-parse", f"{known['base/fan.1']}^")
    assert found.context["workspace.commit"] == known["result"]
    assert found.context["parallel.fan_in.merged"] == ["a", "b"]
    assert not (tmp_path / "logs/worktrees").exists()
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1


async def test_what_a_failed_run_keeps_is_removed_as_documented(hf: Holdfast, tmp_path: Path) -> None:
    repo, logs = made(tmp_path / "repo"), tmp_path / "logs"
    found = await ran(hf, logs, pipeline(repo, "echo a > a.made", "true", after="false"))
    assert found.status == "fail"
    # The stage after the merge failed, and can be resumed in its files.
    assert (logs / "worktrees/result/a.made").exists()
    page = Path(__file__).parents[2] / "docs/how-to/worktrees.md"
    blocks = [block.strip().splitlines() for block in page.read_text().split("```text")[1:]]
    removes, deletes = next(lines for lines in blocks if "prune" in lines[0])[:2]
    for line in (removes.replace("OUT", str(logs)), deletes.replace("RUN", found.run_id)):
        subprocess.run(["/bin/sh", "-ec", line], cwd=repo, check=True)  # noqa: ASYNC221
    assert refs(repo, found.run_id) == {}
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not (logs / "worktrees").exists()


@pytest.mark.covers("CP2-G3")
async def test_each_settled_stage_has_a_commit_with_author_and_dates_of_the_record(
    hf: Holdfast, tmp_path: Path
) -> None:
    repo = made(tmp_path / "repo")
    source = dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon];"
        f'a [{TOOL}="echo 1 > x; git commit -qam mine || true"]; a2 [{TOOL}="echo 2 > x; false"];'
        f'b [{TOOL}="true"];',
        'start -> fan; fan -> a -> a2; a2 -> join [condition="outcome=fail"]; a2 -> join; fan -> b -> join; '
        "join -> done",
        f'goal="ship it", workdir="{repo}"',
    )
    found = await Runner(hf, logs_root=tmp_path / "logs").run(source, started_by="ann")
    known = refs(repo, found.run_id)
    shown = git(repo, "log", "--format=%s|%an|%ae|%cn|%at|%ct", known["branches/fan.1.0"]).splitlines()
    lines = [line.split("|") for line in shown]
    email = f"{found.run_id}@holdfast.invalid"
    assert [line[:4] for line in lines] == [
        ["a2: fail", "ann", email, "ann"],
        ["a: success", "ann", email, "ann"],
        ["The work in progress", "ann", email, "ann"],
        ["first", "Ann", "ann@example.com", "Ann"],
    ]
    service = await hf.service()
    records = await service.store.read(found.run_id)
    times = {str(record.at // 1_000_000) for record in records}
    assert {line[4] for line in lines[:3]} | {line[5] for line in lines[:3]} <= times
    body = git(repo, "log", "-1", "--format=%b", known["branches/fan.1.0"])
    assert f"Run: {found.run_id}\nStage: fan.1[0]/a2\nVisit: 1" in body
    assert "exit code 1" in body


CONFLICT = ("echo a > base.txt; echo a > a.txt", "echo b > base.txt; echo b > b.txt")


async def test_only_successful_branches_are_merged(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    found = await ran(hf, tmp_path / "logs", pipeline(repo, "echo a > a; false", "echo b > b", after="ls"))
    assert found.context["tool.output"].split() == ["b", "base.txt"]
    assert found.context["parallel.fan_in.merged"] == ["b"]


@pytest.mark.covers("CP2-G4")
async def test_merge_best_takes_the_best_branch_alone(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    told = tmp_path / "told.json"
    told.write_text('{"outcome": "success", "score": 9}')
    better = f"echo b > b; cp {told} $ATTRACTOR_STAGE_DIR/status.json"
    source = pipeline(repo, "echo a > a", better, after="ls", fan=", merge=best")
    found = await ran(hf, tmp_path / "logs", source)
    assert found.context["tool.output"].split() == ["b", "base.txt"]
    assert refs(repo)["result"] != refs(repo)["branches/fan.1.1"]


@pytest.mark.covers("CP2-G4")
async def test_merge_none_leaves_the_commits_and_continues_in_the_users_folder(
    hf: Holdfast, tmp_path: Path
) -> None:
    repo = made(tmp_path / "repo")
    source = pipeline(repo, "echo a > a", "echo b > b", after="pwd; ls", fan=", merge=none")
    found = await ran(hf, tmp_path / "logs", source)
    assert found.context["tool.output"].split() == [str(repo), "base.txt"]
    known = refs(repo)
    assert set(known) == {"base/fan.1", "branches/fan.1.0", "branches/fan.1.1"}
    commits = [each["context_updates"]["workspace.commit"] for each in found.context["parallel.results"]]
    assert commits == [known["branches/fan.1.0"], known["branches/fan.1.1"]]


@pytest.mark.covers("CP2-G5")
async def test_conflict_is_asked_about_with_both_diffs(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(pipeline(repo, *CONFLICT, after="cat base.txt; ls"))
    assert found.status == "waiting"
    hold = found.holds[0]
    assert "branch b and a changed the same lines of base.txt" in hold.prompt
    service = await hf.service()
    context = json.loads(hold.context)
    assert "+a" in context["diff of a"]
    assert "+b" in context["diff of b"]
    assert "result" not in refs(repo)
    await service.answer(hold.id, "leave it out")
    ended = await runner.resume(found.run_id)
    assert ended.succeeded
    assert ended.context["tool.output"].split() == ["a", "a.txt", "base.txt"]


@pytest.mark.covers("CP2-G5")
@pytest.mark.parametrize(
    ("policy", "status", "said"),
    [("fail", "fail", []), ("best", "success", ["a", "a.txt", "base.txt"])],
)
async def test_conflict_fails_or_takes_the_best(
    hf: Holdfast, tmp_path: Path, policy: str, status: str, said: list[str]
) -> None:
    repo = made(tmp_path / "repo")
    source = pipeline(repo, *CONFLICT, after="cat base.txt; ls", fan=f", on_conflict={policy}")
    found = await ran(hf, tmp_path / "logs", source)
    assert found.status == status
    if policy == "fail":
        assert "changed the same lines of base.txt" in found.outcome.failure_reason
        assert "result" not in refs(repo)
    else:
        assert found.context["tool.output"].split() == said


@pytest.mark.covers("CP2-G5")
async def test_merge_of_a_person_is_taken_if_it_has_both(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(pipeline(repo, *CONFLICT, after="cat base.txt; ls"))
    service = await hf.service()
    context = json.loads(found.holds[0].context)
    await service.answer(found.holds[0].id, "use my merge")
    again = await runner.resume(found.run_id)
    assert again.status == "waiting"
    assert "does not have a merge of both commits" in again.holds[0].prompt
    ours, theirs = context["commits"]
    tree = git(repo, "rev-parse", f"{theirs}^{{tree}}")
    by_hand = git(repo, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", "by hand")
    git(repo, "update-ref", context["ref of my merge"], by_hand)
    await service.answer(again.holds[0].id, "use my merge")
    ended = await runner.resume(found.run_id)
    assert ended.context["tool.output"].split() == ["b", "b.txt", "base.txt"]
    assert git(repo, "rev-parse", f"{refs(repo)['result']}^") == by_hand


@pytest.mark.covers("CP2-G5")
@pytest.mark.parametrize(("answer", "status"), [("take it alone", "success"), ("fail", "fail")])
async def test_person_takes_the_other_branch_or_gives_up(
    hf: Holdfast, tmp_path: Path, answer: str, status: str
) -> None:
    repo = made(tmp_path / "repo")
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(pipeline(repo, *CONFLICT, after="cat base.txt; ls"))
    await (await hf.service()).answer(found.holds[0].id, answer)
    ended = await runner.resume(found.run_id)
    assert ended.status == status
    if status == "success":
        assert ended.context["tool.output"].split() == ["b", "b.txt", "base.txt"]


async def test_nested_fan_outs_merge_into_the_branch_around_them(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    source = dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon];"
        "inner [shape=component, workspace=worktree]; both [shape=tripleoctagon];"
        f'a [{TOOL}="echo a > a"]; x [{TOOL}="cat a > x"]; y [{TOOL}="cat a > y"]; z [{TOOL}="ls; pwd"];'
        f'b [{TOOL}="echo b > b"]; last [{TOOL}="ls"];',
        "start -> fan; fan -> a -> inner; inner -> x -> both; inner -> y -> both; both -> z -> join;"
        "fan -> b -> join; join -> last -> done",
        f'goal="ship it", workdir="{repo}"',
    )
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert found.context["tool.output"].split() == ["a", "b", "base.txt", "x", "y"]
    inner = found.context["parallel.results"][0]["context_updates"]["tool.output"].split()
    assert inner == ["a", "base.txt", "x", "y", str(tmp_path / "logs/worktrees/fan.1[0]")]


async def test_second_visit_of_a_fan_out_begins_with_the_merge_of_the_first(
    hf: Holdfast, tmp_path: Path
) -> None:
    """The repair loop: the base is the work so far, not the user's folder."""
    repo = made(tmp_path / "repo")
    source = dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; check [shape=diamond];"
        f'a [{TOOL}="echo a >> a"]; b [{TOOL}="echo b >> b"]; test [{TOOL}="test $(wc -l < a) -ge 2"];'
        f'last [{TOOL}="cat a b"];',
        "start -> fan; fan -> a -> join; fan -> b -> join; join -> test -> check;"
        'check -> fan [condition="outcome=fail"]; check -> last [condition="outcome=success"]; last -> done',
        f'goal="ship it", workdir="{repo}"',
    )
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert found.context["tool.output"].split() == ["a", "a", "b", "b"]
    assert {name for name in refs(repo) if "base" in name} == {"base/fan.1"}


async def test_stage_works_in_its_folder_of_the_worktree(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    (repo / "sub").mkdir()
    (repo / "sub/f").write_text("f\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "second")
    source = pipeline(repo / "sub", "pwd > ../a; ls >> ../a", "true", after="cat ../a").replace(
        "b [shape=parallelogram", f'b [cwd="{repo}", shape=parallelogram'
    )
    found = await ran(hf, tmp_path / "logs", source.replace('tool_command="true"', 'tool_command="pwd > b"'))
    assert found.succeeded, found.outcome
    assert found.context["tool.output"].split() == [str(tmp_path / "logs/worktrees/fan.1[0]/sub"), "f"]
    known = files(repo, refs(repo)["result"])
    assert known["b"] == str(tmp_path / "logs/worktrees/fan.1[1]")


async def test_odd_file_names_are_carried_and_merged(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", plain="p\n")
    odd = ["-rf", "a b", "*", "ü", ":(top)x", "line\nbreak", '"q"']
    for name in odd:
        (repo / name).write_text(name)
    (repo / b"\xff.bin".decode("utf-8", "surrogateescape")).write_text("x")
    source = pipeline(
        repo, "printf a >> ':(top)x'; printf a > './-a'", "printf b >> '*'; rm plain", after="ls -b"
    )
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    known = files(repo, refs(repo)["result"])
    assert known[":(top)x"] == ":(top)xa"
    assert known["*"] == "*b"
    assert {*odd, "-a"} <= set(known)
    assert "\\377.bin" in found.context["tool.output"]
    assert "plain" not in known


async def test_ignored_files_and_stores_of_holdfast_are_left_out(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", **{".gitignore": "secret\n"})
    (repo / "secret").write_text("s")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast/holdfast.db").write_text("db")
    source = pipeline(repo, "true", "true")
    found = await ran(hf, repo / "runs" / "one", source)
    assert found.succeeded
    assert set(files(repo, refs(repo)["base/fan.1"])) == {".gitignore"}


@pytest.mark.covers("CP2-G2")
@pytest.mark.parametrize("logs", [".holdfast/logs/one", "build/[a]*/one"])
async def test_run_directory_may_be_in_a_folder_that_git_ignores(
    hf: Holdfast, tmp_path: Path, logs: str
) -> None:
    repo = made(tmp_path / "repo", **{".gitignore": ".holdfast\nbuild/\n"})
    found = await ran(hf, repo / logs, pipeline(repo, "echo a > a", "echo b > b"))
    assert found.succeeded, found.outcome
    assert set(files(repo, refs(repo)["base/fan.1"])) == {".gitignore"}
    assert {"a", "b"} <= set(files(repo, refs(repo)["result"]))


async def test_agent_cannot_choose_the_commit_of_the_next_stage(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    told = json.dumps({"outcome": "success", "context_updates": {"workspace.commit": "0" * 40, "k": 1}})
    script = tmp_path / "told.json"
    script.write_text(told)
    source = pipeline(
        repo, f"cp {script} $ATTRACTOR_STAGE_DIR/status.json", "true", after=f"cp {script} .; ls"
    )
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert found.context["parallel.results"][0]["context_updates"]["k"] == 1
    assert found.context["workspace.commit"] == refs(repo)["result"]
    with pytest.raises(InputError, match=r"workspace\.commit"):
        await Runner(hf).run(source, context={"workspace.commit": "x"})


async def test_hooks_and_settings_of_the_user_have_no_effect(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = made(tmp_path / "repo")
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        hook = repo / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/hooked\n")
        hook.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[commit]\n gpgSign = true\n[core]\n excludesFile = {home}/never\n[user]\n name = Other\n"
    )
    (home / "never").write_text("*.private\n")
    (repo / "x.private").write_text("p")
    monkeypatch.setenv("HOME", str(home))
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere/i",
        "GIT_AUTHOR_NAME": "X",
    }.items():
        monkeypatch.setenv(name, value)
    found = await ran(hf, tmp_path / "logs", pipeline(repo, "echo a > a", "echo b > b"))
    monkeypatch.undo()
    assert found.succeeded, found.outcome
    assert not (tmp_path / "hooked").exists()
    assert set(files(repo, refs(repo)["result"])) == {"a", "b", "base.txt"}
    assert git(repo, "log", "-1", "--format=%an %G?", refs(repo)["result"]) == "Holdfast N"


async def test_files_are_stored_as_the_settings_of_the_user_say(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As programs for large files do it: their filters are in the settings of the user."""
    repo, home = made(tmp_path / "repo"), tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n autocrlf = input\n attributesFile = ~/attributes\n"
        '[filter "up"]\n clean = tr a-z A-Z\n smudge = tr A-Z a-z\n required\n'
    )
    (home / "attributes").write_text("*.big filter=up\n")
    monkeypatch.setenv("HOME", str(home))
    (repo / "old.big").write_text("OLD\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "stored")
    source = pipeline(repo, "cat old.big > new.big", r"printf 'b\\r\\n' > b.txt", after="cat old.big")
    found = await ran(hf, tmp_path / "logs", source)
    monkeypatch.undo()
    assert found.succeeded, found.outcome
    assert found.context["tool.output"] == "old\n"
    result = refs(repo)["result"]
    assert git(repo, "show", f"{result}:new.big") == "OLD"
    assert git(repo, "cat-file", "-s", f"{result}:b.txt") == "2"


async def test_fresh_repository_without_a_commit_is_enough(hf: Holdfast, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet")
    (repo / "f").write_text("f")
    found = await ran(hf, tmp_path / "logs", pipeline(repo, "echo a > a", "echo b > b", after="ls"))
    assert found.succeeded, found.outcome
    assert found.context["tool.output"].split() == ["a", "b", "f"]
    assert git(repo, "for-each-ref", "refs/heads") == ""


async def nothing_created(hf: Holdfast) -> bool:
    return not await (await hf.service()).store.list_runs(RunFilter(), after=None, limit=1)


@pytest.mark.parametrize("what", ["none", "bare", "submodule", "folder", "old", "absent"])
async def test_run_is_refused_where_worktrees_cannot_be_made(
    hf: Holdfast, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    expected = "is not in the working tree of a git repository"
    if what == "none":
        repo.mkdir()
    elif what == "bare":
        repo.mkdir()
        git(repo, "init", "--quiet", "--bare")
    elif what == "folder":
        expected = "does not exist"
    else:
        made(repo)
    if what == "submodule":
        inner = git(repo, "rev-parse", "HEAD")
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{inner},vendor")
        expected = r"has submodules \(vendor\)"
    if what in ("old", "absent"):
        bin_ = tmp_path / "bin"
        bin_.mkdir()
        (bin_ / "sh").symlink_to("/bin/sh")
        expected = "git is not installed here"
        if what == "old":
            (bin_ / "git").write_text("#!/bin/sh\necho git version 2.37.9\n")
            (bin_ / "git").chmod(0o755)
            expected = "git 2.37 is too old; worktrees need 2.38 or newer"
        monkeypatch.setenv("PATH", str(bin_))
    with pytest.raises(InputError, match=expected):
        await ran(hf, tmp_path / "logs", pipeline(repo, "true", "true"))
    assert await nothing_created(hf)
    assert not (tmp_path / "logs").exists()


async def test_faults_of_the_document_and_of_the_machine_are_shown_together(
    hf: Holdfast, tmp_path: Path
) -> None:
    source = pipeline(tmp_path / "repo", "true", "true").replace(
        "workspace=worktree", "workspace=worktree, merge=sideways"
    )
    with pytest.raises(PipelineInvalidError) as refused:
        await ran(hf, tmp_path / "logs", source)
    assert "sideways" in refused.value.message
    assert f"the folder {tmp_path / 'repo'} does not exist" in refused.value.message
    assert await nothing_created(hf)


async def test_run_needs_git_and_workers_with_it_announce_it(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.attractor.program import PipelineDialect

    repo = made(tmp_path / "repo")
    runner = Runner(hf)
    ready = runner.prepare(pipeline(repo, "true", "true"))
    assert "program:git" in (PipelineDialect().needs(ready.program.graph.spec))
    assert "program:git" in PipelineDialect().offers()
    plain = runner.prepare(pipeline(repo, "true", "true").replace("workspace=worktree", "workspace=shared"))
    assert "program:git" not in PipelineDialect().needs(plain.program.graph.spec)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "program:git" not in PipelineDialect().offers()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("merge=some, on_conflict=never", ("merge is some", "on_conflict is never")),
        ("workspace=cloud", ("workspace is cloud",)),
    ],
)
def test_command_line_names_every_wrong_word_and_creates_nothing(
    cli: Cli, tmp_path: Path, change: str, said: tuple[str, ...]
) -> None:
    made(tmp_path / "repo")
    text = pipeline(tmp_path / "repo", "true", "true", fan=f", {change}")
    (tmp_path / "x.dot").write_text(text)
    found = cli("run", str(tmp_path / "x.dot"), "--simulate")
    assert found.code == 2
    assert all(each in found.err for each in said), found.err
    assert "Traceback" not in found.err
    assert refs(tmp_path / "repo") == {}


def test_command_line_refuses_a_folder_without_a_repository(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "x.dot").write_text(pipeline(tmp_path / "plain", "true", "true"))
    found = cli("run", str(tmp_path / "x.dot"), "--simulate")
    assert found.code == 2
    assert "is not in the working tree of a git repository" in found.err
    assert not (tmp_path / ".holdfast/logs").exists()
    assert cli("runs", "--json").json["items"] == [] if Path(".holdfast").exists() else True


async def test_stage_before_a_fan_out_cannot_choose_its_base(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    old = git(repo, "rev-parse", "HEAD")
    (repo / "base.txt").write_text("two\n")
    script = tmp_path / "said.json"
    script.write_text(json.dumps({"outcome": "success", "context_updates": {"workspace.commit": old}}))
    text = pipeline(repo, "cat base.txt > a", "true", after="cat a", more=(
        f'first [{TOOL}="cp {script} $ATTRACTOR_STAGE_DIR/status.json"];'
    ))  # fmt: skip
    found = await ran(hf, tmp_path / "logs", text.replace("start -> fan", "start -> first -> fan"))
    assert found.succeeded, found.outcome
    assert found.context["tool.output"] == "two\n"


async def test_a_repository_inside_a_worktree_is_no_silent_loss(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    commit = "git -c user.name=A -c user.email=a@b commit -qm x"
    nested = f"git init -q in && cd in && echo x > x && git add x && {commit}"
    found = await ran(hf, tmp_path / "logs", pipeline(repo, nested, "echo b > b.made"))
    known = refs(repo, found.run_id)
    assert set(files(repo, known["result"])) == {"base.txt", "b.made"}
    first = found.context["parallel.results"][0]
    assert first["outcome"] == "fail"
    assert "a git repository inside its worktree (in)" in str(first)


@pytest.mark.parametrize("commits", [True, False])
async def test_repositories_in_the_folder_of_the_user_are_left_out(
    hf: Holdfast, tmp_path: Path, commits: bool
) -> None:
    repo = made(tmp_path / "repo")
    inner = made(repo / "in ner")
    if not commits:
        git(inner, "update-ref", "-d", "HEAD")
    before = state(repo)
    found = await ran(hf, tmp_path / "logs", pipeline(repo, "echo a > a.made", "true"))
    assert found.succeeded, found.outcome
    assert state(repo) == before
    assert set(files(repo, refs(repo, found.run_id)["result"])) == {"base.txt", "a.made"}


@pytest.mark.covers("CP2-G1")
def test_worktrees_are_added_and_removed_one_after_the_other_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git fails at a worktree of another process that is just being added: "failed to read commondir"."""
    repository = Repository.at(made(tmp_path / "repo"))
    real, removed, locked, failures = Repository.git, shutil.rmtree, [], [GitCommandError("commondir")] * 4

    def look() -> None:
        with (repository.common / LOCK).open("ab") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked.append(True)

    def call(self: Repository, *words: str, **more: Any) -> str:
        if "worktree" in words and "add" in words:
            look()
            if failures:
                raise failures.pop()
        return real(self, *words, **more)

    def remove(path: Path, **more: Any) -> None:
        if path.parent.name == "worktrees" and path.parent.parent == repository.common:
            look()
        removed(path, **more)

    monkeypatch.setattr(Repository, "git", call)
    monkeypatch.setattr(shutil, "rmtree", remove)
    path = tmp_path / "logs" / "w"
    add_folder(repository, path, "HEAD")
    assert (path / ".git").is_file()
    remove_worktree(path)
    assert (path.exists(), len(locked)) == (False, 6)
    failures += [GitCommandError("always")] * 5
    with pytest.raises(GitCommandError, match="always"):
        add_folder(repository, path, "HEAD")


async def test_a_stage_that_an_older_version_began_in_the_users_folder_runs_once(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had no worktree after branches that were not merged."""
    repo, go = made(tmp_path / "repo"), tmp_path / "go"
    command = f"echo x >> fixed; while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done"
    stages = (
        f"fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; a [{TOOL}=false];"
        f' b [{TOOL}=false]; fix [{TOOL}="{command}"]; then [{TOOL}="cat fixed"]'
    )
    ways = "start -> fan; fan -> a -> join; fan -> b -> join; join -> then; fix -> then; then -> done;"
    source = dot(stages, f'{ways} join -> fix [condition="outcome=fail"]', f'workdir="{repo}"')
    runner, run_id = Runner(hf, logs_root=tmp_path / "logs"), str(new_run_id())
    with monkeypatch.context() as patched:
        patched.setattr(branch_worktree, "_unmerged_scope", lambda visit: None)
        work = asyncio.ensure_future(runner.run(source, run_id=run_id))
        await until(lambda: (repo / "fixed").exists() or work.done())
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    go.touch()
    found = await runner.resume(run_id)
    assert found.succeeded, found.outcome
    assert (repo / "fixed").read_text() == "x\n"
    # The stages after it have a worktree, as those of a run that begins now.
    assert found.context["tool.output"] == "x\n"
    assert files(repo, refs(repo)["result"])["fixed"] == "x"


@pytest.mark.covers("CP2-G2")
@pytest.mark.parametrize(
    ("a", "fan"),
    [
        ("echo a > base.txt", ", on_conflict=fail"),
        ("false", ", on_conflict=fail"),
        ("false", ", error_policy=fail_fast, retry_target=fix"),
    ],
)
async def test_stages_after_branches_that_were_not_merged_leave_the_users_folder_alone(
    hf: Holdfast, tmp_path: Path, a: str, fan: str
) -> None:
    repo = made(tmp_path / "repo")
    (repo / "new.txt").write_text("untracked\n")
    before = state(repo)
    b = "echo b > base.txt" if a != "false" else "false"
    stages = (
        f'fan [shape=component, workspace=worktree{fan}]; join [shape=tripleoctagon]; a [{TOOL}="{a}"];'
        f'b [{TOOL}="{b}"]; fix [{TOOL}="pwd; echo f > fixed; echo f > base.txt"]; then [{TOOL}="ls"]'
    )
    ways = "start -> fan; fan -> a -> join; fan -> b -> join; join -> then; fix -> then; then -> done;"
    source = dot(stages, f'{ways} join -> fix [condition="outcome=fail"]', f'workdir="{repo}"')
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert state(repo) == before
    assert found.context["tool.output"].split() == ["base.txt", "fixed", "new.txt"]
    assert files(repo, refs(repo)["result"])["fixed"] == "f"


@pytest.mark.covers("CP2-G2")
async def test_directories_of_runs_are_no_work_of_the_user(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    await ran(hf, repo / "earlier", pipeline(repo, "echo a > a", "echo b > b"))
    flag = tmp_path / "flag"
    after = f"test -f {flag} || {{ touch {flag}; exit 1; }}"
    more = 'after -> fan [condition="outcome=fail", loop_restart=true]'
    source = pipeline(repo, "echo a > a", "echo b > b", after=after, more=f"{more};")
    found = await ran(hf, repo / "logs", source)
    assert found.succeeded, found.outcome
    assert set(files(repo, refs(repo, found.run_id)["restart-1/result"])) == {"a", "b", "base.txt"}
    (repo / "owner.json").write_text("{}")
    (repo / "note").write_text("n")
    found = await ran(hf, repo / "third", pipeline(repo, "echo a > a", "echo b > b"))
    assert set(files(repo, refs(repo, found.run_id)["result"])) == {
        "a",
        "b",
        "base.txt",
        "note",
        "owner.json",
    }


@pytest.mark.covers("CP2-G1")
async def test_branches_that_share_a_worktree_enter_it_at_the_same_time(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    names = [f"s{number}" for number in range(8)]
    branches = "".join(f'both -> {name} -> met; {name} [{TOOL}="touch {name}"];' for name in names)
    stages = (
        f'fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; a [{TOOL}="touch a"];'
        f'b [{TOOL}="touch b"]; both [shape=component, workspace=shared, max_parallel=8]; met [{TOOL}=ls];'
    )
    ways = "start -> fan; fan -> a -> join; fan -> b -> join; join -> both; met -> done"
    source = dot(stages + branches, ways, f'workdir="{repo}"')
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert {*names, "a", "b"} <= set(files(repo, refs(repo)["result"])), found.context["parallel.results"]


@pytest.mark.covers("CP2-G4", "CP2-G5")
@pytest.mark.parametrize("how", ["merge=best", "on_conflict=best"])
async def test_best_of_branches_that_begin_with_one_stage(hf: Holdfast, tmp_path: Path, how: str) -> None:
    repo, told = made(tmp_path / "repo"), tmp_path / "told"
    told.mkdir()
    for number in range(3):
        (told / str(number)).write_text(json.dumps({"outcome": "success", "score": [3, 9, 5][number]}))
    number = "number=$(pwd | sed 's/.*\\\\[//; s/].*//')"
    work = f"{number}; echo $number > base.txt; cp {told}/$number $ATTRACTOR_STAGE_DIR/status.json"
    stages = (
        f'fan [shape=component, workspace=worktree, {how}]; join [shape=tripleoctagon]; x [{TOOL}="{work}"];'
        f'then [{TOOL}="cat base.txt"];'
    )
    ways = (
        "start -> fan; fan -> x [label=1]; fan -> x [label=2]; fan -> x [label=3]; x -> join -> then -> done"
    )
    found = await ran(hf, tmp_path / "logs", dot(stages, ways, f'workdir="{repo}"'))
    assert found.succeeded, found.outcome
    assert found.context["tool.output"] == "1\n"
    assert found.context["parallel.fan_in.merged"] == ["x"]


@pytest.mark.covers("CP2-G1")
@pytest.mark.parametrize("workdir", ["repo", "", "../home/repo"])
def test_folders_are_those_of_where_the_run_was_started(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workdir: str
) -> None:
    """A worker that was started elsewhere, beside another repository of that name, changes nothing there."""
    home, away = tmp_path / "home", tmp_path / "away"
    for folder in (home, away):
        repo = made(folder / "repo")
        (repo / "sub").mkdir()
        (repo / "sub/f").write_text("f")
    own = ", cwd=sub" if not workdir else ""
    source = pipeline(Path(workdir), "touch a; test -f sub/f", "touch b; pwd", after="ls; pwd")
    (tmp_path / "x.dot").write_text(source.replace("after [", f"after [env.X=1{own},"))
    monkeypatch.chdir(home if workdir else home / "repo")
    store = f"sqlite:{tmp_path}/x.db"
    started = cli("run", str(tmp_path / "x.dot"), "--detach", "--json", "--store", store)
    assert started.code == 0, started.err
    monkeypatch.chdir(away if workdir else away / "repo")
    assert cli("worker", "--until-idle", "--store", store).code == 0
    shown = cli("runs", "--json", "--store", store)
    assert [run["status"] for run in shown.items] == ["completed"], shown.out
    assert refs(away / "repo") == {}
    assert {"a", "b"} <= set(files(home / "repo", refs(home / "repo")["result"]))


@pytest.mark.covers("CP2-G1")
@pytest.mark.parametrize(
    ("more", "folder"), [("", "sub"), (', stack.child_workdir="sub"', ""), ("", "REPO/sub")]
)
async def test_child_of_a_manager_in_a_branch_works_in_its_worktree(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, folder: str
) -> None:
    """Also if its pipeline names the folder of the user by an absolute path."""
    repo = made(tmp_path / "repo")
    (repo / "sub").mkdir()
    (repo / "sub/f").write_text("f")
    child = tmp_path / "child.dot"
    folder = folder.replace("REPO", str(repo))
    child.write_text(
        f'digraph c {{ graph [workdir="{folder}"]; start; exit; w [{TOOL}="echo w > w"];'
        f' x [{TOOL}="echo x > x", cwd="."]; y [{TOOL}="echo y > y", cwd="{repo}/sub"];'
        " start -> w -> x -> y -> exit }"
    )
    manager = (
        f'b [shape=house, stack.child_dotfile="{child}", manager.poll_interval=10ms{more}, tool_command="'
    )
    source = pipeline(repo, "echo a > a", "true").replace(f'b [{TOOL}="', manager)
    monkeypatch.chdir(repo)
    before = state(repo)
    found = await ran(hf, tmp_path / "logs", source)
    assert found.succeeded, found.outcome
    assert state(repo) == before
    where = "sub/" if more else ""
    assert {"a", "sub/w", f"{where}x", "sub/y"} <= set(files(repo, refs(repo, found.run_id)["result"]))
