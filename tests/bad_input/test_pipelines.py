"""Files that are no pipelines, given to the command line: one clear diagnostic each, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.conftest import Cli
from tests.bad_input.messages import assert_told

GOOD = "digraph G { start [shape=Mdiamond] exit [shape=Msquare] a [prompt=%s] start -> a -> exit }"


@pytest.mark.covers("ATTRACTOR-BAD-01")
@pytest.mark.parametrize(
    ("data", "place", "parts"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "1:1", ["not UTF-8 text", "0x89"]),
        (b"\x7fELF\x02\x01\x01\x00\x00", "1:8", ["NUL"]),
        (b'digraph G {\n a [label="caf\xe9"] }', "2:15", ["0xe9", "UTF-8"]),
        (b"", "1:1", ["no pipeline", "digraph NAME"]),
        (b"{" * 10_000, "1:1", ["begins with digraph"]),
        (b"digraph G { a " + b"[" * 10_000, "1:15", ["[ is not closed"]),
    ],
    ids=["png", "elf", "latin-1", "empty", "braces", "brackets"],
)
def test_file_that_is_no_pipeline_is_one_fault(
    cli: Cli, tmp_path: Path, data: bytes, place: str, parts: list[str]
):
    file = tmp_path / "odd.dot"
    file.write_bytes(data)
    said = cli("validate", str(file))
    assert said.code == 1
    assert_told(said.out, f"{file}:{place}: error:", "1 error", *parts)
    assert "Traceback" not in said.out + said.err


@pytest.mark.covers("ATTRACTOR-BAD-02")
def test_attribute_of_ten_megabytes_is_checked(cli: Cli, tmp_path: Path):
    file = tmp_path / "large.dot"
    file.write_text(GOOD % f'"{"x" * 10_000_000}"')
    said = cli("validate", str(file))
    assert (said.code, said.err) == (0, "")
    assert_told(said.out, "valid: G, 3 stages")


@pytest.mark.covers("ATTRACTOR-BAD-02")
def test_attribute_of_forty_megabytes_is_one_fault(cli: Cli, tmp_path: Path):
    file = tmp_path / "larger.dot"
    file.write_text(GOOD % f'"{"x" * 40_000_000}"')
    said = cli("validate", str(file))
    assert said.code == 1
    assert_told(said.out, f"{file}:1:1: error:", "33,554,432 characters", "@file", "1 error")
