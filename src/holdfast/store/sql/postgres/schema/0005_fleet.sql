-- Who works, as each last said of itself.
CREATE TABLE @workers (
    name text COLLATE "C" PRIMARY KEY,
    incarnation text COLLATE "C" NOT NULL,
    seen_at bigint NOT NULL,
    until bigint NOT NULL,
    body bytea NOT NULL
);

-- Leases that lapsed while their run was under way. A run that kills its workers is given up: `dead`.
CREATE TABLE @deaths (
    run_key bigint NOT NULL,
    term bigint NOT NULL,
    worker text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    lease_until bigint NOT NULL,
    head bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    PRIMARY KEY (run_key, term)
);

-- Since when each timeline of a cluster is known. A failover makes a new one: nobody claims for a moment then.
CREATE TABLE @timelines (
    system text COLLATE "C" NOT NULL,
    timeline bigint NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (system, timeline)
);

ALTER TABLE @runs ADD COLUMN dead boolean NOT NULL DEFAULT false;
CREATE INDEX CONCURRENTLY runs_dead ON @runs (created_at) WHERE dead;
