"""Wheel and source distribution carry the built app, and are not built without it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.services import absent
from tools import setup, web

pytestmark = pytest.mark.xdist_group("web")
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "src", "tools", "web")
NOT_COPIED = shutil.ignore_patterns("node_modules", "_ui", "__pycache__")


def build(source: Path, out: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in setup.uv_environment().items() if name != web.SKIP} | env
    command = [setup.find_uv(), "build", *options, "--out-dir", str(out), str(source)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)


def require_backend(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode and "hatchling" in done.stderr and "RuntimeError" not in done.stderr:
        absent("web", "the build backend cannot be installed: its index is unreachable")


@pytest.mark.covers("WB-62", "WEB-APP")
def test_wheel_and_source_distribution_carry_the_app(built: Path, tmp_path: Path) -> None:
    # The wheel is built from the source distribution, which has no `web/`: so it needs neither Node nor npm.
    done = build(web.ROOT, tmp_path)
    require_backend(done)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((built / ".vite" / "manifest.json").read_text())
    wanted = {"index.html", *(each["file"] for each in manifest.values())}
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"holdfast/_ui/{each}" for each in wanted} <= packed
    assert any(each.endswith(".br") for each in packed)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/holdfast/_ui/{each}" for each in wanted} <= names
    assert not any(name.startswith("web/") for name in names)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a wheel is built from, without the app and without packages."""
    found = tmp_path / "clone"
    found.mkdir()
    for name in BUILT_FROM:
        source = web.ROOT / name
        if source.is_dir():
            shutil.copytree(source, found / name, ignore=NOT_COPIED)
        else:
            shutil.copy(source, found / name)
    return found


@pytest.mark.covers("WB-63")
def test_a_distribution_is_not_built_without_the_app_unless_that_is_chosen(
    clone: Path, tmp_path: Path
) -> None:
    nowhere = {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": str(tmp_path / "cache")}
    refused = build(clone, tmp_path / "out", "--wheel", **nowhere)
    require_backend(refused)
    assert refused.returncode != 0
    assert "npm unreachable" in refused.stderr
    assert "HOLDFAST_SKIP_UI=1" in refused.stderr
    assert not list((tmp_path / "out").glob("*.whl"))
    chosen = build(clone, tmp_path / "out", "--wheel", **nowhere, HOLDFAST_SKIP_UI="1")
    assert chosen.returncode == 0, chosen.stderr
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert not any("/_ui/" in name for name in zipfile.ZipFile(wheel).namelist())


@pytest.mark.covers("WB-62")
def test_make_web_and_make_demo_build_the_app() -> None:
    """`make web` always; `make demo` through the same tool, which does nothing where it is current
    (test_build.py)."""
    recipes = (web.ROOT / "Makefile").read_text()
    demo = recipes.partition("\ndemo:")[2].partition("\n\n")[0]
    assert demo.index("tools/web.py\n") < demo.index("-m holdfast.demo")
    assert "tools/web.py build" in recipes.partition("\nweb:")[2].partition("\n\n")[0]
