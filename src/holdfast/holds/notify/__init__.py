"""Notifications: channels (mail, Slack, Teams, webhooks), and the deliverer that sends the outbox through
them."""
