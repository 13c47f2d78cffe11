from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.deadlines import HANG

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    from tests.services import prefork

    here = Path.cwd()
    (here / "seen.py").write_text("import sys; print('holdfast.app.flow' in sys.modules)")
    print(prefork.run("seen", [], cwd=here, env=os.environ))
"""


def test_children_have_holdfast_imported_when_the_first_one_is_started_from_another_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "program.py", str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG)
    assert r"stdout='True\n'" in done.stdout, done.stdout + done.stderr


def test_nothing_else_says_what_the_fork_server_imports() -> None:
    """A process has one fork server; the last list that is set before its start counts."""
    setting = "set_forkserver_preload("
    own = Path(__file__).resolve()
    files = [
        file for file in (ROOT / "tests").rglob("*.py") if file != own and setting in file.read_text("utf-8")
    ]
    assert [file.relative_to(ROOT).as_posix() for file in files] == ["tests/services/prefork.py"]
