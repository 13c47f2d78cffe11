-- Messages of queues. `urgency`: 0 is claimed first. `drop_at`: when an ended message may be deleted.
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

CREATE INDEX queue_messages_ready ON queue_messages (tenant, scope, queue, urgency, visible_at, number)
WHERE state = 'ready';
CREATE INDEX queue_messages_of_group ON queue_messages (tenant, scope, queue, group_key, number)
WHERE group_key IS NOT NULL AND state IN ('ready', 'claimed');
-- One at a time: also where two transactions do not see each other's claim.
CREATE UNIQUE INDEX queue_messages_once ON queue_messages (tenant, scope, queue, group_key)
WHERE group_key IS NOT NULL AND state = 'claimed';
CREATE INDEX queue_messages_claimed ON queue_messages (claim_until) WHERE state = 'claimed';
CREATE INDEX queue_messages_expiring ON queue_messages (expires_at)
WHERE expires_at IS NOT NULL AND state IN ('ready', 'claimed');
CREATE INDEX queue_messages_old ON queue_messages (drop_at) WHERE drop_at IS NOT NULL;
CREATE INDEX queue_messages_of_hold ON queue_messages (hold) WHERE hold IS NOT NULL;
CREATE INDEX queue_messages_by_queue ON queue_messages (tenant, scope, queue, number);
CREATE INDEX queue_messages_by_correlation ON queue_messages (tenant, correlation_id)
WHERE correlation_id IS NOT NULL;
