"""A bucket that is away when a run starts: no run is created, and the caller is told so."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, logs  # noqa: F401  # fixtures
from tests.cli.test_bad_input import complains
from tests.services.s3 import KEYS, free_ports

FLOWS = """
from holdfast import Flow
plain = Flow("plain", effect="pure")
@plain.node
async def work(s): return {"done": True}
asks = Flow("asks", effect="pure")
asks.hold("ask", prompt="Go?", options=["yes", "no"])
"""


@pytest.mark.covers("PLATFORM-BAD-02", "BS-5")
@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("how", [["--detach"], []], ids=["detached", "attached"])
def test_run_whose_first_values_cannot_be_stored_does_not_exist(
    cli: Cli,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    how: list[str],
) -> None:
    (port,) = free_ports(1)
    (tmp_path / "flows.py").write_text(FLOWS)
    (tmp_path / "large.json").write_text(json.dumps({"text": random.Random(1).randbytes(1_500_000).hex()}))
    assert cli("run", "flows.py:plain").code == 0
    monkeypatch.setenv("HOLDFAST_BLOBS", f"s3://bucket/p?endpoint=http://127.0.0.1:{port}")
    for name, value in KEYS.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    for flow, given in (("asks", "{}"), ("plain", "@large.json")):
        said = cli("run", f"flows.py:{flow}", "--input", given, *how)
        complains(said, 4, "No run was created")
        assert "the run waits" not in said.err
    assert [row["flow"] for row in cli("runs", "--json").items] == ["plain"]
