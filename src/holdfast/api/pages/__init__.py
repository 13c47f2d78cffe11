"""Plain pages, rendered here, that need no script."""
