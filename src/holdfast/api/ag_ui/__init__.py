"""A run as a stream of AG-UI, the protocol between agents and front ends (docs/how-to/ag-ui.md).

Beside the routes and not in `integrations`: it is a rendering of a run's stream that needs no library, and
the server imports no integration (ADR 103).
"""
