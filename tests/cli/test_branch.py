"""`checkpoints`, `fork`, `rewind`, `replay`: any moment of a run, from the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import REFUND, Cli, Said, given


def complains(said: Said, *parts: str) -> None:
    assert said.code == 2, said
    assert "Traceback" not in said.err
    assert said.out == ""
    for part in parts:
        assert part in said.err


def started(cli: Cli, flow: str, amount: int) -> str:
    return cli("run", flow, "--input", given(amount), "--json").json["id"]


def everything(cli: Cli) -> list[Any]:
    """All that the store says about its runs."""
    return [cli("show", row["id"], "--json").json for row in cli("runs", "--json").items]


# ---------------------------------------------------------------------- checkpoints


@pytest.mark.covers("TOOL-CLI-07")
def test_checkpoints_are_listed_newest_first_by_node_and_by_range(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 80)
    Path(refund).unlink()

    found = cli("checkpoints", run[:8], "--json").items
    assert [meta["seq"] for meta in found] == [4, 3, 1, 0]
    assert [meta["node"] for meta in found] == ["", "pay", "assess", ""]
    assert [meta["seq"] for meta in cli("checkpoints", run, "--node", "pay", "--json").items] == [3]
    for text, seqs in (("1:3", [3, 1]), ("3:", [4, 3]), (":1", [1, 0]), ("2:2", [])):
        assert [meta["seq"] for meta in cli("checkpoints", run, "--range", text, "--json").items] == seqs
    assert [meta["seq"] for meta in cli("checkpoints", run, "--limit", "2", "--json").items] == [4, 3]
    lines = cli("checkpoints", run).out.splitlines()
    assert lines[0].split() == ["checkpoint", "record", "time", "node", "status", "bytes"]
    assert lines[1].split()[:2] == [found[0]["id"], "4"]
    assert cli("checkpoints", run, "--node", "nowhere").out == "No matching checkpoints.\n"


RANGES = {
    "5": "half of a range",
    "5:x": "'x' in the range '5:x' is not the number of a record",
    "-3:5": "'-3' in the range",
    ":": "neither end",
    "9:5": "ends before it begins. Write 5:9",
    "": "half of a range",
}


@pytest.mark.covers("TOOL-BAD-03", "TOOL-CLI-07")
def test_half_of_a_range_is_refused(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 80)
    for text, why in RANGES.items():
        complains(cli("checkpoints", run, "--range", text), why)


# ---------------------------------------------------------------------- fork and rewind


@pytest.mark.covers("TOOL-CLI-09")
def test_fork_goes_another_way_when_its_patch_says_so(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    before = cli("show", source, "--json").json

    made = cli("fork", f"{source[:8]}@0", "--patch", '{"amount": 80}', "--json").json
    assert made["source"] == source
    assert made["forked_from"] == cli("checkpoints", source, "--json").items[-1]["id"]
    assert made["superseded_by"] is None
    ended = cli("resume", made["id"], "--json").json
    assert (ended["status"], ended["state"]["receipt"]) == ("completed", "R-A17")
    assert cli("show", source, "--json").json == before

    patched = cli("fork", f"{source}@assess", "--patch", '{"state": {"order": "B2"}}', "--json").json
    assert cli("show", patched["id"], "--json").json["state"]["order"] == "B2"
    other = cli("fork", f"{source}@0", "--input", '{"amount": 7}', "--resume", "--json")
    assert (other.code, other.json["state"]["amount"]) == (0, 7)


@pytest.mark.covers("TOOL-CLI-09")
def test_fork_tells_where_it_came_from_and_what_to_type_next(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    said = cli("fork", source, "--set", "order=B9")
    lines = dict(line.split("  ", 1) for line in said.out.splitlines() if "  " in line)
    assert source in lines["forked from"]
    assert f"holdfast resume {lines['run'].strip()[:8]}" in said.err
    assert f"holdfast answer {lines['run'].strip()[:8]} approve" in said.out
    assert cli("show", lines["run"].strip(), "--json").json["state"]["order"] == "B9"


@pytest.mark.covers("TOOL-CLI-09")
def test_fork_of_a_run_that_is_over_says_that_nothing_is_left_to_do(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 80)
    assert "nothing is left to run" in cli("fork", run).err
    assert "nothing is left to run" not in cli("fork", f"{run}@assess").err


@pytest.mark.covers("TOOL-CLI-09")
def test_fork_needs_no_code_when_its_values_are_plain(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    code = Path(refund).read_text()
    Path(refund).unlink()

    complains(cli("fork", f"{source}@0", "--patch", '{"amount": "much"}'), "'amount' does not fit")
    complains(cli("fork", f"{source}@0", "--set", "amoutn=1"), "did you mean 'amount'")
    made = cli("fork", f"{source}@0", "--set", "amount=80", "--json").json["id"]
    Path(refund).write_text(code)
    assert cli("resume", made, "--json").json["state"]["receipt"] == "R-A17"


OWN_TYPE = """@dataclass(frozen=True)
class Money:
    cents: int

