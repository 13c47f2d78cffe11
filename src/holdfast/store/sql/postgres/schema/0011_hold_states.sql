-- The object in the blob store with the state of the run when the hold was asked.
ALTER TABLE @holds ADD COLUMN state_key text COLLATE "C";

-- The view of 0010, with that key. Replaced, so that rights to read it stay.
CREATE OR REPLACE VIEW @mod_scaicore_checkpoints AS
SELECT
    h.id,
    r.id AS execution_id,
    coalesce(nullif(r.deployment, ''), 'flow:' || r.flow) AS core_id,
    h.tenant AS tenant_id,
    r.flow AS flow_name,
    r.instance_key,
    h.node AS node_id,
    h.block::integer AS block_index,
    h.type AS checkpoint_type,
    h.status,
    h.priority,
    CASE WHEN strpos(h.prompt, U&'\E0C1HF:') <> 1 THEN h.prompt END AS prompt,
    @as_any_json(h.options) AS options,
    h.assignee AS assignee_raw,
    h.assignee_type,
    CASE WHEN h.assignee_reason = '' THEN json_build_object('type', h.assignee_type, 'value', h.assignee_value)
         ELSE json_build_object('type', h.assignee_type, 'value', h.assignee_value, 'reason', h.assignee_reason)
    END AS assignee_resolved,
    @as_any_json(h.context) AS context,
    @instant(h.expires_at) AS expires_at,
    h.expiry_action,
    h.escalation_target,
    h.notification_sent::integer AS notification_sent,
    h.reminder_count::integer AS reminder_count,
    h.reminder_interval::integer AS reminder_interval_m,
    @as_any_json(h.resolution) AS resolution,
    h.resolved_by,
    @instant(h.resolved_at) AS resolved_at,
    @instant(h.created_at) AS created_at,
    @instant(h.updated_at) AS updated_at,
    @instant(h.resumed_at) AS resumed_at,
    h.message_id AS hitl_message_id,
    h.state_key COLLATE "default" AS state_s3_key
FROM @holds AS h JOIN @runs AS r ON r.key = h.run_key;
