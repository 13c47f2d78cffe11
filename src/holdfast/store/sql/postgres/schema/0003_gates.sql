-- How many runs may be under way at once, and how many may start in a while. '' is no gate.
ALTER TABLE @runs ADD COLUMN gate text COLLATE "C" NOT NULL DEFAULT '';

-- Beside `runs_ready`, which the version before this one still asks. Runs at a gate stand in lines: what they
-- have in common that the same first gate lets pass or not (`store.porter.line_of`). A line is passed over
-- whole where its gate is shut.
CREATE INDEX CONCURRENTLY runs_free ON @runs (urgency, tenant, ready_at, key)
    WHERE worker IS NULL AND ready_at IS NOT NULL AND gate = '';
CREATE INDEX CONCURRENTLY runs_lined ON @runs (
    urgency, tenant, (CASE WHEN status = 'pending' THEN '+' ELSE '-' END || split_part(gate, '/', 1)),
    ready_at, key) WHERE worker IS NULL AND ready_at IS NOT NULL AND gate <> '';
CREATE INDEX CONCURRENTLY runs_inside ON @runs (gate) WHERE worker IS NOT NULL AND gate <> '';

-- What flows declare and what an operator fixed, beside each other: what is fixed counts.
CREATE TABLE @gates (
    root text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    fixed boolean NOT NULL,
    concurrency bigint,
    rate bigint,
    per bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL,
    PRIMARY KEY (root, name, fixed)
);

-- Starts that a rate still counts; only runs at a gate with a rate write here.
CREATE TABLE @gate_starts (
    gate text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    run_key bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (gate, at, run_key)
);

CREATE INDEX gate_starts_over ON @gate_starts (until);
