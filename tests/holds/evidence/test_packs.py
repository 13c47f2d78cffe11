"""Evidence packs: what they hold, and that a script of the standard library alone finds every change."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.errors import ForbiddenError, HoldNotFoundError, InputError
from holdfast.holds.queries.audit import sign_head
from holdfast.holds.queries.evidence import make_pack, signed_pack
from holdfast.types.terms import Actor
from tests.deadlines import HANG
from tests.holds.evidence.conftest import a_flow, decide

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parents[3] / "tools" / "verify_evidence.py"
KEY = b"0123456789abcdef0123456789abcdef"


def verify(pack: bytes, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own that finds nothing of ours to import."""
    file = folder / "pack.json"
    file.write_bytes(pack)
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), str(file), *more],
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("verify_evidence", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


problems: Callable[..., Any] = _module().verify


@pytest.mark.covers("HOLD-AUDIT-03")
async def test_a_pack_of_a_decision_holds_and_says_all_of_it(hf: Holdfast, tmp_path: Path) -> None:
    hold = await decide(hf)

    pack = await make_pack(await hf.open(), hold.id)

    done = verify(pack, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"It holds: hold {hold.id}, 'approve' by user:sam@acme" in done.stdout
    content = json.loads(pack)["content"]
    prompt, options, context, schema = json.loads(content["request"]["shown"])
    assert prompt.startswith("Refund A17: “naïve”")
    assert [option["id"] for option in options] == ["approve", "reject"]
    assert context["customer"] == {"name": "Åsa", "score": 0.1}
    assert "amount" in schema["properties"]
    assert content["hold"]["form"].startswith("sha256:")
    decision = json.loads(content["decision"])
    assert (decision["response_data"]["amount"], decision["comment"]) == (240, "Within limits.")
    assert decision["members"]["person"] == "user:sam@acme"
    assert decision["request_hash"] == content["request"]["hash"] == hold.request_hash
    (skill,) = content["skills"]
    assert (skill["id"], skill["version"]) == ("refunds", "1.0.0")
    assert "Be kind." in skill["said"]
    lines = [json.loads(row["said"])["action"] for row in content["audit"]["rows"] if "data" in row]
    assert lines == ["created", "reassigned", "resolved"]
    # Of other holds the chain has no more than what its hashes are of.
    others = [row for row in content["audit"]["rows"] if "data" not in row]
    assert len(others) >= 4
    assert b"Not this one." not in pack
    assert b"ordered twice" not in pack


@pytest.mark.covers("HOLD-AUDIT-03")
async def test_a_pack_in_which_any_byte_was_changed_does_not_hold(tmp_path: Path) -> None:
    async with Holdfast("memory:") as hf:
        hold = await decide(hf)
        pack = await make_pack(await hf.open(), hold.id, to_head=False)
    assert list(problems(pack)) == []
    chance = random.Random(7)
    places = {0, len(pack) - 1, *chance.sample(range(len(pack)), 600)}

    for place in places:
        other = pack[place] ^ (1 << chance.randrange(8))
        assert list(problems(pack[:place] + bytes([other]) + pack[place + 1 :])), place
        assert list(problems(pack[:place] + pack[place + 1 :])), place

    at = pack.index(b"approve")
    done = verify(pack[:at] + b"APPROVE" + pack[at + 7 :], tmp_path)
    assert done.returncode == 1
    assert "WRONG: " in done.stdout


def change_prompt(content: Any) -> None:
    content["request"]["shown"] = content["request"]["shown"].replace("A17", "B42")


def change_prompt_and_hash(content: Any) -> None:
    change_prompt(content)
    content["request"]["hash"] = "sha256:" + hashlib.sha256(content["request"]["shown"].encode()).hexdigest()


def change_decision(content: Any) -> None:
    content["decision"] = content["decision"].replace('"approve"', '"reject"')


def change_person(content: Any) -> None:
    content["decision"] = content["decision"].replace("sam@acme", "dana@acme")
    content["hold"]["resolved_by"] = "user:dana@acme"


def drop_decision(content: Any) -> None:
    content["decision"] = None
    content["hold"]["status"] = "pending"


def change_skill(content: Any) -> None:
    content["skills"][0]["said"] = content["skills"][0]["said"].replace("kind", "mean")


def swap_skill(content: Any) -> None:
    content["skills"][0]["version"] = "9.9.9"


def edit_record(content: Any) -> None:
    row = next(row for row in content["audit"]["rows"] if '"reassigned"' in row["said"])
    row["said"] = row["said"].replace("boss@acme", "sam@acme")


def edit_data(content: Any) -> None:
    row = next(row for row in content["audit"]["rows"] if "data" in row and "sealed" not in row)
    row["data"] = row["data"].replace("approve", "approved")


def remove_record(content: Any) -> None:
    del content["audit"]["rows"][2]


def swap_records(content: Any) -> None:
    rows = content["audit"]["rows"]
    rows[1], rows[2] = rows[2], rows[1]


def cut_off(content: Any) -> None:
    content["audit"]["rows"].pop()


def change_tenant(content: Any) -> None:
    content["hold"]["tenant"] = "globex"


def change_run(content: Any) -> None:
    content["hold"]["run"] = "11111111-2222-4333-8444-555555555555"


def change_node(content: Any) -> None:
    content["hold"]["node"] = "elsewhere"


FORGERIES = {
    change_run: "is about a hold of another run",
    change_node: "the audit tells of another kind of request",
    change_prompt: "what was shown is not what the request's hash says",
    change_prompt_and_hash: "the audit does not tell that this request was made",
    change_decision: "the audit does not tell that this was decided",
    change_person: "the audit does not tell that this was decided",
    drop_decision: "the audit does not tell that this was decided",
    change_skill: "is not what it was pinned as",
    swap_skill: "the skills are not those that were shown",
    edit_record: "of the audit is not what its hash says",
    edit_data: "of the audit tells was changed",
    remove_record: "does not follow record",
    swap_records: "does not follow record",
    cut_off: "the audit does not end with its head",
    change_tenant: "is another tenant's",
}


@pytest.mark.covers("HOLD-AUDIT-03")
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
async def test_a_pack_that_was_made_to_look_right_again_does_not_hold(
    tmp_path: Path, forge: Callable[[Any], None]
) -> None:
    async with Holdfast("memory:") as hf:
        hold = await decide(hf)
        pack = await make_pack(await hf.open(), hold.id)
    content = json.loads(pack)["content"]
    assert signed_pack(content) == pack

    forge(content)

    said = list(problems(signed_pack(content)))
    assert any(FORGERIES[forge] in each for each in said), said


def forged_anew(content: Any) -> bytes:
    """Whoever can write everything writes another decision, and the whole chain to it."""
    change_decision(content)
    prev = content["audit"]["prev"]
    for row in content["audit"]["rows"]:
        said = json.loads(row["said"])
        if said["action"] == "resolved" and "data" in row:
            kept = hashlib.sha256(content["decision"].encode()).hexdigest()
            row["data"] = json.dumps({**json.loads(row["data"]), "digest": kept})
            said["data"] = hashlib.sha256(row["data"].encode()).hexdigest()
        row["said"] = json.dumps(said, separators=(",", ":"), sort_keys=True)
        row["hash"] = hashlib.sha256(bytes.fromhex(prev) + row["said"].encode()).hexdigest()
        prev = row["hash"]
    if content["audit"]["head"] is not None:
        content["audit"]["head"]["hash"] = prev
    return signed_pack(content, b"another key that is not ours")


@pytest.mark.covers("HOLD-AUDIT-03")
async def test_a_pack_whose_whole_chain_was_made_anew_is_found_out_by_key_and_head(tmp_path: Path) -> None:
    async with Holdfast("memory:") as hf:
        hold = await decide(hf)
        store = await hf.open()
        head = await sign_head(store, "default", KEY)
        pack = await make_pack(store, hold.id, key=KEY)
    key, kept = tmp_path / "audit.key", tmp_path / "head.json"
    key.write_bytes(KEY + b"\n")
    kept.write_bytes(msgspec.json.encode(head))
    moved = tmp_path / "moved.json"
    moved.write_bytes(msgspec.json.encode(msgspec.structs.replace(head, seq=head.seq - 1)))
    forged = forged_anew(json.loads(pack)["content"])

    assert list(problems(forged)) == []
    assert verify(pack, tmp_path, "--key", str(key), "--head", str(kept)).returncode == 0
    by_key = verify(forged, tmp_path, "--key", str(key))
    by_head = verify(forged, tmp_path, "--head", f"{head.seq}:{head.hash}")
    elsewhere = verify(pack, tmp_path, "--head", "99:00")
    unsigned = verify(pack, tmp_path, "--key", str(key), "--head", str(moved))
    assert (by_key.returncode, by_key.stdout) == (1, "WRONG: it is not signed with this key.\n")
    assert by_head.stdout == f"WRONG: record {head.seq} is not the one whose hash you have.\n"
    assert "it cannot be compared with the head that you have" in elsewhere.stdout
    assert (unsigned.returncode, "counts for nothing: it is not signed" in unsigned.stderr) == (2, True)


async def test_a_pack_of_an_open_and_of_a_withdrawn_hold_says_so(hf: Holdfast, tmp_path: Path) -> None:
    given = {"order": "A17", "amount": 250, "customer": "c-9"}
    run = await a_flow().run(given, on=hf)
    store, hold = await hf.open(), run.holds[0]

    waiting = verify(await make_pack(store, hold.id), tmp_path)
    await (await hf.service()).cancel(run.run_id, reason="ordered twice")
    await a_flow().resume(run.run_id, on=hf)
    withdrawn = verify(await make_pack(store, hold.id), tmp_path)

    assert f"hold {hold.id}, pending" in waiting.stdout
    assert f"hold {hold.id}, cancelled" in withdrawn.stdout
    assert json.loads(await make_pack(store, hold.id))["content"]["skills"] == []


@pytest.mark.covers("HOLD-AUDIT-03")
async def test_a_pack_is_handed_out_to_who_may_see_the_hold_and_that_is_audited(hf: Holdfast) -> None:
    hold = await decide(hf)
    service, store = await hf.holds(), await hf.open()

    pack = await service.evidence(Actor(id="user:sam@acme"), hold.id)
    with pytest.raises(ForbiddenError):
        await service.evidence(Actor(id="user:stranger@acme"), hold.id)
    with pytest.raises(HoldNotFoundError):
        await service.evidence(Actor(id="user:sam@acme", tenant="globex"), hold.id)

    *_, exported, refused = await store.audit("default", hold=hold.id)
    assert (exported.action, exported.actor) == ("exported", "user:sam@acme")
    assert json.loads(exported.data)["digest"] == json.loads(pack)["digest"]
    assert (refused.action, refused.actor) == ("refused", "user:stranger@acme")
    assert list(problems(pack)) == []
    assert list(problems(await make_pack(store, hold.id))) == []


async def test_a_pack_is_made_of_ones_own_holds_only(hf: Holdfast) -> None:
    hold = await decide(hf)
    store = await hf.open()

    with pytest.raises(HoldNotFoundError):
        await make_pack(store, hold.id, tenant="globex")
    with pytest.raises(HoldNotFoundError):
        await make_pack(store, "no-such-hold")
    with pytest.raises(InputError, match="at least 16 bytes"):
        await make_pack(store, hold.id, key=b"short")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"null", b'{"content":{}}', b"\xff", b"[" * 5000, b'"x"'])
def test_what_is_no_pack_is_reported_without_a_traceback(raw: bytes) -> None:
    assert list(problems(raw))
