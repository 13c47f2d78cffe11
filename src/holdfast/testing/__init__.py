"""For tests of flows and of stores: nothing in the product imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.torture.explorer import torture

__all__ = ["torture"]


def __getattr__(name: str) -> Any:
    """Loaded when it is first used: the fixtures need none of it."""
    if name == "torture":
        from holdfast.torture.explorer import torture

        return torture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
