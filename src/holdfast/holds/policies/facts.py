"""The facts of a hold that rules can use: what it shows and where it comes from, and nothing else.

A rule that read more than a person sees could decide on facts that cannot be reviewed afterwards, and past
decisions could not be simulated with other rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from holdfast.model.expressions import Path, Resolve, walk
from holdfast.types.hold import HoldRow, NewHold
from holdfast.types.terms import HoldTerms

H = TypeVar("H", bound=NewHold)

NAMES: Final = (
    "flow",
    "node",
    "type",
    "prompt",
    "options",
    "priority",
    "assignee",
    "tags",
    "tenant",
    "started_by",
    "deployment",
    "instance_key",
    "interaction",
    "context",
)
"""Facts with a name. Any other name is looked up in `context`: `amount` is `context.amount`."""

UNTOUCHED: Final = frozenset({"debug_breakpoint", "in_doubt", "code_changed"})
"""Questions of the engine, which no rule may answer."""


def facts_of(
    hold: NewHold,
    *,
    flow: str = "",
    tenant: str = "",
    started_by: str | None = None,
    deployment: str | None = None,
    instance_key: str | None = None,
) -> dict[str, Any]:
    """The facts as the flow asked, without changes by rules."""
    hold = as_asked(hold)
    return {
        "flow": flow,
        "node": hold.node,
        "type": hold.type,
        "prompt": hold.prompt,
        "options": [option.id for option in hold.options or ()],
        "priority": hold.priority,
        "assignee": hold.assignee,
        "tags": list(hold.tags),
        "tenant": tenant,
        "started_by": started_by,
        "deployment": deployment,
        "instance_key": instance_key,
        "interaction": hold.terms.interaction,
        "context": _context(hold),
    }


def facts_of_row(row: HoldRow) -> dict[str, Any]:
    return facts_of(
        row,
        flow=row.flow,
        tenant=row.tenant,
        started_by=row.started_by,
        deployment=row.deployment,
        instance_key=row.instance_key,
    )


def as_asked(hold: H) -> H:
    """The hold without changes by rules."""
    before = hold.terms.routed_from
    if before is None:
        return hold
    columns: dict[str, Any] = {**before, "terms": msgspec.convert(before.get("terms", {}), HoldTerms)}
    if "tags" in columns:
        columns["tags"] = tuple(columns["tags"])
    return msgspec.structs.replace(hold, **columns)


def resolver_of(facts: Mapping[str, Any]) -> Resolve:
    found = facts.get("context")
    context: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}

    def resolve(path: Path) -> object:
        return walk(facts if path[0] in facts else context, path)

    return resolve


def _context(hold: NewHold) -> dict[str, Any]:
    found: Any = msgspec.json.decode(hold.context) if hold.context else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
