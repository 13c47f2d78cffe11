"""Every method of a store is in exactly one table of the encrypting store, and in the right one."""

from __future__ import annotations

import inspect
import typing
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.runs.encryption import store as encryption
from holdfast.runs.encryption.cipher import ENCRYPTED, FieldCipher
from holdfast.runs.encryption.store import METHODS, PLAIN, EncryptedStore
from holdfast.store.protocols import Store
from holdfast.store.rows import Capability
from holdfast.types.record import Record

# The store keeps these two as they are given: what is in them is blanked or encrypted before.
# Of the rows that `expire_leases` takes, the store reads only the lease.
_BLANKED = {"projections", "put_projections", "expire_leases"}


def _protocol_methods() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in Store.__mro__:
        if each.__module__.startswith("holdfast.store."):
            found |= {n: f for n, f in vars(each).items() if inspect.isfunction(f) and not n.startswith("_")}
    return found


def _written_out() -> set[str]:
    made = {*METHODS, *PLAIN}
    own = [each for each in EncryptedStore.__mro__ if each is not object]
    return {name for each in own for name, value in vars(each).items() if inspect.isfunction(value)} - made


def _types_in(annotation: Any) -> set[type]:
    parts = typing.get_args(annotation)
    inner = {found for part in parts for found in _types_in(part)} if parts else set()
    return inner | ({annotation} if isinstance(annotation, type) else set())


def _content_types(method: Any) -> set[type]:
    hints = typing.get_type_hints(method)
    named = {found for hint in hints.values() for found in _types_in(hint)}
    nested = {
        found
        for struct in named
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct)
        for hint in typing.get_type_hints(struct).values()
        for found in _types_in(hint)
    }
    return (named | nested) & {*ENCRYPTED, Record}


@pytest.mark.parametrize("name", sorted(_protocol_methods()))
@pytest.mark.covers("PLAIN-SAME-03")
def test_a_method_of_the_store_is_in_exactly_one_table(name: str) -> None:
    places = [name in METHODS, name in PLAIN, name in _written_out()]
    assert places.count(True) == 1, (
        f"Store.{name} is in no table of runs/encryption/store.py, or in several: add it to METHODS where "
        "rows with content pass through it, to PLAIN where none do, or write it out."
    )


def test_the_tables_name_only_methods_of_the_store() -> None:
    assert {*METHODS, *PLAIN} <= set(_protocol_methods())


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_a_plain_method_neither_takes_nor_gives_rows_with_content(name: str) -> None:
    if name not in _BLANKED:
        assert not _content_types(_protocol_methods()[name])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_made_method_gives_the_rows_that_its_table_says(name: str) -> None:
    hints = typing.get_type_hints(_protocol_methods()[name])
    given = {found for hint in hints.values() for found in _types_in(hint)} & {*ENCRYPTED, Record}
    assert given & set(METHODS[name].rows)


def test_a_made_method_that_takes_rows_encrypts_them() -> None:
    for name, method in METHODS.items():
        hints = typing.get_type_hints(_protocol_methods()[name])
        del hints["return"]
        takes = {f for hint in hints.values() for f in _types_in(hint)} & {*ENCRYPTED, Record}
        assert bool(takes) == (method.argument is not None), name


@pytest.mark.covers("PLAIN-SAME-03")
def test_a_method_in_no_table_does_not_exist() -> None:
    inner: Any = SimpleNamespace(capabilities=Capability(0), put_secret=lambda secret: secret)
    store: Any = encryption.with_encryption(inner, FieldCipher(None))
    with pytest.raises(AttributeError, match="put_secret"):
        store.put_secret(b"x")
