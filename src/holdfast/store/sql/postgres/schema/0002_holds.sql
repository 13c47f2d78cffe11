-- `tenant` and `read_only` are those of the run, kept here so that lists and sweeps find everything in one
-- index. Lists are by urgency, then by `due`: a hold without a deadline comes after all that have one. `shared`:
-- who else may vote on it, out of its terms: it is in the lists of all of them.
CREATE TABLE @holds (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    run_key bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    read_only boolean NOT NULL DEFAULT false,
    status text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (
        status IN ('pending', 'resolved', 'expired', 'cancelled')),
    version bigint NOT NULL DEFAULT 1,
    seq bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    visit bigint NOT NULL,
    ordinal bigint NOT NULL,
    block bigint NOT NULL DEFAULT 0,
    type text COLLATE "C" NOT NULL,
    assignee text COLLATE "C",
    assignee_type text COLLATE "C" NOT NULL DEFAULT 'unrouted' CHECK (
        assignee_type IN ('user', 'group', 'role', 'delegated_user', 'unrouted')),
    assignee_value text COLLATE "C" NOT NULL DEFAULT '',
    assignee_reason text NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 1,
    priority text COLLATE "C" NOT NULL,
    urgency bigint NOT NULL GENERATED ALWAYS AS (
        CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END) STORED,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    due bigint NOT NULL GENERATED ALWAYS AS (coalesce(expires_at, 9223372036854775807)) STORED,
    expiry_action text COLLATE "C",
    original_timeout bigint,
    escalation_target text COLLATE "C",
    escalation_count bigint NOT NULL DEFAULT 0,
    reminder_interval bigint,
    remind_at bigint,
    reminder_count bigint NOT NULL DEFAULT 0,
    notification_sent boolean NOT NULL DEFAULT false,
    notified_at bigint,
    claimed_by text COLLATE "C",
    claim_until bigint,
    paused_at bigint,
    placed_by text COLLATE "C",
    placed_until bigint,
    message_id text COLLATE "C",
    resolved_by text COLLATE "C",
    resolved_at bigint,
    closed_by text COLLATE "C",
    closed_at bigint,
    closed_reason text,
    resumed_at bigint,
    tags text[] COLLATE "C" NOT NULL DEFAULT '{}',
    terms text NOT NULL DEFAULT '{}',
    shared text[] COLLATE "C" NOT NULL DEFAULT '{}',
    request_hash text NOT NULL,
    prompt text NOT NULL,
    options bytea,
    schema bytea,
    resolution bytea,
    placed bytea,
    context bytea NOT NULL,
    UNIQUE (run_key, scope, node, visit, ordinal),
    CHECK ((status = 'resolved') = (resolution IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_by IS NOT NULL)),
    CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
);

-- Inboxes: what one assignee has to do, and what a tenant has to do, most urgent first.
CREATE INDEX holds_of_assignee ON @holds (
    tenant, assignee_type, assignee_value, urgency, due, created_at, number)
    WHERE status = 'pending' AND NOT read_only;
CREATE INDEX holds_of_tenant ON @holds (tenant, urgency, due, created_at, number)
    WHERE status = 'pending' AND NOT read_only;
CREATE INDEX holds_shared ON @holds USING gin (shared) WHERE status = 'pending' AND NOT read_only;
-- Lists by age, of whatever status.
CREATE INDEX holds_by_age ON @holds (tenant, status, created_at, number);
CREATE INDEX holds_asked_of ON @holds (tenant, assignee_type, assignee_value, status, created_at, number)
    WHERE status <> 'pending';
CREATE INDEX holds_resolved_by ON @holds (tenant, resolved_by, created_at) WHERE resolved_by IS NOT NULL;
-- What sweeps look for.
CREATE INDEX holds_expiring ON @holds (expires_at)
    WHERE status = 'pending' AND NOT read_only AND paused_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX holds_reminding ON @holds (remind_at)
    WHERE status = 'pending' AND NOT read_only AND remind_at IS NOT NULL;
CREATE INDEX holds_placed ON @holds (placed_until)
    WHERE status = 'pending' AND NOT read_only AND placed_until IS NOT NULL;
CREATE INDEX holds_to_resume ON @holds (coalesce(resolved_at, closed_at))
    WHERE status <> 'pending' AND NOT read_only AND resumed_at IS NULL
    AND closed_by IS DISTINCT FROM 'system:engine';

CREATE FUNCTION @refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;

