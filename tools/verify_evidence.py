"""Checks the evidence of a decision offline: python verify_evidence.py PACK.json [--key FILE] [--head HEAD]

Needs Python 3.11 and nothing else: copy this file to wherever packs are kept. It finds any edited byte, a
decision that is not the one in the audit, a request that is not the one that was shown, a skill that is not
the pinned one, and a record of the audit that was edited, removed or put elsewhere.

Whoever makes a whole pack anew, with a chain of its own, is found out by what they do not have: the key that
packs are signed with (--key), or a head of the audit that was written down elsewhere at the time (--head).

Exit code 0: it holds; 1: it does not, and why; 2: the command makes no sense.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = "holdfast-evidence/1"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def as_json(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def verify(raw: bytes, key: bytes | None = None, head: str | None = None) -> Iterator[str]:
    """What is wrong with it; nothing, if it holds."""
    try:
        pack = json.loads(raw)
        content = pack["content"]
        if as_json(pack) + b"\n" != raw:
            yield "the file is not written as it was: bytes were changed, added or left out"
        if pack["digest"] != digest(as_json(content)):
            yield "the content is not what its digest says"
        if set(pack) - {"signature"} != {"content", "digest"} or content["format"] != FORMAT:
            yield f"it is no pack of the form {FORMAT}"
        yield from check_signature(pack, content, key)
        yield from check_content(content)
        yield from check_chain(content, head)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        yield f"it cannot be read: {type(error).__name__}: {error}"


def check_signature(pack: Any, content: Any, key: bytes | None) -> Iterator[str]:
    if key is None:
        return
    signed = "hmac-sha256:" + hmac.digest(key, as_json(content), "sha256").hex()
    if not hmac.compare_digest(pack.get("signature") or "", signed):
        yield "it is not signed with this key"


MOVES = ("reassigned", "escalated")


def check_content(content: Any) -> Iterator[str]:
    hold, request = content["hold"], content["request"]
    if digest(request["shown"].encode()) != request["hash"]:
        yield "what was shown is not what the request's hash says"
    _, _, context, schema = json.loads(request["shown"])
    if hold["form"] is None and schema is not None:
        yield "a form was shown that the hold does not name"
    pins = [{name: skill[name] for name in ("id", "version", "digest")} for skill in content["skills"]]
    if pins != (context.get("resolved_skills") or []):
        yield "the skills are not those that were shown"
    for skill in content["skills"]:
        if skill["said"] is not None and digest(skill["said"].encode()) != skill["digest"]:
            yield f"skill {skill['id']}@{skill['version']} is not what it was pinned as"
    if (content["decision"] is not None) != (hold["status"] == "resolved"):
        yield f"the hold is {hold['status']}, and the decision does not fit that"
    if content["decision"] is not None:
        said = json.loads(content["decision"])
        if said.get("request_hash") not in (None, request["hash"]):
            yield "the decision is on another request than the one that was shown"
        if (said["resolved_by"], said["resolved_at"]) != (hold["resolved_by"], hold["resolved_at"]):
            yield "the hold does not say who decided, or when, as the decision does"


def check_chain(content: Any, head: str | None) -> Iterator[str]:
    audit, hold = content["audit"], content["hold"]["id"]
    prev, seq, seen, text = audit["prev"], None, {}, []
    for row in audit["rows"]:
        said = json.loads(row["said"])
        if seq is not None and said["seq"] != seq + 1:
            yield f"record {said['seq']} of the audit does not follow record {seq}"
        seq = said["seq"]
        if hashlib.sha256(bytes.fromhex(prev) + row["said"].encode()).hexdigest() != row["hash"]:
            yield f"record {seq} of the audit is not what its hash says"
        prev = seen[seq] = row["hash"]
        if said["tenant"] != content["hold"]["tenant"]:
            yield f"record {seq} of the audit is another tenant's"
        if said["hold"] == hold and said["run"] != content["hold"]["run"]:
            yield f"record {seq} of the audit is about a hold of another run"
        if said["hold"] == hold:
            stored = base64.b64decode(row["sealed"]) if "sealed" in row else row["data"].encode()
            if hashlib.sha256(stored).hexdigest() != said["data"]:
                yield f"what record {seq} of the audit tells was changed"
            text.append((said["action"], said["actor"], json.loads(row["data"]) if row["data"] else {}))
    if audit["head"] is not None and audit["head"] != {"seq": seq, "hash": prev}:
        yield "the audit does not end with its head"
    yield from check_audit(content, text)
    if head is not None:
        yield from check_head(head, seen)


def check_audit(content: Any, lines: list[tuple[str, str, Any]]) -> Iterator[str]:
    """The audit must tell of this request, and of this decision and no other."""
    hold = content["hold"]
    created = [data for action, _, data in lines if action == "created"]
    if len(created) != 1 or created[0].get("request_hash") != content["request"]["hash"]:
        yield "the audit does not tell that this request was made"
    elif (created[0]["node"], created[0]["type"]) != (hold["node"], hold["type"]):
        yield "the audit tells of another kind of request"
    else:
        moves = [data for action, _, data in lines if action in MOVES]
        raises = [data for action, _, data in lines if action == "raised"]
        yield from check_facts(hold, created[0], moves, raises)
    made = [(who, data.get("digest")) for action, who, data in lines if action == "resolved"]
    kept = content["decision"]
    wanted = [] if kept is None else [(hold["resolved_by"], digest(kept.encode())[7:])]
    if made != wanted:
        yield "the audit does not tell that this was decided, by this person"


def check_facts(hold: Any, created: Any, moves: list[Any], raises: list[Any]) -> Iterator[str]:
    """On what terms it was asked, and whom it waits for, are in the audit too."""
    facts = {name: hold[name] for name in ("block_index", "created_at", "priority", "terms")}
    if "facts" in created and created["facts"] != hashlib.sha256(as_json(facts)).hexdigest():
        yield "the audit tells of other terms, or another time or priority"
    if hold.get("raised_to") != (raises[-1]["to"] if raises else None):
        yield "the audit tells of another priority"
    kind, value = hold["assignee_type"], hold["assignee_value"]
    now, then = (
        (f"{kind}:{value}" if value else kind, moves[-1]["to"])
        if moves
        else (hold["assignee"], created["assignee"])
    )
    if now != then:
        yield "the audit tells that it waits for somebody else"


def check_head(head: str, seen: dict[int, str]) -> Iterator[str]:
    seq, _, wanted = head.partition(":")
    if int(seq) not in seen:
        yield f"record {seq} is not in this pack: it cannot be compared with the head that you have"
    elif not hmac.compare_digest(seen[int(seq)], wanted.lower()):
        yield f"record {seq} is not the one whose hash you have"


def head_of(given: str, key: bytes | None) -> str:
    """As `holdfast audit head` wrote it, or by hand. With the key its own signature counts too."""
    if not Path(given).is_file():
        return given
    kept = json.loads(Path(given).read_bytes())
    said = {name: value for name, value in kept.items() if name != "signature"}
    if key is not None and not hmac.compare_digest(
        hmac.digest(key, as_json(said), "sha256").hex(), kept.get("signature", "")
    ):
        raise ValueError("it is not signed with this key")
    return f"{kept['seq']}:{kept['hash']}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the evidence of a decision.")
    parser.add_argument("pack", type=Path)
    parser.add_argument("--key", type=Path, help="a file with the key that packs are signed with")
    parser.add_argument("--head", help="where the audit stood, as you kept it: SEQ:HASH, or a file with both")
    given = parser.parse_args()
    try:
        raw = given.pack.read_bytes()
        key = None if given.key is None else given.key.read_bytes().strip()
        head = None if given.head is None else head_of(given.head, key)
    except OSError as error:
        parser.error(f"{error.filename} cannot be read: {error.strerror}")
    except (ValueError, KeyError, AttributeError) as error:
        parser.error(f"the head in {given.head} counts for nothing: {error}")
    problems = list(verify(raw, key, head))
    for problem in problems:
        print(f"WRONG: {problem}.")
    if not problems:
        content = json.loads(raw)["content"]
        decided = json.loads(content["decision"] or "{}")
        said = (
            f"{decided['decision']!r} by {decided['resolved_by']}" if decided else content["hold"]["status"]
        )
        print(f"It holds: hold {content['hold']['id']}, {said}; {len(content['audit']['rows'])} records.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
