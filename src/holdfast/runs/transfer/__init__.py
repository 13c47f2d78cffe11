"""Export and import of runs, and moving a whole store."""
