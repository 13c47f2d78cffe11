"""branch."""
