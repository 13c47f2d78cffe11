-- What the run was last told to wait for that no live worker has (`store.missing_means`).
ALTER TABLE runs ADD COLUMN IF NOT EXISTS missing varchar(32) NOT NULL DEFAULT '';
ALTER TABLE runs ADD KEY IF NOT EXISTS runs_missing (missing);
