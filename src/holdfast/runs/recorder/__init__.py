"""Writes step records in batches and retries while the store is unavailable."""
