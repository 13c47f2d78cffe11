"""Schemas of Kubernetes, its operators and Compose, from npm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
from jsonschema import Draft7Validator

from tests.services import npm
from tests.services.node import program

HERE = Path(__file__).parent


def installed() -> Path:
    """Ends the test where they cannot be had."""
    return npm.installed("manifests", HERE, seconds=100)


def kubernetes_problems(manifests: list[Any]) -> list[str]:
    """What is wrong with each by the schema of its kind; a kind without one is wrong too."""
    place = installed()
    script = shutil.copy(HERE / "kubernetes.mjs", place)  # beside its packages, where Node looks for them
    command = [str(program()), str(script)]
    done = subprocess.run(command, input=msgspec.json.encode(manifests), capture_output=True, timeout=100)
    found = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert len(found) == len(manifests), done.stderr.decode()
    return [each for each in found if each is not None]


def compose_problems(document: Any) -> list[str]:
    """What is wrong with a file of Compose by the schema of its specification."""
    place = installed() / "node_modules/dclint/schemas/compose.schema.json"
    schema = msgspec.json.decode(place.read_bytes())
    return [f"{each.json_path}: {each.message}" for each in Draft7Validator(schema).iter_errors(document)]
