"""Leases: claimed, extended, released. The server's own time counts, unless a clock was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.store.fence import OWNED, OWNED_BY_GIVEN, lease_values
from holdfast.store.limit_admission import Admission, ClaimResult
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.store.sql.claim_priority import CandidateTenant, ClaimSelection, ReadyRun
from holdfast.store.sql.concurrency_limits import ENTITY_FREE, IS_ENTITY_FREE
from holdfast.store.sql.postgres import concurrency_limits
from holdfast.store.sql.postgres.connect import PostgresConnection, Row
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.store.sql.served_versions import Crowd, served_ranges
from holdfast.types.concurrency_limits import root_of
from holdfast.types.lease import Lease
from holdfast.types.status import RunStatus

ROUNDS = 5

# Selected as single values: with a join the planner could not know how many runs there are, and would read
# all of them instead of the first in the index.
_READY = """runs.worker IS NULL AND runs.ready_at <= (SELECT now FROM t)
AND runs.status NOT IN ('completed', 'failed', 'cancelled') AND runs.suspect = (SELECT suspects FROM t)
AND runs.key <> ALL ((SELECT tried FROM t)::bigint[])"""
_SERVED = """((SELECT lanes FROM t) IS NULL OR runs.lane = ANY((SELECT lanes FROM t)::text[]))
AND ((SELECT versions FROM t) IS NULL OR runs.version = ANY((SELECT versions FROM t)::text[])
     OR split_part(runs.version, '-', 1) = ANY((SELECT versions FROM t)::text[]))"""
_FREE = f"{_READY} AND runs.gate = ''"
_LINED = f"{_READY} AND runs.gate <> ''"
# As in the index: the queue of the runs whose first limit is the same (`store.limit_admission.queue_of`).
_SIGN = "(CASE WHEN runs.status = 'pending' THEN '+' ELSE '-' END"
_LINE = f"{_SIGN} || split_part(runs.gate, '/', 1))"
_ADMITTED = f"""{_SIGN} || runs.gate) NOT IN (SELECT unnest((SELECT shut FROM t)))
AND (groups.line <> ALL((SELECT stopped FROM t)::text[]) OR runs.gate = ANY((SELECT exempt FROM t)::text[]))
AND {ENTITY_FREE}"""
_T = """t AS MATERIALIZED (
    SELECT @now(?::bigint) AS now, ?::text[] AS lanes, ?::text[] AS versions, ?::bigint[] AS tried,
           ?::boolean AS suspects, ?::text[] AS open, ?::text[] AS shut, ?::text[] AS stopped,
           ?::text[] AS exempt
), leased AS MATERIALIZED (
    SELECT tenant, count(*) AS running FROM @runs WHERE worker IS NOT NULL GROUP BY tenant
)"""
_STANDING = "coalesce(leased.running, 0), coalesce(turns.turn, 0)"
_OF_TENANT = """LEFT JOIN leased ON leased.tenant = groups.tenant
LEFT JOIN @turns AS turns ON turns.tenant = groups.tenant"""
_GROUP = "runs.urgency = groups.urgency AND runs.tenant = groups.tenant"
# Runs of other workers that a claim walks past before it looks for its own versions one by one.
_WINDOW = 32
# More versions than these are not asked for one by one.
_VERSIONS = 256


def _walk(columns: dict[str, str], condition: str, order: int) -> str:
    """In the order of the first so many columns, which is that of an index."""
    selected = ", ".join(f"{column} AS {name}" for name, column in columns.items())
    by = ", ".join(list(columns.values())[:order])
    return f"SELECT {selected} FROM @runs AS runs WHERE {condition} ORDER BY {by}"


_Walk = Callable[[dict[str, str], str, int, str], str]


def _all(columns: dict[str, str], condition: str, order: int, limit: str) -> str:
    """However many runs of other workers are between them."""
    return f"{_walk(columns, f'{condition} AND {_SERVED}', order)} LIMIT {limit}"


def _window(columns: dict[str, str], condition: str, order: int, limit: str) -> str:
    """Walks past a few runs of other workers. A row of NULL then says that there may be more."""
    seen = _walk({**columns, "lane": "runs.lane", "version": "runs.version"}, condition, order)
    return f"""SELECT {", ".join(columns)} FROM ({seen} LIMIT {limit} + {_WINDOW}) AS runs WHERE {_SERVED}
