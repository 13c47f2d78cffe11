-- The runs of a tenant in the order of their ends, for series.
CREATE INDEX CONCURRENTLY runs_ended ON @runs (tenant, ended_at) WHERE ended_at IS NOT NULL;
