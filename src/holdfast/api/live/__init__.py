"""Streams from the stored log: server-sent events and WebSocket."""
