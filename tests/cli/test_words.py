"""What is said can be typed again, read to its end, and is true."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given
from tests.deadlines import HANG

AWKWARD = """
from dataclasses import dataclass
from holdfast import Flow

@dataclass
class Letter:
    text: str = ""
    decision: str = ""
    last: str = "the last field"

letter = Flow("letter", state=Letter)
letter.start(letter.hold("send", prompt="Send it?", options=["send it", "don't", "--no"]))
"""


@pytest.fixture
def letter(tmp_path: Path) -> str:
    file = tmp_path / "letter.py"
    file.write_text(AWKWARD)
    return str(file)


@pytest.mark.covers("TOOL-CLI-01")
@pytest.mark.parametrize("decision", ["send it", "don't", "--no"])
def test_every_suggested_answer_works_as_it_is_shown(cli: Cli, letter: str, decision: str) -> None:
    store = "sqlite:a place.db"
    said = cli("run", letter, "--store", store)
    commands = [shlex.split(line)[1:] for line in said.out.splitlines() if line.startswith("  holdfast")]
    (wanted,) = [words for words in commands if decision in words]

    answered = cli(*wanted)
    assert (answered.code, answered.err.count("Error")) == (0, 0)
    assert (
        cli("show", wanted[1], "--store", store, "--json").json["holds"][0]["resolution"]["decision"]
        == decision
    )


@pytest.mark.covers("TOOL-CLI-01")
def test_who_answers_second_is_reported_who_was_first(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    cli("answer", run, "approve", "--by", "user:ada", "--resume")

    second = cli("answer", run, "reject")
    assert second.code == 2
    assert "user:ada" in second.err


@pytest.mark.covers("TOOL-CLI-01")
def test_a_long_text_hides_no_field_after_it(cli: Cli, letter: str) -> None:
    said = cli("run", letter, "--input", '{"text": "' + "λ" * 9_000 + '"}')
    state = next(line for line in said.out.splitlines() if line.startswith("state"))
    assert "the last field" in state
    assert len(state) < 1_000
    assert "--json shows all" in state


@pytest.mark.covers("TOOL-CLI-01")
@pytest.mark.parametrize("words", [[], ["flows"], ["keys"]])
def test_a_command_without_its_arguments_shows_its_help_and_nothing_else(cli: Cli, words: list[str]) -> None:
    said = cli(*words)
    assert said.code == 2
    assert said.err.startswith("Usage: holdfast")
    assert "See --help" not in said.err


@pytest.mark.covers("TOOL-CLI-18")
def test_importing_what_is_here_says_that_it_was(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]
    file = str(tmp_path / "run.hfrun")
    cli("export", run, "--out", file)

    again = cli("import", file)
    assert again.code == 0
    assert "is already in this store" in again.out
    assert "new run" not in again.out
    assert cli("import", file, "--json").json["known"] is True
    assert cli("import", file, "--store", "sqlite:elsewhere.db", "--json").json["known"] is False


MANY = """
from dataclasses import dataclass, field
from holdfast import Flow

@dataclass
class Names:
    names: list[int] = field(default_factory=lambda: list(range(101)))
    out: list[str] = field(default_factory=list)

many = Flow("many", state=Names, version="1")

async def ask(name, ctx):
    return (await ctx.ask(f"Item {name}?", options=["yes", "no"])).decision

many.start(many.map("each", over="names", body=ask, into="out", effect="read"))
"""


@pytest.fixture
def many(tmp_path: Path) -> str:
    file = tmp_path / "many.py"
    file.write_text(MANY)
    return str(file)


@pytest.mark.covers("TOOL-CLI-06")
def test_no_open_question_is_left_out_when_a_map_asks_many(cli: Cli, many: str) -> None:
    said = cli("run", many, "--json").json
    assert len(said["holds"]) == 101

    result = cli("resume", said["id"])
    assert "91 more holds are open" in result.err
    refused = cli("answer", said["id"], "yes")
    assert refused.code == 2
    assert "has 101 open holds" in refused.err
    assert len(refused.err) < 1_500


@pytest.mark.covers("TOOL-CLI-12")
def test_the_beginning_of_a_holds_id_names_it_when_it_is_open(cli: Cli, many: str) -> None:
    holds = cli("run", many, "--input", '{"names": [1, 2]}', "--json").json["holds"]
    assert cli("answer", holds[1]["id"][:8], "no", "--json").json["id"] == holds[1]["id"]
    assert cli("answer", holds[0]["id"][:2], "no").code == 2


@pytest.mark.covers("TOOL-CLI-09")
def test_a_moved_run_is_forked_from_before_it_was_moved(cli: Cli, many: str, tmp_path: Path) -> None:
    run = cli("run", many, "--input", '{"names": [1]}', "--json").json["id"]
    moved = tmp_path / "moved.py"
    text = MANY.replace('version="1"', 'version="2"').replace('"each"', '"every"')
    moved.write_text(text + 'many.migrate("1", rename={"each": "every"})\n')
    assert cli("flows", "migrate", str(moved)).code == 0

    made = cli("fork", f"{run}@0", "--json")
    assert made.code == 0, made.err
    old, new = cli("show", run, "--json").json, cli("show", made.json["id"], "--json").json
    assert old["run"]["version"] != new["run"]["version"]
    assert cli("resume", made.json["id"]).code == 3


@pytest.mark.covers("TOOL-CLI-11")
def test_replay_of_a_run_whose_past_is_pruned_claims_nothing(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]
    cli("prune", run, "--keep", "1", "--yes")
    said = cli("replay", run)
    assert said.code == 0
    assert "no decision to replay" in said.out


SPOOF = r"""
from holdfast import Flow

