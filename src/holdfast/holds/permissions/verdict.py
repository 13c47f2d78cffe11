"""What comes of asking whether somebody may: a yes with its authority, or a no with its reason."""

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
    """`authority`: by what somebody may: assignee, substitute, delegate, permission, manage, owner, override,
    asked, system. `matched`: the assignee that they are one of. `code`: of a refusal."""

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
    """The verdict, where it is a yes. Raises HoldNotFoundError for another tenant's hold, ExcludedError,
    HoldClaimedError, NotAssignedError, ForbiddenError."""
    if verdict.allowed:
        return verdict
    if verdict.code == "not_found":
        raise HoldNotFoundError(f"there is no hold {hold.id!r}.", hold=hold.id)
    error = _ERRORS.get(verdict.code, ForbiddenError)
    raise error(f"{verdict.why}.", hint=_HINTS.get(verdict.code), hold=hold.id, action=action)


_ERRORS: Final = {"excluded": ExcludedError, "claimed": HoldClaimedError, "not_assigned": NotAssignedError}
_HINTS: Final = {
    "claimed": "Wait until it is released, or override it with a reason where you have that right.",
    "not_assigned": "Whoever has the right to override may decide it with a reason.",
}
