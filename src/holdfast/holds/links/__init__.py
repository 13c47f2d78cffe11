"""Signed links to a hold."""
