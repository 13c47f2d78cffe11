"""Inbound answers outside the API: clicks in Slack, webhooks of other systems, replies to mails."""
