"""Integrations with other systems: each needs an extra, and costs nothing if it is not used."""

from __future__ import annotations
