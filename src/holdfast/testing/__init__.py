"""For tests of flows and of stores: nothing in the product imports it."""

from __future__ import annotations
