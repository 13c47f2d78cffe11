"""History that came from elsewhere is read, listed and forked; who wants more of it is told how (D-36)."""

from __future__ import annotations

from holdfast.errors import RunReadOnlyError
from holdfast.store.protocols import RunRow


def demand_live(row: RunRow) -> None:
    """Raises RunReadOnlyError for imported history."""
    if row.read_only:
        raise RunReadOnlyError(
            f"run {row.id} is imported history: it can be read and forked, not advanced.",
            hint="Fork it, or import it with as_new_run=True (--as-new-run), to go on from where it stood.",
            run=row.id,
        )
