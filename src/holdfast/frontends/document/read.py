"""Reads a document: text to data, data to typed views, with every problem of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from holdfast.frontends.document import limits
from holdfast.frontends.document.document import (
    FORMAT,
    DocumentFields,
    FlowDocument,
    FlowEdge,
    FlowNode,
    Json,
)
from holdfast.frontends.document.json_text import places_of_json, read_json
from holdfast.frontends.document.problem import DocumentProblem, Path, ProblemReport
from holdfast.frontends.document.source import DocumentSource, Format, TextProblem
from holdfast.frontends.document.struct_reader import BAD, StructReader
from holdfast.frontends.document.upgrade import is_upgradable, upgraded
from holdfast.frontends.document.yaml_text import places_of_yaml, read_yaml
from holdfast.types.text import clean_text


class ReadDocument(msgspec.Struct, frozen=True):
    """`document` is None where nothing of it could be read. `report`: what was found so far."""

    document: FlowDocument | None
    report: ProblemReport
    source: DocumentSource | None = None

    def problems(self) -> list[DocumentProblem]:
        return self.report.problems(self.source)


def format_of(name: str) -> Format:
    """By the name of a file; anything but .json is read as YAML, of which JSON is nearly a part."""
    return "json" if name.lower().endswith(".json") else "yaml"


def read_text(raw: bytes | str, form: Format, *, most: int = limits.MAX_DOCUMENT_VALUES) -> ReadDocument:
    """Never raises for what a document may contain. `most`: keys and values."""
    if len(raw) > limits.MAX_BYTES:
        return _refused(
            TextProblem(
                "document-size", f"it has {len(raw):,} bytes; the maximum is {limits.MAX_BYTES:,}", 1, 1,
                "split it into sub-flows",
            )
        )  # fmt: skip
    found: list[TextProblem] = []
    try:
        text = _decoded(raw)
        data = (read_json if form == "json" else read_yaml)(text, found, most=most)
    except TextProblem as problem:
        return _refused(*(each for each in found if each is not problem), problem)
    source = DocumentSource(text, form, places_of_json if form == "json" else places_of_yaml)
    return read_data(data, source, found)


def read_sent(data: Any) -> ReadDocument:
    """Of data that somebody sends in place of a text."""
    if limits.has_more_values(data, limits.MAX_DOCUMENT_VALUES):
        return _refused(TextProblem("document-size", limits.TOO_MANY_VALUES, 1, 1, limits.FEWER_VALUES))
    return read_data(data)


def read_data(
    data: Any, source: DocumentSource | None = None, of_text: Iterable[TextProblem] = ()
) -> ReadDocument:
    """Of data that was read already, such as the body of a request. `of_text`: problems of its text."""
    report = ProblemReport()
    for problem in of_text:
        report.refuse(problem)
    if not isinstance(data, dict):
        report.error((), "document", "the document is not a mapping", 'begin with holdfast: "1.0"')
        return ReadDocument(None, report, source)
    found = cast("Json", data)
    before = report.errors
    _check_values(found, report)
    if report.errors > before:
        # With stand-ins: what is wrong with a value must not hide the other problems.
        found = cast("Json", _cleaned(found, limits.MAX_DEPTH))
    major = _check_format(found, report)
    if major is None:
        return ReadDocument(None, report, source)
    if major < FORMAT[0]:
        found, source = upgraded(found, major), None  # its values no longer stand where the text has them
    return ReadDocument(_document(found, report, source), report, source)


def _refused(*problems: TextProblem) -> ReadDocument:
    report = ProblemReport()
    for problem in problems:
        report.refuse(problem)
    return ReadDocument(None, report)


def _decoded(raw: bytes | str) -> str:
    if isinstance(raw, str):
        return raw.removeprefix("\ufeff")
    try:
        return raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        raise TextProblem("utf-8", "the text is not UTF-8", line, column, "save it as UTF-8") from None


def _check_values(data: Json, report: ProblemReport) -> None:
    """Depth, numbers and texts: what no part of a document may have."""
    todo: list[tuple[Path, Any]] = [((), data)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, (dict, list)) and len(path) >= limits.MAX_DEPTH:
            report.error(
                path, "document-depth", f"it is nested more than {limits.MAX_DEPTH} levels deep",
                "use a sub-flow, or flatter data",
            )  # fmt: skip
        elif isinstance(value, dict):
            for key, inner in cast("Json", value).items():
                if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                    report.error(path, "key-text", f"the key {key!r} is not text", "put it in quotes")
                else:
                    _check_text(key, (*path, key), report)
                    todo.append(((*path, key), inner))
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            todo += [((*path, index), inner) for index, inner in enumerate(items)]
        else:
            _check_scalar(value, path, report)


def _check_scalar(value: Any, path: Path, report: ProblemReport) -> None:
    if isinstance(value, str):
        _check_text(value, path, report)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            report.error(path, "number", f"{value} is no JSON number", "write null, or text")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            report.error(path, "number-range", "the number has more than 64 bits", "write it as text")
    elif value is not None:
        report.error(path, "value", f"a {type(value).__name__} is no value of a document", "write it as text")


def _check_text(text: str, path: Path, report: ProblemReport) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        report.error(path, "surrogate", "the text has half of a surrogate pair", "write both halves")


def _cleaned(value: Any, depth: int) -> Any:
    """The same without what `_check_values` refuses."""
    if isinstance(value, dict):
        items = cast("Json", value).items() if depth else ()
        return {
            _cleaned(key, depth): _cleaned(inner, depth - 1)
            for key, inner in items
            if isinstance(key, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        }
    if isinstance(value, list):
        return [_cleaned(inner, depth - 1) for inner in cast("list[Any]", value)] if depth else []
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, bool) or (isinstance(value, (int, float)) and -(2**63) <= value < 2**64):
        return value
    return None


def _check_format(data: Json, report: ProblemReport) -> int | None:
    """Its major version; None: it cannot be read as any that is known. One that is missing or misspelt is
    read as the present one, so that the other problems are found."""
    given = data.get("holdfast")
    place, fix = ("holdfast",), f'write holdfast: "{FORMAT[0]}.{FORMAT[1]}"'
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        message = f"the version {given} is a number, not text"
        report.error(place, "document-version", message, fix if given == FORMAT[0] else "put it in quotes")
        given = str(float(given))
    parts = given.split(".") if isinstance(given, str) else []
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        missing = (
            "the version of the format is missing" if given is None else f"{_short(given)} is no version"
        )
        report.error(place, "document-version", missing, fix)
        return FORMAT[0]
    major, minor = map(int, parts)
    newer = (major, minor) > FORMAT
    if newer or not is_upgradable(major):
        report.error(
            place, "document-newer" if newer else "document-version",
            f"it is of version {given}; this Holdfast reads {FORMAT[0]}.{FORMAT[1]}",
            "upgrade Holdfast, or write an older version" if newer else fix,
        )  # fmt: skip
        return None
    return major


def _short(value: Any) -> str:
    return clean_text(repr(value), 80)


def _document(data: Json, report: ProblemReport, source: DocumentSource | None) -> FlowDocument:
    reader = StructReader(report)
    broken: set[Path] = set()
    nodes, node_paths = _listed(data, "nodes", FlowNode, limits.MAX_NODES, report, broken)
    edges, edge_paths = _listed(data, "edges", FlowEdge, limits.MAX_EDGES, report, broken)
    rest = {key: value for key, value in data.items() if key not in ("nodes", "edges", "holdfast")}
    # Each key by itself: what is wrong with one must not hide the others.
    known = {field.name: field for field in msgspec.structs.fields(DocumentFields)}
    values: dict[str, Any] = {}
    for key, value in rest.items():
        if key not in known:
            fix = report.near(key, known) or f"use one of {', '.join(known)}, or remove it"
            report.error((key,), "key-unknown", f"the key {_short(key)} is not known here", fix, on_key=True)
        elif value is not None:
            found = reader.value(known[key].type, value, (key,))
            values |= {} if found is BAD else {key: found}
    for key, fix in (("name", "add a name, such as name: refund"), ("nodes", "add a list of nodes")):
        if data.get(key) is None:
            report.error((), "required", f"{key!r} is missing", fix)
    values.setdefault("name", "?")
    fields = DocumentFields(holdfast=str(data.get("holdfast")), nodes=nodes, edges=edges, **values)
    return FlowDocument(data, fields, node_paths, edge_paths, source, broken)


_NAMED: Final = {"nodes": ("id",), "edges": ("source", "target")}
"""Without these, others cannot refer to a node, and an edge connects nothing."""


def _listed(
    data: Json, key: str, kind: type[Any], most: int, report: ProblemReport, broken: set[Path]
) -> tuple[Any, tuple[Path, ...]]:
    """The nodes or edges of which enough can be read, and where they stand. `broken` gets the paths of what
    has a stand-in."""
    given: Any = data.get(key) or []
    if not isinstance(given, list):
        report.error((key,), "type", f"{key!r} is not a list", f"write {key} as a list")
        return (), ()
    items = cast("list[Any]", given)
    if len(items) > most:
        report.error(
            (key,), "document-size", f"there are {len(items):,} {key}; the maximum is {most:,}",
            "split it into sub-flows",
        )  # fmt: skip
        items = items[:most]
    found: list[Any] = []
    paths: list[Path] = []
    for index, item in enumerate(items):
        path: Path = (key, index)
        reader = StructReader(report, **_about(key, item))
        each = reader.read(kind, _without_nulls(item), path)
        broken.update(reader.broken)
        if each is not None and all(getattr(each, name) for name in _NAMED[key]):
            found.append(each)
            paths.append(path)
    return tuple(found), tuple(paths)


def _about(key: str, item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {}
    given = cast("Json", item)
    if key == "nodes":
        return {"node": given["id"]} if isinstance(given.get("id"), str) else {}
    port = given.get("source_port", given.get("sourceHandle"))
    shown = str(port).lower() if isinstance(port, bool) else port or "out"
    name = given.get("id") or f"{given.get('source')}:{shown}->{given.get('target')}"
    return {"edge": str(name)}


def _without_nulls(item: Any) -> Any:
    """Null is absent (CV-32)."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in cast("Json", item).items() if value is not None}