@dataclass
class Refund:
    paid: Money = Money(5)
"""
OWN = REFUND.replace("@dataclass\nclass Refund:\n", OWN_TYPE, 1)
OWN = OWN.replace("    order: str\n    amount: int\n", '    order: str = ""\n    amount: int = 0\n')


@pytest.mark.covers("TOOL-CLI-09", "TOOL-BAD-04")
def test_fork_without_code_is_refused_when_the_run_holds_types_of_its_flow(cli: Cli, refund: str) -> None:
    Path(refund).write_text(OWN)
    source = started(cli, refund, 250)
    Path(refund).unlink()
    before = everything(cli)
    complains(cli("fork", f"{source}@0"), "code is not loaded")
    assert everything(cli) == before


NESTED = """
from holdfast import Flow
nested = Flow("nested")

@nested.node(effect="pure")
async def a(s):
    return {}
"""


@pytest.mark.covers("TOOL-CLI-09")
def test_set_reaches_into_a_value_of_the_state(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "nested_flow.py").write_text(NESTED)
    given = json.dumps({"customer": {"name": "Ann", "tags": ["x", "y"]}, "n": 1})
    run = cli("run", "nested_flow.py", "--input", given, "--json").json["id"]
    made = cli("fork", f"{run}@0", "--set", "customer.tags.1=z", "--set", "customer.name=Zoe", "--set",
               "artifacts.note=hi", "--set", "n=[1]", "--json").json["id"]  # fmt: skip
    there = cli("show", made, "--json").json
    assert there["state"] == {"customer": {"name": "Zoe", "tags": ["x", "z"]}, "n": [1]}
    assert there["artifacts"] == {"note": "hi"}
    complains(cli("fork", run, "--set", "customer.tags.7=z"), "does not exist", "no '7' in a list")
    complains(cli("fork", run, "--set", "nobody.name=z"), "scratch has no 'nobody'")
    complains(cli("fork", run, "--set", "customer"), "is not PATH=VALUE")


@pytest.mark.covers("TOOL-CLI-10", "TOOL-TIME-04")
def test_rewind_takes_the_place_of_a_waiting_run(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    said = cli("rewind", f"{source[:8]}@0", "--set", "amount=80", "--json").json

    old = cli("show", source, "--json").json
    assert old["run"]["status"] == "cancelled"
    assert old["run"]["superseded_by"] == said["id"] == said["id"]
    assert [hold["status"] for hold in old["holds"]] == ["cancelled"]
    assert said["superseded_by"] == said["id"]
    assert cli("show", said["id"], "--json").json["run"]["forked_from"] == said["forked_from"]
    complains(cli("answer", source, "approve"), "has no open hold")
    assert cli("resume", said["id"], "--json").json["state"]["amount"] == 80


@pytest.mark.covers("TOOL-CLI-10", "TOOL-TIME-04")
def test_rewind_asks_anew_and_tells_both_ways(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    said = cli("rewind", f"{source}@assess")
    lines = dict(line.split("  ", 1) for line in said.out.splitlines() if "  " in line)
    assert lines["rewinds"].strip() == f"{source} after record 1"
    assert lines["superseded"].strip() == f"{source} is cancelled"
    new = lines["run"].strip()
    assert cli("resume", new, "--json").code == 3
    assert f"superseded by  {new}" in cli("show", source).out
    assert cli("answer", new, "approve", "--resume", "--json").json["status"] == "completed"


PATCHES = [
    (["--patch", '{"amount": "much"}'], "'amount' does not fit"),
    (["--patch", '{"amoutn": 1}'], "did you mean 'amount'"),
    (["--patch", '{"state": {"amount": 1}, "stat": {}}'], "not 'stat'"),
    (["--patch", '{"state": 5}'], "not a mapping"),
    (["--patch", "[1]"], "--patch is not an object"),
    (["--patch", "{"], "--patch is not JSON"),
    (["--patch", "@nowhere.json"], "nowhere.json cannot be read"),
    (["--input", '{"amount": null}'], "does not fit"),
    (["--set", "amount=many"], "'amount' does not fit"),
]


@pytest.mark.covers("TOOL-BAD-04", "TOOL-CLI-09", "TOOL-CLI-10")
@pytest.mark.parametrize("verb", ["fork", "rewind"])
def test_patch_that_does_not_fit_changes_nothing(cli: Cli, refund: str, verb: str) -> None:
    source = started(cli, refund, 250)
    before = everything(cli)
    for words, why in PATCHES:
        complains(cli(verb, f"{source}@0", *words), why)
    assert everything(cli) == before


@pytest.mark.covers("TOOL-CLI-09", "TOOL-CLI-10")
@pytest.mark.parametrize("verb", ["fork", "rewind"])
def test_unknown_moment_is_named(cli: Cli, refund: str, verb: str) -> None:
    run = started(cli, refund, 250)
    complains(cli(verb, "feedbeef"), "there is no run 'feedbeef'")
    complains(cli(verb, "6f1c54a0-9d1e-4b7a-8a53-0d8a6a1f2b3c"), "neither a run nor a checkpoint")
    complains(cli(verb, f"{run}@99"), "has no record 99")
    complains(cli(verb, f"{run}@pay"), "no checkpoint at node 'pay'", "approve, assess")
    complains(cli(verb, f"{run}@"), "RUN@12")


# ---------------------------------------------------------------------- replay


@pytest.mark.covers("TOOL-CLI-11", "TOOL-TIME-05")
def test_replay_proves_a_run_that_waited_and_was_answered(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 250)
    cli("answer", run, "approve", "--resume")
    Path(refund).unlink()

    said = cli("replay", run[:8])
    assert said.code == 0
    assert "decisions lead to the same result (digest" in said.out
    found = cli("replay", run, "--json").json
    assert found["same"]
    assert found["recorded"] == found["replayed"]
    assert found["recorded"] in said.out
    assert found["decisions"] == 4
    early = cli("replay", run, "--upto", "1", "--json").json
    assert (early["same"], early["upto"], early["replayed"]) == (True, 1, None)
    complains(cli("replay", run, "--upto", "99"), "has the records 0 to")


@pytest.mark.covers("TOOL-CLI-11", "TOOL-TIME-06")
def test_replay_against_another_version_names_where_it_decides_otherwise(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 250)
    cli("answer", run, "approve", "--resume")
    other = Path(refund).with_name("other_refund.py")
    other.write_text(Path(refund).read_text().replace("amount > 100", "amount > 1000"))

    said = cli("replay", run, "--against", str(other))
    assert said.code == 1
    assert "Record 1 (step) differs." in said.out
    then, now = (
        next(line for line in said.out.splitlines() if line.startswith(word)) for word in ("then", "now")
    )
    assert "took assess->approve" in then
    assert "started approve" in then
    assert "started pay" in now
    assert "skipped approve" in now
    found = cli("replay", run, "--against", str(other), "--json").json
    assert (found["same"], found["difference"]["seq"], found["difference"]["node"]) == (False, 1, "assess")
    same = cli("replay", run, "--against", refund)
    assert (same.code, "are the same on version" in same.out) == (0, True)
    stored = cli("show", run, "--json").json["run"]["version"]
    assert cli("replay", run, "--against", stored).code == 0
    complains(cli("replay", run, "--against", "nowhere.py"), "neither a flow nor a stored version")
