"""Logs know their place: run, flow, node, visit, attempt, seq."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.telemetry import configure_logging
from tests.integrations.otel.test_metrics import EXAMPLES, _holdfast

pytestmark = pytest.mark.anyio

talking = Flow("talking", effect="read")
library = logging.getLogger("some.library")


@talking.node
async def speak(s: dict, ctx: Context) -> None:
    ctx.log.info("from the context", extra={"order": 17})
    library.warning("from %s", "a library")


@talking.node
def shout(s: dict) -> None:
    library.warning("from a thread")
    try:
        raise ValueError("no voice")
    except ValueError:
        library.exception("it failed")


talking.chain(speak, shout)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, in the form that the test configures; afterwards all is as before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


async def _spoken() -> str:
    async with Holdfast("memory:") as hf:
        return (await talking.run({}, on=hf)).run_id


@pytest.mark.covers("TOOL-OTEL-05")
async def test_json_lines_carry_run_node_and_seq_when_a_handler_or_its_library_logs(lines):
    configure_logging("json", "INFO", lines)
    run = await _spoken()
    result = [json.loads(line) for line in lines.getvalue().splitlines()]
    mine, theirs, thread, failed = [t for t in result if t["logger"] != "holdfast"]
    where = {"run": run, "flow": "talking", "node": "speak", "visit": 1, "attempt": 1, "seq": 0}
    assert where.items() <= mine.items()
    assert mine["order"] == 17
    assert where.items() <= theirs.items()
    assert theirs["message"] == "from a library"
    # The line that `ctx.log` stored is a record too.
    assert (thread["node"], thread["seq"]) == ("shout", 2)
    assert "ValueError: no voice" in failed["exception"]
    begun, ended = [t for t in result if t["logger"] == "holdfast"]
    assert (begun["run"], begun["seq"]) == (run, 0)
    assert ended["message"] == "run released (status completed)"
    assert ended["seq"] == 4


@pytest.mark.covers("TOOL-OTEL-05")
async def test_each_record_is_a_line_when_the_level_is_debug(lines):
    configure_logging("json", "DEBUG", lines)
    run = await _spoken()
    result = [json.loads(line) for line in lines.getvalue().splitlines()]
    steps = [t for t in result if t["message"] == "step recorded"]
    assert [(t["run"], t["node"], t["seq"]) for t in steps] == [(run, "speak", 2), (run, "shout", 3)]


async def test_text_lines_name_the_place_behind_the_message(lines):
    configure_logging("text", "WARNING", lines)
    run = await _spoken()
    first = lines.getvalue().splitlines()[0]
    assert f"WARNING from a library run={run} flow=talking node=speak visit=1 attempt=1 seq=0" in first


async def test_logging_is_configured_once_when_it_is_configured_twice(lines):
    configure_logging("text", "WARNING", lines)
    configure_logging("json", "WARNING", lines)
    library.warning("hello")
    assert len(lines.getvalue().splitlines()) == 1
    with pytest.raises(ValueError, match="text, json"):
        configure_logging("xml")


async def test_logging_is_as_before_when_its_block_has_ended(lines):
    root = logging.getLogger()
    before = list(root.handlers), root.level
    with configure_logging("json", "DEBUG", lines):
        assert root.level == logging.DEBUG
    assert (list(root.handlers), root.level) == before


@pytest.mark.covers("TOOL-OTEL-05")
def test_command_line_logs_json_when_the_environment_says_so(tmp_path):
    said = _holdfast("run", str(EXAMPLES / "draft.py"), "--json", cwd=tmp_path, HOLDFAST_LOG="json")
    run = json.loads(said.stdout)["id"]
    result = [json.loads(line) for line in said.stderr.splitlines()]
    assert {t["run"] for t in result} == {run}
    assert _holdfast("runs", cwd=tmp_path, HOLDFAST_LOG="xml").returncode == 2
