"""Helpers for tests of flows and stores. Nothing in the product imports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.torture.explorer import torture

__all__ = ["torture"]


def __getattr__(name: str) -> Any:
    """Loaded on first use: the fixtures do not need it."""
    if name == "torture":
        from holdfast.torture.explorer import torture

        return torture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
