"""The script and the styles of each route of the built app, compressed, by the manifest of the build."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from bench import targets
from bench.lines import Line
from bench.measure import aimed

KB = 1000
UI = Path(__file__).parent.parent / "src" / "holdfast" / "_ui"
SHELL = "index.html"
EDITOR = "src/screens/editor/Screen.tsx"
OPERATIONS = "src/screens/operations/Screen.tsx"
# A route, and the target of its script.
ROUTES = {
    SHELL: "U-size-shell",
    "src/screens/inbox/Screen.tsx": "U-size-inbox",
    "src/screens/runs/RunScreen.tsx": "U-size-run",
    OPERATIONS: "U-size-operations",
    EDITOR: "U-size-editor",
}
STYLES = "U-size-styles"
# What is loaded there a little later.
_LATER = {OPERATIONS: "src/screens/operations/Chart.tsx"}


def manifest_of(built: Path) -> dict[str, dict[str, Any]]:
    return json.loads((built / ".vite" / "manifest.json").read_text())


def closure(manifest: dict[str, dict[str, Any]], name: str, found: set[str]) -> set[str]:
    """A part and everything that it imports at once."""
    if name not in found:
        found.add(name)
        for each in manifest[name].get("imports", []):
            closure(manifest, each, found)
    return found


def route_sizes(built: Path, route: str) -> tuple[float, float]:
    """Kilobytes of script and of styles."""
    manifest = manifest_of(built)
    # The shell is there whatever is shown.
    names = closure(manifest, SHELL, set())
    for part in (route, _LATER.get(route, route)):
        names |= closure(manifest, part, set())
    scripts = {manifest[name]["file"] for name in names}
    sheets = {sheet for name in names for sheet in manifest[name].get("css", [])}
    return _packed(built, scripts), _packed(built, sheets)


def _packed(built: Path, files: set[str]) -> float:
    return sum(len(gzip.compress((built / each).read_bytes(), 9)) for each in files) / KB


def most(target: str) -> float:
    found = targets.target(target).most
    assert found is not None
    return found


def size_lines() -> list[Line]:
    sizes = {target: route_sizes(UI, route) for route, target in ROUTES.items()}
    styles = max(each for _, each in sizes.values())
    scripts = [
        aimed("U", f"script of the {target.rpartition('-')[2]}", script, "kB", target)
        for target, (script, _) in sizes.items()
    ]
    return [*scripts, aimed("U", "styles, of the route that has most", styles, "kB", STYLES)]