spoof = Flow("spoof", effect="read")

@spoof.node
async def look(s, ctx):
    ctx.emit("so far \x1b[2Jgood\x07")

asks = spoof.hold("asks", prompt="Pay {{sum}}?", options=["yes"])

@spoof.node
async def fails():
    raise RuntimeError("\x1b]0;title\x07 \x9b31m")

spoof.chain(look, asks, fails)
"""
LOUD = '{"sum": "1\\u001b[1A\\u001b[2K \\u202e000"}'


@pytest.mark.covers("TOOL-CLI-06")
def test_no_text_of_a_run_reaches_the_terminals_controls(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "spoof.py"
    file.write_text(SPOOF)
    said = [cli("run", str(file), "--input", LOUD, "--watch")]
    run = next(line.split()[1] for line in said[0].out.splitlines() if line.startswith("run "))
    said += [cli("show", run), cli("runs"), cli("answer", run, "yes", "--resume")]
    said += [cli("show", run), cli("runs"), cli("postmortem", run), cli("diff", f"{run}@0", run)]

    assert "Pay 1␛[1A␛[2K \\u202e000?" in said[0].out
    assert "RuntimeError: ␛]0;title␇ \\x9b31m" in said[3].out
    for each in said:
        assert not set("\x1b\x07\x9b\u202e") & set(each.out + each.err)


@pytest.mark.covers("TOOL-CLI-18")
def test_a_file_of_another_kind_is_named_and_what_would_fit(cli: Cli, refund: str) -> None:
    said = cli("import", refund)
    assert said.code == 2
    assert f"{refund}: this is not an exported run" in said.err
    assert "holdfast export RUN" in said.err


def test_right_that_does_not_exist_is_named(cli: Cli) -> None:
    said = cli("tokens", "create", "user:dana@acme", "--right", "runs:start")
    assert said.code == 2
    assert "there is no right 'runs:start'." in said.err
    assert "is not a valid" not in said.err


def test_output_that_is_not_read_to_its_end_is_no_call_of_the_code(tmp_path: Path) -> None:
    many = "\n".join(f"  - {{id: n{each}, type: wait, config: {{duration: 1h}}}}" for each in range(300))
    for name, lines in (("a", many), ("b", "")):
        nodes = f"nodes:\n  - {{id: a, type: start}}\n  - {{id: z, type: end}}\n{lines}\n"
        (tmp_path / f"{name}.yaml").write_text(
            f'holdfast: "1.0"\nname: f\n{nodes}edges: [{{source: a, target: z}}]\n'
        )
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "diff", "a.yaml", "b.yaml"],
            cwd=tmp_path, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False,
        )  # fmt: skip
    finally:
        os.close(writes)
    # A terminal library may end the command at the first line that nobody reads.
    assert (done.returncode in (0, 1), done.stderr) == (True, "")


DOUBT = """
from holdfast import Flow

doubt = Flow("doubt")

@doubt.node(effect="external")
async def pay(s):
    raise ConnectionError("cut off")

