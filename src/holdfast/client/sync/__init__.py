"""The client for programs with an event loop. The one without, `sync`, is generated from it."""

# Written by tools/client.py from src/holdfast/client/aio/__init__.py. Do not change it here.
