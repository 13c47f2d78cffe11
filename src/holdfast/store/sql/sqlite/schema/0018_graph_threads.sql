-- Threads of other frameworks' graphs. Threads that were copied from each other have one `family`, whose values
-- they share. `refs`: the numbers of the values that a checkpoint refers to.
CREATE TABLE graph_threads (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    thread TEXT NOT NULL,
    family INTEGER NOT NULL,
    owner TEXT,
    term INTEGER NOT NULL DEFAULT 0,
    claimed_until INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, thread),
    CHECK ((owner IS NULL) = (claimed_until IS NULL))
) STRICT;

CREATE INDEX graph_threads_of_family ON graph_threads (family);

CREATE TABLE graph_checkpoints (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_number INTEGER NOT NULL,
    ns TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    run_id TEXT,
    listed INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    refs TEXT NOT NULL,
    facets TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (thread_number, ns, id)
) STRICT;

CREATE INDEX graph_checkpoints_of_run ON graph_checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE graph_values (
    number INTEGER PRIMARY KEY,
    family INTEGER NOT NULL,
    base INTEGER,
    channel TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE INDEX graph_values_of_family ON graph_values (family);

CREATE TABLE graph_writes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_number INTEGER NOT NULL,
    ns TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    task TEXT NOT NULL,
    idx INTEGER NOT NULL,
    path TEXT NOT NULL,
    channel TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (thread_number, checkpoint, ns, task, idx)
) STRICT;
