"""The traceback of an error: the flow's frames first, within a limit, without secrets."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.runs.driver.flow_traceback import (
    LIBRARIES,
    MAX_TRACEBACK,
    flow_traceback,
    with_short_paths,
)
from holdfast.runs.driver.handler_result import describe
from holdfast.types.redaction import MASK, redactor

pytestmark = pytest.mark.covers("WB-33-traceback")


def raised(call: Any) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def read_json() -> Any:
    return json.loads("{")


def even(count: int) -> None:
    odd(count - 1)


def odd(count: int) -> None:
    if count < 0:
        raise ValueError("too deep")
    even(count - 1)


def test_the_frames_of_the_flow_come_before_those_of_libraries() -> None:
    text = flow_traceback(raised(read_json))
    own, _, rest = text.partition(LIBRARIES)
    assert 'return json.loads("{")' in own
    assert "raw_decode" not in own
    assert "raw_decode" in rest


def test_a_cause_is_told_and_a_long_traceback_keeps_its_end() -> None:
    def wraps() -> None:
        try:
            read_json()
        except ValueError as error:
            raise KeyError("no order") from error

    assert "Because of JSONDecodeError: " in flow_traceback(raised(wraps))
    text = flow_traceback(raised(lambda: even(400)))
    assert len(text) <= MAX_TRACEBACK
    assert text.startswith("…\n")
    assert 'raise ValueError("too deep")' in text


def test_a_secret_in_a_traceback_is_masked_as_in_the_message() -> None:
    def fails() -> None:
        try:
            raise ValueError("card 4111-1111-secret")
        except ValueError as error:
            raise KeyError("card 4111-1111-secret") from error

    redactor.learn("4111-1111-secret")
    try:
        info = describe(raised(fails))
    finally:
        redactor.forget()
    assert f"Because of ValueError: card {MASK}" in info.detail
    assert "4111-1111" not in info.message


def test_a_secret_is_masked_before_a_long_traceback_is_cut() -> None:
    """It has two lines, and the cut is at the end of a line."""
    secret = "first-half-71\nother-half-93"
    redactor.learn(secret)
    try:
        for length in range(60):
            name = "f" * (length + 1)
            code = f"def {name}(n):\n  {name}x(n - 1)\ndef {name}x(n):\n  1 // 0 if n < 0 else {name}(n - 1)"
            space = loaded(code, secret)
            assert "half" not in describe(raised(partial(space[name], 50))).detail, length
    finally:
        redactor.forget()


def loaded(code: str, file: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(code, file, "exec"), space)  # noqa: S102
    return space


def test_files_are_named_below_their_root_and_never_by_their_place_on_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "apart" / "elsewhere.py"
    file.parent.mkdir()
    file.write_text("import json\ndef work() -> None:\n    json.loads('{')\n")
    space = loaded(file.read_text(), str(file))
    text = flow_traceback(raised(space["work"]))
    assert '  File "elsewhere.py", line 3, in work\n' in text
    assert '  File "json/decoder.py", line ' in text
    installed = '  File "/opt/app/.venv/lib/python3.12/site-packages/orders/pay.py", line 7, in pay\n'
    assert with_short_paths(installed) == '  File "orders/pay.py", line 7, in pay\n'
    own = flow_traceback(raised(read_json))
    assert own.startswith('  File "tests/runtime/test_flow_traceback.py", line ')
    assert not re.findall(r'File "/', text + own)
