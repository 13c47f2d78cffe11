"""Whatever a person types wrong: an exit code, a sentence that says what to do, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Said, given


def complains(said: Said, code: int, *parts: str) -> None:
    assert said.code == code
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err
    assert len(said.err) < 900


def test_unknown_file_module_and_flow_are_named(cli: Cli, refund: str) -> None:
    complains(cli("run", "nowhere.py"), 2, "there is no file nowhere.py", "path/to/file.py[:name]")
    complains(cli("run", "no.such.module"), 2, "there is no module no.such.module")
    complains(cli("run", "nosuchflow"), 2, "No document of that name is deployed", "holdfast flows list")
    complains(cli("run", f"{refund}:invoice"), 2, "defines no flow 'invoice'", "refund")


def test_file_with_an_error_is_reported_with_its_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken_flow.py").write_text("import os\n\nundefined_name\n")
    (tmp_path / "no_flow.py").write_text("x = 1\n")
    (tmp_path / "two_flows.py").write_text("from holdfast import Flow\na = Flow('a')\nb = Flow('b')\n")

    complains(cli("run", "broken_flow.py"), 2, "NameError", "line 3")
    complains(cli("run", "./no_flow.py"), 2, "defines no flow")
    (tmp_path / "trip.yaml").write_text("holdfast: '1.0'\n")
    (tmp_path / "build.dot").write_text("digraph build {}\n")
    for command in ("serve", "worker"):
        complains(cli(command, "no_flow.py"), 2, "defines no flow", "--functions")
        complains(cli(command, "trip.yaml"), 2, "trip.yaml is not a Python file", "holdfast deploy trip.yaml")
        complains(cli(command, "./build.dot"), 2, "a pipeline: run it (`holdfast run ./build.dot`)")
    complains(cli("run", "two_flows.py"), 2, "several flows: a, b", "two_flows.py:a")


def test_flow_with_mistakes_lists_them_all(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong_flow.py").write_text(
        "from holdfast import Flow\nf = Flow('wrong')\nf.node(id='a', effect='magic')(lambda s: None)\n"
        "f.edge('a', 'nowhere')\n"
    )

    complains(cli("run", "wrong_flow.py"), 2, "magic", "nowhere")


@pytest.mark.parametrize(
    ("given_input", "part"),
    [("{", "not JSON"), ("@missing.json", "cannot be read"), ('{"order": "A"}', "amount"), ("[1]", "input")],
)
def test_input_that_does_not_fit_is_explained(cli: Cli, refund: str, given_input: str, part: str) -> None:
    complains(cli("run", refund, "--input", given_input), 2, part)
    assert cli("runs").code in (0, 4)


def test_store_that_is_not_there_is_not_made_by_looking(cli: Cli, tmp_path: Path) -> None:
    complains(cli("runs"), 4, "there is no store", "--store")
    complains(cli("show", "abcd", "--store", "sqlite:other.db"), 4, "other.db")
    assert list(tmp_path.iterdir()) == []


def test_address_that_means_nothing_shows_the_forms(cli: Cli, refund: str) -> None:
    complains(cli("run", refund, "--input", given(1), "--store", "redis://x"), 2, "sqlite:PATH")


def test_file_that_is_no_database_is_left_alone(cli: Cli, refund: str, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("dear diary, " * 100)

    complains(cli("run", refund, "--input", given(1), "--store", "notes.db"), 4, "notes.db")
    assert (tmp_path / "notes.db").read_text() == "dear diary, " * 100


def test_wrong_answers_leave_the_hold_open(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]

    complains(cli("answer", run, "perhaps"), 2, "approve, reject")
    complains(cli("answer", "ffffffff", "approve"), 2, "neither a hold nor a run")
    complains(cli("answer", run, "approve", "--data", "{"), 2, "--data is not JSON", "in quotes")
    assert cli("answer", run, "approve").code == 0
    complains(cli("answer", run, "reject"), 2, "no open hold")


def test_second_answer_names_the_winner(cli: Cli, refund: str) -> None:
    hold = cli("run", refund, "--input", given(250), "--json").json["holds"][0]["id"]
    cli("answer", hold, "approve", "--by", "user:ada")

    complains(cli("answer", hold, "reject"), 2, "already decided", "user:ada")


def test_resume_refuses_the_unknown_and_the_foreign(cli: Cli, refund: str, tmp_path: Path) -> None:
    waiting = cli("run", refund, "--input", given(250), "--json").json["id"]
    (tmp_path / "other_flow.py").write_text(
        "from holdfast import Flow\nf = Flow('other', effect='pure')\nf.node(id='a')(lambda s: None)\n"
    )
    (tmp_path / "newer_flow.py").write_text(
        "from holdfast import Flow\nf = Flow('refund', effect='pure')\nf.node(id='a')(lambda s: None)\n"
    )

    complains(cli("resume", "00000000"), 2, "there is no run")
    complains(cli("resume", waiting, "other_flow.py"), 2, "no flow 'refund' is loaded")
    complains(cli("resume", waiting, "newer_flow.py"), 2, "version")
    assert cli("runs", "--status", "pending_input", "--json").items[0]["id"] == waiting


def test_unknown_options_commands_and_statuses_point_to_help(cli: Cli, refund: str) -> None:
    complains(cli("run", refund, "--colour"), 2, "--colour")
    complains(cli("fly"), 2, "fly")
    cli("run", refund, "--input", given(1))
    complains(cli("runs", "--status", "asleep"), 2, "'asleep' is not a status", "pending_input")
    complains(cli("show", cli("runs", "--json").items[0]["id"], "--checkpoint", "99"), 2, "no record 99")
    complains(cli("cancel", cli("runs", "--json").items[0]["id"]), 2, "has ended")


def test_bug_is_reported_in_a_sentence_and_whole_when_debugging(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("holdfast.cli.commands.run.open_store_for_command", broken)
    complains(
        cli("run", refund, "--input", given(1)), 5, "ZeroDivisionError: a bug of ours", "HOLDFAST_DEBUG"
    )
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli("run", refund, "--input", given(1))
