"""Statements of the shared modules that MariaDB needs in other words, with the same arguments."""

from __future__ import annotations

from typing import Final

from holdfast.store.sql.concurrency_limits import GATHER
from holdfast.store.sql.run_inbox import FIRED

OVERRIDES: Final = {
    # A LIMIT inside IN is not supported; a DELETE with ORDER BY and LIMIT is.
    FIRED: """
DELETE FROM @timers WHERE run_key = ANY(?::bigint[]) AND fire_at <= ? ORDER BY fire_at LIMIT ?
RETURNING run_key, token, fire_at""",
    # There is no UPDATE .. FROM.
    GATHER: """
UPDATE @runs SET gate = ? WHERE flow = ? AND gate = '' AND NOT read_only
AND status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable') ORDER BY key""",
}
