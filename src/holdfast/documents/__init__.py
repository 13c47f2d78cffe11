"""Runs flow documents: the functions that they may call, and the program of a stored document."""

from __future__ import annotations
