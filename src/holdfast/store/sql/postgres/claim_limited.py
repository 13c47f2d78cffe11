"""Claims where runs stand at gates: one transaction, in which the gates' rows are locked before anything is
counted. Claims that meet no gate know nothing of this."""

from __future__ import annotations

import msgspec

from holdfast.store.limits import Admission, ClaimResult
from holdfast.store.protocols import Claim, ClaimRequest, NewRun, RunRow
from holdfast.store.sql.choose import ClaimSelection
from holdfast.store.sql.postgres import claim, gates, runs
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.listen import notify
from holdfast.types.limit_rows import root_of

_AT_GATE = "SELECT key, gate, status = 'pending' FROM @runs WHERE id = ? AND gate <> '' AND worker IS NULL"


async def claim_with_limits(conn: Conn, now: int | None, want: ClaimRequest, lines: list[str]) -> ClaimResult:
    """Runs at no gate and those of the lines, in one order."""
    porter = await gates.load_admission(conn, now, [line[1:] for line in lines], lock=True)
    claims: list[Claim] = []
    tried: list[int] = []
    kept_out = False
    # Each round takes from more keys: those whom it found at a shut gate are passed over by the next.
    for _ in range(claim.ROUNDS):
        past = _admission_filter(porter, lines)
        found = await claim.candidates(conn, now, want, tried, want.limit - len(claims), past)
        choice = claim.select_runs(found, ClaimSelection(want.limit - len(claims), porter))
        kept_out = kept_out or choice.refused or len(past.open) < len(lines) or bool(past.shut)
        if not choice.keys:
            break
        taken = await claim.take(conn, now, want, choice, gated=True)
        choice.missed([one.run.key for one in taken])
        await gates.write_starts(
            conn, [(key, start) for key, starts in choice.starts.items() for start in starts]
        )
        claims += taken
        if len(claims) >= want.limit:
            break
        tried += choice.keys
    return ClaimResult(claims, kept_out, porter.opens_at)


def _admission_filter(porter: Admission, lines: list[str]) -> claim.AdmissionFilter:
    shut = [f"+{name}" for name in porter.shut(starts=True)]
    shut += [f"-{name}" for name in porter.shut(starts=False)]
    exempt = {line: found for line in lines if (found := porter.exempt(line)) is not None}
    keys = sorted({key for of_line in exempt.values() for key in of_line})
    return claim.AdmissionFilter(porter.open_queues(lines), shut, list(exempt), keys)


async def claim_named(conn: Conn, now: int | None, want: ClaimRequest) -> ClaimResult:
    """A run that the plain way did not take: perhaps because it stands at a gate."""
    stands = await conn.row(_AT_GATE, want.run)
    if stands is None:
        return ClaimResult([])
    key, gate, starts = stands
    porter = await gates.load_admission(conn, now, [root_of(gate)], lock=True)
    if not porter.passes(gate, starts=starts):
        return ClaimResult([], True, porter.opens_at)
    claims = await claim.claim_named(conn, now, want, passes=True)
    if claims:
        await gates.write_starts(conn, [(key, start) for start in porter.enter(gate, starts=starts)])
    return ClaimResult(claims)


async def create(conn: Conn, now: int, given: int | None, new: NewRun) -> tuple[RunRow, bool]:
    """Where the gate is shut, the run is not claimed as it is made: it waits in line."""
    await gates.declare(conn, now, new.gates)
    porter = None
    if new.claimed_by is not None:
        porter = await gates.load_admission(conn, given, [root_of(new.gate)], lock=True)
        if not porter.passes(new.gate, starts=True):
            new, porter = msgspec.structs.replace(new, claimed_by=None, lease_until=None), None
    made = await runs.create(conn, now, new)
    assert made is not None
    row, fresh = made
    if porter is not None and fresh:
        await gates.write_starts(conn, [(row.key, s) for s in porter.enter(new.gate, starts=True)])
    elif fresh:
        await notify(conn)
    return row, fresh
