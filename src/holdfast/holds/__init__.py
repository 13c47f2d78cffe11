"""Holds: questions to people, and everything that happens to them until they are decided."""
