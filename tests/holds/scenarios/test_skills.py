"""Slips of whoever publishes a skill."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InputError
from tests.holds.scenarios.firm import Firm

pytestmark = pytest.mark.anyio


@pytest.mark.covers("SK-1")
@pytest.mark.parametrize(
    ("version", "content", "said"),
    [
        ("01.0.0", {}, "is not a version"),
        ("1.٢.0", {}, "is not a version"),
        ("1.0.0", {"data": {"limit": float("nan")}}, "not JSON"),
        ("1.0.0", {"tools": [{"name": "pay", "settings": {"limit": float("inf")}}]}, "not JSON"),
        ("1.0.0", {"tools": "pay"}, r"Write tools=\['pay'\]"),
    ],
)
async def test_slip_in_a_skill_is_refused_and_nothing_is_kept(
    firm: Firm, version: str, content: dict[str, Any], said: str
) -> None:
    skills = await firm.hf.skills()
    with pytest.raises(InputError, match=said):
        await skills.publish("refunds", version, **content)
    assert await skills.list() == []
