-- The object in the blob store with the state of the run when the hold was asked.
ALTER TABLE holds ADD COLUMN IF NOT EXISTS state_key varchar(1024);

-- The view of 0003, with that key.
CREATE OR REPLACE VIEW mod_scaicore_checkpoints AS
SELECT
    CAST(h.id AS char(36)) AS id,
    CAST(r.id AS char(36)) AS execution_id,
    coalesce(nullif(r.deployment, ''), concat('flow:', r.flow)) AS core_id,
    h.tenant AS tenant_id,
    r.flow AS flow_name,
    r.instance_key AS instance_key,
    h.node AS node_id,
    CAST(h.block AS int) AS block_index,
    h.type AS checkpoint_type,
    h.status AS status,
    h.priority AS priority,
    CASE WHEN left(h.prompt, 4) <> _utf8mb4 X'ee838148463a' THEN h.prompt END AS prompt,
    CASE WHEN left(h.options, 1) IN ('{', '[') AND instr(h.options, X'ee838148463a') = 0
         THEN CONVERT(h.options USING utf8mb4) END AS options,
    h.assignee AS assignee_raw,
    h.assignee_type AS assignee_type,
    CASE WHEN h.assignee_reason = '' THEN json_object('type', h.assignee_type, 'value', h.assignee_value)
         ELSE json_object('type', h.assignee_type, 'value', h.assignee_value, 'reason', h.assignee_reason)
    END AS assignee_resolved,
    CASE WHEN left(h.context, 1) IN ('{', '[') AND instr(h.context, X'ee838148463a') = 0
         THEN CONVERT(h.context USING utf8mb4) END AS context,
    TIMESTAMP'1970-01-01 00:00:00' + INTERVAL h.expires_at MICROSECOND AS expires_at,
    h.expiry_action AS expiry_action,
    h.escalation_target AS escalation_target,
    CAST(h.notification_sent AS int) AS notification_sent,
    CAST(h.reminder_count AS int) AS reminder_count,
    CAST(h.reminder_interval AS int) AS reminder_interval_m,
    CASE WHEN left(h.resolution, 1) IN ('{', '[') AND instr(h.resolution, X'ee838148463a') = 0
         THEN CONVERT(h.resolution USING utf8mb4) END AS resolution,
    h.resolved_by AS resolved_by,
    TIMESTAMP'1970-01-01 00:00:00' + INTERVAL h.resolved_at MICROSECOND AS resolved_at,
    TIMESTAMP'1970-01-01 00:00:00' + INTERVAL h.created_at MICROSECOND AS created_at,
    TIMESTAMP'1970-01-01 00:00:00' + INTERVAL h.updated_at MICROSECOND AS updated_at,
    TIMESTAMP'1970-01-01 00:00:00' + INTERVAL h.resumed_at MICROSECOND AS resumed_at,
    h.message_id AS hitl_message_id,
    h.state_key AS state_s3_key
FROM holds AS h JOIN runs AS r ON r.`key` = h.run_key;
