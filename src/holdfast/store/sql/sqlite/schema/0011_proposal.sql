-- What a checkpoint folds to, for whoever asks in SQL: written by a server some time after the checkpoint, which never
-- changes. Content is JSON; the key is that of the journal.
CREATE TABLE projections (
    key INTEGER PRIMARY KEY,
    checkpoint TEXT NOT NULL,
    completed TEXT NOT NULL,
    node_states TEXT,
    original_input TEXT,
    output TEXT
) STRICT;

-- How far along the feed that came.
CREATE TABLE projected (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pos INTEGER NOT NULL
) STRICT;

-- What was told before stays as it is: nobody waits for a week of runs to be folded.
INSERT INTO projected (one, pos) SELECT 1, pos FROM feed ORDER BY pos DESC LIMIT 1;

-- Joined by the range of a run's keys, which the journal's own index has: one run is found without the others.
-- The tables of the runtime proposal, as views: nothing of Holdfast reads them. docs/reference/tables.md tells of them.
CREATE VIEW checkpoints AS
SELECT
    coalesce(p.checkpoint, h.id) AS id,
    r.id AS run_id,
    r.flow AS flow_id,
    CASE
        WHEN j.kind = 4 OR (j.kind = 7 AND j.effect = 'human' AND j.outcome IN ('', 'migrated')) THEN 'pending_input'
        WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed'
        ELSE 'active'
    END AS status,
    p.node_states,
    p.completed AS completed_node_ids,
    p.original_input,
    CASE WHEN h.id IS NOT NULL THEN json_object(
        'request_id', h.id, 'node_id', h.node, 'prompt', h.prompt, 'timestamp',
        strftime('%Y-%m-%dT%H:%M:%S', h.created_at / 1000000, 'unixepoch')
            || printf('.%06dZ', h.created_at % 1000000)) END AS pending_input_context,
    '1.0' AS version,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS updated_at,
    j.key & 0xffffffff AS seq,
    j.node AS node_id,
    r.tenant AS tenant_id
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN projections AS p ON p.key = j.key
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.listed;

CREATE VIEW plain_runs AS
SELECT
    r.id,
    r.tenant AS tenant_id,
    r.flow AS flow_id,
    r.version,
    r.thread AS thread_id,
    r.status,
    (SELECT p.original_input FROM projections AS p WHERE p.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
     ORDER BY p.key DESC LIMIT 1) AS input,
    (SELECT p.output FROM projections AS p WHERE p.key = r.key << 32 | r.head) AS output,
    r.error,
    r.instance_key,
    r.started_by,
    r.deployment AS deployment_id,
    r.parent_run AS parent_run_id,
    r.forked_from,
    strftime('%Y-%m-%dT%H:%M:%S', r.created_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', r.updated_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.updated_at % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', r.ended_at / 1000000, 'unixepoch')
        || printf('.%06dZ', r.ended_at % 1000000) AS ended_at
FROM runs AS r;

CREATE VIEW threads AS
SELECT
    r.thread AS id,
    r.tenant AS tenant_id,
    count(*) AS runs,
    sum(r.status = 'pending_input') AS pending_input_runs,
    strftime('%Y-%m-%dT%H:%M:%S', min(r.created_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', min(r.created_at) % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', max(r.updated_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', max(r.updated_at) % 1000000) AS updated_at
FROM runs AS r WHERE r.thread IS NOT NULL GROUP BY r.tenant, r.thread;

CREATE VIEW stream_chunks AS
SELECT
    r.id AS run_id,
    j.event_from AS sequence,
    CASE j.kind
        WHEN 0 THEN 'run.created' WHEN 2 THEN 'attempt' WHEN 3 THEN 'substep' WHEN 4 THEN 'approval'
        WHEN 5 THEN 'chunk' WHEN 7 THEN 'run.migrated' WHEN 8 THEN 'run.' || j.outcome
        ELSE CASE j.outcome WHEN 'success' THEN 'node.completed' WHEN 'fail' THEN 'node.failed'
             ELSE 'node.' || j.outcome END
    END AS event,
    CASE WHEN h.id IS NOT NULL
        THEN json_object('entity_id', h.node, 'prompt', h.prompt, 'checkpoint_id', h.id, 'is_resumed', json('false'))
        ELSE json_object('node_id', j.node, 'visit', j.visit, 'attempt', j.attempt, 'outcome', j.outcome)
    END AS data,
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000) AS created_at,
    j.events - (j.listed AND j.kind NOT IN (1, 5, 7)) AS events
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.events - (j.listed AND j.kind NOT IN (1, 5, 7)) > 0
UNION ALL
SELECT
    r.id, j.event_from + j.events - 1, 'checkpoint_created',
    json_object(
        'checkpoint_id', coalesce(p.checkpoint, h.id), 'status', CASE
        WHEN j.kind = 4 THEN 'pending_input' WHEN j.outcome = 'completed' THEN 'completed'
        WHEN j.outcome IN ('fail', 'failed') THEN 'failed' ELSE 'active' END,
        'node_id', j.node, 'seq', j.key & 0xffffffff),
    strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06dZ', j.at % 1000000), 1
FROM runs AS r
JOIN journal AS j ON j.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff
LEFT JOIN projections AS p ON p.key = j.key
LEFT JOIN holds AS h ON j.kind = 4 AND h.run_key = r.key AND h.seq = j.key & 0xffffffff
WHERE j.listed AND j.kind NOT IN (1, 5, 7) AND j.events > 0
UNION ALL
SELECT
    r.id, e.key & 0xffffffff, e.type,
    CASE WHEN substr(e.payload, 1, 1) = x'7b' THEN CAST(e.payload AS TEXT) END,
    strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000), 1
FROM runs AS r
JOIN events AS e ON e.key BETWEEN r.key << 32 AND r.key << 32 | 0xffffffff;

CREATE VIEW run_input_events AS
SELECT
    i.id,
    r.id AS run_id,
    i.kind AS type,
    h.id AS checkpoint_id,
    CASE
        WHEN h.id IS NULL THEN CASE WHEN substr(i.payload, 1, 1) = x'7b' THEN CAST(i.payload AS TEXT) END
        WHEN substr(h.resolution, 1, 1) = x'7b' THEN CAST(h.resolution AS TEXT)
    END AS content,
    h.resolved_by AS created_by,
    strftime('%Y-%m-%dT%H:%M:%S', i.at / 1000000, 'unixepoch') || printf('.%06dZ', i.at % 1000000) AS created_at,
    i.done AS consumed
FROM inbox AS i
JOIN runs AS r ON r.key = i.run_key
LEFT JOIN holds AS h ON length(i.payload) = 36 AND h.run_key = i.run_key AND h.id = CAST(i.payload AS TEXT);
