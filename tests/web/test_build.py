"""The build of the app: sizes of its parts, when it is built, and what happens where it cannot be."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services import absent
from tools import web

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("web")]
KB = 1000
MOST = {"index.html": 175, "src/screens/inbox/Screen.tsx": 235, "src/screens/runs/RunScreen.tsx": 300,
        "src/screens/operations/Screen.tsx": 260}  # fmt: skip


def closure(manifest: dict[str, dict[str, list[str]]], name: str, found: set[str]) -> set[str]:
    """A part and everything that it imports at once."""
    if name not in found:
        found.add(name)
        for each in manifest[name].get("imports", []):
            closure(manifest, each, found)
    return found


@pytest.mark.covers("WB-56-parts")
@pytest.mark.parametrize("part", MOST)
def test_a_route_has_no_more_script_than_its_budget(built: Path, part: str) -> None:
    manifest = json.loads((built / ".vite" / "manifest.json").read_text())
    # The shell is there whatever is shown.
    names = closure(manifest, part, set()) | closure(manifest, "index.html", set())
    scripts = {manifest[name]["file"] for name in names}
    sheets = {sheet for name in names for sheet in manifest[name].get("css", [])}
    assert sum(_packed(built / each) for each in scripts) <= MOST[part] * KB
    assert sum(_packed(built / each) for each in sheets) <= 25 * KB


def _packed(file: Path) -> int:
    return len(gzip.compress(file.read_bytes(), 9))


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
    began = time.monotonic()
    tried = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert time.monotonic() - began < 50  # npm's own retries take more than a minute
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


@pytest.mark.covers("WB-60-units")
def test_the_models_of_the_app_do_what_their_own_tests_say(built: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(web.ROOT / "tools" / "web.py"), "test"],
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------------- contrast

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
