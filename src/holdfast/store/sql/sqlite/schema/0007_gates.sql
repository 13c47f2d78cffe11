-- How many runs may be under way at once, and how many may start in a while. '' is no gate.
ALTER TABLE runs ADD COLUMN gate TEXT NOT NULL DEFAULT '';

CREATE TABLE gates (
    name TEXT PRIMARY KEY,
    within TEXT,
    concurrency INTEGER,
    rate INTEGER,
    per INTEGER NOT NULL DEFAULT 0,
    fixed INTEGER NOT NULL DEFAULT 0 CHECK (fixed IN (0, 1)),
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Starts that a rate still counts; only runs at a gate with a rate write here.
CREATE TABLE gate_starts (
    gate TEXT NOT NULL,
    at INTEGER NOT NULL,
    run_key INTEGER NOT NULL,
    PRIMARY KEY (gate, at, run_key)
) STRICT, WITHOUT ROWID;
