"""What any released version encrypted still opens, and its addresses are found (rule 9 of the style)."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from holdfast.checkpoint.encrypt import decrypt, decrypt_text, header_of, keyed_digest, place_of
from holdfast.checkpoint.keys import FORM, StaticKeys
from holdfast.errors import SchemaTooNewError

FOLDER = Path(__file__).parent / "golden" / "encrypted"
FORMS = sorted(FOLDER.glob("form*.json"))

pytestmark = pytest.mark.covers("D-38", "TOOL-KEEP-05")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_ciphertext_of_any_released_form_is_opened(path: Path) -> None:
    golden = json.loads(path.read_text())
    ring = StaticKeys.read(FOLDER / "keys1.json")
    place = place_of(*golden["place"])
    data = b64decode(golden["bytes"])
    assert decrypt(data, ring, place).decode() == golden["plain"]
    assert decrypt_text(golden["text"], ring, place) == golden["plain"]
    assert header_of(data).tenant == golden["tenant"]
    secret = ring.addresses(golden["tenant"])[0]
    assert keyed_digest(secret, "blob", golden["tenant"], b"digest").hex() == golden["address"]


def test_form_that_is_written_now_has_a_file() -> None:
    newest = b64decode(json.loads(FORMS[-1].read_text())["bytes"])[3]
    assert [path.stem for path in FORMS] == [f"form{number}" for number in range(1, newest + 1)]
    assert FORM == 1


def test_ciphertext_of_a_newer_form_is_refused_by_name() -> None:
    data = bytearray(b64decode(json.loads(FORMS[-1].read_text())["bytes"]))
    data[3] = 9
    with pytest.raises(SchemaTooNewError, match="form 9"):
        decrypt(bytes(data), StaticKeys.read(FOLDER / "keys1.json"), b"")
