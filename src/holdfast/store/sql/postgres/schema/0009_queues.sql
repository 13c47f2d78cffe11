-- Messages of queues. `urgency`: 0 is claimed first. `drop_at`: when an ended message may be deleted.
CREATE TABLE @queue_messages (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('ready', 'claimed', 'completed', 'dead', 'withdrawn', 'expired')),
    priority text COLLATE "C" NOT NULL,
    urgency bigint NOT NULL,
    visible_at bigint NOT NULL,
    expires_at bigint,
    group_key text COLLATE "C",
    correlation_id text COLLATE "C",
    hold text COLLATE "C",
    run text COLLATE "C",
    node text COLLATE "C",
    attempts bigint NOT NULL,
    max_attempts bigint NOT NULL,
    retention bigint NOT NULL,
    claimed_by text COLLATE "C",
    claim_token bigint NOT NULL,
    claim_until bigint,
    completed_by text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ended_at bigint,
    drop_at bigint,
    digest text COLLATE "C" NOT NULL,
    error text COLLATE "C",
    payload bytea NOT NULL,
    result bytea,
    UNIQUE (tenant, id),
    CHECK ((state = 'claimed') = (claim_until IS NOT NULL)),
    CHECK ((state = 'claimed') = (claimed_by IS NOT NULL)),
    CHECK ((state IN ('ready', 'claimed')) = (ended_at IS NULL))
);

CREATE INDEX queue_messages_ready ON @queue_messages (tenant, scope, queue, urgency, visible_at, number)
WHERE state = 'ready';
CREATE INDEX queue_messages_of_group ON @queue_messages (tenant, scope, queue, group_key, number)
WHERE group_key IS NOT NULL AND state IN ('ready', 'claimed');
-- One at a time: also where two transactions do not see each other's claim.
CREATE UNIQUE INDEX queue_messages_once ON @queue_messages (tenant, scope, queue, group_key)
WHERE group_key IS NOT NULL AND state = 'claimed';
CREATE INDEX queue_messages_claimed ON @queue_messages (claim_until) WHERE state = 'claimed';
CREATE INDEX queue_messages_expiring ON @queue_messages (expires_at)
WHERE expires_at IS NOT NULL AND state IN ('ready', 'claimed');
CREATE INDEX queue_messages_old ON @queue_messages (drop_at) WHERE drop_at IS NOT NULL;
CREATE INDEX queue_messages_of_hold ON @queue_messages (hold) WHERE hold IS NOT NULL;
CREATE INDEX queue_messages_by_queue ON @queue_messages (tenant, scope, queue, number);
CREATE INDEX queue_messages_by_correlation ON @queue_messages (tenant, correlation_id)
WHERE correlation_id IS NOT NULL;
