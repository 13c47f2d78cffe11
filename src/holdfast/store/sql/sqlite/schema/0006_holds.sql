-- Who started a run, and as which deployment.
ALTER TABLE runs ADD COLUMN started_by TEXT;
ALTER TABLE runs ADD COLUMN deployment TEXT;

-- A hold's deadline is its row's `expires_at`; its run needs no timer for it any more.
DELETE FROM timers WHERE token LIKE 'hold:%';

-- `tenant` and `read_only` are those of the run, kept here so that lists and sweeps find everything in one
-- index. Lists are by urgency, then by `due`: a hold without a deadline comes after all that have one.
CREATE TABLE holds_new (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_key INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    read_only INTEGER NOT NULL DEFAULT 0 CHECK (read_only IN (0, 1)),
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'resolved', 'expired', 'cancelled')),
    version INTEGER NOT NULL DEFAULT 1,
    seq INTEGER NOT NULL,
    node TEXT NOT NULL,
    scope TEXT NOT NULL,
    visit INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    block INTEGER NOT NULL DEFAULT 0,
    type TEXT NOT NULL,
    assignee TEXT,
    assignee_type TEXT NOT NULL DEFAULT 'unrouted' CHECK (
        assignee_type IN ('user', 'group', 'role', 'delegated_user', 'unrouted')),
    assignee_value TEXT NOT NULL DEFAULT '',
    assignee_reason TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 1,
    priority TEXT NOT NULL,
    urgency INTEGER NOT NULL AS (
        CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END) VIRTUAL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    due INTEGER NOT NULL AS (coalesce(expires_at, 0x7fffffffffffffff)) VIRTUAL,
    expiry_action TEXT,
    original_timeout INTEGER,
    escalation_target TEXT,
    escalation_count INTEGER NOT NULL DEFAULT 0,
    reminder_interval INTEGER,
    remind_at INTEGER,
    reminder_count INTEGER NOT NULL DEFAULT 0,
    notification_sent INTEGER NOT NULL DEFAULT 0 CHECK (notification_sent IN (0, 1)),
    notified_at INTEGER,
    claimed_by TEXT,
    claim_until INTEGER,
    paused_at INTEGER,
    placed_by TEXT,
    placed_until INTEGER,
    message_id TEXT,
    resolved_by TEXT,
    resolved_at INTEGER,
    closed_by TEXT,
    closed_at INTEGER,
    closed_reason TEXT,
    resumed_at INTEGER,
    tags TEXT NOT NULL DEFAULT '[]',
    terms TEXT NOT NULL DEFAULT '{}',
    request_hash TEXT NOT NULL,
    prompt TEXT NOT NULL,
    options BLOB,
    schema BLOB,
    resolution BLOB,
    placed BLOB,
    context BLOB NOT NULL,
    UNIQUE (run_key, scope, node, visit, ordinal),
    CHECK ((status = 'resolved') = (resolution IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_by IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
) STRICT;

-- Of what was asked before there were assignees, only what begins with a plain prefix is routed. Who took the
-- outcome in is known by the mail that still lies there. What an expiry meant to the run (`fail`, a branch) it
-- knows itself.
INSERT INTO holds_new (
    number, id, run_key, tenant, read_only, status, version, seq, node, scope, visit, ordinal, type, assignee,
    assignee_type, assignee_value, priority, created_at, updated_at, expires_at, expiry_action,
    escalation_target, original_timeout, resolved_by, resolved_at, closed_by, closed_at, closed_reason,
    resumed_at, request_hash, prompt, options, schema, resolution, context)
SELECT
    holds.number, holds.id, holds.run_key, runs.tenant, runs.read_only, holds.status, holds.version,
    holds.seq, holds.node, holds.scope, holds.visit, holds.ordinal, holds.type, holds.assignee,
    CASE WHEN holds.assignee GLOB 'user:?*' THEN 'user' WHEN holds.assignee GLOB 'group:?*' THEN 'group'
         WHEN holds.assignee GLOB 'role:?*' THEN 'role' ELSE 'unrouted' END,
    CASE WHEN holds.assignee GLOB 'user:?*@?*' THEN lower(substr(holds.assignee, 6))
         WHEN holds.assignee GLOB 'user:?*' THEN substr(holds.assignee, 6)
         WHEN holds.assignee GLOB 'group:?*' THEN substr(holds.assignee, 7)
         WHEN holds.assignee GLOB 'role:?*' THEN substr(holds.assignee, 6) ELSE '' END,
    holds.priority, holds.created_at, coalesce(holds.resolved_at, holds.created_at), holds.expires_at,
    CASE WHEN holds.expiry_action = 'cancel' THEN 'cancel'
         WHEN holds.expiry_action IN ('default', 'default_option') THEN 'default_option'
         WHEN holds.expiry_action GLOB 'escalate:?*' THEN 'escalate' END,
    iif(holds.expiry_action GLOB 'escalate:?*', substr(holds.expiry_action, 10), NULL),
    holds.expires_at - holds.created_at,
    iif(holds.status = 'resolved', coalesce(holds.resolved_by, 'system:unknown'), NULL),
    iif(holds.status = 'resolved', coalesce(holds.resolved_at, holds.created_at), NULL),
    iif(holds.status IN ('cancelled', 'expired'), 'system:engine', NULL),
    iif(holds.status IN ('cancelled', 'expired'), coalesce(runs.ended_at, runs.updated_at), NULL),
    holds.closed_reason,
    CASE WHEN holds.status = 'resolved' AND NOT EXISTS (
            SELECT 1 FROM inbox WHERE inbox.run_key = holds.run_key AND inbox.done = 0
            AND inbox.kind = 'answer' AND inbox.payload = CAST(holds.id AS BLOB))
         THEN holds.resolved_at END,
    holds.request_hash, holds.prompt, holds.options, holds.schema,
    iif(holds.status = 'resolved', coalesce(holds.resolution, x'7b7d'), NULL), holds.context
FROM holds JOIN runs ON runs.key = holds.run_key;

DROP TABLE holds;
ALTER TABLE holds_new RENAME TO holds;

-- Inboxes: what one assignee has to do, and what a tenant has to do, most urgent first.
CREATE INDEX holds_of_assignee ON holds (tenant, assignee_type, assignee_value, urgency, due, created_at)
    WHERE status = 'pending' AND NOT read_only;
CREATE INDEX holds_of_tenant ON holds (tenant, urgency, due, created_at)
    WHERE status = 'pending' AND NOT read_only;
-- Lists by age, of whatever status.
CREATE INDEX holds_by_age ON holds (tenant, status, created_at);
CREATE INDEX holds_asked_of ON holds (tenant, assignee_type, assignee_value, status, created_at)
    WHERE status <> 'pending';
CREATE INDEX holds_shared_by_age ON holds (tenant, status, created_at)
    WHERE json_extract(terms, '$.also_for') IS NOT NULL;
CREATE INDEX holds_resolved_by ON holds (tenant, resolved_by, created_at) WHERE resolved_by IS NOT NULL;
-- What sweeps look for.
CREATE INDEX holds_expiring ON holds (expires_at)
    WHERE status = 'pending' AND NOT read_only AND paused_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX holds_reminding ON holds (remind_at)
    WHERE status = 'pending' AND NOT read_only AND remind_at IS NOT NULL;
CREATE INDEX holds_placed ON holds (placed_until)
    WHERE status = 'pending' AND NOT read_only AND placed_until IS NOT NULL;
CREATE INDEX holds_to_resume ON holds (coalesce(resolved_at, closed_at))
    WHERE status <> 'pending' AND NOT read_only AND resumed_at IS NULL AND closed_by IS NOT 'system:engine';

-- A hold that was decided or closed stays as it is. Its content may be encrypted anew, its run may take the
-- outcome in; everything else is refused, whoever asks.
CREATE TRIGGER holds_final BEFORE UPDATE OF
    status, version, assignee, assignee_type, assignee_value, epoch, priority, expires_at, claimed_by,
    placed_until, resolved_by, resolved_at, closed_by, closed_at
ON holds WHEN OLD.status <> 'pending'
BEGIN
    SELECT RAISE(ABORT, 'a hold that was decided or closed cannot change');
END;

CREATE TRIGGER holds_identity BEFORE UPDATE OF id, run_key, tenant, seq, block, type, created_at ON holds
BEGIN
    SELECT RAISE(ABORT, 'what a hold is cannot change');
END;

-- Who else may vote on an open hold, which waits for one of them by its assignee: it is in the lists of all.
CREATE TABLE hold_shares (
    tenant TEXT NOT NULL,
    assignee TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (tenant, assignee, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_shares_of_hold ON hold_shares (number);

CREATE TRIGGER holds_shared AFTER INSERT ON holds
WHEN NEW.terms <> '{}' AND NEW.status = 'pending' AND NOT NEW.read_only
BEGIN
    INSERT INTO hold_shares (tenant, assignee, number)
    SELECT NEW.tenant, value, NEW.number FROM json_each(NEW.terms, '$.also_for') WHERE true
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER holds_shared_anew AFTER UPDATE OF terms, status ON holds
WHEN OLD.terms <> '{}' OR NEW.terms <> '{}'
BEGIN
    DELETE FROM hold_shares WHERE number = NEW.number;
    INSERT INTO hold_shares (tenant, assignee, number)
    SELECT NEW.tenant, value, NEW.number FROM json_each(NEW.terms, '$.also_for')
    WHERE NEW.status = 'pending' AND NOT NEW.read_only
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER holds_shared_no_more AFTER DELETE ON holds WHEN OLD.terms <> '{}'
BEGIN
    DELETE FROM hold_shares WHERE number = OLD.number;
END;

-- What people leave at a hold. A later one of the same slot replaces it and keeps its number.
CREATE TABLE hold_notes (
    number INTEGER PRIMARY KEY,
    hold TEXT NOT NULL,
    kind TEXT NOT NULL,
    slot TEXT NOT NULL,
    person TEXT NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER,
    body BLOB NOT NULL,
    UNIQUE (hold, kind, slot)
) STRICT;

CREATE INDEX hold_notes_of_slot ON hold_notes (kind, slot);

-- Idempotency keys, and the links that were used up.
CREATE TABLE hold_keys (
    number INTEGER PRIMARY KEY,
    hold TEXT NOT NULL,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    UNIQUE (hold, actor, key)
) STRICT;

CREATE TABLE hold_links (
    jti TEXT PRIMARY KEY,
    hold TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_links_of_hold ON hold_links (hold);

-- One chain per tenant. It outlives the runs that it speaks of.
CREATE TABLE audit (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    hold TEXT,
    run TEXT,
    data BLOB NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_of_hold ON audit (tenant, hold) WHERE hold IS NOT NULL;

-- The last row of each chain, kept apart: a chain whose end was cut off still verifies by itself.
CREATE TABLE audit_heads (
    tenant TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_grown AFTER INSERT ON audit
BEGIN
    INSERT INTO audit_heads (tenant, seq, hash) VALUES (NEW.tenant, NEW.seq, NEW.hash)
    ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
END;

CREATE TRIGGER audit_updated BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit cannot be changed');
END;

CREATE TRIGGER audit_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'nothing can be removed from the audit');
END;

-- INSERT OR REPLACE deletes without a trigger: only the next number of the chain is taken.
CREATE TRIGGER audit_inserted BEFORE INSERT ON audit
WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM audit WHERE tenant = NEW.tenant), 0)
BEGIN
    SELECT RAISE(ABORT, 'the audit grows at its end only');
END;

-- Rows stay when they were told, for as long as their run: a key is never told twice. The key of a message about
-- a hold begins with the hold's id, so that they are found by it.
CREATE TABLE outbox_new (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    run_key INTEGER,
    hold TEXT,
    at INTEGER NOT NULL,
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'skipped', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    claimed_until INTEGER,
    error TEXT,
    payload BLOB NOT NULL,
    UNIQUE (key, tenant)
) STRICT;

INSERT INTO outbox_new (id, tenant, run_key, at, topic, key, due_at, payload)
SELECT min(outbox.id), runs.tenant, outbox.run_key, outbox.at, outbox.topic, outbox.key, outbox.at,
       outbox.payload
FROM outbox JOIN runs ON runs.key = outbox.run_key GROUP BY runs.tenant, outbox.key;

DROP TABLE outbox;
ALTER TABLE outbox_new RENAME TO outbox;

-- By topic: what nobody listens to may wait for ever, and is in nobody's way.
CREATE INDEX outbox_due ON outbox (topic, due_at) WHERE state = 'waiting';
CREATE INDEX outbox_of_run ON outbox (run_key) WHERE run_key IS NOT NULL AND hold IS NULL;
CREATE INDEX outbox_dead ON outbox (tenant) WHERE state = 'dead';

-- Small named things of a tenant: people, groups, skills, deployments, calendars, policies.
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (tenant, kind, name)
) STRICT;
