from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import HANG

ROOT = Path(__file__).resolve().parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def pinned(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / lock).read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
@pytest.mark.covers("CORE-REPO-04")
def test_lock_holds_hashes_and_no_address(lock: Path):
    text = lock.read_text()
    assert "://" not in text
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_dev_lock_contains_the_runtime_lock_unchanged():
    assert pinned("runtime.lock").items() <= pinned("dev.lock").items()


def run_setup(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "tools/setup.py"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )


@pytest.fixture
def fresh_clone(tmp_path: Path) -> Path:
    for name in ("tools", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "src/holdfast").mkdir(parents=True)
    shutil.copy(ROOT / "src/holdfast/_version.py", tmp_path / "src/holdfast")
    return tmp_path


def test_setup_names_the_missing_package_when_python_cannot_make_environments(
    fresh_clone: Path, tmp_path: Path
):
    crippled = tmp_path / "crippled"
    crippled.mkdir()
    (crippled / "ensurepip.py").write_text("raise ImportError('as Debian without python3-venv')")
    done = run_setup(fresh_clone, "runtime", PATH="/nonexistent", PYTHONPATH=str(crippled))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("apt-get install python3-venv")


def test_setup_passes_over_a_uv_that_does_not_run(fresh_clone: Path, tmp_path: Path):
    """A version manager puts shims on PATH for programs that its current version lacks."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "uv").write_text("#!/bin/sh\nexit 127\n")
    (shims / "uv").chmod(0o755)
    own = fresh_clone / ".tools/bin"
    own.mkdir(parents=True)
    (own / "uv").write_text('#!/bin/sh\necho "$UV_PYTHON_DOWNLOADS $*" >> "$LOG"\n[ "$1" = --version ]\n')
    (own / "uv").chmod(0o755)
    log = tmp_path / "log"
    done = run_setup(fresh_clone, "runtime", PATH=f"{shims}:{os.defpath}", LOG=str(log))
    assert done.returncode == 2
    assert log.read_text().splitlines()[-1].startswith("never venv ")


@pytest.mark.covers("CORE-REPO-04")
@pytest.mark.parametrize("layer", ["runtime", "dev"])
def test_setup_installs_exactly_what_the_lock_names(fresh_clone: Path, tmp_path: Path, layer: str):
    own = fresh_clone / ".tools/bin"
    own.mkdir(parents=True)
    (own / "uv").write_text('#!/bin/sh\necho "$*" >> "$LOG"\n[ "$1" != pip ]\n')
    (own / "uv").chmod(0o755)
    log = tmp_path / "log"
    run_setup(fresh_clone, layer, PATH=os.defpath, LOG=str(log))
    call = log.read_text().splitlines()[-1].split()
    assert call[:2] == ["pip", "sync"]
    assert "--require-hashes" in call
    assert call[-1] == str(fresh_clone / "requirements" / f"{layer}.lock")


def test_set_up_project_is_importable_and_has_its_command():
    python = ROOT / ".venv/bin/python"
    if not python.exists():
        pytest.skip("the tests run in an environment of someone else's making")
    code = "import importlib.metadata as m, holdfast; print(m.entry_points(name='holdfast'))"
    done = subprocess.run([python, "-I", "-c", code], cwd="/", capture_output=True, text=True, check=True)
    assert "holdfast.cli.main:main" in done.stdout
    assert os.access(ROOT / ".venv/bin/holdfast", os.X_OK)
