from __future__ import annotations

import pytest

from tests.minutes import folder_of
from tests.services import absent


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/unit/engine/test_step.py::test_it", "tests/unit"),
        ("tests/crash/test_kill.py::test_it[a/b::c]", "tests/crash"),
        ("tests/test_here.py::test_it", "tests"),
    ],
)
def test_minutes_are_counted_for_the_first_folder(nodeid: str, folder: str):
    assert folder_of(nodeid) == folder


def test_absent_service_skips_when_nobody_requires_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOLDFAST_REQUIRE", "mariadb")
    with pytest.raises(pytest.skip.Exception, match="postgres is absent: no server"):
        absent("postgres", "no server")


def test_absent_service_fails_when_it_is_required(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOLDFAST_REQUIRE", "mariadb, postgres")
    with pytest.raises(pytest.fail.Exception, match="postgres is required"):
        absent("postgres", "no server")
