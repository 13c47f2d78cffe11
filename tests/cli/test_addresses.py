"""Addresses of stores as the command line prints them."""

from __future__ import annotations

import pytest

from holdfast.cli.options.store import shown_address
from holdfast.cli.output.results import command


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cret@db/hold",
        "postgresql://ada:s3@cret@db1,db2:5433/hold?sslmode=require",
        "postgresql://ada@db/hold?password=s3cret&sslmode=require",
    ],
)
def test_password_of_a_store_is_not_in_what_a_person_is_asked_to_type(address: str) -> None:
    typed = command("show", "3fa9c1d2", address)
    assert "cret" not in typed
    assert "ada" in typed
    assert "/hold" in typed


@pytest.mark.parametrize("address", ["sqlite:a.db", "sqlite:/x/a:b@c.db?busy=5", "postgresql://db/hold"])
def test_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert shown_address(address) == address
