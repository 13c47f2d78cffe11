"""`holdfast notify` and `holdfast links`, against a real server for webhooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Said
from tests.cli.test_bad_input import complains
from tests.deadlines import HANG
from tests.holds.notify.servers import HttpServer, http_server

FLOW = """
from holdfast import Flow

refund = Flow("refund", effect="read")
refund.hold("approve", prompt="Refund?", options=["approve", "reject"], assignee="user:dana@acme.example")
"""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """On a loop of its own: each command has another."""
    loop, found, done = asyncio.new_event_loop(), [], asyncio.Event()
    ready = threading.Event()

    async def serve() -> None:
        async with http_server() as made:
            found.append(made)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait(HANG)
    yield found[0]
    loop.call_soon_threadsafe(done.set)
    thread.join(HANG)
    loop.close()


@pytest.fixture
def hold(cli: Cli, server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPS_URL", server.url)
    monkeypatch.setenv("HOLDFAST_NOTIFY", "notify.toml")
    Path("notify.toml").write_text(
        f'base_url = "https://holdfast.example"\nallow = ["127.0.0.1:{server.port}"]\n'
        '[[channel]]\nname = "ops"\nkind = "slack"\nurl = "${OPS_URL}"\n'
        '[[channel]]\nname = "mail"\nkind = "smtp"\nhost = "127.0.0.1"\nport = 9\nsecurity = "none"\n'
        'sender = "h@acme.example"\ntopics = ["hold.reminded"]\n'
    )
    Path("refund.py").write_text(FLOW)
    said: Said = cli("run", "refund.py", "--json")
    return said.json["holds"][0]["id"]


def test_a_channel_is_listed_and_tried_out(cli: Cli, hold: str, server: HttpServer) -> None:
    assert cli("notify", "channels").out.splitlines()[1].split()[:2] == ["ops", "slack"]
    assert [each["name"] for each in cli("notify", "channels", "--json").items] == ["ops", "mail"]
    assert "accepted the message" in cli("notify", "test", "ops").out
    assert "No decision is needed" in server.seen[0].body.decode()
    server.says(500, body="broken")
    failed = cli("notify", "test", "ops", "--json")
    assert (failed.code, failed.json["accepted"]) == (1, False)
    complains(cli("notify", "test", "mail"), 2, "--to ADDRESS")
    complains(cli("notify", "test", "pigeon"), 2, "There are: ops, mail")


@pytest.mark.covers("HOLD-NOTE-07")
def test_what_was_given_up_is_listed_and_replayed(cli: Cli, hold: str, server: HttpServer) -> None:
    server.says(404, body="no_service")
    assert cli("notify", "deliver", "--json").json["dead"] == 1
    (dead,) = cli("notify", "dead", "--json").items
    assert (dead["hold"], dead["topic"], dead["error"]) == (hold, "hold.created", "HTTP 404: no_service")
    assert "no_service" in cli("notify", "dead").out
    complains(cli("notify", "replay"), 2, "--all")
    complains(cli("notify", "replay", "999"), 2, "was not given up")
    assert cli("notify", "replay", str(dead["number"]), "--json").json == {
        "replayed": [dead["number"]],
        "delivered": 1,
    }
    assert cli("notify", "dead").out == "No undelivered messages.\n"
    assert len(server.seen) == 2


def test_no_secret_is_shown_by_any_command(cli: Cli, hold: str, server: HttpServer) -> None:
    server.says(500, body=f"what is {server.url}?")
    said = [cli("notify", "channels"), cli("notify", "test", "ops"), cli("notify", "dead")]
    assert not any(server.url in each.out + each.err for each in said)


def test_a_channel_is_kept_for_one_tenant_and_deleted(cli: Cli, hold: str, tmp_path: Path) -> None:
    file = tmp_path / "chat.toml"
    file.write_text('name = "chat"\nkind = "slack"\nurl = "https://hooks.slack.example/services/x"\n')
    assert "acme is notified through chat" in cli("notify", "set", str(file), "--tenant", "acme").out
    named = [each["name"] for each in cli("notify", "channels", "--tenant", "acme", "--json").items]
    assert "chat" in named
    assert "chat" not in cli("notify", "channels").out
    assert "no longer notified through chat" in cli("notify", "delete", "chat", "--tenant", "acme").out
    complains(cli("notify", "delete", "chat", "--tenant", "acme"), 2, "no channel 'chat'")
    file.write_text('name = "chat"\nkind = "slack"\nurl = "http://10.0.0.1/x"\n')
    complains(cli("notify", "set", str(file)), 2, "is not https")
    file.write_text('name = "mail"\nkind = "smtp"\nhost = "x"\nsender = "a@b"\n')
    complains(cli("notify", "set", str(file)), 2, "smtp")


@pytest.mark.covers("HOLD-NOTE-06")
def test_a_link_is_made_for_one_person_and_revoked(cli: Cli, hold: str) -> None:
    made = cli("links", "create", hold, "--to", "user:dana@acme.example").out.strip()
    assert made.startswith("https://holdfast.example/l/v1.")
    assert cli("links", "create", hold[:8], "--to", "user:dana@acme.example").out.startswith("https:")
    complains(cli("links", "create", hold, "--to", "group:finance"), 2, "is not a person")
    complains(cli("links", "create", "nothing", "--to", "user:x"), 2, "neither a hold nor a run")
    assert cli("links", "revoke", hold, "--json").json == {"hold": hold, "epoch": 2}
    (key,) = cli("links", "keys", "--json").items
    assert len(cli("links", "keys", "--rotate", "--json").items) == 2
    assert key["key"] not in cli("links", "keys", "--delete", key["key"]).out
    complains(cli("links", "keys", "--delete", key["key"]), 2, f"no link key {key['key']!r}")
    assert ":" in cli("links", "new-key").out
    assert cli("notify", "secret", "--json").json["secret"].startswith("whsec_")


def test_nobody_is_reported_when_there_is_no_channel(cli: Cli) -> None:
    assert "no notifications are sent" in cli("notify", "channels").out


def test_a_broken_file_of_channels_is_reported_with_its_field(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_NOTIFY", "notify.toml")
    Path("notify.toml").write_text('[[channel]]\nname = "mail"\nkind = "smtp"\nsender = "a@b"\n')
    complains(cli("notify", "channels"), 2, "host")