doubt.start(pay)
"""


@pytest.mark.covers("TOOL-CLI-12")
def test_an_answer_of_another_form_is_reported_which_form_a_doubt_has(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "doubt.py"
    file.write_text(DOUBT)
    run = cli("run", str(file), "--json").json["id"]

    refused = cli("answer", run, "happened", "--data", '{"ticket": 1}')
    assert refused.code == 2
    problem, advice = refused.err.splitlines()[1:]
    assert problem.endswith("data.ticket: is not an allowed field")
    assert advice.startswith('Write {"update": {FIELD: VALUE}}')
    taken = cli("answer", run, "happened", "--data", '{"update": {"ticket": 1}}', "--resume", "--json")
    assert taken.json["state"]["ticket"] == 1


@pytest.mark.covers("TOOL-CLI-18")
def test_imported_history_says_in_words_of_the_command_line_how_to_go_on(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    cli("export", run, "--out", "r.hfrun")
    there = ("--store", "sqlite:there.db")
    cli("import", "r.hfrun", *there)
    said = cli("cancel", run, *there)
    assert said.code == 2
    assert "--as-new-run" in said.err


@pytest.mark.covers("TOOL-CLI-01")
def test_tables_show_the_labels_of_statuses_and_json_the_statuses(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    listed = cli("checkpoints", run)
    forked = cli("fork", run)
    assert "waiting for input" in listed.out
    assert "queued" in forked.out or "interrupted" in forked.out
    assert "pending" not in listed.out + forked.out
    assert "pending_input" in {each["status"] for each in cli("checkpoints", run, "--json").items}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["runs", "--limit", "abc"], "'abc' is not a whole number."),
        (["runs", "--limit", "-1"], "-1 is less than 1."),
        (["serve", "--port", "99999"], "99999 is not between 0 and 65535."),
        (["runs", "extra"], "unexpected argument: extra."),
        (["runs", "--limits", "3"], "no such option: --limits. Did you mean --limit?"),
        (["events", "send", "paid", "{"], "Write JSON in quotes, such as '{"),
        (["flows", "list", "--flow", "nope"], "No flow 'nope' in this store."),
        (["sign-out", "dana"], "'dana' is not a subject. Write user:NAME"),
        (["interface", "save", "{}"], "checkpoint '' is not stored."),
        (["skills", "publish", "absent.md"], "absent.md cannot be read: No such file or directory."),
        (["policy", "delete", "absent"], "`holdfast policy list` lists them."),
    ],
)
def test_a_mistake_is_explained_in_plain_words(cli: Cli, letter: str, words: list[str], said: str) -> None:
    cli("run", letter)
    assert said in cli(*words).err


def test_a_run_that_has_ended_is_named_so(cli: Cli, letter: str) -> None:
    run = cli("run", letter, "--json").json["id"]
    cli("cancel", run)
    assert f"run {run} has ended (cancelled)." in cli("steer", run, "Wait.").err


def test_a_range_that_is_not_of_records_shows_how_to_write_one(cli: Cli, letter: str) -> None:
    run = cli("run", letter, "--json").json["id"]
    said = cli("checkpoints", run, "--range", "a:b").err
    assert "is not the number of a record. Write 5:9, 5: or :9." in said


def test_times_in_json_are_iso_8601(cli: Cli, letter: str) -> None:
    run = cli("run", letter, "--json").json["id"]
    report, diff = cli("postmortem", run, "--json").json, cli("diff", f"{run}@0", run, "--json").json
    visit = report["chapters"][0]
    found = [cli("top", "--json").json["at"], report["created_at"], report["until"]]
    found += [visit["started_at"], visit["questions"][0]["asked_at"], diff["a"]["at"], diff["b"]["at"]]
    assert all(each.endswith("Z") for each in found)


def test_every_list_in_json_says_whether_more_follows(cli: Cli, letter: str) -> None:
    run = cli("run", letter, "--json").json["id"]
    assert cli("callbacks", "list", run, "--json").json == {"items": [], "next": None}


def test_an_answer_to_imported_history_advises_no_resume(cli: Cli, letter: str, tmp_path: Path) -> None:
    run = cli("run", letter, "--json").json["id"]
    cli("answer", run, "send it")
    cli("export", run, "--out", str(tmp_path / "run.hfrun"))
    cli("import", str(tmp_path / "run.hfrun"), "--store", "sqlite:other.db")

    late = cli("answer", run, "send it", "--store", "sqlite:other.db")
    assert late.code == 2
    assert f"run {run} (imported history) has no open hold." in late.err
    assert "Resume it" not in late.err


def test_a_wrong_setting_of_a_store_is_named(cli: Cli) -> None:
    said = cli("runs", "--store", "postgresql://127.0.0.1/x?pool=x").err
    assert "invalid setting for postgresql://127.0.0.1/x: pool: expected `int`, got `str`." in said


def test_a_directory_that_is_absent_is_named_with_its_setting(
    cli: Cli, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", letter)
    monkeypatch.setenv("HOLDFAST_DIRECTORY", "absent.toml")
    said = cli("holds", "list").err
    assert "the directory absent.toml cannot be read: No such file or directory. Check HOLDFAST" in said


def test_the_command_for_the_next_page_quotes_the_label_of_a_status(cli: Cli, letter: str) -> None:
    for _ in range(2):
        cli("run", letter)
    page = cli("runs", "--status", "waiting for input", "--limit", "1")
    (following,) = [line for line in page.err.splitlines() if line.startswith("More: ")]
    rest = cli(*shlex.split(following.removeprefix("More: holdfast ")))
    assert rest.code == 0
    assert rest.out != page.out
    assert "waiting for input" in rest.out
