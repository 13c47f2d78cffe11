-- The runs of a tenant in the order of their ends, for series.
ALTER TABLE runs ADD KEY IF NOT EXISTS runs_ended (tenant, ended_at);
