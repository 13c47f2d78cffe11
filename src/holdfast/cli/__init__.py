"""The command line: everything by hand, from a terminal."""

from __future__ import annotations
