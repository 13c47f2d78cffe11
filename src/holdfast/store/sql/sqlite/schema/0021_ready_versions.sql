-- The ready runs by version: a worker finds those that it serves beside any number that it does not.
CREATE INDEX runs_ready_versions ON runs (suspect, lane, version, priority, tenant, line, ready_at)
WHERE worker IS NULL AND ready_at IS NOT NULL;
