"""Flow documents: YAML or JSON, as drawn on a canvas.

`read` turns text into a `FlowDocument`, `compile` a document into a graph, and both report every problem with
its place. A document has no code: it names functions that the operator registered (`site`).
"""

from __future__ import annotations
