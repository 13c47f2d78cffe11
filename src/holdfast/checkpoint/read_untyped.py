"""Reading without the flow's code: values of declared types come back as plain data."""

from __future__ import annotations

from typing import Any

from holdfast.checkpoint.registry import RegisteredType, TypeRegistry


class LenientRegistry(TypeRegistry):
    """For reading only: a type that is not known here is shown by its fields. Never for writing back: `met`
    says whether there was one."""

    met = False

    def named(self, name: str) -> RegisteredType:
        self.met = True
        return RegisteredType(name, object, _as_is, _as_is)


def _as_is(value: Any) -> Any:
    return value
