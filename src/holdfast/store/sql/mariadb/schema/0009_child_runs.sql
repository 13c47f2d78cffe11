-- The runs that the scripts of a run have started.
ALTER TABLE runs ADD KEY IF NOT EXISTS runs_of_parent (parent_run);
