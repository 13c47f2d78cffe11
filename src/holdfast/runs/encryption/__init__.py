"""encryption."""
