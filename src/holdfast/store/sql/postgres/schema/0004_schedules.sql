-- Flows that are started by the clock. `next_at` NULL: paused, or over.
CREATE TABLE @schedules (
    number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    flow text COLLATE "C" NOT NULL,
    next_at bigint,
    last_at bigint,
    last_run text COLLATE "C",
    revision bigint NOT NULL,
    updated_at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE INDEX schedules_due ON @schedules (next_at) WHERE next_at IS NOT NULL;
