-- The runs that the scripts of a run have started.
CREATE INDEX runs_of_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;
