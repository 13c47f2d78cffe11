"""Keys are those that a test gives."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_keys_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEYS", raising=False)
