-- What the run was last told to wait for that no live worker has (`store.missing_means`).
ALTER TABLE @runs ADD COLUMN missing text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX CONCURRENTLY runs_missing ON @runs (status) WHERE missing <> '';
