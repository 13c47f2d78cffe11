"""The rules of validation, a file for each kind. `holdfast.model.validate` runs them all."""

from __future__ import annotations
