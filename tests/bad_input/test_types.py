"""What a person types: files that hold no flow, inputs that are none."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given

FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "does not parse": ("def broken(:\n", ("SyntaxError", "broken")),
    "does not import": ("import nothing_like_this\n", ("ModuleNotFoundError", "nothing_like_this", "line 1")),
    "raises": ("x = 1\ny = x / 0\n", ("ZeroDivisionError", "line 2")),
    "has no flow": ("x = 1\n", ("defines no flow", "Flow(")),
    "has several flows": (
        "from holdfast import Flow\none = Flow('one')\ntwo = Flow('two')\n",
        ("one", "two", ":"),
    ),
    "has a flow with slips": (
        "from holdfast import Flow\nf = Flow('f', effect='pure')\nf.hold('a', prompt='')\nf.edge('a', 'b')\n",
        ("'b'",),
    ),
    "leaves": ("import sys\nsys.exit('not here')\n", ("not here",)),
}


@pytest.mark.covers("CORE-BAD-03")
@pytest.mark.parametrize("what", list(FILES))
def test_command_line_explains_when_a_file_holds_no_flow_to_run(cli: Cli, tmp_path: Path, what: str) -> None:
    content, parts = FILES[what]
    name = f"file_{abs(hash((what, str(tmp_path))))}.py"
    (tmp_path / name).write_text(textwrap.dedent(content))
    for words in (("run", name), ("worker", name, "--until-idle")):
        if what == "has several flows" and words[0] == "worker":
            continue
        said = cli(*words)
        assert (said.code, "Traceback" in said.err) == (2, False), said
        for part in parts:
            assert part in said.err
    assert not (tmp_path / ".holdfast" / "holdfast.db").exists()


@pytest.mark.covers("CORE-BAD-03")
def test_command_line_names_the_flows_there_are_when_one_is_unknown(cli: Cli, refund: str) -> None:
    said = cli("run", f"{refund}:refnd")
    assert (said.code, "'refnd'" in said.err, "refund" in said.err) == (2, True, True)


INPUTS = [
    "{not json",
    "[1, 2]",
    '"text"',
    "@missing.json",
    '{"order": 5, "amount": "x"}',
    "{}",
    '{"order": "a", "amount": 1, "x": 2}',
]


@pytest.mark.parametrize("text", INPUTS)
def test_command_line_says_what_is_wrong_with_an_input(cli: Cli, refund: str, text: str) -> None:
    said = cli("run", refund, "--input", text)
    assert (said.code, "Traceback" in said.err, said.out) == (2, False, "")
    assert "--input" in said.err or "input" in said.err
    assert cli("run", refund, "--input", given(80)).code == 0
    assert len(cli("runs", "--json").items) == 1
