"""Engines other than the built-in workers that advance runs."""
