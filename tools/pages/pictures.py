"""docs/assets/*.svg: flows of the examples, drawn as `holdfast graph --svg` draws them, and the packages."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

from holdfast import Flow
from holdfast.drawing import NodeOverlay, State, from_graph, to_svg
from tools.pages import ROOT, packages

ASSETS = ROOT / "docs" / "assets"


def drawn(name: str, overlay: dict[str, NodeOverlay] | None = None) -> Callable[[], str]:
    def make() -> str:
        names = runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name=name)
        flow = names[name]
        assert isinstance(flow, Flow)
        return to_svg(from_graph(flow.program().graph, overlay or {})) + "\n"

    return make


WAITING = {
    "assess": NodeOverlay(state=State.done, note="0.1 s"),
    "approve": NodeOverlay(state=State.asking, note="2 days"),
}


def pictures() -> dict[Path, Callable[[], str]]:
    return {
        ASSETS / "packages.svg": packages.page,
        ASSETS / "refund.svg": drawn("refund", WAITING),
        ASSETS / "research.svg": drawn("research"),
    }
