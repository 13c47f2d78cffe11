"""Bridges to what others run: each needs an extra, and costs nothing where it is not used."""

from __future__ import annotations
