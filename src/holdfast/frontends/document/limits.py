"""How large a document may be. A document comes from outside; each limit is checked before the work that it
bounds."""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 4_000_000
MAX_NODES: Final = 2_000
MAX_EDGES: Final = 10_000
MAX_DEPTH: Final = 64
MAX_CONFIG_BYTES: Final = 256_000
MAX_TEXT: Final = 16_000_000
"""Characters of a text that a template makes when its node runs."""
MAX_PROBLEMS: Final = 200
MAX_EXPANSION: Final = 10
"""How many times larger aliases may make a YAML document."""
MAX_VALUES: Final = 1_000_000
"""Of data that a node puts together from several placeholders."""
