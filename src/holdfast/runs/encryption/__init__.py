"""Encryption at rest: which fields are content, the store that encrypts them, rotation of keys."""
