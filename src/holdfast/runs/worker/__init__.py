"""A worker process: claims runs, heartbeats, sweeps, health."""
