"""Parses a mail reply, and checks its sender by the headers of our mail server.

Nothing is guessed. Words below a quote, in a signature or beside the keyword are not a decision, and
automatic mails never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage
from email.policy import default
from email.utils import getaddresses
from typing import Final

import msgspec

from holdfast.holds.permissions.assignees import looks_like_email
from holdfast.types.hold import Option

_RECIPIENTS: Final = ("to", "cc", "delivered-to", "x-original-to", "envelope-to", "x-forwarded-to")
_BULK: Final = frozenset({"bulk", "junk", "list", "auto_reply", "auto-reply"})
_AUTOMATIC: Final = ("x-autoreply", "x-autorespond", "x-auto-reply", "list-id", "list-unsubscribe")
_OUTLOOK = re.compile(r"_{10,}|-{2,}\s*\w.*-{2,}\s*$|(From|Von|De|Da|Van|Från|Od):\s.*[@<]", re.IGNORECASE)
_COMMENT = re.compile(r"comment\s*:", re.IGNORECASE)
_RESULT = re.compile(r"\s*([a-z-]+)\s*=\s*([a-z]+)(.*)", re.IGNORECASE | re.DOTALL)
_FROM_DOMAIN = re.compile(r"\sheader\.from\s*=\s*(\S+)", re.IGNORECASE)
_WORD = re.compile(r"[\w.@+-]*")


class MailMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`sender`: its only From address; `recipients`: all its recipients; `text`: none if it has no plain
    text. `automatic`: why it counts as an automatic mail. `proven`: whether the mail server authenticated
    the sender."""

    sender: str
    recipients: tuple[str, ...]
    text: str | None
    automatic: str | None
    proven: bool


def read_mail(raw: bytes, authserv_id: str) -> MailMessage | None:
    """None if it is not a mail from one sender."""
    try:
        message = message_from_bytes(raw, policy=default)
        if not isinstance(message, EmailMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return None
        written, senders = getaddresses(_all(message, "from")), _addresses(message, ("from",))
        # Also no second one that is none: the mail server may have checked that.
        if len(written) != 1 or len(senders) != 1 or len(_all(message, "from")) != 1:
            return None
        sender = senders[0]
        return MailMessage(
            sender=sender,
            recipients=tuple(_addresses(message, _RECIPIENTS)),
            text=_text(message),
            automatic=_automatic(message),
            proven=is_proven(_all(message, "authentication-results"), sender, authserv_id),
        )
    except (MessageError, ValueError, LookupError, AttributeError, IndexError, TypeError):
        # The library raises various errors for headers that it cannot parse.
        return None


def _all(message: EmailMessage, name: str) -> list[str]:
    return [str(each) for each in message.get_all(name, [])]


def _addresses(message: EmailMessage, names: Iterable[str]) -> list[str]:
    given = [value for name in names for value in _all(message, name)]
    return list(dict.fromkeys(each.lower() for _, each in getaddresses(given) if looks_like_email(each)))


def _text(message: EmailMessage) -> str | None:
    # Plain text only: in HTML a word may be invisible to the person who sent it.
    part = message.get_body(preferencelist=("plain",))
    content = None if part is None else part.get_content()
    return content if isinstance(content, str) else None


def _automatic(message: EmailMessage) -> str | None:
    """By RFC 3834, and by older headers."""
    submitted = str(message.get("auto-submitted", "no")).partition(";")[0].strip().lower()
    if submitted != "no":
        return f"its Auto-Submitted is {submitted or 'automatic'}"
    if str(message.get("precedence", "")).strip().lower() in _BULK:
        return "its Precedence is bulk"
    if any(message.get(name) is not None for name in _AUTOMATIC):
        return "it is an automatic answer, or from a mailing list"
    if (
        message.get_content_type() == "multipart/report"
        or str(message.get("return-path", "x")).strip() == "<>"
    ):
        return "it is a report of a mail server"
    return None


# ---------------------------------------------------------------------- the sender


def is_proven(results: Sequence[str], sender: str, authserv_id: str) -> bool:
    """By the topmost Authentication-Results of our mail server: others may have been in the message when it
    arrived. DMARC must have passed for the sender's domain, and SPF or DKIM too."""
    ours = [each for each in results if _server(each) == authserv_id.lower()]
    if not ours:
        return False
    found: dict[str, list[tuple[str, str]]] = {}
    for part in _without_free_text(ours[0]).split(";")[1:]:
        if match := _RESULT.fullmatch(part):
            found.setdefault(match[1].lower(), []).append((match[2].lower(), match[3]))
    dmarc = found.get("dmarc", [])
    domain = sender.rpartition("@")[2]
    named = _FROM_DOMAIN.search(dmarc[0][1]) if len(dmarc) == 1 else None
    # Exactly one result: with several it is not clear which of them is about this sender.
    passed = len(dmarc) == 1 and dmarc[0][0] == "pass" and named is not None and named[1].lower() == domain
    # One of the two is enough: to require both would refuse mail that was forwarded honestly.
    return passed and any(word == "pass" for name in ("spf", "dkim") for word, _ in found.get(name, []))


def _without_free_text(result: str) -> str:
    """Without comments, which may be nested, and with quoted texts only where they are plain words: both may
    repeat what the sender wrote, such as results that were never checked."""
    kept: list[str] = []
    depth, at = 0, 0
    while at < len(result):
        letter = result[at]
        if letter == "\\" and depth:
            at += 1
        elif letter == '"' and not depth:
            end = _end_of_quote(result, at)
            inside = result[at + 1 : end]
            kept.append(inside if _WORD.fullmatch(inside) else "_")
            at = end
        elif letter in "()":
            depth = max(0, depth + (1 if letter == "(" else -1))
            kept.append(" ")
        elif not depth:
            kept.append(letter)
        at += 1
    return "".join(kept)


def _end_of_quote(result: str, start: int) -> int:
    at = start + 1
    while at < len(result) and result[at] != '"':
        at += 2 if result[at] == "\\" else 1
    return at


def _server(result: str) -> str:
    """The authserv-id, which may be followed by a version."""
    words = result.partition(";")[0].split()
    return words[0].lower() if words else ""


# ---------------------------------------------------------------------- the content


class MailDecision(msgspec.Struct, frozen=True):
    decision: str
    comment: str | None = None


def decision_in(text: str, options: Sequence[Option]) -> MailDecision | None:
    """One keyword, alone on its line above the quote, by its id or label in any case; then nothing, or a
    comment that starts with `Comment:`. None for everything else."""
    lines = own_lines(text)
    if not lines:
        return None
    word = lines[0].strip().strip(".!").casefold()
    meant = {
        option.id
        for option in options
        if word in (option.id.casefold(), option.label.casefold(), option.text.casefold())
    }
    rest = "\n".join(lines[1:]).strip()
    if len(meant) != 1 or (rest and _COMMENT.match(rest) is None):
        return None
    comment = _COMMENT.sub("", rest, count=1).strip()
    return MailDecision(meant.pop(), comment or None)


def own_lines(text: str) -> list[str]:
    """The sender's text above the quote and the signature, without blank lines at both ends."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith(">"):
            lines = _without_attribution(lines)
            break
        if line.rstrip("\r") in ("-- ", "--") or _OUTLOOK.match(line.strip()):
            break
        lines.append(line.strip())
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _without_attribution(lines: list[str]) -> list[str]:
    """In any language: a block right above the quote that ends with a colon (`On ... wrote:`)."""
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    if kept and kept[-1].endswith(":"):
        while kept and kept[-1]:
            kept.pop()
    return kept