UNION ALL SELECT {", ".join(["NULL"] * len(columns))}
FROM ({_walk(columns, condition, order)} LIMIT 1 OFFSET {limit} + {_WINDOW - 1}) AS more LIMIT {limit}"""


_TENANT = {"urgency": "runs.urgency", "tenant": "runs.tenant"}
_QUEUE = {**_TENANT, "line": _LINE}


def _in_order(walk: _Walk, *, admitted: bool) -> str:
    """First find the priorities, tenants and queues, with one index lookup for each."""
    next_tenant = f"{_FREE} AND (runs.urgency, runs.tenant) > (groups.urgency, groups.tenant)"
    next_queue = f"""{_LINED}
AND (runs.urgency, runs.tenant, {_LINE}) > (lines.urgency, lines.tenant, lines.line)"""
    found = f"""
WITH RECURSIVE {_T}, groups AS (
    ({walk(_TENANT, _FREE, 2, "1")})
    UNION ALL
    SELECT found.urgency, found.tenant FROM groups CROSS JOIN LATERAL (
        {walk(_TENANT, next_tenant, 2, "1")}) AS found
), lines AS (
    ({walk(_QUEUE, _LINED, 3, "1")})
    UNION ALL
    SELECT found.urgency, found.tenant, found.line FROM lines CROSS JOIN LATERAL (
        {walk(_QUEUE, next_queue, 3, "1")}) AS found
)"""
    return found + _runs(walk, _GROUP, f"{_GROUP} AND {_LINE} = groups.line", admitted=admitted)


def _by_version(*, admitted: bool) -> str:
    """The same for each of the given lanes and versions."""
    line = f"(CASE WHEN runs.gate = '' THEN '' ELSE {_LINE} END)"
    queue = {**_TENANT, "line": line}
    version = "runs.lane = {0}.lane AND runs.version = {0}.version"
    group = f"{_GROUP} AND {version.format('groups')} AND {line} = "
    after = f"(runs.urgency, runs.tenant, {line}) > (each.urgency, each.tenant, each.line)"
    found = f"""
WITH RECURSIVE {_T}, each AS (
    SELECT given.lane, given.version, found.urgency, found.tenant, found.line
    FROM unnest(?::text[], ?::text[]) AS given (lane, version) CROSS JOIN LATERAL (
        {_all(queue, f"{_READY} AND {version.format('given')}", 3, "1")}) AS found
    UNION ALL
    SELECT each.lane, each.version, found.urgency, found.tenant, found.line
    FROM each CROSS JOIN LATERAL (
        {_all(queue, f"{_READY} AND {version.format('each')} AND {after}", 3, "1")}) AS found
), groups AS (SELECT * FROM each WHERE line = ''), lines AS (SELECT * FROM each WHERE line <> '')"""
    return found + _runs(_all, f"{group} ''", f"{group} groups.line", admitted=admitted)


def _runs(walk: _Walk, of_group: str, of_queue: str, *, admitted: bool) -> str:
    """Then a few runs of each group; and the queues, which are not examined yet, or a few runs of each that
    is admitted, skipping keys whose own limit is reached."""
    run = {"ready_at": "runs.ready_at", "key": "runs.key", "gate": "runs.gate"}
    run["starts"] = "runs.status = 'pending'"
    found = f"groups.urgency, groups.tenant, found.ready_at, found.key, {_STANDING}, found.gate, found.starts"
    none = "NULL::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint"
    queues = f"SELECT DISTINCT {none}, line, false FROM lines"
    if admitted:
        of_queue = walk(run, f"{_LINED} AND {of_queue} AND {_ADMITTED}", 2, "?::bigint")
        queues = f"""SELECT {found} FROM lines AS groups {_OF_TENANT} CROSS JOIN LATERAL ({of_queue}) AS found
WHERE groups.line = ANY((SELECT open FROM t)::text[])"""
    return f"""
SELECT {found} FROM groups {_OF_TENANT} CROSS JOIN LATERAL (
    {walk(run, f"{_FREE} AND {of_group}", 2, "?::bigint")}) AS found
