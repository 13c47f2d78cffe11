from __future__ import annotations

import secrets
from datetime import timedelta

import pytest

from holdfast.store.blob import s3
from tests.services.s3 import S3Server, server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the server, which takes a second to start and 150 MB."""
    for item in items:
        if item.nodeid.startswith("tests/blobs/"):
            item.add_marker(pytest.mark.xdist_group("s3"))


@pytest.fixture
def prefix() -> str:
    """A part of the bucket that no other test uses."""
    return f"t/{secrets.token_hex(6)}"


@pytest.fixture
def s3_server() -> S3Server:
    return server()


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in production, but in tenths of seconds."""
    monkeypatch.setattr(
        s3, "_CLIENT", {"connect_timeout": timedelta(seconds=0.3), "timeout": timedelta(seconds=0.6)}
    )
    retry = {
        "max_retries": 2,
        "retry_timeout": timedelta(seconds=2),
        "backoff": {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=20)},
    }
    monkeypatch.setattr(s3, "_RETRY", retry)
