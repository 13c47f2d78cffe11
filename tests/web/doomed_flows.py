"""A flow whose worker dies with it: its runs become dead letters."""

from __future__ import annotations

import os
from typing import Any

from holdfast import Flow

doomed = Flow("doomed", effect="read")


@doomed.node
async def crash(s: dict[str, Any]) -> None:
    os._exit(3)
