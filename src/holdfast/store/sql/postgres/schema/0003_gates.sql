-- How many runs may be under way at once, and how many may start in a while. '' is no gate.
ALTER TABLE @runs ADD COLUMN gate text COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE @gates (
    name text COLLATE "C" PRIMARY KEY,
    within text COLLATE "C",
    concurrency bigint,
    rate bigint,
    per bigint NOT NULL DEFAULT 0,
    fixed boolean NOT NULL DEFAULT false,
    updated_at bigint NOT NULL
);

-- Starts that a rate still counts; only runs at a gate with a rate write here.
CREATE TABLE @gate_starts (
    gate text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    run_key bigint NOT NULL,
    PRIMARY KEY (gate, at, run_key)
);
