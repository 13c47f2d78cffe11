"""A large input is compared with its schema in a thread: others are answered meanwhile."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.documents.program import schema_problems
from holdfast.errors import StateError
from holdfast.frontends.document.document import Variable
from holdfast.frontends.document.state import DocumentState
from holdfast.runs.input_check import checked_input

ROWS = {"type": "object", "properties": {"rows": {"items": {"enum": ["a", "b"]}}}}
WIDE = {"properties": {"x": {"anyOf": [{"const": each} for each in range(1_000)]}}}

pytestmark = pytest.mark.anyio


async def where(schema: Any, given: Any, **variables: Any) -> str:
    """The name of the thread that compares it."""
    seen: list[str] = []

    def validate(wanted: Any, value: Any) -> list[str]:
        seen.append(threading.current_thread().name)
        return schema_problems(wanted, value)

    program = SimpleNamespace(schema=DocumentState(variables, schema, validate))
    await checked_input(cast("Any", program), given, "default")
    return seen[0]


@pytest.mark.parametrize(
    ("schema", "given"), [(ROWS, {"rows": ["a"] * 2_000}), (WIDE, {"x": 999})], ids=["data", "schema"]
)
async def test_input_is_compared_in_a_thread_when_it_or_its_schema_is_large(schema: Any, given: Any) -> None:
    assert (await where(schema, given)).startswith("holdfast-schemas")


async def test_variable_is_compared_in_a_thread_when_its_value_is_large() -> None:
    variable = Variable(type="array", schema={"items": {"type": "integer"}})
    assert (await where(None, {"v": [1] * 2_000}, v=variable)).startswith("holdfast-schemas")


async def test_input_is_compared_at_once_when_it_is_small() -> None:
    assert await where(ROWS, {"rows": ["a"] * 20}) == threading.current_thread().name


async def test_problems_are_the_same_in_a_thread() -> None:
    with pytest.raises(StateError) as refused:
        await where(ROWS, {"rows": ["c"] * 2_000})
    assert refused.value.facts["problems"][0] == "rows[0]: 'c' is not one of 'a', 'b'"
    assert len(refused.value.facts["problems"]) == 101
