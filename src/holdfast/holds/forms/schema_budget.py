"""What the comparison of data with JSON Schemas may cost.

A schema of a few kilobytes with a thousand alternatives, and a list of some ten thousand values, are hundreds
of millions of comparisons. They are counted while they are made. The fields of one form, and the rows of its
tables, share one budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time
from typing import Any, Final, cast

import msgspec

PER_SCHEMA: Final = 10
"""For a value that is compared with a schema; each name, type and value that is looked at costs 1."""
PER_SECOND: Final = 1_000_000
"""For the processor time of patterns."""
MAX_COST: Final = 3_000_000


class SchemaBudgetError(Exception):
    """More than `MAX_COST`."""


class SchemaBudget:
    """What it knows of a schema is kept by identity, beside the schema itself."""

    def __init__(self) -> None:
        self.spent = 0
        self._forget()

    def begin(self, schema: Any) -> None:
        """With another schema, which is read as a whole first."""
        self._forget()
        self.spend(len(msgspec.json.encode(schema)) // PER_SCHEMA)

    def _forget(self) -> None:
        self._keywords: dict[int, tuple[Any, list[tuple[str, Any]], int]] = {}
        self._keys: dict[int, tuple[Any, Any]] = {}

    @staticmethod
    def current() -> SchemaBudget:
        return _current.get()

    def spend(self, cost: int) -> None:
        """Raises SchemaBudgetError."""
        self.spent += cost
        if self.spent > MAX_COST:
            raise SchemaBudgetError

    def keywords(self, schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Counted as one comparison with this schema."""
        found = self._keywords.get(id(schema))
        if found is None:
            pairs = list(schema.items())
            # Lists of names, types or alternatives are walked through; an enum is looked up.
            inner = sum(
                len(cast("list[Any]", value))
                for key, value in pairs
                if isinstance(value, (list, dict)) and key != "enum"
            )
            found = self._keywords[id(schema)] = schema, pairs, PER_SCHEMA + inner
        self.spend(found[2])
        return found[1]

    def key(self, value: Any) -> Any:
        """Equal for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            self.spend(len(items))
            return frozenset([(name, self.key(inner)) for name, inner in items])
        if isinstance(value, list):
            inside = cast("list[Any]", value)
            self.spend(len(inside))
            return tuple([self.key(inner) for inner in inside])
        return (isinstance(value, bool), value)

    def kept_key(self, wanted: Any) -> Any:
        """Of a value of the schema: made once."""
        return self._kept(wanted, lambda: self.key(wanted))

    def kept_keys(self, values: list[Any]) -> frozenset[Any]:
        """Of the values of an enum: made once."""
        return self._kept(values, lambda: frozenset(self.key(values)))

    def kept_constants(self, schemas: list[Any]) -> frozenset[Any] | None:
        """Of alternatives that are one value each, as an enum is often written; None: some are not."""
        alone = self._kept(schemas, lambda: [each["const"] for each in schemas if _is_constant(each)])
        return self.kept_keys(alone) if len(alone) == len(schemas) else None

    def _kept(self, what: Any, make: Callable[[], Any]) -> Any:
        found = self._keys.get(id(what))
        if found is None:
            found = self._keys[id(what)] = what, make()
        return found[1]


def _is_constant(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).keys() == {"const"}


_current: Final[ContextVar[SchemaBudget]] = ContextVar("schema_budget")


@contextmanager
def schema_budget() -> Generator[SchemaBudget]:
    """For everything that is compared inside of it."""
    known = _current.get(None)
    if known is not None:
        yield known
        return
    token = _current.set(SchemaBudget())
    try:
        yield _current.get()
    finally:
        _current.reset(token)


@contextmanager
def processor_time() -> Generator[None]:
    """What is done inside of it is counted by its time. Raises SchemaBudgetError."""
    began = thread_time()
    try:
        yield
    finally:
        known = _current.get(None)
        if known is not None:
            known.spend(int((thread_time() - began) * PER_SECOND))
