"""What a flow and a run are: graphs, conditions, schemas, positions and the moves between them."""

from __future__ import annotations
