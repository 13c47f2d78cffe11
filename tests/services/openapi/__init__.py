"""Tools of other projects that read an OpenAPI document, from npm: linters, a generator of TypeScript, and
its compiler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.services import npm
from tests.services.node import program

HERE = Path(__file__).parent


def installed() -> Path:
    """The folder of the packages. Ends the test where they cannot be had."""
    return npm.installed("openapi", HERE, seconds=170) / "node_modules"


def _run(script: str, *options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    command = [str(program()), str(installed() / script), *options]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=110, env={**environment, **quiet}
    )


def redocly_problems(document: Path) -> list[dict[str, Any]]:
    """What its strictest rule set has against a document; there every rule is an error."""
    done = _run(
        "@redocly/cli/bin/cli.js", "lint", str(document), "--extends=recommended-strict", "--format=json",
        cwd=document.parent,
    )  # fmt: skip
    assert done.stdout.strip(), done.stderr
    return msgspec.json.decode(done.stdout)["problems"]


def spectral_problems(document: Path) -> list[dict[str, Any]]:
    """What its rule set for OpenAPI has against a document. `severity` 0 is an error."""
    rules = document.parent / "spectral.json"
    rules.write_text('{"extends": ["spectral:oas"]}')
    done = _run(
        "@stoplight/spectral-cli/dist/index.js", "lint", str(document), "-r", str(rules), "-f", "json",
        "--quiet", cwd=document.parent,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return msgspec.json.decode(done.stdout)


def compiler_errors(document: Path, programs: dict[str, str]) -> str:
    """What TypeScript's compiler has against programs that use the types generated from a document:
    `./api.js` has them, and `openapi-fetch` is the client."""
    folder = document.parent
    (folder / "node_modules").symlink_to(installed())
    made = _run("openapi-typescript/bin/cli.js", str(document), "-o", "api.ts", cwd=folder)
    assert made.returncode == 0, made.stderr
    for name, text in programs.items():
        (folder / name).write_text(text)
    (folder / "package.json").write_text('{"type": "module"}')
    options: dict[str, Any] = {"noEmit": True, "strict": True, "exactOptionalPropertyTypes": True}
    options |= {"target": "es2022", "module": "nodenext", "types": []}
    # Our types are in api.ts; declarations of others are not what is looked at.
    options |= {"skipLibCheck": True}
    options |= {"lib": ["es2022", "dom", "dom.iterable"]}
    settings = {"compilerOptions": options, "files": ["api.ts", *programs]}
    (folder / "tsconfig.json").write_bytes(msgspec.json.encode(settings))
    return _run("typescript/bin/tsc", "-p", ".", cwd=folder).stdout
