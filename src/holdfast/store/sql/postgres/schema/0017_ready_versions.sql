-- The ready runs by version: a worker finds those that it serves beside any number that it does not.
CREATE INDEX CONCURRENTLY runs_ready_versions ON @runs (
    suspect, lane, version, urgency, tenant,
    (CASE WHEN gate = '' THEN ''
          ELSE (CASE WHEN status = 'pending' THEN '+' ELSE '-' END || split_part(gate, '/', 1)) END),
    ready_at, key) WHERE worker IS NULL AND ready_at IS NOT NULL;
