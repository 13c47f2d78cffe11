"""What all answers share."""

from __future__ import annotations

from typing import Any

import msgspec


class Model(msgspec.Struct, kw_only=True, omit_defaults=True, dict=True):
    """An answer of the server. Additional fields of a newer server are ignored."""

    def __getitem__(self, name: str) -> Any:
        """A field by its JSON name: `run["status"]` is `run.status`."""
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    @property
    def etag(self) -> str | None:
        """Its version, for `if_match=`; None if the server sent none."""
        result = self.__dict__.get("etag")
        version = getattr(self, "version", None)  # in a list, each item has its own
        return f'"{version}"' if result is None and isinstance(version, int) else result


def set_etag(model: Model, etag: str) -> None:
    vars(model)["etag"] = etag
