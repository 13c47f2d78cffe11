"""Every envelope that was ever released still reads as the value that was written (rule 9 of the style)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.checkpoint import VERSION, decode_body, record_digest, unpack, unspill
from holdfast.checkpoint.compress import WORTH_TRYING
from holdfast.types.value import BlobRef
from tools.golden import CASES, COLUMNS, FOLDER, REGISTRY, GoldenBody, describe, encoded

FILES = sorted(FOLDER.glob("v*/*.bin"))


def facts(path: Path) -> dict:
    return json.loads(path.with_suffix(".json").read_text())


def read(path: Path, about: dict):
    data = path.read_bytes()
    if about["kind"] == "blob":
        return unspill(BlobRef(bytes.fromhex(about["digest"]), len(data)), data, REGISTRY)
    return unpack(decode_body(data, GoldenBody).value, REGISTRY)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.covers("CORE-CKPT-05", "R-40")
def test_reader_gets_the_value_that_was_written_when_the_file_is_of_any_released_version(path):
    about = facts(path)
    assert describe(read(path, about)) == about["value"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_digest_of_a_released_record_never_changes(path):
    about = facts(path)
    if about["kind"] == "body":
        assert record_digest(*COLUMNS, path.read_bytes()).hex() == about["digest"]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
@pytest.mark.covers("CORE-CKPT-05")
def test_every_version_has_golden_files(version):
    assert (FOLDER / f"v{version}" / "plain.bin").exists()


@pytest.mark.parametrize("name", CASES)
def test_writer_makes_the_golden_bytes_when_the_version_is_the_same(name):
    golden = (FOLDER / f"v{VERSION}" / f"{name}.bin").read_bytes()
    written = encoded(name)
    # What zstd makes of the same bytes may differ from one release of it to the next.
    assert written == golden or (written[0] == golden[0] and name == "compressed")
    assert (name == "compressed") == (written[:1] == b"a"), f"over {WORTH_TRYING} bytes and only then"
