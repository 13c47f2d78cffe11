"""The library's entry points: `Flow` with run, run_sync and stream, and the object that wires store and
worker."""
