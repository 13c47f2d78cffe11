"""What is sent about holds, and small answers about them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.hold_query import Filters, Instant
from holdfast.api.schemas.holds import Answer, Comment, Name

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400.0)]


class Count(msgspec.Struct, kw_only=True):
    """Counting ends at 10,000."""

    count: int


class Place(Answer, kw_only=True, forbid_unknown_fields=True):
    """A decision that stands in `seconds`, unless it is taken back; none: as the hold says."""

    seconds: Seconds | None = None


class BulkAnswer(msgspec.Struct, kw_only=True):
    """`preview`: only say what would be. `versions`: those that were shown; what has changed is left out."""

    holds: Annotated[list[str], msgspec.Meta(max_length=1000)]
    decision: str
    comment: str | None = None
    preview: bool = True
    versions: dict[str, int] = {}


class Reason(msgspec.Struct, kw_only=True):
    reason: Comment | None = None


class Reassign(msgspec.Struct, kw_only=True):
    """`assignee`: `user:dana@acme`, `group:finance`; empty: nobody's, for admins."""

    assignee: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    expires_at: Instant | None = None
    reason: Comment | None = None


class Extend(msgspec.Struct, kw_only=True):
    expires_at: Instant
    reason: Comment | None = None


class Claiming(msgspec.Struct, kw_only=True):
    """`reason`: uses the right to override where somebody else has claimed it."""

    seconds: Seconds | None = None
    reason: Comment | None = None


class Figures(Filters, kw_only=True):
    calendar: Name | None = None
    """times in business hours, by this calendar"""


class Schema(msgspec.Struct, kw_only=True):
    """`json_schema`: what `response_data` must be; none: any object. `request_hash`: of what is shown."""

    json_schema: Any
    request_hash: str
    decisions: list[str] | None
