"""Writes the Python client: models and methods from the OpenAPI document, the sync form from the async."""
