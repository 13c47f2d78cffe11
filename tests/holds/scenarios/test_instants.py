"""Moments that no date can name are refused in words, and break nothing where they are kept already."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.errors import InputError
from holdfast.types import duration
from holdfast.types.terms import operator
from tests.holds.scenarios.firm import Firm

pytestmark = pytest.mark.anyio


@pytest.mark.covers("EX-11")
@pytest.mark.parametrize("when", [timedelta(days=999_999_999), 10**30, -5])
async def test_moment_outside_of_all_dates_is_refused(firm: Firm, when: timedelta | int) -> None:
    row = await firm.asks(assignee="user:dana")
    with pytest.raises(InputError, match="out of range"):
        await firm.holds.extend(operator(), row.id, when)
    with pytest.raises(InputError, match="out of range"):
        await firm.holds.snooze(operator(), row.id, when)


@pytest.mark.covers("HI-1")
async def test_hold_with_a_deadline_behind_all_dates_can_be_read(
    firm: Firm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored before durations had a limit."""
    monkeypatch.setattr(duration, "LONGEST", timedelta.max)
    row = await firm.asks(assignee="user:dana", timeout="4000000d")
    (created, *_) = await firm.holds.history(operator(), row.id)
    assert created.data["expires_at"] == "9999-12-31T23:59:59Z"
