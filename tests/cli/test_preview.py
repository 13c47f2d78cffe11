"""`holdfast preview`: what each answer to a hold would lead to, from the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given


@pytest.mark.covers("WEB-PREVIEW")
def test_preview_shows_each_option_and_decides_nothing(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(200), "--json").json["id"]
    hold = cli("holds", "list", "--json").items[0]["id"]
    before = cli("show", run, "--json").json

    said = cli("preview", hold)
    assert said.code == 0, said
    assert said.out.splitlines()[0] == "Refund 200?"
    assert "Runs pay (external, key A17). The preview ends here: its result is not known." in said.out
    assert "The run completes." in said.out
    found = cli("preview", run, "--json").json
    assert {each["option"]: [e["kind"] for e in each["entries"]] for each in found["options"]} == {
        "approve": ["effect"],
        "reject": ["end"],
    }
    assert cli("show", run, "--json").json == before

    only = cli("preview", hold[:8], "--decision", "reject", "--json").json
    assert [each["option"] for each in only["options"]] == ["reject"]
    wrong = cli("preview", hold, "--decision", "perhaps")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Choose one of: approve, reject." in wrong.err


def test_preview_without_the_code_says_what_it_cannot_know(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(200))
    hold = cli("holds", "list", "--json").items[0]["id"]
    # A move to another machine: the place of the code is not known there.
    next(Path(".holdfast").glob("*-flows.json")).unlink()
    assert "no code of this node is loaded here (pay)" in cli("preview", hold).out
    assert "Runs pay" in cli("preview", hold, refund).out


@pytest.mark.covers("WEB-PREVIEW")
def test_preview_takes_the_flow_of_the_run_from_a_file_with_several(cli: Cli, refund: str) -> None:
    file = Path(refund)
    file.write_text(file.read_text() + '\nother = Flow("other")\nother.node(id="x")(lambda _s: {})\n')
    cli("run", f"{refund}:refund", "--input", given(200))
    hold = cli("holds", "list", "--json").items[0]["id"]
    said = cli("preview", hold, refund)
    assert said.code == 0, said.err
    assert "Runs pay" in said.out
