-- Instants are microseconds since the epoch, UTC. Names and statuses are the words of holdfast.types.
-- Nothing here refers by FOREIGN KEY: each table is written in one place, and delete_run clears them all.
-- Text is compared byte by byte (COLLATE "C") wherever it is sorted or looked up by its beginning.

CREATE TABLE @migrations (
    number bigint PRIMARY KEY,
    name text NOT NULL,
    applied_at bigint NOT NULL
);

-- The server's time, unless a clock was given.
CREATE FUNCTION @now(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- The place in the feed of the transaction's run number `nth`: after what was told of that run before.
CREATE FUNCTION @place(nth bigint, before bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT greatest((pg_current_xact_id()::text::bigint << 20) + (nth << 6), before + 1)
$$;

-- An identity never gives a number twice: an old lease on a deleted run finds nothing. Half the page stays
-- free, so that what a settle changes (head, event_seq, updated_at) stays on it and touches no index.
CREATE TABLE @runs (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    head bigint NOT NULL,
    event_seq bigint NOT NULL,
    updated_at bigint NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    worker text COLLATE "C",
    lease_until bigint,
    status text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (status IN (
        'pending', 'running', 'waiting', 'pending_input', 'resumable', 'completed', 'failed', 'cancelled')),
    ready_at bigint,
    inbox_seq bigint NOT NULL DEFAULT 0,
    feed_pos bigint NOT NULL DEFAULT 0,
    horizon bigint NOT NULL DEFAULT 0,
    recoveries bigint NOT NULL DEFAULT 0,
    priority bigint NOT NULL,
    -- Sorts the other way round, so that one index serves the order of claims.
    urgency bigint NOT NULL GENERATED ALWAYS AS (- priority) STORED,
    lane text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    flow text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    thread text COLLATE "C",
    instance_key text COLLATE "C",
    idempotency_key text COLLATE "C",
    started_by text COLLATE "C",
    deployment text COLLATE "C",
    parent_run text COLLATE "C",
    forked_from text COLLATE "C",
    superseded_by text COLLATE "C",
    created_at bigint NOT NULL,
    ended_at bigint,
    error text,
    read_only boolean NOT NULL DEFAULT false,
    migrated bigint NOT NULL DEFAULT 0,
    CHECK ((worker IS NULL) = (lease_until IS NULL)),
    CHECK (NOT read_only OR (worker IS NULL AND ready_at IS NULL))
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX runs_once ON @runs (tenant, flow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_ready ON @runs (urgency, tenant, ready_at, key) WHERE worker IS NULL AND ready_at IS NOT NULL;
CREATE INDEX runs_leased ON @runs (tenant, lease_until) WHERE worker IS NOT NULL;
CREATE INDEX runs_newest ON @runs (created_at, key);
CREATE INDEX runs_of_thread ON @runs (thread, created_at) WHERE thread IS NOT NULL;
CREATE INDEX runs_by_status ON @runs (status, created_at);
CREATE INDEX runs_by_flow ON @runs (flow, created_at);

-- When each tenant was last served, counted in claims: the round-robin among equals.
CREATE TABLE @turns (
    tenant text COLLATE "C" PRIMARY KEY,
    turn bigint NOT NULL
);

CREATE SEQUENCE @turn_numbers;

-- The same table as holdfast.types.status.TRANSITIONS; a test tries every pair.
CREATE FUNCTION @refuse_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status || ' ' || NEW.status NOT IN (
        'pending running', 'pending failed', 'pending cancelled',
        'running waiting', 'running pending_input', 'running resumable',
        'running completed', 'running failed', 'running cancelled',
        'waiting running', 'waiting cancelled',
        'pending_input running', 'pending_input cancelled',
        'resumable running', 'resumable failed', 'resumable cancelled',
        'failed resumable')
    THEN
        RAISE EXCEPTION 'a run that is % cannot become %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER runs_status BEFORE UPDATE OF status ON @runs FOR EACH ROW
WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION @refuse_status();

-- key = run key << 32 | seq: one b-tree, no second index, a run's records side by side.
CREATE TABLE @journal (
    key bigint PRIMARY KEY,
    kind smallint NOT NULL,
    at bigint NOT NULL,
    term bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    visit bigint NOT NULL,
    attempt bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    listed boolean NOT NULL,
    events bigint NOT NULL,
    event_from bigint NOT NULL,
    digest bytea NOT NULL,
    payload bytea NOT NULL
);

-- Payloads come compressed where that pays.
ALTER TABLE @journal ALTER payload SET STORAGE EXTERNAL;

-- key = run key << 32 | event number: what others did to a run.
CREATE TABLE @events (
    key bigint PRIMARY KEY,
    at bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    payload bytea NOT NULL
);

-- One row per transaction and run. A position begins with the number of its transaction; readers stop below the
-- oldest that is still open, so that nothing appears behind them. A transaction that waited for another with a
-- higher number takes the place after that one (`runs.feed_pos`): a run's events are told in their order.
CREATE TABLE @feed (
    pos bigint PRIMARY KEY,
    run_key bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL
);

CREATE TABLE @inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_key bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    done boolean NOT NULL DEFAULT false,
    dedupe text COLLATE "C",
    payload bytea NOT NULL
);

CREATE INDEX inbox_of_run ON @inbox (run_key, done);
CREATE UNIQUE INDEX inbox_once ON @inbox (run_key, dedupe) WHERE dedupe IS NOT NULL;

CREATE TABLE @timers (
    run_key bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    fire_at bigint NOT NULL,
    PRIMARY KEY (run_key, token)
);

CREATE INDEX timers_due ON @timers (fire_at);

CREATE TABLE @late_reports (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_key bigint NOT NULL,
    seq bigint NOT NULL,
    payload bytea NOT NULL
);

CREATE INDEX late_reports_of_run ON @late_reports (run_key, seq);

CREATE TABLE @flows (
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    graph bytea NOT NULL,
    PRIMARY KEY (name, version)
);

-- What the code of a flow consists of, part by part, so that a change can be told apart by node.
CREATE TABLE @codes (
    digest text COLLATE "C" PRIMARY KEY,
    marks bytea NOT NULL
);

-- place: 'row' (in `data`), 'elsewhere' (the caller keeps it).
CREATE TABLE @blobs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    size bigint NOT NULL,
    put_at bigint NOT NULL,
    condemned boolean NOT NULL DEFAULT false,
    place text COLLATE "C" NOT NULL CHECK (place IN ('row', 'elsewhere')),
    data bytea
);

ALTER TABLE @blobs ALTER data SET STORAGE EXTERNAL;
CREATE INDEX blobs_by_age ON @blobs (put_at);

CREATE TABLE @blob_refs (
    run_key bigint NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (run_key, digest)
);

CREATE INDEX blob_refs_of_blob ON @blob_refs (digest);

-- What nodes remember beyond one run. `folded` is the content as it is searched: without case.
CREATE TABLE @memories (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    folded text COLLATE "C" NOT NULL,
    strength double precision NOT NULL,
    at bigint NOT NULL,
    UNIQUE (tenant, id)
);

CREATE INDEX memories_of_scope ON @memories (tenant, scope, strength);
