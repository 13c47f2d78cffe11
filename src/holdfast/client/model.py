"""What all answers share."""

from __future__ import annotations

from typing import Any

import msgspec


class Model(msgspec.Struct, kw_only=True, omit_defaults=True, dict=True):
    """An answer of the server. What a newer server says beyond it is left out."""

    def __getitem__(self, name: str) -> Any:
        """A field as JSON has it: `run["status"]` is `run.status`."""
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    @property
    def etag(self) -> str | None:
        """The version that this is, for `if_match=`; None where the server names none."""
        result = self.__dict__.get("etag")
        version = getattr(self, "version", None)  # in a list, each item tells its own
        return f'"{version}"' if result is None and isinstance(version, int) else result


def set_etag(model: Model, etag: str) -> None:
    vars(model)["etag"] = etag
