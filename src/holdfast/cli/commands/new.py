"""`holdfast new`: a new project from a template."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import msgspec
import typer

from holdfast.cli.app import Json, app
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")
_LONGEST = 64
_TAKEN = frozenset({"holdfast", "conftest", "pytest", "test", "tests"})
_SUFFIX = ".tmpl"
_ANSWER = "When it asks, `holdfast answer RUN approve --resume` answers and resumes it. "


@app.command(epilog="Examples:  holdfast new expenses   ·   holdfast new tides --template agent")
def new(
    name: Annotated[str, typer.Argument(help="Name of the project and of its folder", metavar="NAME")],
    template: Annotated[str, typer.Option(help="approval, agent or map")] = "approval",
    json: Json = False,
) -> int:
    """Create a new project: a flow that runs and tests that pass."""
    return new_project(name, template, json=json)


class ProjectTemplate(msgspec.Struct, frozen=True):
    what: str
    run: str
    then: str


TEMPLATES = {
    "approval": ProjectTemplate(
        "Expenses: small ones are paid at once, large ones wait for a person.",
        'holdfast run @MODULE@.py --input \'{"id": "E-17", "who": "Ada", "amount": 250}\'',
        _ANSWER,
    ),
    "agent": ProjectTemplate(
        "An agent with two tools, one of which needs a person's approval.",
        "holdfast run @MODULE@.py",
        _ANSWER,
    ),
    "map": ProjectTemplate(
        "The same work for each item of a list, several at a time.",
        'holdfast run @MODULE@.py --input \'{"texts": ["one two", "three"]}\'',
        "",
    ),
}


def new_project(name: str, template: str, *, json: bool) -> Exit:
    from holdfast._version import __version__

    module = _module(name)
    kind = _template(template)
    folder = Path(name)
    _require_room(folder)
    words = {"NAME": name, "MODULE": module, "WHAT": kind.what, "VERSION": __version__, "NEXT": kind.then}
    words["RUN"] = _filled(kind.run, words)
    written = _write(folder, template, words)
    if json:
        print_json({"folder": str(folder), "template": template, "files": written, "run": words["RUN"]})
        return Exit.ok
    print_line(f"{folder}/ is ready: {', '.join(written)}.")
    print_note(f"cd {folder}\n{words['RUN']}\npython -m pytest")
    return Exit.ok


def _module(name: str) -> str:
    """The name of its flow's file. Raises InputError."""
    module = name.replace("-", "_").lower()
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r} cannot be the name of a project.",
            hint=f"Letters and digits with - or _ between, a letter first, at most {_LONGEST}: my-flows.",
        )
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in _TAKEN:
        raise InputError(
            f"{name!r} is taken: it is the name of a Python module.",
            hint=f"Choose another, such as {name}-flows.",
        )
    return module


def _template(name: str) -> ProjectTemplate:
    if name not in TEMPLATES:
        raise InputError(f"there is no template {name!r}.", hint=f"There are: {', '.join(TEMPLATES)}.")
    return TEMPLATES[name]


def _require_room(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InputError(
            f"{folder} already exists and is not an empty folder. Nothing was changed.",
            hint="Choose another name, or move it out of the way.",
        )


def _write(folder: Path, template: str, words: dict[str, str]) -> list[str]:
    """Written to a temporary folder and moved when complete, so that no partial project remains."""
    here = files("holdfast.cli") / "templates"
    sources = [f for part in ("common", template) for f in (here / part).iterdir()]
    try:
        # Beside its final place: a rename works only within one file system.
        fresh = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {error.strerror}.") from error
    try:
        written = sorted(_copy(source, fresh, words) for source in sources)
        fresh.chmod(0o755)
        fresh.replace(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return written


def _copy(source: Traversable, folder: Path, words: dict[str, str]) -> str:
    name = source.name.removesuffix(_SUFFIX)
    name = {"flow.py": f"{words['MODULE']}.py", "test_flow.py": f"test_{words['MODULE']}.py"}.get(name, name)
    (folder / name).write_text(_filled(source.read_text(encoding="utf-8"), words), encoding="utf-8")
    return name


def _filled(text: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text
