"""Imported once by the fork server of prefork.py: what its children need."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys

import holdfast

PATH = list(sys.path)
# Needs libraries that may be missing, or is of no use to the children.
APART = ("holdfast.integrations", "holdfast.testing", "holdfast.cli.", "holdfast.demo.")

# Imported by Holdfast when first used; and the flows of the crash tests, whose many nodes are read from their
# source: two fifths of what each of hundreds of processes did before it was killed.
LATER = ("jsonschema", "tests.crash.document_flow", "tests.crash.flows")

for _found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not _found.name.startswith(APART) and not _found.name.endswith("__main__"):
        importlib.import_module(_found.name)
for _name in LATER:
    importlib.import_module(_name)
# What is here already stays: the collector of each child need not look at it (and copy its pages) again.
gc.freeze()
