"""Ways to write a flow. Each lowers to the same graph."""

from __future__ import annotations
