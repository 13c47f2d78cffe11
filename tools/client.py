"""The Python client: python tools/client.py [write | check]

write   models, methods and their page from the OpenAPI document, then the sync form from the async one
check   change nothing; fail if a file is not what would be written
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.pyclient.naming import OTHER_PROTOCOLS, class_of  # noqa: E402
from tools.pyclient.operations import Operation  # noqa: E402
from tools.pyclient.page import page  # noqa: E402
from tools.pyclient.schemas import Schemas  # noqa: E402
from tools.pyclient.unasync import unasync  # noqa: E402

CLIENT = ROOT / "src/holdfast/client"
RUFF = [sys.executable, "-m", "ruff"]
FIXES = [
    *("check", "--fix-only", "--quiet"),
    *("--config", 'lint.isort.known-first-party = ["holdfast"]'),  # also those that are not written yet
    *("--config", 'lint.extend-safe-fixes = ["C416", "UP028"]'),  # loops that have lost their `async`
]
MADE = "# Written by tools/client.py from {origin}. Do not change it here.\n"
FUTURE = "from __future__ import annotations\n\n"


def document() -> dict[str, Any]:
    from holdfast.api.openapi import document as described
    from holdfast.api.routes.all import THEMES

    return described([route for theme in THEMES for route in theme.found])


def operations(found: dict[str, Any]) -> list[Operation]:
    schemas = Schemas(found["components"]["schemas"])
    made = [
        Operation(method, path, said, schemas)
        for path, methods in found["paths"].items()
        for method, said in methods.items()
        if said["operationId"] not in OTHER_PROTOCOLS
    ]
    return sorted(made, key=lambda each: (each.group, each.name))


def models(found: dict[str, Any]) -> str:
    schemas = Schemas(found["components"]["schemas"])
    roots = [root for each in operations(found) for root in each.roots()]
    named = [
        name
        for name in schemas.reached(roots)
        if not schemas.components[name].get("title", "").startswith("Page[")
    ]
    twice = {
        schemas.model(name) for name in named if [*map(schemas.model, named)].count(schemas.model(name)) > 1
    }
    if twice:
        raise SystemExit(f"{twice.pop()} would be two models: rename one in tools/pyclient/schemas.py")
    text = '"""What answers are made of."""\n\n' + MADE.format(origin="the OpenAPI document")
    text += "# ruff: noqa: RUF012 (msgspec copies empty lists and dicts)\n" + FUTURE
    text += "from typing import Any, Literal\n\nfrom holdfast.client.model import Model\n\n"
    return text + "\n\n".join(schemas.define(name) for name in named)


def group(name: str, members: list[Operation]) -> str:
    twice = {each.name for each in members if [other.name for other in members].count(each.name) > 1}
    if twice:
        raise SystemExit(f"{name}.{twice.pop()} would be two: name them in tools/pyclient/naming.py")
    doc = f'    """`client.{name}`."""\n\n'
    return f"class {class_of(name)}(AsyncGroup):\n{doc}" + "\n".join(each.text() for each in members)


def groups(by_group: dict[str, list[Operation]]) -> str:
    text = '"""One class for each theme of the API, and all of them together."""\n\n'
    text += MADE.format(origin="the OpenAPI document") + "# ruff: noqa: A002\n" + FUTURE
    text += "from collections.abc import Mapping, Sequence\nfrom datetime import datetime\n"
    text += "from typing import Any, Literal\n\nfrom msgspec import UNSET, UnsetType\n\n"
    text += "from holdfast.client import models\nfrom holdfast.client.aio.group import AsyncGroup, Listing\n"
    text += "from holdfast.client.aio.pages import AsyncPages\n"
    text += "from holdfast.client.aio.streams import AsyncEventStream\n"
    text += "from holdfast.client.aio.transport import AsyncTransport\n"
    text += "from holdfast.client.requests import Files, request_of\n\n\n"
    text += "\n\n".join(group(name, members) for name, members in sorted(by_group.items()))
    text += "\n\nclass AsyncGroups:\n"
    text += '    """One attribute for each theme of the API."""\n\n'
    text += "    def __init__(self, transport: AsyncTransport) -> None:\n"
    return text + "".join(f"        self.{name} = {class_of(name)}(transport)\n" for name in sorted(by_group))


def generated() -> dict[Path, str]:
    """Every file that is made, and what it says."""
    found = document()
    by_group: dict[str, list[Operation]] = defaultdict(list)
    for each in operations(found):
        by_group[each.group].append(each)
    aio = {CLIENT / "aio/groups.py": groups(by_group)}
    made = formatted({**aio, CLIENT / "models.py": models(found)})
    by_hand = sorted((CLIENT / "aio").glob("*.py"))
    source = {path: path.read_text("utf-8") for path in by_hand if path not in aio}
    source |= {path: made[path] for path in aio}
    sync = {CLIENT / "sync" / path.relative_to(CLIENT / "aio"): path for path in source}
    made |= formatted({place: _marked(unasync(source[path]), path) for place, path in sync.items()})
    return {**made, ROOT / "docs/reference/client.md": page(operations(found))}


def _marked(text: str, origin: Path) -> str:
    """The note behind the module's docstring."""
    mark = MADE.format(origin=str(origin.relative_to(ROOT)))
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(MADE[:20])]
    end = next(number for number, line in enumerate(lines) if line.rstrip().endswith('"""'))
    return "".join([*lines[: end + 1], "\n", mark, *lines[end + 1 :]])


def formatted(texts: dict[Path, str]) -> dict[Path, str]:
    """As ruff formats it, whatever is there already."""
    with TemporaryDirectory() as folder:
        places = {path: Path(folder) / path.relative_to(ROOT) for path in texts}
        for path, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(texts[path], "utf-8")
        for words in (FIXES, ["format", "--quiet"]):
            config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
            subprocess.run([*RUFF, *words, *config, folder], check=True, cwd=ROOT)
        return {path: place.read_text("utf-8") for path, place in places.items()}


def orphan_files(made: dict[Path, str]) -> list[Path]:
    """Files beside those that are made, which nothing makes any more."""
    there = [*(CLIENT / "sync").rglob("*.py")]
    return [path for path in there if path not in made]


def stale(made: dict[Path, str]) -> list[Path]:
    return [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]


def main() -> int:
    task = sys.argv[1] if len(sys.argv) > 1 else "write"
    if task not in ("write", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    made = generated()
    wrong = [*stale(made), *orphan_files(made)]
    if task == "check":
        for path in wrong:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/client.py", file=sys.stderr)
        return 1 if wrong else 0
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in orphan_files(made):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
