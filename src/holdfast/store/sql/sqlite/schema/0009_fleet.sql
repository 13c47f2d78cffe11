-- Who works, as each last said of itself.
CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    incarnation TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- Leases that lapsed while their run was under way. A run that kills its workers is given up: `dead`.
CREATE TABLE deaths (
    run_key INTEGER NOT NULL,
    term INTEGER NOT NULL,
    worker TEXT NOT NULL,
    at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    head INTEGER NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (run_key, term)
) STRICT, WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN dead INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1));
CREATE INDEX runs_dead ON runs (created_at) WHERE dead;
