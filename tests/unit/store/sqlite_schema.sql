CREATE INDEX audit_of_hold ON audit (tenant, hold) WHERE hold IS NOT NULL;

CREATE INDEX blob_refs_of_blob ON blob_refs (digest);

CREATE INDEX blobs_by_age ON blobs (put_at);

CREATE INDEX deaths_by_worker ON deaths (worker);

CREATE INDEX gate_starts_over ON gate_starts (until);

CREATE INDEX graph_checkpoints_of_run ON graph_checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE INDEX graph_threads_of_family ON graph_threads (family);

CREATE INDEX graph_values_of_blob ON graph_values (blob_digest) WHERE blob_digest IS NOT NULL;

CREATE INDEX graph_values_of_family ON graph_values (family);

CREATE INDEX hold_links_of_hold ON hold_links (hold);

CREATE INDEX hold_notes_of_slot ON hold_notes (kind, slot);

CREATE INDEX hold_shares_of_hold ON hold_shares (number);

CREATE INDEX holds_asked_of ON holds (tenant, assignee_type, assignee_value, status, created_at)
    WHERE status <> 'pending';

CREATE INDEX holds_by_age ON holds (tenant, status, created_at);

CREATE INDEX holds_expiring ON holds (expires_at)
    WHERE status = 'pending' AND NOT read_only AND paused_at IS NULL AND expires_at IS NOT NULL;

CREATE INDEX holds_of_assignee ON holds (tenant, assignee_type, assignee_value, urgency, due, created_at)
    WHERE status = 'pending' AND NOT read_only;

CREATE INDEX holds_of_tenant ON holds (tenant, urgency, due, created_at)
    WHERE status = 'pending' AND NOT read_only;

CREATE INDEX holds_placed ON holds (placed_until)
    WHERE status = 'pending' AND NOT read_only AND placed_until IS NOT NULL;

CREATE INDEX holds_reminding ON holds (remind_at)
    WHERE status = 'pending' AND NOT read_only AND remind_at IS NOT NULL;

CREATE INDEX holds_resolved_by ON holds (tenant, resolved_by, created_at) WHERE resolved_by IS NOT NULL;

CREATE INDEX holds_shared_by_age ON holds (tenant, status, created_at)
    WHERE json_extract(terms, '$.also_for') IS NOT NULL;

CREATE INDEX holds_to_resume ON holds (coalesce(resolved_at, closed_at))
    WHERE status <> 'pending' AND NOT read_only AND resumed_at IS NULL AND closed_by IS NOT 'system:engine';

CREATE INDEX inbox_of_run ON inbox (run_key, done);

CREATE UNIQUE INDEX inbox_once ON inbox (run_key, dedupe) WHERE dedupe IS NOT NULL;

CREATE INDEX late_reports_of_run ON late_reports (run_key, seq);

CREATE INDEX memories_of_scope ON memories (tenant, scope, strength);

CREATE INDEX outbox_dead ON outbox (tenant) WHERE state = 'dead';

CREATE INDEX outbox_due ON outbox (topic, due_at) WHERE state = 'waiting';

CREATE INDEX outbox_of_run ON outbox (run_key) WHERE run_key IS NOT NULL AND hold IS NULL;

CREATE INDEX queue_messages_by_correlation ON queue_messages (tenant, correlation_id)
WHERE correlation_id IS NOT NULL;

CREATE INDEX queue_messages_by_queue ON queue_messages (tenant, scope, queue, number);

CREATE INDEX queue_messages_claimed ON queue_messages (claim_until) WHERE state = 'claimed';

CREATE INDEX queue_messages_expiring ON queue_messages (expires_at)
WHERE expires_at IS NOT NULL AND state IN ('ready', 'claimed');

CREATE INDEX queue_messages_of_group ON queue_messages (tenant, scope, queue, group_key, number)
WHERE group_key IS NOT NULL AND state IN ('ready', 'claimed');

CREATE INDEX queue_messages_of_hold ON queue_messages (hold) WHERE hold IS NOT NULL;

CREATE INDEX queue_messages_old ON queue_messages (drop_at) WHERE drop_at IS NOT NULL;

CREATE UNIQUE INDEX queue_messages_once ON queue_messages (tenant, scope, queue, group_key)
WHERE group_key IS NOT NULL AND state = 'claimed';

CREATE INDEX queue_messages_ready ON queue_messages (tenant, scope, queue, urgency, visible_at, number)
WHERE state = 'ready';

CREATE INDEX runs_by_flow ON runs (flow, created_at);

CREATE INDEX runs_by_status ON runs (status, created_at);

CREATE INDEX runs_dead ON runs (created_at) WHERE dead;

