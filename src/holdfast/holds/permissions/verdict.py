"""The result of a permission check: allowed with its authority, or refused with a reason."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.errors import (
    ExcludedError,
    ForbiddenError,
    HoldClaimedError,
    HoldNotFoundError,
    NotAssignedError,
)
from holdfast.types.hold import HoldRow


class PermissionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`authority`: why it is allowed: assignee, substitute, delegate, permission, manage, owner, override,
    asked, system. `matched`: the assignee that matched. `code`: of a refusal."""

    allowed: bool
    authority: str = ""
    code: str = ""
    why: str = ""
    matched: str = ""
    on_behalf_of: str | None = None
    flagged: bool = False


def by(authority: str) -> PermissionVerdict:
    return PermissionVerdict(allowed=True, authority=authority)


def refused(code: str, why: str) -> PermissionVerdict:
    return PermissionVerdict(allowed=False, code=code, why=why)


def require(verdict: PermissionVerdict, hold: HoldRow, action: str) -> PermissionVerdict:
    """The verdict, if it is allowed. Raises HoldNotFoundError for another tenant's hold, ExcludedError,
    HoldClaimedError, NotAssignedError, ForbiddenError."""
    if verdict.allowed:
        return verdict
    if verdict.code == "not_found":
        raise HoldNotFoundError(f"there is no hold {hold.id!r}.", hold=hold.id)
    error = _ERRORS.get(verdict.code, ForbiddenError)
    raise error(f"{verdict.why}.", hint=_HINTS.get(verdict.code), hold=hold.id, action=action)


_ERRORS: Final = {"excluded": ExcludedError, "claimed": HoldClaimedError, "not_assigned": NotAssignedError}
_HINTS: Final = {
    "claimed": "Wait until it is released, or override it with a reason if you have that right.",
    "not_assigned": "With the right to override it can be decided with a reason.",
}
