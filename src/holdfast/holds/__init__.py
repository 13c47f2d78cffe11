"""Holds: what people decide."""
