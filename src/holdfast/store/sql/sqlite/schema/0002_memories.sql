-- What nodes remember beyond one run. `folded` is the content as it is searched: without case.
CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    folded TEXT NOT NULL,
    strength REAL NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE INDEX memories_of_scope ON memories (tenant, scope, strength);
