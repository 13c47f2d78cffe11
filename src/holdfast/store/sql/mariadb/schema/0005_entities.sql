-- The runs of an entity: one of them is live at a time, and they are listed.
ALTER TABLE runs ADD KEY IF NOT EXISTS runs_of_entity (instance_key, status);
