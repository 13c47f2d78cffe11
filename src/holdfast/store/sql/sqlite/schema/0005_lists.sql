-- Lists of runs by how they stand and by flow, newest first, without reading the others.
CREATE INDEX runs_by_status ON runs (status, created_at);
CREATE INDEX runs_by_flow ON runs (flow, created_at);
