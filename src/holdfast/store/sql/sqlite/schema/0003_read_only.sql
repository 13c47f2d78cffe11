-- History that came from another store: nobody can hold it or make it ready.
ALTER TABLE runs ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0 CHECK (
    read_only = 0 OR (read_only = 1 AND worker IS NULL AND ready_at IS NULL));