UNION ALL {queues}
UNION ALL SELECT {none}, NULL, false FROM groups WHERE groups.urgency IS NULL
UNION ALL SELECT {none}, NULL, false FROM lines WHERE lines.urgency IS NULL"""


_IN_WINDOW = {admitted: _in_order(_window, admitted=admitted) for admitted in (False, True)}
_IN_ORDER = {admitted: _in_order(_all, admitted=admitted) for admitted in (False, True)}
_BY_VERSION = {admitted: _by_version(admitted=admitted) for admitted in (False, True)}
_UNCLAIMED = "runs.worker IS NULL AND runs.ready_at IS NOT NULL AND runs.suspect = (SELECT suspects FROM t)"
# The lanes and versions that have unclaimed runs, with one index lookup for each.
_FIND_VERSIONS = f"""
WITH RECURSIVE t AS MATERIALIZED (SELECT ?::boolean AS suspects, ?::text[] AS lanes), ready AS (
    (SELECT runs.lane FROM @runs AS runs WHERE {_UNCLAIMED} ORDER BY runs.lane LIMIT 1)
    UNION ALL
    SELECT found.lane FROM ready CROSS JOIN LATERAL (
        SELECT runs.lane FROM @runs AS runs WHERE {_UNCLAIMED} AND runs.lane > ready.lane
        ORDER BY runs.lane LIMIT 1) AS found
), each AS (
    SELECT ready.lane, ranges.until, found.version FROM ready
    CROSS JOIN unnest(?::text[], ?::text[]) AS ranges (first, until) CROSS JOIN LATERAL (
        SELECT runs.version FROM @runs AS runs WHERE {_UNCLAIMED} AND runs.lane = ready.lane
        AND runs.version >= ranges.first AND runs.version < ranges.until
        ORDER BY runs.version LIMIT 1) AS found
    WHERE (SELECT lanes FROM t) IS NULL OR ready.lane = ANY((SELECT lanes FROM t)::text[])
    UNION ALL
    SELECT each.lane, each.until, found.version FROM each CROSS JOIN LATERAL (
        SELECT runs.version FROM @runs AS runs WHERE {_UNCLAIMED} AND runs.lane = each.lane
        AND runs.version > each.version AND runs.version < each.until ORDER BY runs.version LIMIT 1) AS found
)
SELECT lane, version FROM each"""
_TAKE = """
UPDATE @runs AS runs SET term = runs.term + 1, worker = ?::text, lease_until = @now(?::bigint) + ?::bigint,
                         status = 'running', ready_at = NULL, suspect = runs.suspect AND ?::boolean,
                         updated_at = @now(?::bigint)"""
_TURN = """
INSERT INTO @turns (tenant, turn)
SELECT served.tenant, turn.number * 4096 + served.nth
FROM (SELECT taken.tenant, max(array_position(?::bigint[], taken.key)) AS nth FROM taken
      GROUP BY taken.tenant ORDER BY taken.tenant) AS served,
     (SELECT nextval('@turn_numbers') AS number) AS turn
ON CONFLICT (tenant) DO UPDATE SET turn = excluded.turn"""
# Runs that another worker is claiming are skipped, so that claims do not wait for each other.
_TAKE_SOME = f"""
WITH free AS MATERIALIZED (
    SELECT runs.key FROM @runs AS runs WHERE runs.key = ANY(?::bigint[]) AND runs.worker IS NULL
    AND runs.ready_at <= @now(?::bigint) AND runs.status NOT IN ('completed', 'failed', 'cancelled')
    AND (runs.gate = '' OR ?::boolean) AND runs.suspect = ?::boolean
    ORDER BY runs.key FOR UPDATE SKIP LOCKED
), taken AS (
    {_TAKE} FROM free WHERE runs.key = free.key RETURNING runs.*
), turned AS ({_TURN})
SELECT {COLUMNS} FROM taken ORDER BY array_position(?::bigint[], key)"""
_TAKE_NAMED = f"""
WITH taken AS (
    {_TAKE} WHERE id = ? AND (worker IS NULL OR lease_until <= @now(?::bigint)) AND NOT read_only
    AND status NOT IN ('completed', 'failed', 'cancelled')
    AND (gate = '' OR worker IS NOT NULL OR ?::boolean)
    AND (?::text[] IS NULL OR version = ANY(?::text[]) OR split_part(version, '-', 1) = ANY(?::text[]))
    RETURNING runs.*
), turned AS ({_TURN.replace("max(array_position(?::bigint[], taken.key))", "0")})
SELECT {COLUMNS} FROM taken"""

_EXTEND = f"""
WITH held AS (
    UPDATE @runs AS runs SET lease_until = @now(?::bigint) + ?::bigint
    FROM unnest(?::bigint[], ?::text[], ?::bigint[], ?::text[]) AS g (key, run, term, worker)
    WHERE {OWNED_BY_GIVEN}
    RETURNING runs.key, runs.id)
