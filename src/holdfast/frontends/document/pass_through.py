"""The code of nodes that only lead on."""

from __future__ import annotations

from typing import Any, Final

from holdfast.model.program import NodeHandler


async def _do_nothing(_state: Any) -> None:
    return None


NOTHING: Final = NodeHandler(fn=_do_nothing, is_async=True, takes=("state",), code="canvas/1", waits=False)
