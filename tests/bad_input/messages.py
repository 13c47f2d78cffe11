"""What a caller is told, in the form that tests look at."""

from __future__ import annotations

from typing import Any

from holdfast import Result
from holdfast.errors import HoldfastError


def assert_told(text: str, *parts: str) -> None:
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


def assert_failed(result: Result, node: str, kind: type[HoldfastError], *parts: str) -> None:
    """The run failed at that node, for that reason, in words that help."""
    assert result.failed, result
    assert result.error is not None
    assert (result.failed_node, result.error.code) == (node, kind.code)
    assert_told(result.error.message, *parts)


def assert_refused(error: BaseException, *parts: str) -> None:
    assert isinstance(error, HoldfastError)
    assert_told(str(error), *parts)


class Odd:
    """Of a kind that no store knows."""

    def __repr__(self) -> str:
        return "<Odd>"


def nested(depth: int) -> Any:
    value: Any = "in the middle"
    for _ in range(depth):
        value = [value]
    return value


def containing_itself() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value
