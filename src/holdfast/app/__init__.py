"""The library's face: `Flow` with run, run_sync and stream, and the object that wires store and worker."""
