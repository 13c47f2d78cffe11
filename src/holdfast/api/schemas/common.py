"""Wire types that all topics share."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.types.clock import iso

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Wait = Annotated[float, msgspec.Meta(ge=0, le=60, description="Seconds to wait until it ends or waits.")]


def moment(instant: int | None) -> str | None:
    """RFC 3339, in UTC."""
    return None if instant is None else iso(instant)
