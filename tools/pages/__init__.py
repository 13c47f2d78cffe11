"""Reference pages that are generated from the code, so that they are always correct."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def pages() -> dict[Path, Callable[[], str]]:
    """The path of each page and its generator. Imported late: each loads its part of the product."""
    from tools.pages import (
        api,
        attractor,
        commands,
        errors,
        events,
        node_types,
        pictures,
        settings,
        source_lines,
        verdict,
    )

    return {
        **pictures.pictures(),
        REFERENCE / "api.md": api.page,
        REFERENCE / "attractor.md": attractor.page,
        REFERENCE / "commands.md": commands.page,
        REFERENCE / "errors.md": errors.page,
        REFERENCE / "events.md": events.page,
        REFERENCE / "flow.schema.json": node_types.schema,
        REFERENCE / "node-types.md": node_types.page,
        REFERENCE / "settings.md": settings.page,
        REFERENCE / "source-lines.md": source_lines.page,
        REFERENCE / "verdict.schema.json": verdict.schema,
    }


def stale() -> list[Path]:
    return [path for path, make in pages().items() if not path.exists() or path.read_text("utf-8") != make()]


def write() -> list[Path]:
    changed = stale()
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(pages()[path](), "utf-8")
    return changed
