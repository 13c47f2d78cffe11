"""Moving live runs to a new version of their flow: checks, blockers, state migration."""
