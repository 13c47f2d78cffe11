"""Claims of runs that have limits: one transaction, in which the rows of the limits are locked before
anything is counted. Claims of runs without limits do not use it."""

from __future__ import annotations

from holdfast.store.concurrency_limits import Admission, ClaimResult
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.store.sql.claim_priority import ClaimSelection
from holdfast.store.sql.postgres import claim, concurrency_limits
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.types.concurrency_limits import root_of

_WITH_LIMIT = "SELECT key, gate, status = 'pending' FROM @runs WHERE id = ? AND gate <> '' AND worker IS NULL"


async def claim_with_limits(
    conn: PostgresConnection, now: int | None, want: ClaimRequest, lines: list[str]
) -> ClaimResult:
    """Runs without a limit and those of the queues, in one order."""
    admission = await concurrency_limits.load_admission(conn, now, [line[1:] for line in lines], lock=True)
    claims: list[Claim] = []
    tried: list[int] = []
    kept_out = False
    # Each round reads more keys: it skips those whose limit the last round found reached.
    for _ in range(claim.ROUNDS):
        past = _admission_filter(admission, lines)
        found = await claim.candidates(conn, now, want, tried, want.limit - len(claims), past)
        choice = claim.select_runs(found, ClaimSelection(want.limit - len(claims), admission))
        kept_out = kept_out or choice.refused or len(past.open) < len(lines) or bool(past.shut)
        if not choice.keys:
            break
        taken = await claim.take(conn, now, want, choice, limited=True)
        choice.missed([one.run.key for one in taken])
        await concurrency_limits.write_starts(
            conn, [(key, start) for key, starts in choice.starts.items() for start in starts]
        )
        claims += taken
        if len(claims) >= want.limit:
            break
        tried += choice.keys
    return ClaimResult(claims, kept_out, admission.opens_at)


def _admission_filter(admission: Admission, lines: list[str]) -> claim.AdmissionFilter:
    shut = [f"+{name}" for name in admission.shut(starts=True)]
    shut += [f"-{name}" for name in admission.shut(starts=False)]
    exempt = {line: found for line in lines if (found := admission.exempt(line)) is not None}
    keys = sorted({key for of_line in exempt.values() for key in of_line})
    return claim.AdmissionFilter(admission.open_queues(lines), shut, list(exempt), keys)


async def claim_named(conn: PostgresConnection, now: int | None, want: ClaimRequest) -> ClaimResult:
    """A run that a plain claim did not claim, perhaps because it has a limit."""
    stands = await conn.row(_WITH_LIMIT, want.run)
    if stands is None:
        return ClaimResult([])
    key, gate, starts = stands
    admission = await concurrency_limits.load_admission(conn, now, [root_of(gate)], lock=True)
    if not admission.passes(gate, starts=starts):
        return ClaimResult([], True, admission.opens_at)
    claims = await claim.claim_named(conn, now, want, passes=True)
    if claims:
        await concurrency_limits.write_starts(
            conn, [(key, start) for start in admission.enter(gate, starts=starts)]
        )
    return ClaimResult(claims)
