"""`holdfast torture`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.covers("TOOL-TORTURE-03", "TOOL-TORTURE-02")
def test_torture_catches_the_careless_example_and_shows_the_smallest_point(cli):
    said = cli("torture", f"{EXAMPLES / 'loyalty.py'}:careless", "--effects", "ledger.txt")
    assert said.code == 1
    assert "The first unsafe boundary is after_call:1, at credit" in said.out
    assert "outside: 'c-9 +4' twice instead of once" in said.out
    assert "credit is declared pure, and opens ledger.txt for writing" in said.err


@pytest.mark.covers("TOOL-TORTURE-03")
def test_torture_passes_the_careful_example(cli):
    said = cli("torture", f"{EXAMPLES / 'loyalty.py'}:careful", "--effects", "ledger.txt")
    assert said.code == 0, said.out
    assert "Flow 'careful' is safe" in said.out


@pytest.mark.covers("TOOL-TORTURE-05")
def test_torture_gives_json_and_answers_as_it_is_reported(cli):
    given = '{"order_id": "A17", "customer": "c-9", "amount": 250}'
    place = str(EXAMPLES / "refund.py")
    wanted = ["--input", given, "--decide", "approve=approve", "--points", "after_answer", "--json"]
    said = cli("torture", place, *wanted)
    assert said.code == 0, said.err
    assert said.json["safe"] is True
    assert said.json["status"] == "completed"
    assert [v["point"]["id"] for v in said.json["verdicts"]] == ["after_answer:1"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--decide", "approve"], "is not NODE=DECISION"),
        (["--points", "nowhere"], "unknown boundary"),
        (["--in-doubt", "maybe"], "is not one of truth"),
        (["--time", "soon"], "is not a duration"),
        (["--copy", "absent.json"], "the file or folder absent.json to copy does not exist"),
        (["--answers", "[1]"], "--answers is not an object"),
        (["--input", "{}"], "does not fit"),
    ],
)
def test_torture_says_what_is_wrong_when_it_is_asked_for_what_there_is_not(
    cli, words, text, tmp_path_factory, monkeypatch
):
    trials = tmp_path_factory.mktemp("trials")
    monkeypatch.setattr(tempfile, "tempdir", str(trials))
    said = cli("torture", str(EXAMPLES / "refund.py"), *words)
    assert said.code == 2
    assert text in said.err
    assert list(trials.iterdir()) == []


def test_torture_puts_files_into_each_working_folder_when_it_is_asked_to(cli, tmp_path):
    (tmp_path / "rate.txt").write_text("3")
    flow = tmp_path / f"rated_{abs(hash(str(tmp_path)))}.py"
    flow.write_text(
        "from pathlib import Path\nfrom holdfast import Flow\nrated = Flow('rated')\n"
        "@rated.node(effect='read')\nasync def look(s):\n    return {'rate': Path('rate.txt').read_text()}\n"
    )
    failed = cli("torture", str(flow), "--points", "after_claim")
    assert failed.code == 1
    assert "fails even without a crash: FileNotFoundError" in failed.out
    assert cli("torture", str(flow), "--points", "after_claim", "--may-fail").code == 0
    said = cli("torture", str(flow), "--copy", "rate.txt", "--points", "after_call", "--json")
    assert said.json["status"] == "completed"


def test_torture_finds_the_neighbours_of_a_module_when_a_handler_imports_them_late(cli, tmp_path):
    name = f"late_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}_helper.py").write_text("ANSWER = 42\n")
    (tmp_path / f"{name}.py").write_text(
        f"from holdfast import Flow\nlate = Flow('late')\n@late.node(effect='pure')\nasync def look(s):\n"
        f"    from {name}_helper import ANSWER\n    return {{'answer': ANSWER}}\n"
    )
    said = cli("torture", name, "--points", "after_call", "--json")
    assert said.json["status"] == "completed"
    assert said.json["safe"] is True
