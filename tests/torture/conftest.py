"""The command line, as the tests of the others call it."""

from __future__ import annotations

import tempfile

import pytest

from tests.cli.conftest import cli, logs

__all__ = ["cli", "logs"]


@pytest.fixture(autouse=True)
def trials(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of the many lives are where the tests' own files are, and go with them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("trials")))
