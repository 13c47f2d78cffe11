"""Ways in beside the interface: clicks in Slack, webhooks of other systems, replies to mails."""
