"""The fence: a worker that has lost its lease can no longer write to the run (D-6).

Each claim of a run raises its term, and so does taking it from a dead worker. A write under a lease takes
effect only while the run's term and worker are those of the lease; otherwise it is refused as `fenced`.
"""

from __future__ import annotations

from typing import Final

from holdfast.types.lease import Lease

OWNED: Final = "key = ? AND id = ? AND term = ? AND worker = ?"
"""The condition of an SQL statement on one run. Its parameters: `lease_values`."""
OWNED_BY_GIVEN: Final = (
    "runs.key = g.key AND runs.id = g.run AND runs.term = g.term AND runs.worker = g.worker"
)
"""The same for many leases at once, which are the rows of `g`."""


def lease_values(lease: Lease) -> tuple[int, str, int, str]:
    return lease.key, lease.run, lease.term, lease.worker


def is_owned(lease: Lease, term: int, worker: str | None) -> bool:
    """Whether a run with that term and worker is still the one that the lease was given for."""
    return term == lease.term and worker == lease.worker
