"""Tools of other projects read the OpenAPI document: linters, and a generator of TypeScript."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.api.openapi import TAGS, document
from holdfast.api.routes.all import THEMES
from holdfast.integrations.mcp.http import routes as mcp
from tests.services import openapi

PROGRAM = (Path(__file__).parent / "js" / "generated_client.ts").read_text()


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """What `holdfast serve` has at /openapi.json."""
    return msgspec.json.decode(
        msgspec.json.encode(document([route for theme in (*THEMES, mcp) for route in theme.found]))
    )


@pytest.fixture
def file(described: dict[str, Any], tmp_path: Path) -> Path:
    place = tmp_path / "openapi.json"
    place.write_bytes(msgspec.json.encode(described))
    return place


@pytest.mark.covers("SAFE-TOOLS-01")
def test_redocly_has_nothing_against_the_document_by_its_strictest_rules(file: Path) -> None:
    assert openapi.redocly_problems(file) == []


@pytest.mark.covers("SAFE-TOOLS-01")
def test_spectral_finds_no_error_and_warns_only_of_missing_prose(file: Path) -> None:
    """A summary says what an operation does; a description is there where it needs more. There is no address
    to contact."""
    found = openapi.spectral_problems(file)
    assert [each for each in found if each["severity"] == 0] == []
    assert {each["code"] for each in found} <= {"operation-description", "info-contact"}


@pytest.mark.covers("SAFE-TOOLS-02", "SAFE-TOOLS-01")
def test_program_with_a_generated_typescript_client_compiles_and_a_wrong_one_does_not(file: Path) -> None:
    wrong = [
        'await client.POST("/v1/runs");',
        'await client.POST("/v1/runs", { body: { flow: 7 } });',
        'await client.PUT("/v1/limits/{name}", { params: { path: { nome: "x" } }, body: {} });',
    ]
    begin = PROGRAM.count("\n") + 1
    found = openapi.compiler_errors(file, {"good.ts": PROGRAM, "wrong.ts": PROGRAM + "\n".join(wrong)})
    lines = re.findall(r"^(\S+\.ts)\((\d+),", found, re.MULTILINE)
    assert sorted(set(lines)) == [("wrong.ts", str(begin + at)) for at in range(len(wrong))], found


@pytest.mark.covers("SAFE-TOOLS-01")
def test_every_request_body_is_required_and_every_object_says_its_shape(described: dict[str, Any]) -> None:
    operations = [each for methods in described["paths"].values() for each in methods.values()]
    bodies = [each["requestBody"] for each in operations if "requestBody" in each]
    assert len(bodies) > 40
    assert [each for each in bodies if each["required"] is not True] == []
    # Generators take `default` of what is sent as a value that the caller has to give.
    assert not [name for name, schema in sent_schemas(described) if has_default(schema)]
    shapeless = [
        each
        for each in objects(described)
        if each.get("type") == "object" and not {"properties", "additionalProperties"} & each.keys()
    ]
    assert shapeless == []
    schemas = described["components"]["schemas"]
    for name in ("CreateRun", "ThreadRun"):
        field = schemas[name]["properties"]["input"]
        assert (field["type"], field["additionalProperties"]) == ("object", True)


@pytest.mark.covers("SAFE-TOOLS-01")
def test_every_operation_has_the_statuses_of_the_connection_itself(described: dict[str, Any]) -> None:
    operations = [each for methods in described["paths"].values() for each in methods.values()]
    assert [each for each in operations if not {"408", "431"} <= each["responses"].keys()] == []


@pytest.mark.covers("SAFE-TOOLS-01")
def test_every_topic_of_the_interface_is_described() -> None:
    assert set(TAGS) == {theme.tag for theme in (*THEMES, mcp) if theme.found}


def objects(part: Any) -> list[dict[str, Any]]:
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    own = [part] if isinstance(part, dict) else []
    return [*own, *(found for each in inner for found in objects(each))]


def sent_schemas(described: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Those of request bodies, by name, and what they contain."""
    schemas, found = described["components"]["schemas"], dict[str, dict[str, Any]]()
    operations = [each for methods in described["paths"].values() for each in methods.values()]
    waiting: list[Any] = [each.get("requestBody", {}) for each in operations]
    while waiting:
        for each in objects(waiting.pop()):
            name = str(each.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found[name] = schemas[name]
                waiting.append(schemas[name])
    return list(found.items())


def has_default(schema: dict[str, Any]) -> bool:
    return any("default" in field for field in schema.get("properties", {}).values())
