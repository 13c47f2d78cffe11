-- The record at which a run went over to its present version of the flow; 0: it was started on it.
ALTER TABLE runs ADD COLUMN migrated INTEGER NOT NULL DEFAULT 0;

-- What the code of a flow consists of, part by part, so that a change can be told apart by node.
CREATE TABLE codes (
    digest TEXT PRIMARY KEY,
    marks BLOB NOT NULL
) STRICT, WITHOUT ROWID;
