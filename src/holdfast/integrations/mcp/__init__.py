"""The Model Context Protocol (the extra `mcp`): agents ask people, start runs and follow them.

An agent never decides: no tool does, and whatever rights its credential has, the rights to decide holds are
removed here (docs/adr/0046).
"""

from __future__ import annotations
