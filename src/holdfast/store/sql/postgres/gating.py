"""The part of the PostgreSQL store that is about gates, and claims, which they let pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from holdfast.store.limits import ClaimResult
from holdfast.store.protocols import Claim, ClaimRequest, NewRun, RunRow
from holdfast.store.sql.postgres import claim, claim_limited, gates
from holdfast.store.sql.postgres.clock import ServerClock
from holdfast.store.sql.postgres.pool import PostgresPools
from holdfast.types.limit_rows import LimitRow, flow_limit


class PostgresLimits:
    """What it needs of the store: its time and its connections."""

    now: Callable[[], int]
    _pools: PostgresPools
    _clock: ServerClock
    # When a rate lets the next run start that the last claim found in line.
    _opens_at: int | None = None

    async def put_limit(self, gate: LimitRow) -> LimitRow:
        return await self._pools.write(partial(gates.put, now=self.now(), gate=gate))

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        query = partial(gates.list_limits, now=self._clock.given, prefix=prefix, after=after, limit=limit)
        return await self._pools.read_together(query)

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        return await self._pools.write(partial(gates.drop, name=name, fixed=fixed))

    async def _claim_any(self, want: ClaimRequest) -> list[Claim]:
        given = self._clock.given
        found = await self._pools.write_at_once(partial(claim.claim, now=given, want=want))
        if not isinstance(found, ClaimResult):
            past = partial(claim_limited.claim_with_limits, now=given, want=want, lines=found.lines)
            found = await self._pools.write(past)
        self._opens_at = found.opens_at
        return found.claims

    async def _claim_named(self, want: ClaimRequest) -> list[Claim]:
        given = self._clock.given
        claims = await self._pools.write_at_once(partial(claim.claim_named, now=given, want=want))
        if claims:
            return claims
        found = await self._pools.write(partial(claim_limited.claim_named, now=given, want=want))
        self._opens_at = found.opens_at
        return found.claims

    async def _create_at_gate(self, new: NewRun) -> tuple[RunRow, bool]:
        """A run at no gate comes to that of its flow, which an operator fixed."""
        new = msgspec.structs.replace(new, gate=new.gate or flow_limit(new.flow))
        work = partial(claim_limited.create, now=self.now(), given=self._clock.given, new=new)
        return await self._pools.write(work)
