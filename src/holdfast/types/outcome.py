"""What a handler may return instead of a plain update when it also says where to go next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

FAIL = "fail"
RETRY = "retry"
SKIPPED = "skipped"


class Outcome(msgspec.Struct, frozen=True):
    """`status`: success, partial_success, fail, or a word of your own, which conditions read as `outcome`.

    `retry` asks for another attempt, as the node's retry policy allows; in a walk `skipped` continues without
    counting as an outcome. `label` prefers the edge of that label, `suggested` names nodes to go to: both
    apply in the walk traversal only. `update` are changes of the state, as a handler would return them; with
    a failure they apply in a walk only. `final`: a failure that a retry cannot fix. `notes` are stored with
    the step, for people.
    """

    status: str = "success"
    update: Mapping[str, Any] | None = None
    label: str = ""
    suggested: Sequence[str] = ()
    reason: str = ""
    notes: str = ""
    final: bool = False
    halts: bool = False
    """A failure that ends the run, even if there are edges or retry targets for it."""
