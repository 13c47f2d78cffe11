"""docs/assets/packages.svg: the packages of src/holdfast and their imports, with the core marked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from holdfast.drawing import Highlight, Picture, PictureEdge, PictureNode, to_svg
from tools.pages import ROOT

SOURCE = ROOT / "src" / "holdfast"
CORE = (
    "app", "runs", "holds", "engine", "checkpoint", "store", "frontends.python", "model", "config",
    "telemetry", "types", "errors",
)  # fmt: skip
REST = (
    "cli", "demo", "testing", "integrations", "torture", "api", "attractor", "documents", "agents", "reports",
    "queues", "frontends.document", "frontends.dot", "drawing", "drivers", "client",
)  # fmt: skip
# The core as one box for the packages outside of it.
CORE_ID = "core"


def page() -> str:
    return to_svg(picture(), legend=False) + "\n"


def picture() -> Picture:
    imports = package_imports()
    inside = Picture(nodes=tuple(_node(name) for name in CORE), edges=_edges(imports, CORE), title="The core")
    outside = {
        name: {CORE_ID if found in CORE else found for found in imports[name]} - {name} for name in REST
    }
    core = PictureNode(
        id=CORE_ID, label="core", note="imports nothing of the rest", mark=Highlight.taken, inside=inside
    )
    return Picture(
        nodes=(*(_node(name) for name in REST), core),
        edges=_edges({**outside, CORE_ID: set()}, (*REST, CORE_ID)),
        title="The packages of holdfast: an arrow means imports",
    )


def _node(name: str) -> PictureNode:
    return PictureNode(id=name, label=name)


def _edges(imports: dict[str, set[str]], names: tuple[str, ...]) -> tuple[PictureEdge, ...]:
    """Only the imports that do not follow from others: a line for each would hide the layers."""
    known = {name: imports[name] & set(names) for name in names}
    return tuple(
        PictureEdge(source=name, target=found)
        for name in names
        for found in names
        if found in known[name] and not _leads(known, name, found)
    )


def _leads(imports: dict[str, set[str]], name: str, target: str) -> bool:
    """Whether `target` is also reached through another import of `name`."""
    seen: set[str] = set()
    ahead = [found for found in imports[name] if found != target]
    while ahead:
        found = ahead.pop()
        if found == target:
            return True
        if found not in seen and found != name:
            seen.add(found)
            ahead += imports[found]
    return False


# ---- imports


@cache
def package_imports() -> dict[str, set[str]]:
    """What each package imports of the others; imports for type hints do not count."""
    found: dict[str, set[str]] = {name: set() for name in (*CORE, *REST)}
    for path in sorted(SOURCE.rglob("*.py")):
        name = _package(("holdfast", *path.relative_to(SOURCE).with_suffix("").parts))
        if name:
            found[name] |= {_package(tuple(module.split("."))) for module in _modules(path)} - {name, ""}
    return found


def _package(parts: tuple[str, ...]) -> str:
    """The package of a module of ours; nothing for other modules and for `holdfast` itself."""
    if parts[:1] != ("holdfast",) or len(parts) < 2:
        return ""
    name = ".".join(parts[1:3]) if parts[1] == "frontends" else parts[1]
    return name if name in (*CORE, *REST) else ""


def _modules(path: Path) -> Iterator[str]:
    for node in _runtime_statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from holdfast import api` names a package; `from holdfast.api import x` is in one already.
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "holdfast")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _runtime_statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Expressions, which are most of a tree, have no imports."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            if isinstance(inner, ast.If) and "TYPE_CHECKING" in ast.dump(inner.test):
                continue
            yield inner
            yield from _runtime_statements(inner)
