-- What a checkpoint folds to, for whoever asks in SQL: written by a server some time after the checkpoint, which never
-- changes. Content is JSON; the key is that of the journal.
CREATE TABLE @projections (
    key bigint PRIMARY KEY,
    checkpoint text COLLATE "C" NOT NULL,
    completed text NOT NULL,
    node_states text,
    original_input text,
    output text
);

-- How far along the feed that came.
CREATE TABLE @projected (
    one bigint PRIMARY KEY CHECK (one = 1),
    pos bigint NOT NULL
);

-- What was told before stays as it is: nobody waits for a week of runs to be folded.
INSERT INTO @projected (one, pos) SELECT 1, pos FROM @feed ORDER BY pos DESC LIMIT 1;

-- The id of a checkpoint, as `types.ids.checkpoint_id` makes it.
CREATE FUNCTION @checkpoint_id(run text, seq bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (substr(run, 1, 14) || '4' || substr(run, 16, 3)
        || lpad(to_hex((('x' || substr(encode(sha256(convert_to(run || '/' || seq::text, 'UTF8')), 'hex'), 1, 8))
            ::bit(32)::bigint & 1073741823) | 2147483648), 8, '0')
        || lpad(to_hex((('x' || substr(encode(sha256(convert_to(run, 'UTF8')), 'hex'), 1, 8))
            ::bit(32)::bigint # seq) & 4294967295), 8, '0'))::uuid
$$;

-- NULL for what is none: one such id is no fault of the others. The index lets one run be found by it.
CREATE FUNCTION @as_uuid(id text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN id::uuid END
$$;

CREATE INDEX CONCURRENTLY runs_as_uuid ON @runs (@as_uuid(id));

CREATE FUNCTION @instant(at bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT 'epoch'::timestamptz + at * interval '1 microsecond'
$$;

-- What is encrypted begins with another byte.
CREATE FUNCTION @as_json(bytes bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN substr(bytes, 1, 1) = '\x7b'::bytea THEN convert_from(bytes, 'UTF8')::json END
$$;

-- Joined by the range of a run's keys, which the journal's own index has: one run is found without the others.
-- The tables of the runtime proposal, as views: nothing of Holdfast reads them. docs/reference/tables.md tells of them.
CREATE VIEW @checkpoints AS
SELECT
    coalesce(h.id::uuid, @checkpoint_id(r.id, j.key & 4294967295)) AS id,
    @as_uuid(r.id) AS run_id,
    r.flow AS flow_id,
    CASE
        WHEN j.kind = 4 OR (j.kind = 7 AND j.effect = 'human' AND j.outcome IN ('', 'migrated')) THEN 'pending_input'
        WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed'
        ELSE 'active'
    END AS status,
    p.node_states::jsonb AS node_states,
    CASE WHEN p.completed IS NOT NULL
        THEN ARRAY(SELECT jsonb_array_elements_text(p.completed::jsonb)) END AS completed_node_ids,
    p.original_input::jsonb AS original_input,
    CASE WHEN h.id IS NOT NULL THEN jsonb_build_object(
        'request_id', h.id, 'node_id', h.node, 'prompt', h.prompt, 'timestamp', @instant(h.created_at))
        END AS pending_input_context,
    '1.0'::text AS version,
    @instant(j.at) AS created_at,
    @instant(j.at) AS updated_at,
    j.key & 4294967295 AS seq,
    j.node AS node_id,
    r.tenant AS tenant_id
FROM @runs AS r
JOIN @journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295
LEFT JOIN @projections AS p ON p.key = j.key
LEFT JOIN @holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 4294967295
WHERE j.listed;

CREATE VIEW @plain_runs AS
SELECT
    @as_uuid(r.id) AS id,
    r.tenant AS tenant_id,
    r.flow AS flow_id,
    r.version,
    r.thread AS thread_id,
    r.status,
    (SELECT p.original_input::jsonb FROM @projections AS p
     WHERE p.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295 ORDER BY p.key DESC LIMIT 1) AS input,
    (SELECT p.output::jsonb FROM @projections AS p WHERE p.key = r.key << 32 | r.head) AS output,
    r.error,
    r.instance_key,
    r.started_by,
    r.deployment AS deployment_id,
    r.parent_run AS parent_run_id,
    r.forked_from,
    @instant(r.created_at) AS created_at,
    @instant(r.updated_at) AS updated_at,
    @instant(r.ended_at) AS ended_at
FROM @runs AS r;

CREATE VIEW @threads AS
SELECT
    r.thread AS id,
    r.tenant AS tenant_id,
    count(*) AS runs,
    count(*) FILTER (WHERE r.status = 'pending_input') AS pending_input_runs,
    @instant(min(r.created_at)) AS created_at,
    @instant(max(r.updated_at)) AS updated_at
FROM @runs AS r WHERE r.thread IS NOT NULL GROUP BY r.tenant, r.thread;

CREATE VIEW @stream_chunks AS
SELECT
    @as_uuid(r.id) AS run_id,
    j.event_from AS sequence,
    CASE j.kind
        WHEN 0 THEN 'run.created' WHEN 2 THEN 'attempt' WHEN 3 THEN 'substep' WHEN 4 THEN 'approval'
        WHEN 5 THEN 'chunk' WHEN 7 THEN 'run.migrated' WHEN 8 THEN 'run.' || j.outcome
        ELSE CASE j.outcome WHEN 'success' THEN 'node.completed' WHEN 'fail' THEN 'node.failed'
             ELSE 'node.' || j.outcome END
    END AS event,
    CASE WHEN h.id IS NOT NULL
        THEN json_build_object('entity_id', h.node, 'prompt', h.prompt, 'checkpoint_id', h.id, 'is_resumed', false)
        ELSE json_build_object('node_id', j.node, 'visit', j.visit, 'attempt', j.attempt, 'outcome', j.outcome)
    END AS data,
    @instant(j.at) AS created_at,
    j.events - (j.listed AND j.kind NOT IN (1, 5, 7))::integer AS events
FROM @runs AS r
JOIN @journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295
LEFT JOIN @holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 4294967295
WHERE j.events - (j.listed AND j.kind NOT IN (1, 5, 7))::integer > 0
UNION ALL
SELECT
    @as_uuid(r.id), j.event_from + j.events - 1, 'checkpoint_created',
    json_build_object(
        'checkpoint_id', coalesce(h.id::uuid, @checkpoint_id(r.id, j.key & 4294967295)), 'status', CASE
        WHEN j.kind = 4 THEN 'pending_input' WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed' ELSE 'active' END,
        'node_id', j.node, 'seq', j.key & 4294967295),
    @instant(j.at), 1
FROM @runs AS r
JOIN @journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295
LEFT JOIN @holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 4294967295
WHERE j.listed AND j.kind NOT IN (1, 5, 7) AND j.events > 0
UNION ALL
SELECT
    @as_uuid(r.id), e.key & 4294967295, e.type,
    @as_json(e.payload),
    @instant(e.at), 1
FROM @runs AS r
JOIN @events AS e ON e.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295;

CREATE VIEW @run_input_events AS
SELECT
    i.id,
    @as_uuid(r.id) AS run_id,
    i.kind AS type,
    h.id::uuid AS checkpoint_id,
    CASE WHEN h.id IS NULL THEN @as_json(i.payload) ELSE @as_json(h.resolution) END AS content,
    h.resolved_by AS created_by,
    @instant(i.at) AS created_at,
    i.done AS consumed
FROM @inbox AS i
JOIN @runs AS r ON r.key = i.run_key
LEFT JOIN @holds AS h ON length(i.payload) = 36 AND h.run_key = i.run_key AND h.id = encode(i.payload, 'escape');
