-- A run whose worker died while it was under way: it is claimed alone until it makes progress.
ALTER TABLE runs ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1));
CREATE INDEX runs_suspect ON runs (ready_at) WHERE suspect;

-- Whether no other run was under way on that worker: only such a death is counted.
ALTER TABLE deaths ADD COLUMN alone INTEGER NOT NULL DEFAULT 1 CHECK (alone IN (0, 1));
CREATE INDEX deaths_by_worker ON deaths (worker);
