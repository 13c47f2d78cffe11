"""The built-in handlers, by stage type."""
