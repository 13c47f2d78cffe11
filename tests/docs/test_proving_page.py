"""What the pages about proving and watching name is there, and what is there they name."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from holdfast.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
SHARED = {"--help", "--json", "--input", "--decide", "--answers", "--in-doubt", "--effects"}


def test_page_about_proving_lists_every_option_of_the_command_and_no_other() -> None:
    page = (DOCS / "how-to" / "crash-tests.md").read_text()
    command = get_command(app).commands["torture"]  # type: ignore[attr-defined]
    options = {name for param in command.params for name in param.opts if name.startswith("--")}
    listed = set(re.findall(r"`(--[a-z-]+)", page))
    assert options - SHARED - listed == set()
    assert listed - options == set()


def test_page_about_telemetry_lists_every_metric_and_no_other() -> None:
    page = (DOCS / "reference" / "logs-and-telemetry.md").read_text().partition("### Metrics")[2]
    source = Path(DOCS.parent / "src/holdfast/integrations/otel/metrics.py").read_text()
    made = set(re.findall(r'"(holdfast\.[a-z.]+)", "', source)) | set(
        re.findall(r'"(holdfast\.[a-z]+\.[a-z]+)",\n', source)
    )
    listed = set(re.findall(r"`(holdfast\.[a-z.]+)`", page)) | {"holdfast.runs.resumed"}
    attributes = {"holdfast.flow", "holdfast.node"}
    assert made - attributes == listed - attributes
