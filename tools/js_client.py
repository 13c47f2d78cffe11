"""What of the JavaScript client is made of the OpenAPI document: python tools/js_client.py [write | check]

write   operations.js, operations.d.ts and the version in package.json
check   change nothing; fail if one of them is stale
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.js_types import Types, comment  # noqa: E402
from tools.pyclient.naming import OTHER_PROTOCOLS  # noqa: E402

FOLDER: Final = ROOT / "src/holdfast/api/javascript"
MADE: Final = "// Made of the OpenAPI document by tools/js_client.py: change the routes, not this file.\n"
WRITTEN: Final = ("EventStream", "HoldEvent", "Options", "PipelineEvent", "RunEvent", "Sent", "StreamOptions")
"""Types that holdfast.d.ts has."""


class Operation:
    """One operation of the document, as a method."""

    def __init__(self, path: str, method: str, said: dict[str, Any]) -> None:
        self.path = path
        self.method = method.upper()
        self.said = said
        self.name = camel(said["operationId"])
        self.params: list[str] = re.findall(r"\{(\w+)\}", path)
        given = said.get("parameters", [])
        self.query = [each for each in given if each["in"] == "query"]
        self.keyed = any(each["name"] == "Idempotency-Key" for each in given)

    @property
    def body(self) -> tuple[str, dict[str, Any]] | None:
        """(what it is, its schema)"""
        found = self.said.get("requestBody")
        if found is None:
            return None
        # The first: others are the same in another form.
        media, content = next(iter(found["content"].items()))
        known = {"application/json": "json", "multipart/form-data": "form"}
        return known.get(str(media), str(media)), content["schema"]

    @property
    def answers(self) -> dict[str, Any]:
        """Of those that are good: media type to schema."""
        good = [answer for status, answer in self.said["responses"].items() if status.startswith("2")]
        return {media: each["schema"] for answer in good for media, each in answer.get("content", {}).items()}

    @property
    def gives(self) -> str:
        match tuple(self.answers):
            case ():
                return "nothing"
            case ("application/json",):
                return "json"
            case ("text/event-stream",):
                return "events"
            case _:
                return "file"

    def pages(self, types: Types) -> str | None:
        if self.gives != "json":
            return None
        known = {each["name"] for each in self.query}
        fields = types.fields(self.answers["application/json"])
        if "cursor" in known and {"items", "next"} <= fields:
            return "cursor"
        return "after" if "after" in known and {"items", "last"} <= fields else None


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def pascal(name: str) -> str:
    return name[0].upper() + name[1:]


def operations(document: dict[str, Any]) -> list[Operation]:
    found = [
        Operation(path, method, said)
        for path, ways in document["paths"].items()
        for method, said in ways.items()
        if said["operationId"] not in OTHER_PROTOCOLS
    ]
    return sorted(found, key=lambda each: each.name)


# ---- operations.js


def table(document: dict[str, Any]) -> str:
    types = Types(document)
    lines = [f"  {each.name}: {{ {', '.join(_facts(each, types))} }}," for each in operations(document)]
    return MADE + "\nexport const OPERATIONS = {\n" + "\n".join(lines) + "\n};\n"


def _facts(each: Operation, types: Types) -> Iterator[str]:
    yield f'method: "{each.method}"'
    yield f'path: "{each.path}"'
    if each.body is not None:
        yield f'body: "{each.body[0]}"'
    if each.query:
        yield "query: true"
    if each.keyed:
        yield "keyed: true"
    if each.gives != "json":
        yield f'gives: "{each.gives}"'
    if pages := each.pages(types):
        yield f'pages: "{pages}"'


# ---- operations.d.ts


def declarations(document: dict[str, Any]) -> str:
    types = Types(document)
    types.of({"$ref": "#/components/schemas/Problem"})  # of every answer that is no good one
    found = operations(document)
    methods = [_method(each, types) for each in found]
    paged = [_paged(each, types) for each in found if each.pages(types)]
    queries = [_query(each, types) for each in found if each.query]
    parts = [
        f'{MADE}import type {{ {", ".join(WRITTEN)} }} from "./holdfast.js";',
        "/** What each operation of the server is called, takes and gives. */\n"
        "export interface Operations {\n" + "\n".join(methods) + "\n}",
        "/** Lists of many pages as one. */\nexport interface Each {\n" + "\n".join(paged) + "\n}",
        *queries,
        *types.declared(),
    ]
    return "\n\n".join(parts) + "\n"


def _method(each: Operation, types: Types) -> str:
    about = "\n\n".join(filter(None, (each.said["summary"], each.said.get("description", ""))))
    return (
        f"{comment(about, '  ')}  {each.name}({', '.join(_arguments(each, types))}): {_result(each, types)};"
    )


def _paged(each: Operation, types: Types) -> str:
    item = types.item(each.answers["application/json"])
    return f"  {each.name}({', '.join(_arguments(each, types))}): AsyncGenerator<{item}, void, undefined>;"


def _arguments(each: Operation, types: Types) -> Iterator[str]:
    yield from (f"{name}: string" for name in each.params)
    if each.body is not None:
        kind, schema = each.body
        shape = {"json": types.of(schema, given=True), "form": "FormData | Record<string, Blob>"}
        yield f"body{'?' if kind == 'json' and types.may_be_empty(schema) else ''}: {shape.get(kind, 'Sent')}"
    if each.query:
        needed = any(one["required"] for one in each.query)
        yield f"query{'' if needed else '?'}: {pascal(each.name)}Query"
    yield f"options?: {'StreamOptions' if each.gives == 'events' else 'Options'}"


def _result(each: Operation, types: Types) -> str:
    match each.gives:
        case "nothing":
            return "Promise<void>"
        case "file":
            return "Promise<Response>"
        case "events":
            # A stream's media type says nothing of its events; all are written in holdfast.d.ts.
            if each.name == "streamPipeline":
                return "EventStream<PipelineEvent>"
            return "EventStream<RunEvent>" if each.params else "EventStream<HoldEvent>"
        case _:
            return f"Promise<{types.of(each.answers['application/json'])}>"


def _query(each: Operation, types: Types) -> str:
    whole = {
        "properties": {one["name"]: one["schema"] for one in each.query},
        "required": [one["name"] for one in each.query if one["required"]],
    }
    return f"export interface {pascal(each.name)}Query {types.members(whole, given=True)}"


# ---- the command


def generated() -> dict[str, str]:
    """The name of each file, and what it should say."""
    from holdfast._version import __version__
    from holdfast.api.openapi import document
    from holdfast.api.routes.all import THEMES

    described = document([route for theme in THEMES for route in theme.found])
    package = json.loads((FOLDER / "package.json").read_text("utf-8"))
    package["version"] = __version__.replace(".dev", "-dev.")
    return {
        "operations.js": table(described),
        "operations.d.ts": declarations(described),
        "package.json": json.dumps(package, indent=2) + "\n",
    }


def stale() -> list[str]:
    found = generated()
    return [
        name
        for name, text in found.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != text
    ]


def main() -> int:
    match sys.argv[1:]:
        case ["write"]:
            for name, text in generated().items():
                (FOLDER / name).write_text(text, "utf-8")
            return 0
        case ["check"]:
            for name in stale():
                print(f"{name} is stale: run python tools/js_client.py write")
            return 1 if stale() else 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    raise SystemExit(main())
