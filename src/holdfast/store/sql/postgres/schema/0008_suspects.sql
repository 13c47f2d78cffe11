-- A run whose worker died while it was under way: it is claimed alone until it makes progress.
ALTER TABLE @runs ADD COLUMN suspect boolean NOT NULL DEFAULT false;
CREATE INDEX CONCURRENTLY runs_suspect ON @runs (ready_at) WHERE suspect;

-- Whether no other run was under way on that worker: only such a death is counted.
ALTER TABLE @deaths ADD COLUMN alone boolean NOT NULL DEFAULT true;
CREATE INDEX CONCURRENTLY deaths_by_worker ON @deaths (worker);
