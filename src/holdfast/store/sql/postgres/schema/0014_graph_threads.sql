-- Threads of other frameworks' graphs. Threads that were copied from each other have one `family`, whose values
-- they share. `refs`: the numbers of the values that a checkpoint refers to.
CREATE TABLE @graph_threads (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    thread text COLLATE "C" NOT NULL,
    family bigint NOT NULL,
    owner text COLLATE "C",
    term bigint NOT NULL DEFAULT 0,
    claimed_until bigint,
    created_at bigint NOT NULL,
    UNIQUE (tenant, thread),
    CHECK ((owner IS NULL) = (claimed_until IS NULL))
);

CREATE INDEX graph_threads_of_family ON @graph_threads (family);

CREATE TABLE @graph_checkpoints (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_number bigint NOT NULL,
    ns text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    run_id text COLLATE "C",
    listed boolean NOT NULL,
    written_at bigint NOT NULL,
    refs text COLLATE "C" NOT NULL,
    facets text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    body bytea NOT NULL,
    UNIQUE (thread_number, ns, id)
);

CREATE INDEX graph_checkpoints_of_run ON @graph_checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE @graph_values (
    number bigint PRIMARY KEY,
    family bigint NOT NULL,
    base bigint,
    channel text COLLATE "C" NOT NULL,
    data bytea NOT NULL
);

CREATE INDEX graph_values_of_family ON @graph_values (family);

CREATE TABLE @graph_writes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_number bigint NOT NULL,
    ns text COLLATE "C" NOT NULL,
    checkpoint text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    idx bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    UNIQUE (thread_number, checkpoint, ns, task, idx)
);
