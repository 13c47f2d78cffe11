"""Values as JSON, for people and other programs."""

from __future__ import annotations

import json

from holdfast.checkpoint.json_view import jsonable


def test_number_with_more_digits_than_python_writes_is_shown_in_hexadecimal() -> None:
    large = 10**5000
    assert json.loads(json.dumps(jsonable({"x": large, "y": -large, "z": 2**70}))) == {
        "x": hex(large),
        "y": hex(-large),
        "z": 2**70,
    }
