"""E-mail by SMTP: one message per person, each with a personal link.

The recipients are people by their address, and the members of groups and roles.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterable, Sequence
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from hashlib import sha256

import msgspec

from holdfast.errors import SettingsError
from holdfast.holds.directory.base import Directory, Person
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.escape import error_line, one_line
from holdfast.holds.notify.mail_text import as_html, as_text
from holdfast.holds.notify.notice import Notice
from holdfast.holds.permissions.assignees import looks_like_email, person_key
from holdfast.types.clock import Clock, SystemClock
from holdfast.types.own_threads import in_thread
from holdfast.types.redaction import redactor
from holdfast.types.terms import Assignee


async def mail_addresses(to: Assignee, tenant: str, directory: Directory | None, now: int) -> Sequence[str]:
    """A value that looks like an address is used unchanged (NO-4); the substitute of its owner is notified
    too. Other values are looked up in the directory; without one, no mail is sent (NO-5)."""
    if directory is None:
        return _each_once((to.value,)) if to.type == "user" else ()
    if to.type == "user":
        known = await directory.person(tenant, to.value)
        written = (to.value,) if known is None or known.active else ()
        return _each_once((*written, *await _of_people((to.value,), tenant, directory, now)))
    if to.type not in ("group", "role"):
        return ()
    ask = directory.group if to.type == "group" else directory.role
    circle = await ask(tenant, to.value)
    return () if circle is None else await _of_people(circle.members, tenant, directory, now)


async def _of_people(refs: Iterable[str], tenant: str, directory: Directory, now: int) -> Sequence[str]:
    """For a person who is away, their substitute is notified. People who are not active are skipped."""
    found: list[str] = []
    for ref in refs:
        person = await _present(await directory.person(tenant, ref), tenant, directory, now)
        if person is None:
            found.append(ref)
        elif person.active:
            found.append(person.email)
    return _each_once(found)


def _each_once(addresses: Iterable[str]) -> Sequence[str]:
    found: dict[str, str] = {}
    for address in addresses:
        if looks_like_email(address):
            found.setdefault(person_key(address), address)
    return tuple(found.values())


async def _present(person: Person | None, tenant: str, directory: Directory, now: int) -> Person | None:
    if person is None or person.away is None or not person.away.is_active(now):
        return person
    return await directory.person(tenant, person.away.substitute) or person


SECURITY = ("starttls", "tls", "none")


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """A mail server, and how to log in. `security`: starttls, tls (from the first byte) or none. `ca`: a file
    with the certificates to trust, instead of the system's."""

    host: str
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = ""
    timeout: float = 30.0
    ca: str = ""

    def __repr__(self) -> str:
        return f"Server({self.host!r}, port={self.port})"


class Smtp:
    """A channel for people: users by their address, groups and roles by that of each member."""

    personal = True

    def __init__(
        self,
        name: str,
        server: MailServer,
        sender: str,
        *,
        directory: Directory | None = None,
        scope: ChannelScope | None = None,
        admins: Sequence[str] = (),
        clock: Clock | None = None,
        reply: str = "",
    ) -> None:
        """`reply`: the mailbox for replies (`reply@in.example.com`); each reader gets a personal sub-address
        of it. Without it, holds cannot be decided by mail."""
        # A local part has at most 64 characters, and the token after the + takes 48 of them.
        if reply and (not looks_like_email(reply) or "+" in reply or len(reply.partition("@")[0]) > 15):
            raise SettingsError(
                f"{name}.reply {reply!r} is not a reply address.",
                hint="Write reply@in.example.com, with at most 15 letters before the @.",
            )
        if server.security not in SECURITY:
            raise SettingsError(
                f"{name}.security is {server.security!r}.", hint=f"Choose one of: {', '.join(SECURITY)}."
            )
        # Refused at start-up and not at the first mail: by
        # then the password would have been sent in clear text.
        if server.security == "none" and server.password:
            raise SettingsError(f"{name} would send its password unencrypted.", hint="Use starttls or tls.")
        if not looks_like_email(parseaddr(sender)[1]):
            raise SettingsError(
                f"{name}.sender {sender!r} is not an address.", hint="Write Name <name@host>."
            )
        redactor.learn(server.password)
        self.name = name
        self.scope = scope or ChannelScope(outcomes=False)
        self._server = server
        self._sender = sender
        self._directory = directory
        self._admins = tuple(admins)
        self._clock = clock or SystemClock()
        self._reply = reply

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return await mail_addresses(to, tenant, self._directory, self._clock.now())

    async def admins(self) -> Sequence[str]:
        return self._admins

    async def send(self, notice: Notice) -> Delivery:
        if not looks_like_email(notice.to):
            return Delivery(accepted=False, detail=f"{one_line(notice.to)!r} is not an address")
        try:
            message = self._message(notice)
            # In a thread: smtplib blocks, and runs share this event loop.
            await in_thread(self._hand_over, message, notice.to)
        except smtplib.SMTPRecipientsRefused as error:
            return _refused(*error.recipients.get(notice.to, (550, b"refused")))
        except smtplib.SMTPResponseException as error:
            return _refused(error.smtp_code, error.smtp_error)
        except smtplib.SMTPNotSupportedError as error:
            # Before SMTPException, its base class, which is
            # retried: a server does not learn STARTTLS by waiting.
            return Delivery(accepted=False, detail=error_line(error))
        except (smtplib.SMTPException, OSError) as error:
            return Delivery(accepted=False, retry=True, detail=error_line(error))
        except ValueError as error:
            return Delivery(accepted=False, detail=error_line(error))
        return Delivery(accepted=True, detail="accepted by the mail server")

    def _message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = notice.to
        message["Subject"] = one_line(notice.subject, 200)
        message["Message-ID"] = self._name_of(notice.id, notice.to)
        if notice.hold:
            # These headers make one thread per hold in the reader's mailbox.
            message["References"] = self._name_of(notice.hold, notice.to)
        if self._reply and notice.reply_token:
            local, _, domain = self._reply.partition("@")
            message["Reply-To"] = f"{local}+{notice.reply_token}@{domain}"
        else:
            # Without a reply mailbox the text must not invite the reader to reply.
            notice = msgspec.structs.replace(notice, reply_token="")
        # Both headers ask programs that reply automatically not to answer;
        # the mailbox for replies also ignores their mails.
        message["Auto-Submitted"] = "auto-generated"
        message["X-Auto-Response-Suppress"] = "All"
        message.set_content(as_text(notice))
        message.add_alternative(as_html(notice), subtype="html")
        return message

    def _name_of(self, what: str, to: str) -> str:
        """The same for each attempt, so that a mailbox can drop duplicates."""
        domain = parseaddr(self._sender)[1].partition("@")[2]
        return f"<{sha256(f'{what}/{to}'.encode()).hexdigest()[:32]}@{domain}>"

    def _hand_over(self, message: EmailMessage, to: str) -> None:
        server = self._server
        trusted = None if server.security == "none" else ssl.create_default_context(cafile=server.ca or None)
        if server.security == "tls":
            client = smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=trusted)
        else:
            client = smtplib.SMTP(server.host, server.port, timeout=server.timeout)
        with client:
            if server.security == "starttls":
                client.starttls(context=trusted)
            if server.user:
                client.login(server.user, server.password)
            client.send_message(message, parseaddr(self._sender)[1], [to])


def _refused(code: int, reply: bytes | str) -> Delivery:
    """4xx is temporary, 5xx is final."""
    words = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return Delivery(accepted=False, retry=400 <= code < 500, detail=error_line(f"SMTP {code}: {words}"))
