"""Effects of tools of other frameworks: their idempotency keys."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.integrations.tool_effects import read_effects

REFUND = read_effects({"refund": {"effect": "write", "idempotency_key": "refund-{{order}}"}})["refund"]


@pytest.mark.covers("IN-53")
def test_a_key_is_made_of_the_arguments() -> None:
    assert REFUND.key_of("refund", {"order": "A17"}) == "refund-A17"
    assert read_effects({"look": "read"})["look"].key_of("look", {}) is None


@pytest.mark.covers("IN-53")
@pytest.mark.parametrize("arguments", [{}, {"order": None}, {"order": ""}, {"orderId": "A17"}])
def test_a_call_without_the_argument_of_its_key_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="of tool 'refund'"):
        REFUND.key_of("refund", arguments)


@pytest.mark.covers("IN-53")
@pytest.mark.parametrize("key", ["refund", "refund-{order}", "{{order}}-{item}"])
def test_a_key_that_does_not_tell_calls_apart_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="same for every call"):
        read_effects({"refund": {"effect": "write", "idempotency_key": key}})
