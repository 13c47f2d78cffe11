-- The runs of an entity: one of them is live at a time, and they are listed.
CREATE INDEX runs_of_entity ON runs (instance_key, status) WHERE instance_key IS NOT NULL;
