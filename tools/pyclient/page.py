"""The page that lists every method of the client."""

from __future__ import annotations

from itertools import groupby

from tools.pyclient.operations import Operation

HEAD = """\
# The Python client's methods

Every operation of the [HTTP interface](http.md) as a method of `AsyncClient`, and of `Client` without `await`
([use a server from Python](../how-to/use-the-client.md)). Arguments behind `*` are given by name; what is
not given is as the server has it. Models are in `holdfast.client.models`. This page is written by
`python tools/client.py`.
"""


def page(found: list[Operation]) -> str:
    parts = [HEAD]
    for group, members in groupby(found, key=lambda each: each.group):
        rows = [f"| {_call(each)} | {_answer(each)} | {_about(each)} |" for each in members]
        parts.append(
            "\n".join([f"## client.{group}", "", "| method | answer | |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def _call(operation: Operation) -> str:
    must = [each.name for each in operation.arguments if each.default is None]
    may = [each.name for each in operation.arguments if each.default is not None]
    inside = ", ".join([*must, *(["*", *may] if may else [])])
    return f"`{operation.name}({inside})`"


def _answer(operation: Operation) -> str:
    kind, shape = operation.answer
    bare = shape.replace("models.", "").replace("|", "\\|")
    shown = {"pages": f"pages of `{bare}`", "list": f"list of `{bare}`", "json": f"`{bare}`"}
    return shown.get(kind, {"stream": "events", "none": "", "bytes": "bytes", "text": "text"}.get(kind, ""))


def _about(operation: Operation) -> str:
    summary = " ".join(operation.said["summary"].split()).replace("|", "\\|")
    return f"{summary} `{operation.method} {operation.path}`"