SELECT @now(NULL), array(SELECT key FROM held), array(SELECT id FROM held)"""
_REST = f"UPDATE @runs SET status = ?, updated_at = ? WHERE {OWNED}"


class AdmissionFilter(msgspec.Struct, frozen=True):
    """What the limits admit: the queues that are admitted, and the keys that are skipped in them, each with
    the sign of its queue. In queues that are stopped, only the keys that are exempt."""

    open: list[str]
    shut: list[str]
    stopped: list[str]
    exempt: list[str]


class QueuesToLock(msgspec.Struct, frozen=True):
    """These queues have runs too: a claim has to lock their limits first."""

    lines: list[str]


async def claim_named(
    conn: PostgresConnection, now: int | None, want: ClaimRequest, *, passes: bool = False
) -> list[Claim]:
    """`passes`: also a run with a limit. A run whose lease expired already has its place."""
    versions = None if want.versions is None else list(want.versions)
    taken = await conn.rows(
        _TAKE_NAMED, want.worker, now, want.ttl, want.suspects, now, want.run, now, passes,
        versions, versions, versions,
    )  # fmt: skip
    return [_claim(values, want, {}) for values in taken]


async def claim(
    conn: PostgresConnection, now: int | None, want: ClaimRequest, crowd: Crowd
) -> ClaimResult | QueuesToLock:
    """Chosen without locks, then claimed unless another worker was faster; then the remaining runs are
    examined."""
    claims: list[Claim] = []
    tried: list[int] = []
    admission: Admission | None = None
    for _ in range(ROUNDS):
        found = await candidates(conn, now, want, tried, want.limit - len(claims), crowd)
        lines = [row[6] for row in found if row[3] is None]
        if lines and admission is None:
            # Most reached limits are found this way without a lock; if one is open, nothing of it is claimed
            # this way.
            admission = await concurrency_limits.load_admission(
                conn, now, [line[1:] for line in lines], lock=False
            )
            if admission.open_queues(lines) and not claims:
                return QueuesToLock(lines)
        choice = select_runs(
            [row for row in found if row[3] is not None], ClaimSelection(want.limit - len(claims))
        )
        if not choice.keys:
            break
        claims += await take(conn, now, want, choice, limited=False)
        if len(claims) >= want.limit:
            break
        tried += choice.keys
    return ClaimResult(claims, admission is not None, None if admission is None else admission.opens_at)


async def take(
    conn: PostgresConnection, now: int | None, want: ClaimRequest, choice: ClaimSelection, *, limited: bool
) -> list[Claim]:
    keys = choice.keys
    taken = await conn.rows(
        _TAKE_SOME, keys, now, limited, want.suspects, want.worker, now, want.ttl, want.suspects, now,
        keys, keys,
    )  # fmt: skip
    return [_claim(values, want, choice.since) for values in taken]


def _claim(values: Row, want: ClaimRequest, since: dict[int, int]) -> Claim:
    run = run_row(values)
    return Claim(Lease(run.id, run.key, run.term, want.worker), run, since.get(run.key))


async def candidates(
    conn: PostgresConnection,
    now: int | None,
    want: ClaimRequest,
    tried: list[int],
    limit: int,
    crowd: Crowd,
    past: AdmissionFilter | None = None,
) -> list[Row]:
    """A run: (urgency, tenant, ready_at, key, running, turn, limit, starts). A queue: a row without a key."""
    lanes = None if want.lanes is None else list(want.lanes)
    versions = None if want.versions is None else list(want.versions)
    admitted = [None] * 4 if past is None else [past.open, past.shut, past.stopped, past.exempt]

    async def ask(
        text: str, lanes: list[str] | None, versions: list[str] | None, *given: list[str]
    ) -> list[Row]:
        args = [now, lanes, versions, tried, want.suspects, *admitted, *given]
        return await conn.rows(text, *args, *[limit] * (text.count("?") - len(args)))

    if not crowd.is_expected():
        found = await ask(_IN_WINDOW[past is not None], lanes, versions)
        if not any(row[3] is None and row[6] is None for row in found):
            return found
        crowd.met()
    served = await _served_versions(conn, want)
    if len(served) > _VERSIONS:
        return await ask(_IN_ORDER[past is not None], lanes, versions)
    if not served:
        return []
    return await ask(_BY_VERSION[past is not None], None, None, *map(list, zip(*served, strict=True)))


async def _served_versions(conn: PostgresConnection, want: ClaimRequest) -> list[tuple[str, str]]:
    """Those that may have ready runs, each with its lane."""
    ranges = served_ranges(want.versions).ranges
    if len(ranges) > _VERSIONS:
        ranges = served_ranges(None).ranges
    lanes = None if want.lanes is None else list(want.lanes)
    firsts, ends = [first for first, _ in ranges], [end for _, end in ranges]
    found = await conn.rows(_FIND_VERSIONS, want.suspects, lanes, firsts, ends)
    return [(lane, version) for lane, version in found if want.serves(version)]


def select_runs(found: list[Row], choice: ClaimSelection) -> ClaimSelection:
    """By priority; within a priority, fair between tenants."""
    for urgency in sorted({row[0] for row in found}):
        tenants: dict[str, CandidateTenant] = {}
        # Backwards: the next one is the last element.
        level = sorted((row for row in found if row[0] == urgency), key=_order, reverse=True)
        for _, name, ready_at, key, running, turn, limit, starts in level:
            tenant = tenants.setdefault(name, CandidateTenant(name, running, turn, []))
            tenant.ready.append(ReadyRun(ready_at, key, limit, starts))
        choice.serve(tenants.values())
    return choice


def _order(row: Row) -> tuple[int, int]:
    return row[2], row[3]


async def extend(
    conn: PostgresConnection, now: int | None, leases: Sequence[Lease], ttl: int
) -> tuple[int, list[bool]]:
    """(the server's time, which leases are still ours). Even after expiry, as long as no other worker claimed
    the run (D-33)."""
    columns = ([x.key for x in leases], [x.run for x in leases], [x.term for x in leases])
    found = await conn.row(_EXTEND, now, ttl, *columns, [x.worker for x in leases])
    assert found is not None
    held = set(zip(found[1], found[2], strict=True))
    return found[0], [(lease.key, lease.run) in held for lease in leases]


async def set_idle(conn: PostgresConnection, now: int, lease: Lease, status: RunStatus) -> bool:
    return await conn.run(_REST, status, now, *lease_values(lease)) == 1


# ---------------------------------------------------------------------- runs that have limits
# One transaction, in which the rows of the limits are locked before anything is counted. Claims of runs
# without limits do not use it.
_WITH_LIMIT = "SELECT key, gate, status = 'pending' FROM @runs WHERE id = ? AND gate <> '' AND worker IS NULL"


async def claim_with_limits(
    conn: PostgresConnection, now: int | None, want: ClaimRequest, lines: list[str], crowd: Crowd
) -> ClaimResult:
    """Runs without a limit and those of the queues, in one order."""
    admission = await concurrency_limits.load_admission(conn, now, [line[1:] for line in lines], lock=True)
    claims: list[Claim] = []
    tried: list[int] = []
    kept_out = False
    # Each round reads more keys: it skips those whose limit the last round found reached.
    for _ in range(ROUNDS):
        past = _admission_filter(admission, lines)
        found = await candidates(conn, now, want, tried, want.limit - len(claims), crowd, past)
        choice = select_runs(found, ClaimSelection(want.limit - len(claims), admission))
        kept_out = kept_out or choice.refused or len(past.open) < len(lines) or bool(past.shut)
        if not choice.keys:
            break
        taken = await take(conn, now, want, choice, limited=True)
        choice.missed([one.run.key for one in taken])
        await concurrency_limits.write_starts(
            conn, [(key, start) for key, starts in choice.starts.items() for start in starts]
        )
        claims += taken
        if len(claims) >= want.limit:
            break
        tried += choice.keys
    return ClaimResult(claims, kept_out, admission.opens_at)


def _admission_filter(admission: Admission, lines: list[str]) -> AdmissionFilter:
    shut = [f"+{name}" for name in admission.shut(starts=True)]
    shut += [f"-{name}" for name in admission.shut(starts=False)]
    exempt = {line: found for line in lines if (found := admission.exempt(line)) is not None}
    keys = sorted({key for of_line in exempt.values() for key in of_line})
    return AdmissionFilter(admission.open_queues(lines), shut, list(exempt), keys)


async def claim_named_with_limit(
    conn: PostgresConnection, now: int | None, want: ClaimRequest
) -> ClaimResult:
    """A run that a plain claim did not claim, perhaps because it has a limit."""
    stands = await conn.row(_WITH_LIMIT, want.run)
    if stands is None:
        return ClaimResult([])
    key, limit, starts = stands
    admission = await concurrency_limits.load_admission(conn, now, [root_of(limit)], lock=True)
    free = await conn.row(IS_ENTITY_FREE, key) is not None
    if not (free and admission.passes(limit, starts=starts)):
        return ClaimResult([], True, admission.opens_at)
    claims = await claim_named(conn, now, want, passes=True)
    if claims:
        await concurrency_limits.write_starts(
            conn, [(key, start) for start in admission.enter(limit, starts=starts)]
        )
    return ClaimResult(claims)
