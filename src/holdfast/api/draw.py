"""Pictures of graphs are made in a thread of their own, one after the other: a layout is computed, and other
requests are answered meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from holdfast.api.routing import ApiCall
from holdfast.attractor.picture import picture_of_visits
from holdfast.drawing import to_svg
from holdfast.runs.history.timeline import Timeline
from holdfast.types.tenant_thread_pool import TenantThreads

T = TypeVar("T")

MOST_WAITING: Final = 16
"""Pictures of one tenant that are made or wait, so that those of others come soon. Most take milliseconds,
the largest a second."""

# One: two would compute no faster, and take more time from the other threads of the process.
_PICTURES: Final = TenantThreads(
    "drawing", threads=1, most=MOST_WAITING, what="pictures of graphs are being made"
)


async def draw(call: ApiCall, work: Callable[[], T]) -> T:
    """What `work` makes. Raises RateLimitedError if too many pictures of the tenant wait."""
    return await _PICTURES.run(call.tenant, work)


def svg_of_run(line: Timeline) -> str:
    return to_svg(picture_of_visits(line.graph, line.visits, interrupted=line.interrupted))
