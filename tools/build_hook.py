"""The hook of the build backend: the web app is in every wheel and source distribution.

An editable install never builds it: `make web` does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parent.parent


class WebAppHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "web-app"

    def dependencies(self) -> list[str]:
        """Node, if the app has to be built and the machine has none."""
        web = _web()
        if not self._is_needed() or web.is_new_enough(web.shutil.which("node")):
            return []
        return [web.NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises RuntimeError if it cannot be built."""
        if version == "editable" or not self._is_needed():
            return
        web = _web()
        try:
            web.build()
        except web.BuildError as error:
            raise RuntimeError(f"{error} A build without the web app: {web.SKIP}=1") from error

    def _is_needed(self) -> bool:
        skipped = os.environ.get("HOLDFAST_SKIP_UI") == "1"
        # A source distribution has the built app, and no `web/`.
        return not skipped and (ROOT / "web").is_dir() and not _web().is_current()


def _web() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    import web

    return web