-- A hold that was decided or closed stays as it is. Its content may be encrypted anew, its run may take the
-- outcome in; everything else is refused, whoever asks.
CREATE TRIGGER holds_final BEFORE UPDATE OF
    status, version, assignee, assignee_type, assignee_value, epoch, priority, expires_at, claimed_by,
    placed_until, resolved_by, resolved_at, closed_by, closed_at
ON @holds FOR EACH ROW WHEN (OLD.status <> 'pending')
EXECUTE FUNCTION @refuse('a hold that was decided or closed cannot change');

CREATE TRIGGER holds_identity BEFORE UPDATE OF id, run_key, tenant, seq, block, type, created_at ON @holds
FOR EACH ROW EXECUTE FUNCTION @refuse('what a hold is cannot change');

-- What people leave at a hold. A later one of the same slot replaces it and keeps its number.
CREATE TABLE @hold_notes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hold text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    until bigint,
    body bytea NOT NULL,
    UNIQUE (hold, kind, slot)
);

CREATE INDEX hold_notes_of_slot ON @hold_notes (kind, slot);

-- Idempotency keys, and the links that were used up.
CREATE TABLE @hold_keys (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hold text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    UNIQUE (hold, actor, key)
);

CREATE TABLE @hold_links (
    jti text COLLATE "C" PRIMARY KEY,
    hold text COLLATE "C" NOT NULL,
    at bigint NOT NULL
);

CREATE INDEX hold_links_of_hold ON @hold_links (hold);

-- One chain per tenant. It outlives the runs that it speaks of.
CREATE TABLE @audit (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    hold text COLLATE "C",
    run text COLLATE "C",
    data bytea NOT NULL,
    prev bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX audit_of_hold ON @audit (tenant, hold) WHERE hold IS NOT NULL;

-- The last row of each chain, kept apart: a chain whose end was cut off still verifies by itself. Whoever
-- appends locks it first.
CREATE TABLE @audit_heads (
    tenant text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    hash bytea NOT NULL
);

CREATE FUNCTION @audit_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @audit_heads SET seq = NEW.seq, hash = NEW.hash WHERE tenant = NEW.tenant AND seq = NEW.seq - 1;
    IF NOT FOUND THEN
        IF NEW.seq <> 1 OR EXISTS (SELECT 1 FROM @audit_heads WHERE tenant = NEW.tenant) THEN
            RAISE EXCEPTION 'the audit grows at its end only' USING ERRCODE = 'check_violation';
        END IF;
        INSERT INTO @audit_heads (tenant, seq, hash) VALUES (NEW.tenant, NEW.seq, NEW.hash);
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER audit_inserted BEFORE INSERT ON @audit FOR EACH ROW EXECUTE FUNCTION @audit_grows();
CREATE TRIGGER audit_updated BEFORE UPDATE ON @audit
FOR EACH STATEMENT EXECUTE FUNCTION @refuse('the audit cannot be changed');
CREATE TRIGGER audit_deleted BEFORE DELETE ON @audit
FOR EACH STATEMENT EXECUTE FUNCTION @refuse('nothing can be removed from the audit');
CREATE TRIGGER audit_truncated BEFORE TRUNCATE ON @audit
FOR EACH STATEMENT EXECUTE FUNCTION @refuse('nothing can be removed from the audit');

-- Rows stay when they were told, for as long as their run: a key is never told twice. The key of a message about
-- a hold begins with the hold's id, so that they are found by it.
CREATE TABLE @outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    run_key bigint,
    hold text COLLATE "C",
    at bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'skipped', 'dead')),
    attempts bigint NOT NULL DEFAULT 0,
    due_at bigint NOT NULL,
    claimed_until bigint,
    error text,
    payload bytea NOT NULL,
    UNIQUE (key, tenant)
);

-- By topic: what nobody listens to may wait for ever, and is in nobody's way.
CREATE INDEX outbox_due ON @outbox (topic, due_at) WHERE state = 'waiting';
CREATE INDEX outbox_of_run ON @outbox (run_key) WHERE run_key IS NOT NULL AND hold IS NULL;
CREATE INDEX outbox_dead ON @outbox (tenant) WHERE state = 'dead';

-- Small named things of a tenant: people, groups, skills, deployments, calendars, policies.
CREATE TABLE @documents (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    updated_at bigint NOT NULL,
    body bytea NOT NULL,
    UNIQUE (tenant, kind, name)
);
