-- The ready runs by version: a worker finds those that it serves beside any number that it does not.
ALTER TABLE runs ADD KEY IF NOT EXISTS runs_ready_versions (
    claimable, suspect, version, urgency, tenant, line, ready_at);
