"""Stores that keep runs in a database, one folder a dialect."""
