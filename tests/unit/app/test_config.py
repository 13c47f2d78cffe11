from __future__ import annotations

import pytest

from holdfast.config import is_on


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("on", True), ("Yes", True), (" true ", True), ("0", False), ("off", False), ("", False)],
)
def test_a_switch_of_the_environment_is_read_in_one_way(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv("HOLDFAST_OTEL_CONTENT", value)
    assert is_on("HOLDFAST_OTEL_CONTENT") is expected
