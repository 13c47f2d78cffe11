"""What differs between two versions of a pipeline, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.frontends.dot.document import Link, Pipeline
from holdfast.frontends.dot.lower import edge_ids

MOST = 12


def differences(old: Pipeline, new: Pipeline) -> list[str]:
    """One line each; empty where nothing differs that a run goes by."""
    found = [*_attributes("the graph's", old.attrs, new.attrs)]
    found += [f"stage {name} is gone" for name in old.stages if name not in new.stages]
    found += [f"stage {name} is new" for name in new.stages if name not in old.stages]
    for name, stage in old.stages.items():
        if name in new.stages:
            found += _attributes(f"stage {name}:", stage.attrs, new.stages[name].attrs)
    return found + _links(edge_ids(old), edge_ids(new))


def in_short(lines: list[str]) -> str:
    more = f", and {len(lines) - MOST} more" if len(lines) > MOST else ""
    return "; ".join(lines[:MOST]) + more


def _links(old: Mapping[str, Link], new: Mapping[str, Link]) -> list[str]:
    found = [f"edge {name} is gone" for name in old if name not in new]
    found += [f"edge {name} is new" for name in new if name not in old]
    for name, link in old.items():
        if name in new:
            found += _attributes(f"edge {name}:", link.attrs, new[name].attrs)
    return found


def _attributes(of: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*old, *new])
    return [f"{of} {name} differs" for name in names if old.get(name) != new.get(name)]
