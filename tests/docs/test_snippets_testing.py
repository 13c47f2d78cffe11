"""The page about testing is a test file: it is put together from its snippets and run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.deadlines import HANG

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-your-flows.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_page_about_testing_passes_when_its_snippets_are_run(tmp_path: Path) -> None:
    conftest, *snippets = PYTHON.findall(PAGE.read_text())
    backend = "\nimport pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    (tmp_path / "conftest.py").write_text(conftest + backend)
    mark = "import pytest\npytestmark = pytest.mark.anyio\n"
    (tmp_path / "test_page.py").write_text(mark + "\n".join(snippets))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "error"),
            # Loaded by its name: the environment of a clone has no entry points.
            *("-p", "no:schemathesis", "-p", "no:langsmith_plugin", "-p", "holdfast.testing.pytest_entry"),
            *("-p", "no:asyncio", "--rootdir", tmp_path, tmp_path),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=HANG,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout, done.stdout
