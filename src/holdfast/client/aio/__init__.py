"""The client for programs with an event loop. The one without, `sync`, is generated from it."""
