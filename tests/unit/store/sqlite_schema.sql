CREATE INDEX blob_refs_of_blob ON blob_refs (digest);

CREATE INDEX blobs_by_age ON blobs (put_at);

CREATE INDEX holds_by_status ON holds (status, created_at);

CREATE INDEX inbox_of_run ON inbox (run_key, done);

CREATE UNIQUE INDEX inbox_once ON inbox (run_key, dedupe) WHERE dedupe IS NOT NULL;

CREATE INDEX late_reports_of_run ON late_reports (run_key, seq);

CREATE INDEX memories_of_scope ON memories (tenant, scope, strength);

CREATE INDEX runs_by_flow ON runs (flow, created_at);

CREATE INDEX runs_by_status ON runs (status, created_at);

CREATE INDEX runs_leased ON runs (tenant, lease_until) WHERE worker IS NOT NULL;

CREATE INDEX runs_newest ON runs (created_at);

CREATE INDEX runs_of_thread ON runs (thread, created_at) WHERE thread IS NOT NULL;

CREATE UNIQUE INDEX runs_once ON runs (tenant, flow, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX runs_ready ON runs (priority, tenant, ready_at) WHERE worker IS NULL AND ready_at IS NOT NULL;

CREATE INDEX timers_due ON timers (fire_at);

CREATE TABLE blob_refs (
    run_key INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (run_key, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    number INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    put_at INTEGER NOT NULL,
    condemned INTEGER NOT NULL DEFAULT 0 CHECK (condemned IN (0, 1)),
    place TEXT NOT NULL CHECK (place IN ('row', 'file', 'elsewhere')),
    data BLOB
) STRICT;

CREATE TABLE codes (
    digest TEXT PRIMARY KEY,
    marks BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE feed (
    pos INTEGER PRIMARY KEY,
    run_key INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;

CREATE TABLE flows (
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    graph BLOB NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    node TEXT NOT NULL,
    scope TEXT NOT NULL,
    visit INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    type TEXT NOT NULL,
    prompt TEXT NOT NULL,
    options BLOB,
    assignee TEXT,
    priority TEXT NOT NULL,
    context BLOB NOT NULL,
    schema BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    expiry_action TEXT,
    request_hash TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'resolved', 'expired', 'cancelled')),
    version INTEGER NOT NULL DEFAULT 1,
    resolution BLOB,
    resolved_by TEXT,
    resolved_at INTEGER,
    closed_reason TEXT,
    UNIQUE (run_key, scope, node, visit, ordinal)
) STRICT;

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    run_key INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    dedupe TEXT,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE journal (
    key INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    at INTEGER NOT NULL,
    term INTEGER NOT NULL,
    node TEXT NOT NULL,
    visit INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    scope TEXT NOT NULL,
    effect TEXT NOT NULL,
    outcome TEXT NOT NULL,
    listed INTEGER NOT NULL,
    events INTEGER NOT NULL,
    event_from INTEGER NOT NULL,
    digest BLOB NOT NULL,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE late_reports (
    number INTEGER PRIMARY KEY,
    run_key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    folded TEXT NOT NULL,
    strength REAL NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    run_key INTEGER NOT NULL,
    at INTEGER NOT NULL,
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE runs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    head INTEGER NOT NULL,
    event_seq INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    term INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    lease_until INTEGER,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN (
        'pending', 'running', 'waiting', 'pending_input', 'resumable', 'completed', 'failed', 'cancelled')),
    ready_at INTEGER,
    inbox_seq INTEGER NOT NULL DEFAULT 0,
    horizon INTEGER NOT NULL DEFAULT 0,
    recoveries INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL,
    lane TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    flow TEXT NOT NULL,
    version TEXT NOT NULL,
    code TEXT NOT NULL,
    thread TEXT,
    instance_key TEXT,
    idempotency_key TEXT,
    parent_run TEXT,
    forked_from TEXT,
    superseded_by TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    error TEXT, read_only INTEGER NOT NULL DEFAULT 0 CHECK (
    read_only = 0 OR (read_only = 1 AND worker IS NULL AND ready_at IS NULL)), migrated INTEGER NOT NULL DEFAULT 0,
    CHECK ((worker IS NULL) = (lease_until IS NULL))
) STRICT;

CREATE TABLE timers (
    run_key INTEGER NOT NULL,
    token TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    PRIMARY KEY (run_key, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    tenant TEXT PRIMARY KEY,
    turn INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_status BEFORE UPDATE OF status ON runs
WHEN NEW.status <> OLD.status AND OLD.status || ' ' || NEW.status NOT IN (
    'pending running', 'pending failed', 'pending cancelled',
    'running waiting', 'running pending_input', 'running resumable',
    'running completed', 'running failed', 'running cancelled',
    'waiting running', 'waiting cancelled',
    'pending_input running', 'pending_input cancelled',
    'resumable running', 'resumable failed', 'resumable cancelled',
    'failed resumable')
BEGIN
    SELECT RAISE(ABORT, 'a run cannot change its status like this');
END;

