-- Instants are microseconds since the epoch, UTC. Names and statuses are the words of holdfast.types.
-- Nothing here refers by FOREIGN KEY: each table is written in one place, and delete_run clears them all.
-- Text is compared byte by byte, trailing spaces included. What is indexed has a length that an index takes
-- (3,072 bytes for all its columns together); what is longer is refused.
-- A statement ends with a semicolon before an empty line, and may be repeated: MariaDB commits each by itself, so
-- a process that dies in between leaves the rest to the next.

CREATE TABLE IF NOT EXISTS migrations (
    number bigint PRIMARY KEY,
    name varchar(255) NOT NULL,
    applied_at bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- There are no partial indexes: `claimable`, `leased` and `line` are columns that indexes begin with instead.
CREATE TABLE IF NOT EXISTS runs (
    `key` bigint AUTO_INCREMENT PRIMARY KEY,
    head bigint NOT NULL,
    event_seq bigint NOT NULL,
    updated_at bigint NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    worker varchar(255),
    lease_until bigint,
    status varchar(20) NOT NULL DEFAULT 'pending' CHECK (status IN (
        'pending', 'running', 'waiting', 'pending_input', 'resumable', 'completed', 'failed', 'cancelled')),
    ready_at bigint,
    inbox_seq bigint NOT NULL DEFAULT 0,
    horizon bigint NOT NULL DEFAULT 0,
    recoveries bigint NOT NULL DEFAULT 0,
    priority bigint NOT NULL,
    lane varchar(255) NOT NULL,
    id varchar(255) NOT NULL,
    tenant varchar(255) NOT NULL,
    flow varchar(255) NOT NULL,
    version varchar(255) NOT NULL,
    code varchar(255) NOT NULL,
    thread varchar(255),
    instance_key varchar(510),
    idempotency_key varchar(255),
    started_by varchar(510),
    deployment varchar(255),
    parent_run varchar(255),
    forked_from varchar(510),
    superseded_by varchar(255),
    created_at bigint NOT NULL,
    ended_at bigint,
    error longtext,
    read_only boolean NOT NULL DEFAULT false,
    migrated bigint NOT NULL DEFAULT 0,
    gate varchar(510) NOT NULL DEFAULT '',
    dead boolean NOT NULL DEFAULT false,
    suspect boolean NOT NULL DEFAULT false,
    -- Sorts the other way round, so that one index serves the order of claims.
    urgency bigint GENERATED ALWAYS AS (- priority) STORED,
    -- Runs that the same first limit admits or not (`store.concurrency_limits.queue_of`).
    line varchar(251) GENERATED ALWAYS AS (
        CASE WHEN gate = '' THEN ''
             ELSE concat(CASE WHEN status = 'pending' THEN '+' ELSE '-' END, substring_index(gate, '/', 1))
        END) STORED,
    claimable boolean GENERATED ALWAYS AS (
        CASE WHEN worker IS NULL AND ready_at IS NOT NULL
                  AND status NOT IN ('completed', 'failed', 'cancelled') THEN 1 END) STORED,
    leased boolean GENERATED ALWAYS AS (CASE WHEN worker IS NOT NULL THEN 1 END) STORED,
    UNIQUE KEY runs_by_id (id),
    UNIQUE KEY runs_once (tenant, flow, idempotency_key),
    KEY runs_ready (claimable, suspect, urgency, tenant, line, ready_at),
    KEY runs_waking (claimable, ready_at),
    KEY runs_leased (leased, tenant),
    KEY runs_inside (leased, gate),
    KEY runs_lapsing (lease_until),
    KEY runs_newest (created_at),
    KEY runs_of_thread (tenant, thread, created_at),
    KEY runs_by_status (status, created_at),
    KEY runs_by_flow (flow, created_at),
    KEY runs_dead (dead, created_at),
    CHECK ((worker IS NULL) = (lease_until IS NULL)),
    CHECK (NOT read_only OR (worker IS NULL AND ready_at IS NULL))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- When each tenant was last served, counted in claims: the round-robin among equals.
CREATE TABLE IF NOT EXISTS turns (
    tenant varchar(255) PRIMARY KEY,
    turn bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE SEQUENCE IF NOT EXISTS turn_numbers ENGINE = InnoDB;

-- The same table as holdfast.types.status.TRANSITIONS; a test tries every pair.
CREATE OR REPLACE TRIGGER runs_status BEFORE UPDATE ON runs FOR EACH ROW
BEGIN
    IF OLD.status <> NEW.status AND concat(OLD.status, ' ', NEW.status) NOT IN (
        'pending running', 'pending failed', 'pending cancelled',
        'running waiting', 'running pending_input', 'running resumable',
        'running completed', 'running failed', 'running cancelled',
        'waiting running', 'waiting cancelled',
        'pending_input running', 'pending_input cancelled',
        'resumable running', 'resumable failed', 'resumable cancelled',
        'failed resumable')
    THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a run cannot change its status like this';
    END IF;
END;

-- key = run key << 32 | seq: one b-tree, no second index, a run's records side by side.
CREATE TABLE IF NOT EXISTS journal (
    `key` bigint PRIMARY KEY,
    kind smallint NOT NULL,
    at bigint NOT NULL,
    term bigint NOT NULL,
    node varchar(1000) NOT NULL,
    visit bigint NOT NULL,
    attempt bigint NOT NULL,
    scope varchar(2000) NOT NULL,
    effect varchar(255) NOT NULL,
    outcome varchar(255) NOT NULL,
    listed boolean NOT NULL,
    events bigint NOT NULL,
    event_from bigint NOT NULL,
    digest varbinary(255) NOT NULL,
    payload longblob NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- key = run key << 32 | event number: what others did to a run.
CREATE TABLE IF NOT EXISTS events (
    `key` bigint PRIMARY KEY,
    at bigint NOT NULL,
    type varchar(255) NOT NULL,
    payload longblob NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- One row per transaction and run, in commit order: the last statements of a transaction take the next positions
-- from `feed_head`, whose row stays locked until the commit.
CREATE TABLE IF NOT EXISTS feed (
    pos bigint PRIMARY KEY,
    run_key bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS feed_head (
    one bigint PRIMARY KEY CHECK (one = 1),
    pos bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Up to where the feed had come at a moment: so what is old is known without an instant in every row of the feed.
-- `trimmed`: what is at or before that position is gone.
CREATE TABLE IF NOT EXISTS feed_marks (
    pos bigint PRIMARY KEY,
    at bigint NOT NULL,
    trimmed boolean NOT NULL DEFAULT false
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS inbox (
    id bigint AUTO_INCREMENT PRIMARY KEY,
    run_key bigint NOT NULL,
    kind varchar(255) NOT NULL,
    at bigint NOT NULL,
    done boolean NOT NULL DEFAULT false,
    dedupe varchar(700),
    payload longblob NOT NULL,
    UNIQUE KEY inbox_once (run_key, dedupe),
    KEY inbox_of_run (run_key, done)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS timers (
    run_key bigint NOT NULL,
    token varchar(700) NOT NULL,
    fire_at bigint NOT NULL,
    PRIMARY KEY (run_key, token),
    KEY timers_due (fire_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS late_reports (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    run_key bigint NOT NULL,
    seq bigint NOT NULL,
    payload longblob NOT NULL,
    KEY late_reports_of_run (run_key, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS flows (
    name varchar(255) NOT NULL,
    version varchar(255) NOT NULL,
    created_at bigint NOT NULL,
    graph longblob NOT NULL,
    PRIMARY KEY (name, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- What the code of a flow consists of, part by part, so that a change can be told apart by node.
CREATE TABLE IF NOT EXISTS codes (
    digest varchar(255) PRIMARY KEY,
    marks longblob NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- place: 'row' (in `data`), 'parts' (in `blob_parts`: more than one packet carries), 'elsewhere' (the caller keeps
-- it).
CREATE TABLE IF NOT EXISTS blobs (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    digest varbinary(255) NOT NULL,
    size bigint NOT NULL,
    put_at bigint NOT NULL,
    condemned boolean NOT NULL DEFAULT false,
    place varchar(10) NOT NULL CHECK (place IN ('row', 'parts', 'elsewhere')),
    data longblob,
    UNIQUE KEY blobs_by_digest (digest),
    KEY blobs_by_age (put_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS blob_parts (
    digest varbinary(255) NOT NULL,
    nth bigint NOT NULL,
    data longblob NOT NULL,
    PRIMARY KEY (digest, nth)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS blob_refs (
    run_key bigint NOT NULL,
    digest varbinary(255) NOT NULL,
    PRIMARY KEY (run_key, digest),
    KEY blob_refs_of_blob (digest)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- What nodes remember beyond one run. `folded` is the content as it is searched: without case.
CREATE TABLE IF NOT EXISTS memories (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    tenant varchar(255) NOT NULL,
    scope varchar(500) NOT NULL,
    id varchar(500) NOT NULL,
    type varchar(255) NOT NULL,
    content longtext NOT NULL,
    folded longtext NOT NULL,
    strength double NOT NULL,
    at bigint NOT NULL,
    UNIQUE KEY memories_by_id (tenant, id),
    KEY memories_of_scope (tenant, scope, strength)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- `tenant` and `read_only` are those of the run, kept here so that lists and sweeps find everything in one
-- index. Lists are by urgency, then by `due`: a hold without a deadline comes after all that have one.
CREATE TABLE IF NOT EXISTS holds (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    id varchar(255) NOT NULL,
    run_key bigint NOT NULL,
    tenant varchar(255) NOT NULL,
    read_only boolean NOT NULL DEFAULT false,
    status varchar(20) NOT NULL DEFAULT 'pending' CHECK (
        status IN ('pending', 'resolved', 'expired', 'cancelled')),
    version bigint NOT NULL DEFAULT 1,
    seq bigint NOT NULL,
    node varchar(255) NOT NULL,
    scope varchar(500) NOT NULL,
    visit bigint NOT NULL,
    ordinal bigint NOT NULL,
    block bigint NOT NULL DEFAULT 0,
    type varchar(255) NOT NULL,
    assignee varchar(1000),
    assignee_type varchar(20) NOT NULL DEFAULT 'unrouted' CHECK (
        assignee_type IN ('user', 'group', 'role', 'delegated_user', 'unrouted')),
    assignee_value varchar(400) NOT NULL DEFAULT '',
    assignee_reason longtext NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 1,
    priority varchar(255) NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    expiry_action varchar(1000),
    original_timeout bigint,
    escalation_target varchar(1000),
    escalation_count bigint NOT NULL DEFAULT 0,
    reminder_interval bigint,
    remind_at bigint,
    reminder_count bigint NOT NULL DEFAULT 0,
    notification_sent boolean NOT NULL DEFAULT false,
    notified_at bigint,
    claimed_by varchar(510),
    claim_until bigint,
    paused_at bigint,
    placed_by varchar(510),
    placed_until bigint,
    message_id varchar(1000),
    resolved_by varchar(500),
    resolved_at bigint,
    closed_by varchar(510),
    closed_at bigint,
    closed_reason longtext,
    resumed_at bigint,
    tags longtext NOT NULL DEFAULT '[]',
    terms longtext NOT NULL DEFAULT '{}',
    request_hash varchar(1000) NOT NULL,
    prompt longtext NOT NULL,
    options longblob,
    `schema` longblob,
    resolution longblob,
    placed longblob,
    context longblob NOT NULL,
    urgency bigint GENERATED ALWAYS AS (
        CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END) STORED,
    due bigint GENERATED ALWAYS AS (coalesce(expires_at, 9223372036854775807)) STORED,
    -- Decided or closed, and the run has not taken it in.
    resumes_at bigint GENERATED ALWAYS AS (
        CASE WHEN status <> 'pending' AND NOT read_only AND resumed_at IS NULL
                  AND NOT (closed_by <=> 'system:engine') THEN coalesce(resolved_at, closed_at) END) STORED,
    UNIQUE KEY holds_by_id (id),
    UNIQUE KEY holds_once (run_key, scope, node, visit, ordinal),
    KEY holds_of_assignee (
        tenant, status, assignee_type, assignee_value, urgency, due, created_at, number),
    KEY holds_of_tenant (tenant, status, urgency, due, created_at, number),
    KEY holds_by_age (tenant, status, created_at, number),
    KEY holds_asked_of (tenant, assignee_type, assignee_value, status, created_at, number),
    KEY holds_resolved_by (tenant, resolved_by, created_at),
    KEY holds_expiring (status, expires_at),
    KEY holds_reminding (remind_at),
    KEY holds_placed (placed_until),
    KEY holds_to_resume (resumes_at),
    CHECK ((status = 'resolved') = (resolution IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_by IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Who else may vote on an open hold, which waits for one of them by its assignee: it is in the lists of all.
CREATE TABLE IF NOT EXISTS hold_shares (
    tenant varchar(255) NOT NULL,
    assignee varchar(430) NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (tenant, assignee, number),
    KEY hold_shares_of_hold (number)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE OR REPLACE TRIGGER holds_shared AFTER INSERT ON holds FOR EACH ROW
BEGIN
    IF NEW.terms <> '{}' AND NEW.status = 'pending' AND NOT NEW.read_only THEN
        INSERT INTO hold_shares (tenant, assignee, number)
        SELECT DISTINCT NEW.tenant, also.assignee, NEW.number FROM json_table(NEW.terms, '$.also_for[*]' COLUMNS (
            assignee varchar(430) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$' ERROR ON ERROR)) AS also;
    END IF;
END;

CREATE OR REPLACE TRIGGER holds_shared_anew AFTER UPDATE ON holds FOR EACH ROW
BEGIN
    IF OLD.terms <> NEW.terms OR (NEW.terms <> '{}' AND OLD.status <> NEW.status) THEN
        DELETE FROM hold_shares WHERE number = NEW.number;
        IF NEW.status = 'pending' AND NOT NEW.read_only THEN
            INSERT INTO hold_shares (tenant, assignee, number)
            SELECT DISTINCT NEW.tenant, also.assignee, NEW.number FROM json_table(NEW.terms, '$.also_for[*]' COLUMNS (
                assignee varchar(430) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$' ERROR ON ERROR)) AS also;
        END IF;
    END IF;
END;

CREATE OR REPLACE TRIGGER holds_shared_no_more AFTER DELETE ON holds FOR EACH ROW
BEGIN
    IF OLD.terms <> '{}' THEN
        DELETE FROM hold_shares WHERE number = OLD.number;
    END IF;
END;

-- A hold that was decided or closed stays as it is. Its content may be encrypted anew, its run may take the
-- outcome in; everything else is refused, whoever asks.
CREATE OR REPLACE TRIGGER holds_final BEFORE UPDATE ON holds FOR EACH ROW
BEGIN
    IF OLD.status <> 'pending' AND NOT (
        OLD.status <=> NEW.status AND OLD.version <=> NEW.version AND OLD.assignee <=> NEW.assignee
        AND OLD.assignee_type <=> NEW.assignee_type AND OLD.assignee_value <=> NEW.assignee_value
        AND OLD.epoch <=> NEW.epoch AND OLD.priority <=> NEW.priority AND OLD.expires_at <=> NEW.expires_at
        AND OLD.claimed_by <=> NEW.claimed_by AND OLD.placed_until <=> NEW.placed_until
        AND OLD.resolved_by <=> NEW.resolved_by AND OLD.resolved_at <=> NEW.resolved_at
        AND OLD.closed_by <=> NEW.closed_by AND OLD.closed_at <=> NEW.closed_at)
    THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a hold that was decided or closed cannot change';
    END IF;
    IF NOT (OLD.id <=> NEW.id AND OLD.run_key <=> NEW.run_key AND OLD.tenant <=> NEW.tenant
        AND OLD.seq <=> NEW.seq AND OLD.block <=> NEW.block AND OLD.type <=> NEW.type
        AND OLD.created_at <=> NEW.created_at)
    THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'what a hold is cannot change';
    END IF;
END;

-- What people leave at a hold. A later one of the same slot replaces it and keeps its number.
CREATE TABLE IF NOT EXISTS hold_notes (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    hold varchar(100) NOT NULL,
    kind varchar(64) NOT NULL,
    slot varchar(590) NOT NULL,
    person varchar(1000) NOT NULL,
    at bigint NOT NULL,
    until bigint,
    body longblob NOT NULL,
    UNIQUE KEY hold_notes_once (hold, kind, slot),
    KEY hold_notes_of_slot (kind, slot)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Idempotency keys, and the links that were used up.
CREATE TABLE IF NOT EXISTS hold_keys (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    hold varchar(100) NOT NULL,
    actor varchar(255) NOT NULL,
    `key` varchar(400) NOT NULL,
    digest varchar(255) NOT NULL,
    UNIQUE KEY hold_keys_once (hold, actor, `key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS hold_links (
    jti varchar(255) PRIMARY KEY,
    hold varchar(100) NOT NULL,
    at bigint NOT NULL,
    KEY hold_links_of_hold (hold)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- One chain per tenant. It outlives the runs that it speaks of.
CREATE TABLE IF NOT EXISTS audit (
    tenant varchar(255) NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    actor varchar(1000) NOT NULL,
    action varchar(255) NOT NULL,
    hold varchar(255),
    run varchar(255),
    data longblob NOT NULL,
    prev varbinary(255) NOT NULL,
    hash varbinary(255) NOT NULL,
    PRIMARY KEY (tenant, seq),
    KEY audit_of_hold (tenant, hold)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- The last row of each chain, kept apart: a chain whose end was cut off still verifies by itself. Whoever
-- appends locks it first.
CREATE TABLE IF NOT EXISTS audit_heads (
    tenant varchar(255) PRIMARY KEY,
    seq bigint NOT NULL,
    hash varbinary(255) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

CREATE OR REPLACE TRIGGER audit_inserted BEFORE INSERT ON audit FOR EACH ROW
BEGIN
    DECLARE last bigint DEFAULT (SELECT seq FROM audit_heads WHERE tenant = NEW.tenant);
    IF NEW.seq <> coalesce(last, 0) + 1 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit grows at its end only';
    END IF;
    IF last IS NULL THEN
        INSERT INTO audit_heads (tenant, seq, hash) VALUES (NEW.tenant, NEW.seq, NEW.hash);
    ELSE
        UPDATE audit_heads SET seq = NEW.seq, hash = NEW.hash WHERE tenant = NEW.tenant;
    END IF;
END;

CREATE OR REPLACE TRIGGER audit_updated BEFORE UPDATE ON audit FOR EACH ROW
BEGIN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit cannot be changed';
END;

CREATE OR REPLACE TRIGGER audit_deleted BEFORE DELETE ON audit FOR EACH ROW
BEGIN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'nothing can be removed from the audit';
END;

-- Rows stay when they were told, for as long as their run: a key is never told twice. The key of a message about
-- a hold begins with the hold's id, so that they are found by it.
CREATE TABLE IF NOT EXISTS outbox (
    id bigint AUTO_INCREMENT PRIMARY KEY,
    tenant varchar(255) NOT NULL,
    run_key bigint,
    hold varchar(255),
    at bigint NOT NULL,
    topic varchar(255) NOT NULL,
    `key` varchar(510) NOT NULL,
    state varchar(10) NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'skipped', 'dead')),
    attempts bigint NOT NULL DEFAULT 0,
    due_at bigint NOT NULL,
    claimed_until bigint,
    error longtext,
    payload longblob NOT NULL,
    UNIQUE KEY outbox_once (`key`, tenant),
    KEY outbox_due (state, topic, due_at),
    KEY outbox_of_run (run_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Small named things of a tenant: people, groups, skills, deployments, calendars, policies.
CREATE TABLE IF NOT EXISTS documents (
    number bigint AUTO_INCREMENT PRIMARY KEY,
    tenant varchar(255) NOT NULL,
    kind varchar(64) NOT NULL,
    name varchar(440) NOT NULL,
    revision bigint NOT NULL,
    updated_at bigint NOT NULL,
    body longblob NOT NULL,
    UNIQUE KEY documents_by_name (tenant, kind, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- What flows declare and what an operator fixed, beside each other: what is fixed counts.
CREATE TABLE IF NOT EXISTS gates (
    root varchar(250) NOT NULL,
    name varchar(510) NOT NULL,
    fixed boolean NOT NULL,
    concurrency bigint,
    rate bigint,
    per bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL,
    PRIMARY KEY (root, name, fixed)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Starts that a rate still counts; only runs at a gate with a rate write here.
CREATE TABLE IF NOT EXISTS gate_starts (
    gate varchar(510) NOT NULL,
    at bigint NOT NULL,
    run_key bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (gate, at, run_key),
    KEY gate_starts_over (until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Flows that are started by the clock. `next_at` NULL: paused, or over.
CREATE TABLE IF NOT EXISTS schedules (
    number bigint AUTO_INCREMENT,
    tenant varchar(255) NOT NULL,
    name varchar(500) NOT NULL,
    flow varchar(255) NOT NULL,
    next_at bigint,
    last_at bigint,
    last_run varchar(255),
    revision bigint NOT NULL,
    updated_at bigint NOT NULL,
    body longblob NOT NULL,
    PRIMARY KEY (tenant, name),
    UNIQUE KEY schedules_by_number (number),
    KEY schedules_due (next_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Who works, as each last said of itself.
CREATE TABLE IF NOT EXISTS workers (
    name varchar(255) PRIMARY KEY,
    incarnation varchar(255) NOT NULL,
    seen_at bigint NOT NULL,
    until bigint NOT NULL,
    body longblob NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- Leases that lapsed while their run was under way. A run that kills its workers is given up: `dead`. `alone`:
-- whether no other run was under way on that worker: only such a death is counted.
CREATE TABLE IF NOT EXISTS deaths (
    run_key bigint NOT NULL,
    term bigint NOT NULL,
    worker varchar(255) NOT NULL,
    at bigint NOT NULL,
    lease_until bigint NOT NULL,
    head bigint NOT NULL,
    status varchar(20) NOT NULL,
    alone boolean NOT NULL DEFAULT true,
    PRIMARY KEY (run_key, term),
    KEY deaths_by_worker (worker)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- What a checkpoint folds to, for whoever asks in SQL: written by a server some time after the checkpoint, which
-- never changes. Content is JSON; the key is that of the journal.
CREATE TABLE IF NOT EXISTS projections (
    `key` bigint PRIMARY KEY,
    checkpoint varchar(255) NOT NULL,
    completed longtext NOT NULL,
    node_states longtext,
    original_input longtext,
    output longtext
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;

-- How far along the feed that came.
CREATE TABLE IF NOT EXISTS projected (
    one bigint PRIMARY KEY CHECK (one = 1),
    pos bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin;
