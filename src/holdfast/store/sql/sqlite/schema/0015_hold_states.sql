-- The object in the blob store with the state of the run when the hold was asked.
ALTER TABLE holds ADD COLUMN state_key TEXT;

-- The view of 0014, with that key.
DROP VIEW mod_scaicore_checkpoints;
CREATE VIEW mod_scaicore_checkpoints AS
SELECT
    h.id,
    r.id AS execution_id,
    coalesce(nullif(r.deployment, ''), 'flow:' || r.flow) AS core_id,
    h.tenant AS tenant_id,
    r.flow AS flow_name,
    r.instance_key,
    h.node AS node_id,
    h.block AS block_index,
    h.type AS checkpoint_type,
    h.status,
    h.priority,
    CASE WHEN instr(h.prompt, char(0xe0c1) || 'HF:') <> 1 THEN h.prompt END AS prompt,
    CASE WHEN substr(h.options, 1, 1) IN (x'7b', x'5b') AND instr(h.options, x'ee838148463a') = 0
         THEN CAST(h.options AS TEXT) END AS options,
    h.assignee AS assignee_raw,
    h.assignee_type,
    CASE WHEN h.assignee_reason = '' THEN json_object('type', h.assignee_type, 'value', h.assignee_value)
         ELSE json_object('type', h.assignee_type, 'value', h.assignee_value, 'reason', h.assignee_reason)
    END AS assignee_resolved,
    CASE WHEN substr(h.context, 1, 1) IN (x'7b', x'5b') AND instr(h.context, x'ee838148463a') = 0
         THEN CAST(h.context AS TEXT) END AS context,
    strftime('%Y-%m-%dT%H:%M:%S', h.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', h.expires_at % 1000000) AS expires_at,
    h.expiry_action,
    h.escalation_target,
    h.notification_sent,
    h.reminder_count,
    h.reminder_interval AS reminder_interval_m,
    CASE WHEN substr(h.resolution, 1, 1) IN (x'7b', x'5b') AND instr(h.resolution, x'ee838148463a') = 0
         THEN CAST(h.resolution AS TEXT) END AS resolution,
    h.resolved_by,
    strftime('%Y-%m-%dT%H:%M:%S', h.resolved_at / 1000000, 'unixepoch') || printf('.%06dZ', h.resolved_at % 1000000) AS resolved_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.created_at / 1000000, 'unixepoch') || printf('.%06dZ', h.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.updated_at / 1000000, 'unixepoch') || printf('.%06dZ', h.updated_at % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', h.resumed_at / 1000000, 'unixepoch') || printf('.%06dZ', h.resumed_at % 1000000) AS resumed_at,
    h.message_id AS hitl_message_id,
    h.state_key AS state_s3_key
FROM holds AS h JOIN runs AS r ON r.key = h.run_key;
