"""A secret in the state is in the output of no command, and in no line of a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from holdfast.cli.app import app
from holdfast.types.redaction import redactor
from tests.cli.conftest import Cli

CANARY = "c4n4ry-token-8871"
FLOW = """
from dataclasses import dataclass, field
from typing import Annotated
from holdfast import Context, Flow, Secret, append

@dataclass(frozen=True)
class Card:
    number: Annotated[str, Secret]
    holder: str = ""

@dataclass
class Order:
    name: str
    token: Annotated[str, Secret]
    pin: Annotated[int, Secret] = 4711
    card: Card | None = None
    cards: Annotated[list[Card], append] = field(default_factory=list)
    decision: str = ""
    note: str = ""

order = Flow("order", state=Order, effect="read", types=[Card])

@order.node
async def charge(s, ctx):
    ctx.emit(f"charging {s.token}")
    ctx.log.warning("charging with %s", s.token)
    await ctx.memory.write(f"used {s.token}")
    ctx.artifact("slip", {"token": s.token})
    return {"note": f"charged {s.token}", "cards": [Card(s.token + "-more")]}

ask = order.hold("ask", prompt="Charge {{name}} with {{token}}, {{card}}?", options=["yes", "no"])

@order.node
async def settle(s, ctx):
    if s.decision == "no":
        raise ValueError(f"the bank refused {s.token}")
    return {"note": f"settled {s.token}"}

order.chain(charge, ask, settle)
"""
INPUT = f'{{"name": "Ada", "token": "{CANARY}", "card": {{"number": "{CANARY}-card"}}}}'
PIN = 4711


@pytest.fixture(autouse=True)
def fresh_veil() -> Iterator[None]:
    redactor.forget()
    yield
    redactor.forget()


def commands(run: str, other: str, flow: str) -> dict[str, list[tuple[str, ...]]]:
    """Every command that shows something, with everything that it can show."""
    return {
        "runs": [("runs",), ("runs", "--json")],
        "show": [
            ("show", run),
            ("show", run, "--all"),
            ("show", run, "--json"),
            ("show", run, "--checkpoint", "2"),
            ("show", run, "--checkpoint", "2", "--json"),
            ("show", run, "--json=interface"),
        ],
        "graph": [("graph", run), ("graph", run, "--json"), ("graph", run, "--svg", "-")],
        "checkpoints": [("checkpoints", run), ("checkpoints", run, "--json")],
        "diff": [("diff", run, other), ("diff", run, other, "--json"), ("diff", f"{run}@0", run)],
        "replay": [("replay", run), ("replay", run, "--json")],
        "postmortem": [
            ("postmortem", run),
            ("postmortem", run, "--json"),
            ("postmortem", run, "--out", "story.html"),
            ("postmortem", run, "--out", "story.md"),
        ],
        "fork": [("fork", f"{run}@2"), ("fork", f"{run}@2", "--resume", "--json")],
        "rewind": [("rewind", other, "--json")],
        "resume": [("resume", run), ("resume", run, "--json", "--watch")],
        "breakpoints": [("breakpoints",), ("breakpoints", "--json")],
        "doctor": [("doctor", "--deep"), ("doctor", "--json")],
        "flows": [("flows", "list"), ("flows", "check", flow, "--json")],
        "worker": [("worker", flow, "--until-idle")],
        "prune": [("prune", "--keep", "1", "--dry-run"), ("prune", "--keep", "2", "--json")],
        "cancel": [("cancel", run)],
        "export": [("export", run, "--out", "x.hfrun")],
        "import": [("import", "x.hfrun", "--dry-run"), ("import", "x.hfrun", "--store", "sqlite:y.db")],
    }


# They show no run, or are called below in a way of their own.
ELSEWHERE = {"new", "completion", "run", "answer", "torture", "keys"}
# Commands of others that may join: they are tried with a run.
PLAIN = [("--json",), ()]


@pytest.mark.covers("TOOL-KEEP-09")
def test_secret_is_in_the_output_of_no_command_and_in_no_log(
    cli: Cli, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flow = tmp_path / f"order_{tmp_path.name}.py"
    flow.write_text(FLOW)
    caplog.set_level(logging.DEBUG)
    said = [
        cli("run", str(flow), "--input", INPUT, "--watch"),
        cli("run", str(flow), "--input", INPUT, "--json"),
    ]
    runs = [row["id"] for row in cli("runs", "--json").items]
    for run, decision in zip(runs, ("no", "yes"), strict=True):
        redactor.forget()
        said.append(cli("show", run))
        said.append(cli("answer", run, decision, "--resume", *(["--json"] if decision == "no" else [])))
    known = commands(runs[0], runs[1], str(flow))
    present = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    for name in sorted(
        present - ELSEWHERE, key=list(known).index if present - ELSEWHERE <= set(known) else None
    ):
        for words in known.get(name, [(name, runs[0], *more) for more in PLAIN]):
            redactor.forget()
            said.append(cli(*words))
            assert CANARY not in said[-1].out + said[-1].err, words
            assert "unexpected error" not in said[-1].err, words
    everything = "".join(one.out + one.err for one in said)
    assert CANARY not in everything
    assert f'"pin": {PIN}' not in everything
    assert CANARY not in caplog.text
    written = [file for file in tmp_path.glob("story.*") if file.is_file()]
    assert all(CANARY not in file.read_text() for file in written)
    assert "charged ***" in everything
    assert "the bank refused ***" in everything
    assert "Charge Ada with ***" in everything
    assert CANARY.encode() in Path("x.hfrun").read_bytes(), "an export is whole"


@pytest.mark.covers("TOOL-KEEP-09")
def test_short_secret_of_a_flow_without_a_type_is_hidden_at_its_place(cli: Cli, tmp_path: Path) -> None:
    flow = tmp_path / f"open_{tmp_path.name}.py"
    flow.write_text(
        "from holdfast import Flow\nopen_ = Flow('open', effect='pure', secrets=['pin', 'people.*.code'])\n"
        "@open_.node\nasync def work(s):\n    return {'people': [{'code': 'x7', 'name': 'n'}]}\n"
    )
    hidden = {"pin": "***", "people": [{"code": "***", "name": "n"}]}
    said = cli("run", str(flow), "--input", '{"pin": 42}', "--json")
    assert said.json["state"] == hidden
    assert "42" not in cli("run", str(flow), "--input", '{"pin": 42}').out.partition("state")[2]
    assert cli("show", said.json["id"], "--json").json["state"] == hidden
