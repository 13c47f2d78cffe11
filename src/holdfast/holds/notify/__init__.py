"""Telling people that a decision waits: channels, and the deliverer that empties the outbox through them."""
