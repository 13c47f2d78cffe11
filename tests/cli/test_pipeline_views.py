"""What people read of a pipeline's run: loops with arrowheads, no internals, the output of commands."""

from __future__ import annotations

from pathlib import Path

from tests.attractor.run import dot
from tests.cli.conftest import Cli

LOOP = dot(
    't [shape=parallelogram, tool_command="echo one; echo two >> n; '
    'echo `printf %s three` >&2; test $(wc -l < n) -ge 2"]; a; d [shape=diamond];',
    'start -> a -> t -> d; d -> done [condition="outcome=success"]; d -> a [condition="outcome=fail"]',
)


def test_show_and_post_mortem_leave_out_internals_and_show_output_as_written(cli: Cli) -> None:
    Path("x.dot").write_text(LOOP)
    run = cli("run", "x.dot", "--simulate", "--json").json["id"]
    shown = cli("show", run).out
    assert "internal." not in shown
    assert '"graph.goal": "ship it"' in shown
    assert "├◀──" in shown
    assert "├◀──" in cli("graph", "x.dot").out
    assert "internal.backend" in cli("show", run, "--json").out
    report = cli("postmortem", run).out
    assert "internal." not in report
    assert "- step `run: exit code 1`" in report
    assert "```text\none\nthree\n```" in report
    assert cli("postmortem", run, "--out", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "run: exit code 1<pre>one\nthree</pre>" in page
    assert "internal." not in page


def test_state_of_other_flows_is_shown_whole(cli: Cli) -> None:
    Path("flow.py").write_text(
        "from holdfast import Flow\nflow = Flow('f', effect='pure')\n"
        "@flow.node\ndef a(s: dict) -> dict:\n    return {'internal.x': 1}\n"
    )
    run = cli("run", "flow.py", "--json").json["id"]
    assert "internal.x" in cli("show", run).out
