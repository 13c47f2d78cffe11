"""Refusals in the audit: who was turned away, where, and why. Bounded, so that nobody can fill it up."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request

from holdfast.api.auth.grants import SERVER
from holdfast.api.auth.principal import Principal
from holdfast.api.problems import HttpError
from holdfast.errors import StoreError
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import NewAudit, canonical

SPAN: Final = 60.0
MOST: Final = 60
EACH: Final = 10
"""So many a minute are written down for one credential or address, and `MOST` by one server in all; the next
line tells how many were left out."""


class Refusals:
    def __init__(self, *, most: int = MOST, each: int = EACH, span: float = SPAN) -> None:
        self._most = most
        self._each = each
        self._span = span
        self._since = time.monotonic()
        self._counts: dict[str, int] = {}
        self._written = 0
        self._left_out = 0

    async def note(
        self,
        store: Store,
        request: Request,
        path: str,
        principal: Principal | None,
        error: HttpError,
        request_id: str,
    ) -> None:
        """A store that is away keeps nobody from being refused: then only the log tells."""
        address = request.client.host if request.client else "unknown"
        log.info("refused %s %s: %s", request.method, path, error.given_code, extra={"request": request_id})
        if not self._may_write(principal.credential if principal else address):
            return
        said = {
            "method": request.method,
            "path": path,
            "status": error.given_status,
            "code": error.given_code,
            "right": error.facts.get("right"),
            "credential": principal.credential if principal else None,
            "address": address,
            "request": request_id,
            "left_out": self._left_out,
        }
        self._left_out = 0
        by, tenant = (principal.actor.id, principal.tenant) if principal else ("anonymous", SERVER)
        told = {name: value for name, value in said.items() if value}
        entry = NewAudit(at=store.now(), actor=by, action="access_refused", data=canonical(told))
        try:
            await store.append_audit(tenant, [entry])
        except StoreError as trouble:
            log.warning("a refusal could not be written down: %s", trouble)

    def _may_write(self, whose: str) -> bool:
        now = time.monotonic()
        if now - self._since >= self._span:
            self._since, self._written = now, 0
            self._counts.clear()
        if self._written >= self._most or self._counts.get(whose, 0) >= self._each:
            self._left_out += 1
            return False
        self._written += 1
        self._counts[whose] = self._counts.get(whose, 0) + 1
        return True
