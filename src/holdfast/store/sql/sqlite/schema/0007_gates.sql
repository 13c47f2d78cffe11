-- How many runs may be under way at once, and how many may start in a while. '' is no gate.
ALTER TABLE runs ADD COLUMN gate TEXT NOT NULL DEFAULT '';
-- What runs have in common that the same first gate lets pass or not (`store.porter.line_of`).
ALTER TABLE runs ADD COLUMN line TEXT GENERATED ALWAYS AS (
    iif(gate = '', '', iif(status = 'pending', '+', '-') || substr(gate, 1, instr(gate || '/', '/') - 1))
) VIRTUAL;

-- A line is passed over whole where its gate is shut.
DROP INDEX runs_ready;
CREATE INDEX runs_ready ON runs (priority, tenant, line, ready_at) WHERE worker IS NULL AND ready_at IS NOT NULL;
CREATE INDEX runs_inside ON runs (gate) WHERE worker IS NOT NULL AND gate <> '';

-- What flows declare and what an operator fixed, beside each other: what is fixed counts.
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

-- Starts that a rate still counts; only runs at a gate with a rate write here.
CREATE TABLE gate_starts (
    gate TEXT NOT NULL,
    at INTEGER NOT NULL,
    run_key INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (gate, at, run_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX gate_starts_over ON gate_starts (until);
