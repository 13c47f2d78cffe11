"""Operations of the OpenAPI document as methods."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.pyclient.naming import POSITIONAL, named
from tools.pyclient.schemas import Schema, Schemas, field_name, paragraph

STREAM = "text/event-stream"
KEY, MATCH = "Idempotency-Key", "If-Match"


class Argument(NamedTuple):
    """`place`: path, query, sent (as it is), maybe (left out where it is None), or how it is used."""

    name: str
    wire: str
    kind: str
    default: str | None
    place: str


class Operation:
    def __init__(self, method: str, path: str, said: dict[str, Any], schemas: Schemas) -> None:
        self.method = method.upper()
        self.path = path
        self.said = said
        self.schemas = schemas
        self.group, self.name = named(said["operationId"], said["tags"][0])
        self.headers = {each["name"] for each in said.get("parameters", ()) if each["in"] == "header"}
        self.answer = self._answer()
        self.arguments = list(self._arguments())

    # ------------------------------------------------------------------ answers
    def _content(self) -> dict[str, Any]:
        for status, response in sorted(self.said["responses"].items()):
            if status.startswith("2") and "content" in response:
                return response["content"]
        return {}

    def _answer(self) -> tuple[str, str]:
        """(how it is read, of what)."""
        content = self._content()
        if STREAM in content:
            return "stream", ""
        schema: Schema = content.get("application/json", {}).get("schema", {})
        if len(content) == 1 and schema:
            item = self.schemas.item_of_page(schema)
            if item is None:
                return "json", self.schemas.answer(schema, "models.")
            return ("pages" if "cursor" in self._query() else "list"), f"models.{self.schemas.model(item)}"
        if not content:
            return "none", ""
        return ("text" if set(content) == {"image/svg+xml"} else "bytes"), ""

    def roots(self) -> list[Schema]:
        """Schemas that need a model."""
        found = [each["schema"] for each in self.said.get("parameters", ()) if each["in"] == "query"]
        found += [media.get("schema", {}) for media in self._content().values()]
        return found + list(self._body()[0].values())

    # ------------------------------------------------------------------ arguments
    def _query(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.said.get("parameters", ()) if each["in"] == "query"}

    def _body(self) -> tuple[dict[str, Schema], set[str]]:
        """Fields of a JSON body, and which of them have to be there."""
        content = self.said.get("requestBody", {}).get("content", {})
        found = self.schemas.of(content.get("application/json", {}).get("schema", {}))
        if found is None:
            return {}, set()
        return found[1].get("properties", {}), set(found[1].get("required", ()))

    def _arguments(self) -> list[Argument]:
        found = [
            Argument(field_name(each["name"]), each["name"], "str", None, "path")
            for each in self.said.get("parameters", ())
            if each["in"] == "path"
        ]
        found += [*self._body_arguments(), *self._raw_arguments(), *self._query_arguments()]
        if KEY in self.headers:
            found.append(Argument("idempotency_key", "", "str | None", "None", "key"))
        if MATCH in self.headers:
            found.append(Argument("if_match", "", "str | None", "None", "match"))
        # The same by another name: what the path says counts, then the body; the header's key is the body's.
        once: dict[str, Argument] = {}
        for each in found:
            if not (each.wire == "idempotency_key" and KEY in self.headers):
                once.setdefault(each.name, each)
        return list(once.values())

    def _body_arguments(self) -> list[Argument]:
        fields, required = self._body()
        found: list[Argument] = []
        for name, shape in fields.items():
            kind = self.schemas.argument(shape)
            if name in required:
                found.append(Argument(field_name(name), name, kind, None, "sent"))
            elif kind.endswith("| None") and "x-default" not in shape:
                found.append(Argument(field_name(name), name, f"{kind} | UnsetType", "UNSET", "sent"))
            else:
                found.append(Argument(field_name(name), name, _maybe(kind), "None", "maybe"))
        return found

    def _raw_arguments(self) -> list[Argument]:
        content = self.said.get("requestBody", {}).get("content", {})
        if not content or self._body()[0]:
            return []
        if "multipart/form-data" in content:
            return [Argument("files", "", "Files", None, "files")]
        shape = content.get("application/json", {}).get("schema", {})
        if shape and self.schemas.of(shape) is None:
            return [Argument("body", "", self.schemas.argument(shape), None, "whole")]
        if self.schemas.of(shape) is not None:
            return []  # a body without fields
        return [
            Argument("content", "", "bytes", None, "content"),
            Argument("headers", "", "Mapping[str, str] | None", "None", "headers"),
        ]

    def _query_arguments(self) -> list[Argument]:
        found: list[Argument] = []
        for name, each in self._query().items():
            kind = self.schemas.argument(each["schema"])
            default = None if each.get("required") else "None"
            place = name if self.answer[0] == "pages" and name in ("limit", "cursor") else "query"
            found.append(
                Argument(field_name(name), name, kind if default is None else _maybe(kind), default, place)
            )
        return found

    # ------------------------------------------------------------------ text
    def text(self) -> str:
        kind, shape = self.answer
        asynchronous = "" if kind in ("pages", "stream") else "async "
        returned = {
            "pages": f"AsyncPages[{shape}]", "stream": "AsyncEventStream", "list": f"Listing[{shape}]",
            "json": shape, "none": "None", "bytes": "bytes", "text": "str",
        }[kind]  # fmt: skip
        lines = [f"    {asynchronous}def {self.name}({self._signature()}) -> {returned}:"]
        lines += [f'        """{self._about()}"""', f"        request = request_of({self._request()})"]
        waited = "await " if asynchronous else ""
        given = "request" + (f", {shape}" if shape else "")
        given += ", limit, cursor" if kind == "pages" else ""
        returns = "" if kind == "none" else "return "
        lines.append(f"        {returns}{waited}self._{kind}({given})")
        return "\n".join(lines) + "\n"

    def _signature(self) -> str:
        early = POSITIONAL.get(f"{self.group}.{self.name}", ())
        must = [each for each in self.arguments if each.default is None]
        may = [each for each in self.arguments if each.default is not None and each.name in early]
        rest = [each for each in self.arguments if each not in must and each not in may]
        words = ["self", *map(_declared, [*must, *sorted(may, key=lambda each: early.index(each.name))])]
        return ", ".join([*words, *(["*"] if rest else []), *map(_declared, rest)])

    def _about(self) -> str:
        whole = "\n\n".join(part for part in (self.said["summary"], self.said.get("description", "")) if part)
        return paragraph(whole, 8)

    def _request(self) -> str:
        words = [repr(self.method), repr(self.path)]
        for place, name in (("path", ""), ("query", "query"), ("sent", "sent"), ("maybe", "maybe")):
            inside = ", ".join(
                f"{each.wire!r}: {each.name}" for each in self.arguments if each.place == place
            )
            if inside:
                words.append(f"{name}={{{inside}}}" if name else f"{{{inside}}}")
        named_places = {each.place: each.name for each in self.arguments}
        words += [f"{place}={place}" for place in ("content", "files", "headers") if place in named_places]
        words += ["whole=body"] if "whole" in named_places else []
        if "content" in named_places:
            words.append(f"media={next(iter(self.said['requestBody']['content']))!r}")
        words += self._call_options(named_places)
        return ", ".join(words)

    def _call_options(self, places: dict[str, str]) -> list[str]:
        words = ["keyed=True, key=idempotency_key"] if "key" in places else []
        words += ["if_match=if_match"] if "match" in places else []
        waits = any(each.wire == "wait" and each.place in ("query", "maybe") for each in self.arguments)
        bodied = "requestBody" in self.said and not {"content", "files", "whole"} & set(places)
        fields = any(each.place in ("sent", "maybe") for each in self.arguments)
        return [*words, *(["wait=wait"] if waits else []), *(["maybe={}"] if bodied and not fields else [])]


def _maybe(kind: str) -> str:
    return kind if kind == "Any" or kind.endswith("| None") else f"{kind} | None"


def _declared(argument: Argument) -> str:
    default = "" if argument.default is None else f" = {argument.default}"
    return f"{argument.name}: {argument.kind}{default}"
