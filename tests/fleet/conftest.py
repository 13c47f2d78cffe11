"""A database that is there for these tests, and schemas of their own in it."""

from __future__ import annotations

import secrets

import pytest

from tests.services import postgres


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """A schema without a row; one that nobody used yet, for a module with `NEW_SCHEMA`."""
    if not getattr(request.module, "NEW_SCHEMA", False):
        return postgres.emptied("fleet")
    return postgres.with_setting(postgres.database(), schema=f"t_{secrets.token_hex(4)}")


def schema_of(address: str) -> str:
    return address.partition("schema=")[2].partition("&")[0]
