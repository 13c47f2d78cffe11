-- Flows that are started by the clock. `next_at` NULL: paused, or over.
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

CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