CREATE INDEX runs_ended ON runs (tenant, ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_inside ON runs (gate) WHERE worker IS NOT NULL AND gate <> '';

CREATE INDEX runs_leased ON runs (tenant, lease_until) WHERE worker IS NOT NULL;

CREATE INDEX runs_missing ON runs (status) WHERE missing <> '';

CREATE INDEX runs_newest ON runs (created_at);

CREATE INDEX runs_of_entity ON runs (instance_key, status) WHERE instance_key IS NOT NULL;

CREATE INDEX runs_of_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;

CREATE INDEX runs_of_thread ON runs (thread, created_at) WHERE thread IS NOT NULL;

CREATE UNIQUE INDEX runs_once ON runs (tenant, flow, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX runs_ready ON runs (priority, tenant, line, ready_at) WHERE worker IS NULL AND ready_at IS NOT NULL;

CREATE INDEX runs_ready_versions ON runs (suspect, lane, version, priority, tenant, line, ready_at)
WHERE worker IS NULL AND ready_at IS NOT NULL;

CREATE INDEX runs_suspect ON runs (ready_at) WHERE suspect;

CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

CREATE INDEX timers_due ON timers (fire_at);

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

CREATE TABLE audit_heads (
    tenant TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE deaths (
    run_key INTEGER NOT NULL,
    term INTEGER NOT NULL,
    worker TEXT NOT NULL,
    at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    head INTEGER NOT NULL,
    status TEXT NOT NULL, alone INTEGER NOT NULL DEFAULT 1 CHECK (alone IN (0, 1)),
    PRIMARY KEY (run_key, term)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE feed_marks (
    pos INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    trimmed INTEGER NOT NULL DEFAULT 0 CHECK (trimmed IN (0, 1))
) STRICT;

CREATE TABLE flows (
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    graph BLOB NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE gate_starts (
    gate TEXT NOT NULL,
    at INTEGER NOT NULL,
    run_key INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (gate, at, run_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE gates (
    root TEXT NOT NULL,
    name TEXT NOT NULL,
    fixed INTEGER NOT NULL CHECK (fixed IN (0, 1)),
    concurrency INTEGER,
    rate INTEGER,
    per INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (root, name, fixed)
) STRICT, WITHOUT ROWID;

CREATE TABLE graph_checkpoints (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_number INTEGER NOT NULL,
    ns TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    run_id TEXT,
    listed INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    refs TEXT NOT NULL,
    facets TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (thread_number, ns, id)
) STRICT;

CREATE TABLE graph_threads (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    thread TEXT NOT NULL,
    family INTEGER NOT NULL,
    owner TEXT,
    term INTEGER NOT NULL DEFAULT 0,
    claimed_until INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, thread),
    CHECK ((owner IS NULL) = (claimed_until IS NULL))
) STRICT;

CREATE TABLE graph_values (
    number INTEGER PRIMARY KEY,
    family INTEGER NOT NULL,
    base INTEGER,
    channel TEXT NOT NULL,
    data BLOB NOT NULL
, blob_digest BLOB) STRICT;

CREATE TABLE graph_writes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_number INTEGER NOT NULL,
    ns TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    task TEXT NOT NULL,
    idx INTEGER NOT NULL,
    path TEXT NOT NULL,
    channel TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (thread_number, checkpoint, ns, task, idx)
) STRICT;

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

CREATE TABLE hold_shares (
    tenant TEXT NOT NULL,
    assignee TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (tenant, assignee, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE "holds" (
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
    context BLOB NOT NULL, state_key TEXT,
    UNIQUE (run_key, scope, node, visit, ordinal),
    CHECK ((status = 'resolved') = (resolution IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_by IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
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

CREATE TABLE "outbox" (
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

CREATE TABLE projected (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pos INTEGER NOT NULL
) STRICT;

CREATE TABLE projections (
    key INTEGER PRIMARY KEY,
    checkpoint TEXT NOT NULL,
    completed TEXT NOT NULL,
    node_states TEXT,
    original_input TEXT,
    output TEXT
) STRICT;

CREATE TABLE queue_messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'claimed', 'completed', 'dead', 'withdrawn', 'expired')),
    priority TEXT NOT NULL,
    urgency INTEGER NOT NULL,
    visible_at INTEGER NOT NULL,
    expires_at INTEGER,
    group_key TEXT,
    correlation_id TEXT,
    hold TEXT,
    run TEXT,
    node TEXT,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    retention INTEGER NOT NULL,
    claimed_by TEXT,
    claim_token INTEGER NOT NULL,
    claim_until INTEGER,
    completed_by TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    drop_at INTEGER,
    digest TEXT NOT NULL,
    error TEXT,
    payload BLOB NOT NULL,
    result BLOB,
    UNIQUE (tenant, id),
    CHECK ((state = 'claimed') = (claim_until IS NOT NULL)),
    CHECK ((state = 'claimed') = (claimed_by IS NOT NULL)),
    CHECK ((state IN ('ready', 'claimed')) = (ended_at IS NULL))
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
    read_only = 0 OR (read_only = 1 AND worker IS NULL AND ready_at IS NULL)), migrated INTEGER NOT NULL DEFAULT 0, started_by TEXT, deployment TEXT, gate TEXT NOT NULL DEFAULT '', line TEXT GENERATED ALWAYS AS (
    iif(gate = '', '', iif(status = 'pending', '+', '-') || substr(gate, 1, instr(gate || '/', '/') - 1))
) VIRTUAL, dead INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1)), suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), missing TEXT NOT NULL DEFAULT '',
    CHECK ((worker IS NULL) = (lease_until IS NULL))
) STRICT;

CREATE TABLE schedules (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    flow TEXT NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    last_run TEXT,
    revision INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (tenant, name)
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

CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    incarnation TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TRIGGER audit_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'nothing can be removed from the audit');
END;

CREATE TRIGGER audit_grown AFTER INSERT ON audit
BEGIN
    INSERT INTO audit_heads (tenant, seq, hash) VALUES (NEW.tenant, NEW.seq, NEW.hash)
    ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
END;

CREATE TRIGGER audit_inserted BEFORE INSERT ON audit
WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM audit WHERE tenant = NEW.tenant), 0)
BEGIN
    SELECT RAISE(ABORT, 'the audit grows at its end only');
END;

CREATE TRIGGER audit_updated BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit cannot be changed');
END;

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

CREATE VIEW checkpoints AS
SELECT
    coalesce(p.checkpoint, h.id) AS id,
    r.id AS run_id,
    r.flow AS flow_id,
    CASE
        WHEN j.kind = 4 OR (j.kind = 7 AND j.effect = 'human' AND j.outcome IN ('', 'migrated')) THEN 'pending_input'
        WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed'
        ELSE 'active'
    END AS status,
    p.node_states,
    p.completed AS completed_node_ids,
    p.original_input,
    CASE WHEN h.id IS NOT NULL THEN json_object(
        'request_id', h.id, 'node_id', h.node, 'prompt', h.prompt, 'timestamp',
        strftime('%Y-%m-%dT%H:%M:%S', h.created_at / 1000000, 'unixepoch')
            || printf('.%06dZ', h.created_at % 1000000)) END AS pending_input_context,
    '1.0' AS version,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS updated_at,
    j.key & 0xffffffff AS seq,
    j.node AS node_id,
    r.tenant AS tenant_id
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN projections AS p ON p.key = j.key
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.listed;

CREATE VIEW mod_scaicore_checkpoints AS
SELECT
    h.id,
    r.id AS execution_id,
    coalesce(nullif(r.deployment, ''), 'flow:' || r.flow) AS core_id,
    h.tenant AS tenant_id,
    r.flow AS flow_name,
    r.instance_key,
    h.node AS node_id,
    h.block AS block_index,
    h.type AS checkpoint_type,
    h.status,
    h.priority,
    CASE WHEN instr(h.prompt, char(0xe0c1) || 'HF:') <> 1 THEN h.prompt END AS prompt,
    CASE WHEN substr(h.options, 1, 1) IN (x'7b', x'5b') AND instr(h.options, x'ee838148463a') = 0
         THEN CAST(h.options AS TEXT) END AS options,
    h.assignee AS assignee_raw,
    h.assignee_type,
    CASE WHEN h.assignee_reason = '' THEN json_object('type', h.assignee_type, 'value', h.assignee_value)
         ELSE json_object('type', h.assignee_type, 'value', h.assignee_value, 'reason', h.assignee_reason)
    END AS assignee_resolved,
    CASE WHEN substr(h.context, 1, 1) IN (x'7b', x'5b') AND instr(h.context, x'ee838148463a') = 0
         THEN CAST(h.context AS TEXT) END AS context,
    strftime('%Y-%m-%dT%H:%M:%S', h.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', h.expires_at % 1000000) AS expires_at,
    h.expiry_action,
    h.escalation_target,
    h.notification_sent,
    h.reminder_count,
    h.reminder_interval AS reminder_interval_m,
    CASE WHEN substr(h.resolution, 1, 1) IN (x'7b', x'5b') AND instr(h.resolution, x'ee838148463a') = 0
         THEN CAST(h.resolution AS TEXT) END AS resolution,
    h.resolved_by,
    strftime('%Y-%m-%dT%H:%M:%S', h.resolved_at / 1000000, 'unixepoch') || printf('.%06dZ', h.resolved_at % 1000000) AS resolved_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.created_at / 1000000, 'unixepoch') || printf('.%06dZ', h.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.updated_at / 1000000, 'unixepoch') || printf('.%06dZ', h.updated_at % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.resumed_at / 1000000, 'unixepoch') || printf('.%06dZ', h.resumed_at % 1000000) AS resumed_at,
    h.message_id AS hitl_message_id,
    h.state_key AS state_s3_key
FROM holds AS h JOIN runs AS r ON r.key = h.run_key;

CREATE VIEW plain_runs AS
SELECT
    r.id,
    r.tenant AS tenant_id,
    r.flow AS flow_id,
    r.version,
    r.thread AS thread_id,
    r.status,
    (SELECT p.original_input FROM projections AS p WHERE p.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
     ORDER BY p.key DESC LIMIT 1) AS input,
    (SELECT p.output FROM projections AS p WHERE p.key = r.key << 32 | r.head) AS output,
    r.error,
    r.instance_key,
    r.started_by,
    r.deployment AS deployment_id,
    r.parent_run AS parent_run_id,
    r.forked_from,
    strftime('%Y-%m-%dT%H:%M:%S', r.created_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', r.updated_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.updated_at % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', r.ended_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.ended_at % 1000000) AS ended_at
FROM runs AS r;

CREATE VIEW run_input_events AS
SELECT
    i.id,
    r.id AS run_id,
    i.kind AS type,
    h.id AS checkpoint_id,
    CASE
        WHEN h.id IS NULL THEN CASE WHEN substr(i.payload, 1, 1) = x'7b' THEN CAST(i.payload AS TEXT) END
        WHEN substr(h.resolution, 1, 1) = x'7b' THEN CAST(h.resolution AS TEXT)
    END AS content,
    h.resolved_by AS created_by,
    strftime('%Y-%m-%dT%H:%M:%S', i.at / 1000000, 'unixepoch') || printf('.%06dZ', i.at % 1000000) AS created_at,
    i.done AS consumed
FROM inbox AS i
JOIN runs AS r ON r.key = i.run_key
LEFT JOIN holds AS h ON length(i.payload) = 36 AND h.run_key = i.run_key AND h.id = CAST(i.payload AS TEXT);

CREATE VIEW stream_chunks AS
SELECT
    r.id AS run_id,
    j.event_from AS sequence,
    CASE j.kind
        WHEN 0 THEN 'run.created' WHEN 2 THEN 'attempt' WHEN 3 THEN 'substep' WHEN 4 THEN 'approval'
        WHEN 5 THEN 'chunk' WHEN 7 THEN 'run.migrated' WHEN 8 THEN 'run.' || j.outcome
        ELSE CASE j.outcome WHEN 'success' THEN 'node.completed' WHEN 'fail' THEN 'node.failed'
             ELSE 'node.' || j.outcome END
    END AS event,
    CASE WHEN h.id IS NOT NULL
        THEN json_object('entity_id', h.node, 'prompt', h.prompt, 'checkpoint_id', h.id, 'is_resumed', json('false'))
        ELSE json_object('node_id', j.node, 'visit', j.visit, 'attempt', j.attempt, 'outcome', j.outcome)
    END AS data,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS created_at,
    j.events - (j.listed AND j.kind NOT IN (1, 5, 7)) AS events
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.events - (j.listed AND j.kind NOT IN (1, 5, 7)) > 0
UNION ALL
SELECT
    r.id, j.event_from + j.events - 1, 'checkpoint_created',
    json_object(
        'checkpoint_id', coalesce(p.checkpoint, h.id), 'status', CASE
        WHEN j.kind = 4 THEN 'pending_input' WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed' ELSE 'active' END,
        'node_id', j.node, 'seq', j.key & 0xffffffff),
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000), 1
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN projections AS p ON p.key = j.key
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.listed AND j.kind NOT IN (1, 5, 7) AND j.events > 0
UNION ALL
SELECT
    r.id, e.key & 0xffffffff, e.type,
    CASE WHEN substr(e.payload, 1, 1) = x'7b' THEN CAST(e.payload AS TEXT) END,
    strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000), 1
FROM runs AS r
JOIN events AS e ON e.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff;

CREATE VIEW threads AS
SELECT
    r.thread AS id,
    r.tenant AS tenant_id,
    count(*) AS runs,
    sum(r.status = 'pending_input') AS pending_input_runs,
    strftime('%Y-%m-%dT%H:%M:%S', min(r.created_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', min(r.created_at) % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', max(r.updated_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', max(r.updated_at) % 1000000) AS updated_at
FROM runs AS r WHERE r.thread IS NOT NULL GROUP BY r.tenant, r.thread;

